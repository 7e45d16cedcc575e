// SPDX-License-Identifier: Apache-2.0
// The runs that were made for a profile, one JSON object a line: a profiling that was interrupted
// goes on with what is there, and what was measured can be looked at afterwards.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiler/trial.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

class RunBook {
 public:
  // Without a file: nothing is kept.
  RunBook() = default;
  // Reads what is there; a last line that was not written to its end is dropped. Errors: the file
  // cannot be read or written, or has another line.
  [[nodiscard]] static Result<RunBook> Open(const std::string& path);

  // Of the runs of that trial those that count, in the order in which they were made.
  [[nodiscard]] std::vector<TrialResult> Of(const Trial& trial) const;
  // That its runs took, those that do not count included.
  [[nodiscard]] double SecondsOf(const Trial& trial) const;
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  // On disk when it comes back. Errors: it cannot be written.
  [[nodiscard]] Status Add(const Trial& trial, const TrialResult& result);

 private:
  std::string path_;
  std::vector<std::pair<std::string, TrialResult>> runs_;  // by the text of the trial
};

}  // namespace trainyard::profiler
