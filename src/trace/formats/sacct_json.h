// SPDX-License-Identifier: Apache-2.0
// What `sacct --json` prints, as the rows that --parsable2 would have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv_reader.h"
#include "io/text_stream.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Whether a text that begins like this is such an object.
[[nodiscard]] bool LooksLikeSacctJson(std::string_view head);

class SacctJson {
 public:
  // Takes a stream that is at its first block. Steps of jobs are passed over. Errors: no JSON; no
  // list of jobs.
  [[nodiscard]] static Result<SacctJson> Of(io::TextStream text);

  // The columns of all rows.
  [[nodiscard]] static std::vector<std::string> Names();

  // As those of CsvTable.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t LikelyRows() const { return rows_.size(); }
  [[nodiscard]] std::string sha256() const { return sha256_; }
  [[nodiscard]] Status ForEach(const io::RowReader& on_row,
                               const io::BadRowReader& on_bad_row = {}) const;

 private:
  struct Row {
    std::int64_t line = 0;
    std::vector<std::string> fields;
  };

  std::string path_;
  std::string sha256_;
  std::vector<Row> rows_;
};

}  // namespace trainyard::trace
