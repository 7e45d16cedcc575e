// SPDX-License-Identifier: Apache-2.0
// Native traces as JSON Lines: one object for each job, with the names of the native columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "io/csv_reader.h"
#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard {

inline constexpr TraceFormat kJsonlFormat{.name = "jsonl", .help = "the native form as JSON Lines"};

// Whether the first byte that is no blank begins an object.
[[nodiscard]] bool LooksLikeJsonl(std::string_view text);

// A file of objects, given out as rows whose columns are those of the native format in order, so
// that they are checked like those of a CSV table. Blank lines are skipped.
// Errors: a line that is no JSON object; a field that is unknown, missing, there twice or of the
// wrong kind.
class JsonlTable {
 public:
  explicit JsonlTable(TextFile file) : file_(std::move(file)) {}

  [[nodiscard]] const std::string& path() const { return file_.path; }
  // Of the bytes on disk that this table was read from.
  [[nodiscard]] const std::string& sha256() const { return file_.sha256; }
  // No less than the number of rows; to reserve for. O(size of the file).
  [[nodiscard]] std::size_t MostRows() const;
  // As CsvTable::ForEach.
  [[nodiscard]] Status ForEach(const CsvTable::RowReader& on_row,
                               const CsvTable::BadRowReader& on_bad_row = {}) const;

 private:
  TextFile file_;
};

}  // namespace trainyard
