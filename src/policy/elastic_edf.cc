// SPDX-License-Identifier: Apache-2.0
// Earliest deadline first with elastic jobs (the EDF baseline of ElasticFlow, ASPLOS'23): in order
// of deadline each job is laid out over the GPUs that the jobs before it leave free, with as many
// as it can use. Reference 5.1a; `past_peak` keeps the published cap, beyond the throughput peak.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "policy/policies.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 3> kOptions{{
    {"grain", OptionSpec::Kind::kNumber, "0",
     "seconds: GPUs of a planned end are planned to be free at the next multiple after now"},
    {"past_peak", OptionSpec::Kind::kNumber, "0",
     "1: up to 64 GPUs or the batch size, even where fewer are faster"},
    {"whole_seconds", OptionSpec::Kind::kNumber, "0", "1: planned ends are whole seconds"},
}};

struct Settings {
  double grain = 0;
  bool past_peak = false;
  bool whole_seconds = false;
};

// GPUs free from a time on, until the next step. Seconds; never empty.
struct Step {
  double from = 0;
  int free = 0;
};

class ElasticEdf final : public Policy {
 public:
  explicit ElasticEdf(const Settings& settings) : settings_(settings) {}

  [[nodiscard]] std::string_view name() const override { return "elastic-edf"; }
  [[nodiscard]] Needs needs() const override { return {.work_left = true, .elastic = true}; }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    struct Candidate {
      double deadline;
      JobView job;
    };
    std::vector<Candidate> candidates;
    for (const JobId id : snapshot.jobs->live()) {
      const JobView job = snapshot.jobs->at(id);
      candidates.push_back({job.spec->deadline ? Seconds(*job.spec->deadline)
                                               : std::numeric_limits<double>::infinity(),
                            job});
    }
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.deadline < b.deadline; });
    const double now = Seconds(snapshot.now);
    std::vector<Step> future{{now, snapshot.gpus_up}};
    Proposal proposal{.walk = {.largest_first = true}};
    for (const Candidate& candidate : candidates) {
      const int gpus = LayOut(candidate.job, snapshot, now, future);
      if (gpus > 0) {
        proposal.demands.push_back({candidate.job.id, gpus});
      }
    }
    return proposal;
  }

 private:
  // The most GPUs the job may get.
  [[nodiscard]] int Cap(const JobView& job, const Snapshot& snapshot) const {
    const ExecutionModel& rates = *snapshot.rates;
    int cap = 0;
    double best = 0;
    for (const int level : rates.Levels(*job.spec)) {
      if (level > snapshot.gpus_up || level > 64 ||
          (job.spec->batch_size > 0 && level > job.spec->batch_size)) {
        break;
      }
      const double rate = rates.Rate(*job.spec, level);
      if (settings_.past_peak || rate > best) {
        cap = level;
        best = rate;
      }
    }
    return cap;
  }

  [[nodiscard]] double Align(double now, double at) const {
    return settings_.grain > 0 ? now + std::ceil((at - now) / settings_.grain) * settings_.grain
                               : at;
  }

  static int LargestLevel(std::span<const int> levels, int free) {
    const auto above = std::upper_bound(levels.begin(), levels.end(), free);
    return above == levels.begin() ? 0 : *(above - 1);
  }

  // Takes the job's GPUs from `future`; returns how many it has now.
  int LayOut(const JobView& job, const Snapshot& snapshot, double now,
             std::vector<Step>& future) const {
    const int cap = Cap(job, snapshot);
    if (cap == 0) {
      return 0;
    }
    double left = job.work_left.value_or(0);
    int gpus_now = 0;
    for (std::size_t i = 0; i < future.size(); ++i) {
      const bool last = i + 1 == future.size();
      const double from = future[i].from;
      const int free = future[i].free;
      const bool capped = last || free >= cap;
      const int level = capped ? cap : LargestLevel(snapshot.rates->Levels(*job.spec), free);
      if (level == 0) {
        continue;
      }
      if (i == 0) {
        gpus_now = level;
      }
      const double rate = snapshot.rates->Rate(*job.spec, level);
      const double exact = from + left / rate;
      const double end = settings_.whole_seconds ? std::ceil(exact) : exact;
      if (last) {  // the cluster is taken as empty from here on, as published
        future[i].free = snapshot.gpus_up - level;
        Free(future, Align(now, end), snapshot.gpus_up);
        break;
      }
      const double until = future[i + 1].from;
      if (until >= end) {
        if (from != end || !capped) {
          future[i].free -= level;
        }
        if (end != until && end != from) {
          Free(future, Align(now, end), free);
        }
        break;
      }
      left -= (until - from) * rate;
      future[i].free -= level;
    }
    Merge(future);
    return gpus_now;
  }

  // From `at` on, `free` GPUs are free; replaces a step at that very time.
  static void Free(std::vector<Step>& future, double at, int free) {
    const auto place = std::lower_bound(future.begin(), future.end(), at,
                                        [](const Step& s, double t) { return s.from < t; });
    if (place != future.end() && place->from == at) {
      place->free = free;
    } else {
      future.insert(place, {at, free});
    }
  }

  static void Merge(std::vector<Step>& future) {
    const auto end = std::unique(future.begin(), future.end(),
                                 [](const Step& a, const Step& b) { return a.free == b.free; });
    future.erase(end, future.end());
  }

  const Settings settings_;
};

Result<PolicyComponent> Make(const Options& options, const PolicyContext& /*context*/) {
  return PolicyComponent{.policy = std::make_unique<ElasticEdf>(
                             Settings{.grain = options.Number("grain"),
                                      .past_peak = options.Flag("past_peak"),
                                      .whole_seconds = options.Flag("whole_seconds")})};
}

}  // namespace

PolicyEntry ElasticEdfEntry() {
  return {"elastic-edf", "earliest deadline first with elastic jobs (needs profiles)", kOptions,
          Make};
}

}  // namespace trainyard
