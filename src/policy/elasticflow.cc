// SPDX-License-Identifier: Apache-2.0
// ElasticFlow (ASPLOS'23): jobs get the least GPUs that meet their deadlines, as late as possible,
// and what is left over goes where an additional GPU saves most.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <queue>

#include "policy/elasticflow_planner.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

// Planned ends stay this far from the deadline: more than all roundings to whole microseconds.
constexpr Duration kRounding = std::chrono::milliseconds(1);

// What is remembered of a live job.
struct Remembered {
  Scaling scaling;
  GpuPlan plan;           // as of the last decision
  bool promised = false;  // `plan` meets the deadline
};

class PlanMemory final : public Memory {
 public:
  [[nodiscard]] std::unique_ptr<Memory> Clone() const override {
    return std::make_unique<PlanMemory>(*this);
  }
  std::map<JobId, Remembered> jobs;
};

// A job in the decision at hand.
struct Candidate {
  JobId id{};
  const JobSpec* spec = nullptr;
  TimePoint deadline = kEndOfTime;  // less the rounding; none: kEndOfTime
  PlannedState state{};
  Remembered* memory = nullptr;
  GpuPlan plan{};        // empty: nothing is reserved
  bool in_time = false;  // `plan` meets the deadline
};

class Decision {
 public:
  Decision(const Snapshot& snapshot, PlanMemory& memory) : snapshot_(snapshot), memory_(memory) {
    Collect();
  }

  Proposal Take() {
    PlanAll();
    JudgeArrivals();
    Distribute();
    return Finish();
  }

 private:
  Candidate Make(JobId id) {
    const JobView view = snapshot_.jobs->at(id);
    Remembered& memory = memory_.jobs[id];
    if (memory.scaling.levels.empty()) {
      memory.scaling = ScalingOf(*view.spec, *snapshot_.rates, *snapshot_.costs);
    }
    Candidate job{.id = id, .spec = view.spec, .memory = &memory};
    if (view.spec->deadline && !view.spec->best_effort) {
      job.deadline = *view.spec->deadline - kRounding;
    }
    job.state = {.at = snapshot_.now,
                 .work_left = std::max(0.0, view.work_left.value_or(0)),
                 .level = view.grant == nullptr ? -1 : memory.scaling.Under(view.grant->gpus),
                 .started = view.started,
                 .debt = view.debt};
    return job;
  }

  void Collect() {
    for (const JobId id : snapshot_.jobs->live()) {
      jobs_.push_back(Make(id));
    }
    std::stable_sort(jobs_.begin(), jobs_.end(), [](const Candidate& a, const Candidate& b) {
      return a.deadline < b.deadline;
    });
  }

  // Everybody anew in the order of deadlines; false: somebody who was promised would be late.
  static bool PlanAnew(std::vector<Candidate>& jobs, GpuTimeline& free) {
    for (Candidate& job : jobs) {
      job.plan = {};
      job.in_time = false;
      if (job.deadline == kEndOfTime) {
        continue;
      }
      if (auto plan = JobPlanner(job.memory->scaling, free).InTime(job.state, job.deadline)) {
        job.plan = std::move(*plan);
        job.in_time = true;
        free.Take(job.plan);
      } else if (job.memory->promised) {
        return false;
      }
    }
    return true;
  }

  void KeepPromises(GpuTimeline& free) {
    for (Candidate& job : jobs_) {
      job.plan = {};
      job.in_time = false;
      if (!job.memory->promised) {
        continue;
      }
      job.plan = job.memory->plan;
      job.plan.CutBefore(snapshot_.now);
      const auto end = JobPlanner(job.memory->scaling, free).EndOf(job.plan, job.state);
      if (end) {
        job.plan.end = *end;
        job.in_time = true;
      }
      free.Take(job.plan);
    }
    for (Candidate& job : jobs_) {
      if (job.in_time || job.deadline == kEndOfTime) {
        continue;
      }
      if (auto plan = JobPlanner(job.memory->scaling, free).InTime(job.state, job.deadline)) {
        job.plan = std::move(*plan);
        job.in_time = true;
        free.Take(job.plan);
      }
    }
  }

  void PlanAll() {
    free_ = GpuTimeline(snapshot_.now, snapshot_.gpus_up);
    if (PlanAnew(jobs_, free_)) {
      return;
    }
    free_ = GpuTimeline(snapshot_.now, snapshot_.gpus_up);
    KeepPromises(free_);
  }

  void JudgeArrivals() {
    for (const JobId id : snapshot_.unjudged) {
      Candidate job = Make(id);
      if (job.deadline == kEndOfTime || Admit(job)) {
        if (job.deadline == kEndOfTime) {
          jobs_.push_back(std::move(job));
        }
        verdicts_.push_back({.job = id, .judgement = Judgement::kAdmit});
        continue;
      }
      memory_.jobs.erase(id);
      verdicts_.push_back({.job = id, .judgement = Judgement::kReject, .reason = "too late"});
    }
  }

  bool Admit(const Candidate& job) {
    std::vector<Candidate> trial = jobs_;
    const auto place = std::upper_bound(
        trial.begin(), trial.end(), job,
        [](const Candidate& a, const Candidate& b) { return a.deadline < b.deadline; });
    const auto index = place - trial.begin();
    trial.insert(place, job);
    GpuTimeline free(snapshot_.now, snapshot_.gpus_up);
    if (PlanAnew(trial, free) && trial[static_cast<std::size_t>(index)].in_time &&
        std::all_of(trial.begin(), trial.end(), [&](const Candidate& other) {
          return other.in_time || !WasInTime(other.id);
        })) {
      jobs_ = std::move(trial);
      free_ = std::move(free);
      return true;
    }
    auto plan = JobPlanner(job.memory->scaling, free_).InTime(job.state, job.deadline);
    if (!plan) {
      return false;
    }
    free_.Take(*plan);
    Candidate& added = *jobs_.insert(jobs_.begin() + index, job);
    added.plan = std::move(*plan);
    added.in_time = true;
    return true;
  }

