// SPDX-License-Identifier: Apache-2.0
// The bad rows of a file, told in one answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "trainyard/status.h"

namespace trainyard::io {

class BadRows {
 public:
  // `path` is the file's. `advice` follows where there are more than are listed.
  explicit BadRows(std::string path,
                   std::string advice = "; --skip-bad-rows leaves all of them out")
      : path_(std::move(path)), advice_(std::move(advice)) {}

  // Keeps what is wrong with a row. Errors: enough are known; reading on is of no use.
  [[nodiscard]] Status Add(std::int64_t line, Error error);
  [[nodiscard]] bool empty() const { return faults_.empty(); }
  // All of them, a line each, in the order of their rows, and behind them how the reading ended,
  // where that is another error. REQUIRES: not empty().
  [[nodiscard]] Error Take(const Status& ended);

 private:
  static constexpr std::size_t kMost = 20;

  std::string path_;
  std::string advice_;
  std::vector<std::pair<std::int64_t, std::string>> faults_;
  bool there_are_more_ = false;
};

// As CsvTable::ForEach, but all bad rows are told, up to twenty of them.
[[nodiscard]] Status ForEachTold(const CsvTable& table, const RowReader& on_row);

}  // namespace trainyard::io
