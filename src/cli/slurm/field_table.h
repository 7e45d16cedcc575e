// SPDX-License-Identifier: Apache-2.0
// Tables of named fields as sacct and sstat print them: fixed widths, or bars between.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"

namespace trainyard::cli {

// `width`: negative: at the left.
template <typename Row>
struct TableField {
  std::string_view heading;
  int width = 10;
  std::string (*text)(const Row& row) = nullptr;
};

template <typename Row>
struct TableColumn {
  const TableField<Row>* field = nullptr;
  int width = 0;
};

// Of "jobid%15,state,elapsed". Errors: a field that there is not. `fields` must outlive the answer.
template <typename Row>
[[nodiscard]] Result<std::vector<TableColumn<Row>>> TableColumns(
    std::string_view format, std::span<const TableField<Row>> fields) {
  const auto lower = [](std::string_view text) { return live::LowerCase(std::string(text)); };
  std::vector<TableColumn<Row>> columns;
  for (const std::string_view item : base::Split(format, ",")) {
    const std::size_t percent = item.find('%');
    const std::string name = lower(item.substr(0, percent));
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const TableField<Row>& one) {
      return lower(one.heading) == name;
    });
    if (field == fields.end()) {
      return InvalidArgument(
          fmt::format("Invalid field requested: \"{}\"", item.substr(0, percent)));
    }
    const int width = percent == std::string_view::npos
                          ? field->width
                          : base::ToInteger<int>(item.substr(percent + 1)).value_or(field->width);
    columns.push_back({.field = &*field, .width = width == 0 ? field->width : width});
  }
  return columns;
}

// The lines of a table of all rows, as --parsable, --parsable2 and --delimiter say.
template <typename Row>
class FieldTable {
 public:
  FieldTable(const SlurmWords& words, std::vector<TableColumn<Row>> columns)
      : columns_(std::move(columns)),
        is_parsed_(words.Has("parsable") || words.Has("parsable2")),
        ends_with_bar_(words.Has("parsable") && !words.Has("parsable2")),
        bar_(words.Value("delimiter").value_or("|")) {}

  [[nodiscard]] std::string Heading() const {
    std::string text =
        LineBy([](const TableColumn<Row>& column) { return std::string(column.field->heading); });
    if (!is_parsed_) {
      for (const TableColumn<Row>& column : columns_) {
        text += std::string(static_cast<std::size_t>(std::abs(column.width)), '-') + " ";
      }
      text += "\n";
    }
    return text;
  }
  [[nodiscard]] std::string LineOf(const Row& row) const {
    return LineBy([&row](const TableColumn<Row>& column) { return column.field->text(row); });
  }
  // With what `text_of` says of each column.
  template <typename TextOf>
  [[nodiscard]] std::string LineBy(const TextOf& text_of) const {
    std::string line;
    for (const TableColumn<Row>& column : columns_) {
      const bool is_last = &column == &columns_.back();
      line += is_parsed_ ? text_of(column) + (is_last && !ends_with_bar_ ? "" : bar_)
                         : Fixed(text_of(column), column.width);
    }
    return line + "\n";
  }

 private:
  // What is cut ends with '+'.
  [[nodiscard]] static std::string Fixed(std::string text, int width) {
    const auto room = static_cast<std::size_t>(std::abs(width));
    if (text.size() > room) {
      text = text.substr(0, room - 1) + "+";
    }
    return (width < 0 ? fmt::format("{:<{}}", text, room) : fmt::format("{:>{}}", text, room)) +
           " ";
  }
  std::vector<TableColumn<Row>> columns_;
  bool is_parsed_;
  bool ends_with_bar_;
  std::string bar_;
};

}  // namespace trainyard::cli
