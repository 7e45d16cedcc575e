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
    return {.needs = {.work_left = !past_peak_, .gpu_types = TypeSupport::kAlike},
            .may = {.resize = true}};
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
      const JobSpec& job = snapshot.jobs->spec(candidate.job);
      int gpus = MostUseful(job, *snapshot.rates, free);
      const int held = snapshot.jobs->grant(candidate.job).gpus;
      if (!past_peak_ && held > 0 && held <= free && gpus != held &&
          !Pays(snapshot, candidate.job, gpus)) {
        gpus = held;
      }
      if (gpus > 0) {
        proposal.demands.push_back({.job = candidate.job, .gpus = gpus});
        free -= gpus;
      }
    }
    return proposal;
  }

 private:
  // Whether the running job would end earlier on so many GPUs than where it is, the resize
  // included.
  static bool Pays(const Snapshot& snapshot, JobId id, int gpus) {
    const JobView job = snapshot.jobs->at(id);
    const double work = std::max(0.0, job.work_left.value_or(0));
    const double now = snapshot.rates->Rate(*job.spec, job.grant->gpus);
    const double then = gpus > 0 ? snapshot.rates->Rate(*job.spec, gpus) : 0;
    const Duration cost =
        gpus > 0 ? snapshot.costs->Of(*job.spec, Change::kResize, gpus) : Duration{0};
    return then > 0 && (now <= 0 || Seconds(cost) + work / then < work / now);
  }

  // Past the peak: the largest level there is room for. Otherwise the fastest one; of a job without
  // profile the GPUs that it asks for.
  [[nodiscard]] int MostUseful(const JobSpec& job, const ExecutionModel& rates, int free) const {
    if (rates.Levels(job).empty()) {
      return job.gpus <= free && rates.Rate(job, job.gpus) > 0 ? job.gpus : 0;
    }
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
  return {ComponentKind::kPolicy,
          "elastic-edf",
          "earliest deadline first with elastic jobs (needs profiles)",
          kElasticEdfOptions,
          base::MakeOf<ElasticEdf>,
          {},
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::policies
