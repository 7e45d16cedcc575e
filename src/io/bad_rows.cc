// SPDX-License-Identifier: Apache-2.0
#include "io/bad_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::io {

Status BadRows::Add(std::int64_t line, Error error) {
  if (faults_.size() == kMost) {
    there_are_more_ = true;
    return Failed("enough bad rows");
  }
  faults_.emplace_back(line, std::move(error.message));
  return {};
}

Error BadRows::Take(const Status& ended) {
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [line, what] : faults_) {
    text += text.empty() ? "" : "\n";
    text += what;
  }
  if (there_are_more_) {
    text += fmt::format("\n{}: there are more bad rows than these {}{}", path_, kMost, advice_);
  } else if (!ended.ok()) {
    text += "\n" + ended.error().message;
  }
  return BadInput(std::move(text));
}

Status ForEachTold(const CsvTable& table, const RowReader& on_row) {
  BadRows bad(table.path(), "");
  Status ended = table.ForEach(
      on_row, [&bad](std::int64_t line, Error error) { return bad.Add(line, std::move(error)); });
  return bad.empty() ? ended : bad.Take(ended);
}

}  // namespace trainyard::io
