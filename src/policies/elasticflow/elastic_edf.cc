// SPDX-License-Identifier: Apache-2.0
// Earliest deadline first with elastic jobs (the EDF baseline of ElasticFlow, ASPLOS'23): in order
// of deadline each job gets as many of the GPUs that are left as it can use. `past_peak` keeps the
// published cap, beyond the throughput peak. (The published program lays out whole
// plans; what it does now is the same, since no plan reserves GPUs before its own start.)
#include <algorithm>
#include <array>
#include <limits>

#include "policies/elasticflow/elasticflow_planner.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kElasticEdfOptions{{
    {"past_peak", OptionSpec::Kind::kNumber, "0",
     "1: up to 64 GPUs or the batch size, even where fewer are faster"},
}};

class ElasticEdf final : public Policy {
 public:
  explicit ElasticEdf(const Options& options) : past_peak_(options.Flag("past_peak")) {}

  [[nodiscard]] std::string_view name() const override { return "elastic-edf"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.gpu_types = TypeSupport::kAlike}, .may = {.resize = true}};
  }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    struct Candidate {
      double deadline;
      JobId job;
    };
    std::vector<Candidate> candidates;
    for (const JobId job : snapshot.jobs->live()) {
      const std::optional<TimePoint> deadline = snapshot.jobs->spec(job).deadline;
      candidates.push_back(
          {deadline ? Micros(*deadline) : std::numeric_limits<double>::infinity(), job});
    }
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.deadline < b.deadline; });
    Proposal proposal{.walk = {.largest_first = true}};
    int free = snapshot.gpus_up;
    for (const Candidate& candidate : candidates) {
      if (free == 0) {
        break;
      }
      const int gpus = MostUseful(snapshot.jobs->spec(candidate.job), *snapshot.rates, free);
      if (gpus > 0) {
        proposal.demands.push_back({.job = candidate.job, .gpus = gpus});
        free -= gpus;
      }
    }
    return proposal;
  }

 private:
  // Past the peak: the largest level there is room for. Otherwise the fastest one.
  [[nodiscard]] int MostUseful(const JobSpec& job, const ExecutionModel& rates, int free) const {
    int most = 0;
    double best = 0;
    for (const int level : rates.Levels(job)) {
      if (level > free || level > PublishedCap(job)) {
        break;
      }
      if (job.traits != nullptr && !job.traits->range.Holds(level)) {
        continue;
      }
      const double rate = rates.Rate(job, level);
      if (past_peak_ || rate > best) {
        most = level;
        best = rate;
      }
    }
    return most;
  }

  const bool past_peak_;
};

}  // namespace

ComponentEntry ElasticEdfEntry() {
  return {ComponentKind::kPolicy, "elastic-edf",
          "earliest deadline first with elastic jobs (needs profiles)", kElasticEdfOptions,
          base::MakeOf<ElasticEdf>};
}

}  // namespace trainyard::policies
