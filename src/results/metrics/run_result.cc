// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/run_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trainyard::results {

namespace {

constexpr std::array<std::string_view, 5> kOutcomeNames{"completed", "rejected", "cancelled",
                                                        "failed", "unfinished"};

}  // namespace

std::string_view Name(Outcome outcome) {
  return kOutcomeNames.at(static_cast<std::size_t>(outcome));
}

std::optional<Outcome> OutcomeNamed(std::string_view name) {
  const auto* const found = std::find(kOutcomeNames.begin(), kOutcomeNames.end(), name);
  return found == kOutcomeNames.end()
             ? std::nullopt
             : std::optional(static_cast<Outcome>(found - kOutcomeNames.begin()));
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

}  // namespace trainyard::results
