// SPDX-License-Identifier: Apache-2.0
// Tables that are no CSV: a line for each row, fields without quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "io/text_stream.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// May stand before any text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// How lines are taken apart.
struct LineRules {
  char separator = ' ';    // ' ': any number of blanks and tabs, also around the line
  bool ends_rows = false;  // a separator ends the row, instead of beginning an empty field
  char comment = '\0';     // lines that begin with it are skipped; '\0': none do
  bool first_is_header = false;
};

// The fields of a line.
[[nodiscard]] std::vector<std::string_view> FieldsOf(std::string_view line, const LineRules& rules);

// The lines of a text without their ends, a byte order mark in front, comments and lines of blanks.
class Lines {
 public:
  Lines(std::string_view text, char comment, std::int64_t first_line = 1);

  // False: there is none any more.
  [[nodiscard]] bool Next();
  [[nodiscard]] std::string_view text() const { return line_; }
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  std::int64_t number_;
  char comment_;
};

// Gives out rows as a CsvStream does. A row with another number of fields than `names` is a bad
// one.
class LineStream {
 public:
  // Makes one row of fields that are more than there are names, where it can.
  using Mender = std::function<void(std::vector<std::string_view>& fields)>;

  // Takes a stream that is at its first block.
  LineStream(io::TextStream text, std::vector<std::string> names, const LineRules& rules)
      : text_(std::move(text)), names_(std::move(names)), rules_(rules) {}

  void UseMender(Mender mender) { mender_ = std::move(mender); }

  [[nodiscard]] const std::string& path() const { return text_.path(); }
  // About the number of rows; to reserve for.
  [[nodiscard]] std::size_t LikelyRows() const;
  // The position of a column, or -1.
  [[nodiscard]] int Column(std::string_view name) const;
  // As CsvTable::ForEach. REQUIRES: it is called once.
  [[nodiscard]] Status ForEach(const io::RowReader& on_row,
                               const io::BadRowReader& on_bad_row = {});
  // Of the bytes on disk. REQUIRES: ForEach has come to the end.
  [[nodiscard]] std::string sha256() const { return text_.sha256(); }

 private:
  io::TextStream text_;
  std::vector<std::string> names_;
  LineRules rules_;
  Mender mender_;
};

}  // namespace trainyard::trace
