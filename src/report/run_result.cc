// SPDX-License-Identifier: Apache-2.0
#include "report/run_result.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard {

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kCompleted:
      return "completed";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kUnfinished:
      return "unfinished";
  }
  return "";
}

Status CheckFinished(const RunResult& run) {
  if (run.stops_early) {
    return {};
  }
  const auto open = [](const JobResult& job) { return job.outcome == Outcome::kUnfinished; };
  const auto first = std::find_if(run.jobs.begin(), run.jobs.end(), open);
  if (first == run.jobs.end()) {
    return {};
  }
  return Failed(fmt::format(
      "{}: {} of {} jobs never finished (first: job {}, {} GPUs): nothing could happen any more",
      run.label, std::count_if(run.jobs.begin(), run.jobs.end(), open), run.jobs.size(),
      first->spec->name, first->spec->gpus));
}

}  // namespace trainyard
