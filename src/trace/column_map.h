// SPDX-License-Identifier: Apache-2.0
// Own names of columns: what --map says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Which column of a file stands for which of a format.
class ColumnMap {
 public:
  // "gpus=n_gpus,submit_time=arrival": names of the format, and behind them those of the file; an
  // empty text maps nothing. Errors: another form, a name that is there twice.
  [[nodiscard]] static Result<ColumnMap> Parse(std::string_view text);

  [[nodiscard]] bool empty() const { return names_.empty(); }
  // Names of the format.
  [[nodiscard]] std::vector<std::string_view> Meanings() const;
  // Empty: the column of the file is not mapped.
  [[nodiscard]] std::string_view MeaningOf(std::string_view own) const;
  // Whether the name belongs to another column of the file.
  [[nodiscard]] bool IsTaken(std::string_view name) const;
  // Errors: a name that is none of `known`, columns of format `format`.
  [[nodiscard]] Status CheckMeanings(std::string_view format,
                                     std::span<const std::string_view> known) const;

  // Names the columns of the header as the format does; one that has such a name by itself is
  // called otherwise. Errors: a column that the table does not have.
  [[nodiscard]] Status Apply(io::CsvHeader& table) const;

 private:
  std::vector<std::pair<std::string, std::string>> names_;  // of the format, of the file
};

}  // namespace trainyard::trace
