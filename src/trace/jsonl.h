// SPDX-License-Identifier: Apache-2.0
// Native traces as JSON Lines: one object for each job, with the names of the native columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "io/csv_reader.h"
#include "trace/csv_writer.h"
#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard {

// Whether the first byte that is no blank begins an object.
[[nodiscard]] bool LooksLikeJsonl(std::string_view text);

// A file of objects, given out as rows whose columns are those of the native format in order, so
// that they are checked like those of a CSV table. Blank lines are skipped.
// Errors: a line that is no JSON object; a field that is unknown, missing, there twice or of the
// wrong kind.
class JsonlStream {
 public:
  // Takes a stream that is at its first block.
  explicit JsonlStream(TextStream text) : text_(std::move(text)) {}

  // As those of CsvStream.
  [[nodiscard]] const std::string& path() const { return text_.path(); }
  [[nodiscard]] std::size_t LikelyRows() const;
  [[nodiscard]] Status ForEach(const RowReader& on_row, const BadRowReader& on_bad_row = {});
  [[nodiscard]] std::string sha256() const { return text_.sha256(); }

 private:
  TextStream text_;
};

[[nodiscard]] std::string WriteJsonl(const TraceView& trace);

}  // namespace trainyard
