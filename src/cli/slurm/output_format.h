// SPDX-License-Identifier: Apache-2.0
// Output of Slurm's commands in columns that the user names: squeue -o "%.18i %j" and -O jobid:10,
// sinfo likewise.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// What can be shown of a row.
template <typename Row>
struct OutputField {
  char letter = 0;        // 0: it has a name only
  std::string_view name;  // in lower case, as in -O
  std::string_view heading;
  std::string (*text)(const Row& row) = nullptr;
  double (*number)(const Row& row) = nullptr;  // to sort by; null: by the text
  bool is_sum = false;                         // of several rows together, which it does not part
};

// One place of a line, and what stands before it.
template <typename Row>
struct OutputColumn {
  std::string before;
  const OutputField<Row>* field = nullptr;  // null: what stands behind the last one
  int width = 0;                            // 0: as wide as the text
  bool is_right = false;
  bool fits = false;  // at least as wide as the widest text, "%#9P"
};

// The text in the column; what is too long is cut.
[[nodiscard]] std::string InColumn(std::string text, int width, bool is_right);
// "Sun Nov 29 14:08:46 2026\n".
[[nodiscard]] std::string TimeLine();
// "Invalid job format specification: foo".
[[nodiscard]] Error BadColumn(std::string_view rows, std::string_view column);

template <typename Row>
[[nodiscard]] std::string HeadingLine(std::span<const OutputColumn<Row>> columns) {
  std::string line;
  for (const OutputColumn<Row>& column : columns) {
    line += column.before;
    if (column.field != nullptr) {
      line += InColumn(std::string(column.field->heading), column.width, column.is_right);
    }
  }
  return line + "\n";
}

template <typename Row>
[[nodiscard]] std::string RowLine(std::span<const OutputColumn<Row>> columns, const Row& row) {
  std::string line;
  for (const OutputColumn<Row>& column : columns) {
    line += column.before;
    if (column.field != nullptr) {
      line += InColumn(column.field->text(row), column.width, column.is_right);
    }
  }
  return line + "\n";
}

// "%.18i %j". Errors: a letter that means nothing. `rows`: what the rows are, for messages.
template <typename Row>
[[nodiscard]] Result<std::vector<OutputColumn<Row>>> ColumnsOfFormat(
    std::string_view format, std::span<const OutputField<Row>> fields, std::string_view rows) {
  std::vector<OutputColumn<Row>> columns(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    OutputColumn<Row>& column = columns.back();
    if (format[i] != '%') {
      column.before += format[i];
      continue;
    }
    for (++i; i < format.size() && (format[i] == '.' || format[i] == '#'); ++i) {
      (format[i] == '.' ? column.is_right : column.fits) = true;
    }
    for (; i < format.size() && std::isdigit(static_cast<unsigned char>(format[i])) != 0; ++i) {
      constexpr int kMost = 10'000;
      column.width = std::min(kMost, column.width * 10 + (format[i] - '0'));
    }
    const char letter = i < format.size() ? format[i] : ' ';
    const auto field = std::find_if(
        fields.begin(), fields.end(),
        [letter](const OutputField<Row>& one) { return one.letter != 0 && one.letter == letter; });
    if (field == fields.end()) {
      return BadColumn(rows, std::string_view(&letter, 1));
    }
    column.field = &*field;
    columns.emplace_back();
  }
  return columns;
}

// "jobid,name:30,state:.12": 20 wide where nothing is said. Errors: a name that means nothing.
template <typename Row>
[[nodiscard]] Result<std::vector<OutputColumn<Row>>> ColumnsOfNames(
    std::string_view names, std::span<const OutputField<Row>> fields, std::string_view rows) {
  constexpr int kUnstated = 20;
  std::vector<OutputColumn<Row>> columns;
  for (const std::string_view item : base::Split(names, ",")) {
    const std::string name = live::LowerCase(std::string(item.substr(0, item.find(':'))));
    const auto field =
        std::find_if(fields.begin(), fields.end(),
                     [&name](const OutputField<Row>& one) { return one.name == name; });
    if (field == fields.end()) {
      return BadColumn(rows, name);
    }
    OutputColumn<Row> column{.before = "", .field = &*field, .width = kUnstated};
    if (item.find(':') != std::string_view::npos) {
      std::string_view width = item.substr(item.find(':') + 1);
      column.is_right = width.starts_with('.');
      width.remove_prefix(column.is_right ? 1 : 0);
      column.width = std::max(0, std::atoi(std::string(width).c_str()));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

// Widens the columns that fit their texts.
template <typename Row>
void FitColumns(std::vector<OutputColumn<Row>>& columns, std::span<const Row> rows) {
  for (OutputColumn<Row>& column : columns) {
    if (!column.fits || column.field == nullptr) {
      continue;
    }
    for (const Row& row : rows) {
      column.width = std::max(column.width, static_cast<int>(column.field->text(row).size()));
    }
  }
}

// Prints the rows: behind the time with --long, and below a heading without --noheader.
template <typename Row>
void PrintRows(const SlurmWords& words, std::span<const OutputColumn<Row>> columns,
               std::span<const Row> rows) {
  std::string text;
  if (!words.Has("noheader")) {
    text += (words.Has("long") ? TimeLine() : std::string()) + HeadingLine<Row>(columns);
  }
  for (const Row& row : rows) {
    text += RowLine<Row>(columns, row);
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Sorts by letters of fields, "P,-t,i": '-' is descending. Errors: a letter that means nothing.
template <typename Row>
[[nodiscard]] Status SortRows(std::vector<Row>& rows, std::string_view keys,
                              std::span<const OutputField<Row>> fields) {
  std::vector<std::string_view> each = base::Split(keys, ",");
  std::reverse(each.begin(), each.end());  // the last key first: sorting is stable
  for (std::string_view key : each) {
    const bool falls = key.starts_with('-');
    key.remove_prefix(key.find_first_not_of("+-#") == std::string_view::npos
                          ? key.size()
                          : key.find_first_not_of("+-#"));
    const auto field =
        std::find_if(fields.begin(), fields.end(), [key](const OutputField<Row>& one) {
          return key.size() == 1 && one.letter == key.front();
        });
    if (field == fields.end()) {
      return InvalidArgument("there is no column '" + std::string(key) + "' to sort by");
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      const Row& less = falls ? b : a;
      const Row& more = falls ? a : b;
      return field->number != nullptr ? field->number(less) < field->number(more)
                                      : field->text(less) < field->text(more);
    });
  }
  return {};
}

}  // namespace trainyard::cli