  bool WasInTime(JobId id) const {
    return std::any_of(jobs_.begin(), jobs_.end(),
                       [id](const Candidate& job) { return job.id == id && job.in_time; });
  }

  // ---------------------------------------------------------------------------------- surplus

  static const Scaling::Level& LevelOf(const Candidate& job, int level) {
    return job.memory->scaling.levels[static_cast<std::size_t>(level)];
  }

  // What an additional GPU returns: GPU-seconds that are saved in a second on `level` + 1, compared
  // with doing that second's work on `level`, for each GPU more (negative where scaling is less
  // than linear). Everybody's first GPUs come before any second ones.
  static double MarginalReturn(const Candidate& job, int level) {
    if (level < 0) {
      return std::numeric_limits<double>::infinity();
    }
    const Scaling::Level& low = LevelOf(job, level);
    const Scaling::Level& high = LevelOf(job, level + 1);
    return (low.gpus * high.rate / low.rate - high.gpus) / (high.gpus - low.gpus);
  }

  // The levels that all jobs would hold now if what is free now went where it returns most.
  std::vector<int> SharesOfSurplus() const {
    using Turn = std::pair<double, std::size_t>;  // return, - position
    const auto after = [](const Turn& a, const Turn& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Turn, std::vector<Turn>, decltype(after)> turns(after);
    std::vector<int> levels(jobs_.size());
    const auto file = [&](std::size_t i) {
      if (levels[i] < jobs_[i].memory->scaling.most()) {
        turns.push({MarginalReturn(jobs_[i], levels[i]), i});
      }
    };
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      levels[i] = jobs_[i].memory->scaling.Under(jobs_[i].plan.At(snapshot_.now));
      file(i);
    }
    int free = free_.now();
    while (free > 0 && !turns.empty()) {
      const std::size_t i = turns.top().second;
      turns.pop();
      const int now = levels[i] < 0 ? 0 : LevelOf(jobs_[i], levels[i]).gpus;
      const int more = LevelOf(jobs_[i], levels[i] + 1).gpus - now;
      if (more <= free) {
        free -= more;
        ++levels[i];
        file(i);
      }
    }
    return levels;
  }

  void Distribute() {
    if (free_.now() == 0) {
      return;
    }
    const std::vector<int> levels = SharesOfSurplus();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Raise(jobs_[i], levels[i]);
    }
  }

  // To `level` from now on for as long as that is free, or the next lower level that keeps the
  // promise in spite of the restart.
  void Raise(Candidate& job, int level) {
    const Scaling& scaling = job.memory->scaling;
    const int base = scaling.Under(job.plan.At(snapshot_.now));
    if (level <= base) {
      return;
    }
    free_.Return(job.plan);
    const JobPlanner planner(scaling, free_);
    for (; level > base; --level) {
      std::optional<GpuPlan> plan = job.in_time
                                        ? planner.InTimeHolding(level, job.state, job.deadline)
                                        : planner.Holding(level, job.state);
      if (plan) {
        job.plan = std::move(*plan);
        break;
      }
    }
    free_.Take(job.plan);
  }

  Proposal Finish() {
    Proposal proposal{.walk = {.largest_first = true}, .verdicts = std::move(verdicts_)};
    std::map<JobId, Remembered> kept;
    for (Candidate& job : jobs_) {
      const int gpus = job.plan.At(snapshot_.now);
      if (gpus > 0) {
        proposal.demands.push_back({.job = job.id, .gpus = gpus, .may_split = true});
      }
      for (const GpuStep& step : job.plan.steps) {
        if (step.from > snapshot_.now) {
          proposal.wake_at = std::min(proposal.wake_at.value_or(kEndOfTime), step.from);
        }
      }
      if (!job.in_time && !job.plan.steps.empty()) {
        proposal.wake_at = std::min(proposal.wake_at.value_or(kEndOfTime), job.plan.end);
      }
      Remembered& memory = kept[job.id];
      memory = std::move(*job.memory);
      memory.plan = std::move(job.plan);
      memory.promised = job.in_time;
    }
    memory_.jobs = std::move(kept);
    return proposal;
  }

  const Snapshot& snapshot_;
  PlanMemory& memory_;
  std::vector<Candidate> jobs_;
  GpuTimeline free_;
  std::vector<Verdict> verdicts_;
};

class ElasticFlow final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "elasticflow"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<PlanMemory>();
  }
  [[nodiscard]] Needs needs() const override {
    return {.work_left = true, .judges = true, .elastic = true};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return Decision(snapshot, static_cast<PlanMemory&>(*memory)).Take();
  }
};

Result<PolicyComponent> Make(const Options& /*options*/, const PolicyContext& /*context*/) {
  return PolicyComponent{.policy = std::make_unique<ElasticFlow>()};
}

}  // namespace

PolicyEntry ElasticFlowEntry() {
  return {"elasticflow",
          "deadlines guaranteed with the least GPUs, the rest where it helps most",
          {},
          Make,
          "deadline"};
}

}  // namespace trainyard
