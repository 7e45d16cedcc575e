// SPDX-License-Identifier: Apache-2.0
// ElasticFlow (ASPLOS'23): jobs get the least GPUs that meet their deadlines, as late as possible,
// and what is left over goes where an additional GPU saves most.
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <queue>

#include "base/text.h"
#include "policies/elasticflow/elasticflow_planner.h"
#include "policies/policies.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kElasticFlowOptions{{
    {"slack", OptionSpec::Kind::kNumber, "0",
     "seconds by which plans stay ahead of deadlines, for what a live cluster takes longer"},
}};

// Planned ends stay this far from the deadline: more than all roundings to whole microseconds.
constexpr Duration kRounding = std::chrono::milliseconds(1);

// What is remembered of a live job.
struct Remembered {
  Scaling scaling;
  GpuPlan plan;           // as of the last decision
  bool promised = false;  // `plan` meets the deadline

  void Serialize(StateStream& state) { state(scaling, plan, promised); }
};

class PlanMemory final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(jobs, gpus_up); }
  std::map<JobId, Remembered> jobs;
  int gpus_up = 0;  // at the last decision
};

// A job in the decision at hand.
struct Candidate {
  JobId id{};
  const JobSpec* spec = nullptr;
  TimePoint deadline = kEndOfTime;  // less the rounding; none: kEndOfTime
  TimePoint target = kEndOfTime;    // what is planned for as long as that can be: less the slack
  TimePoint due = kEndOfTime;       // which of the two `plan` meets
  bool is_new = false;              // is being judged, by the target: the slack is for later
  PlannedState state{};
  Remembered* memory = nullptr;
  bool promised = false;  // its deadline must be met
  GpuPlan plan{};         // empty: nothing is reserved
  bool in_time = false;   // `plan` meets the deadline
};

bool EarlierDeadline(const Candidate& a, const Candidate& b) { return a.deadline < b.deadline; }

const Scaling::Level& LevelOf(const Candidate& job, int level) {
  return job.memory->scaling.levels[static_cast<std::size_t>(level)];
}

class ElasticFlowDecision {
 public:
  ElasticFlowDecision(const Snapshot& snapshot, Duration slack, PlanMemory& memory)
      : snapshot_(snapshot), slack_(slack), memory_(memory) {}

  Proposal Decide() {
    Collect();
    PlanAll();
    JudgeArrivals();
    Distribute();
    return Finish();
  }

 private:
  Candidate MakeCandidate(JobId id) {
    const JobView view = snapshot_.jobs->at(id);
    Remembered& memory = memory_.jobs[id];
    if (memory.scaling.levels.empty()) {
      memory.scaling = ScalingOf(*view.spec, *snapshot_.rates, *snapshot_.costs);
    }
    Candidate job{.id = id, .spec = view.spec, .memory = &memory, .promised = memory.promised};
    if (view.spec->deadline && !view.spec->best_effort) {
      job.deadline = *view.spec->deadline - kRounding;
      job.target = job.deadline - slack_;
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
      jobs_.push_back(MakeCandidate(id));
    }
    std::stable_sort(jobs_.begin(), jobs_.end(), EarlierDeadline);
    if (snapshot_.gpus_up < memory_.gpus_up) {  // what was promised counted on lost nodes
      for (Candidate& job : jobs_) {
        job.promised = false;
      }
    }
    memory_.gpus_up = snapshot_.gpus_up;
  }

  // ------------------------------------------------------------------------------------ promises

  [[nodiscard]] GpuTimeline AllFree() const { return {snapshot_.now, snapshot_.gpus_up}; }

  // A job that ends within the roundings keeps what it holds: its end is a fact still to come.
  static std::optional<GpuPlan> AboutToEnd(const Candidate& job) {
    if (job.state.level < 0) {
      return std::nullopt;
    }
    const Scaling::Level& held = LevelOf(job, job.state.level);
    const double seconds = Seconds(job.state.debt) + job.state.work_left / held.rate;
    if (seconds > Seconds(kRounding)) {
      return std::nullopt;
    }
    GpuPlan plan{.end = job.state.at + kRounding};
    plan.Append(job.state.at, held.gpus);
    return plan;
  }

  static void PlanInTime(Candidate& job, GpuTimeline& free) {
    job.plan = {};
    job.in_time = false;
    job.due = job.deadline;
    if (std::optional<GpuPlan> plan = AboutToEnd(job)) {
      job.plan = std::move(*plan);
      job.in_time = true;
      free.Take(job.plan);
      return;
    }
    if (job.deadline == kEndOfTime) {
      return;
    }
    const JobPlanner planner(job.memory->scaling, free);
    job.due = job.target;
    std::optional<GpuPlan> plan = planner.InTime(job.state, job.due);
    if (!plan && !job.is_new && job.target < job.deadline) {
      job.due = job.deadline;
      plan = planner.InTime(job.state, job.due);
    }
    if (plan) {
      job.plan = std::move(*plan);
      job.in_time = true;
      free.Take(job.plan);
    }
  }

  // Plans all jobs anew in the order of deadlines; false: a job with a promise would be late.
  static bool PlanAnew(std::vector<Candidate>& jobs, GpuTimeline& free) {
    return std::all_of(jobs.begin(), jobs.end(), [&free](Candidate& job) {
      PlanInTime(job, free);
      return job.in_time || !job.promised;
    });
  }

  // The plans that were promised go on as they are; the others take what is left.
  void KeepPromises() {
    free_ = AllFree();
    for (Candidate& job : jobs_) {
      if (job.promised) {
        job.plan = job.memory->plan;
        job.plan.CutBefore(snapshot_.now);
        const JobPlanner planner(job.memory->scaling, free_);
        job.plan.end = planner.EndOf(job.plan, job.state).value_or(job.plan.end);
        job.due = job.deadline;
        job.in_time = true;
        free_.Take(job.plan);
      }
    }
    for (Candidate& job : jobs_) {
      if (!job.promised) {
        PlanInTime(job, free_);
      }
    }
  }

  void PlanAll() {
    free_ = AllFree();
    if (!PlanAnew(jobs_, free_)) {
      KeepPromises();
    }
    for (Candidate& job : jobs_) {
      job.promised = job.in_time;
    }
  }

  // One after the other, in the order of arrival.
  void JudgeArrivals() {
    for (const JobId id : snapshot_.unjudged) {
      Candidate job = MakeCandidate(id);
      job.is_new = true;
      if (job.deadline == kEndOfTime) {
        jobs_.push_back(std::move(job));
      } else if (!Admit(job)) {
        verdicts_.push_back(
            {.job = id, .judgement = Judgement::kReject, .reason = WhyDeclined(job)});
        memory_.jobs.erase(id);
        continue;
      }
      verdicts_.push_back({.job = id, .judgement = Judgement::kAdmit});
    }
  }

  // With all jobs planned anew, or else with what the plans of the others leave.
  bool Admit(Candidate& job) {
    job.promised = true;
    const auto place = std::upper_bound(jobs_.begin(), jobs_.end(), job, EarlierDeadline);
    std::vector<Candidate> trial;
    trial.reserve(jobs_.size() + 1);
    trial.assign(jobs_.begin(), place);
    trial.push_back(job);
    trial.insert(trial.end(), place, jobs_.end());
    GpuTimeline free = AllFree();
    if (PlanAnew(trial, free)) {
      jobs_ = std::move(trial);
      free_ = std::move(free);
      return true;
    }
    PlanInTime(job, free_);
    if (job.in_time) {
      jobs_.insert(place, job);
    }
    return job.in_time;
  }

  [[nodiscard]] std::string WhyDeclined(const Candidate& job) const {
    const auto soonest = JobPlanner(job.memory->scaling, free_).Soonest(job.state);
    if (!soonest) {
      return "it can run on no number of GPUs of this cluster";
    }
    // Spans, not times: users of a live cluster do not count from its start.
    const Duration late = soonest->end - (*job.spec->deadline - slack_);
    return "earliest feasible end in " +
           base::ShortDuration(Seconds(soonest->end - snapshot_.now)) + ", which is " +
           base::ShortDuration(Seconds(late)) + " after its deadline" +
           (slack_ > Duration{0} ? " less the slack" : "") + ", if all promises are kept";
  }

  // ------------------------------------------------------------------------------------- surplus

  // What an additional GPU returns: GPU-seconds that are saved in a second on `level` + 1, compared
  // with doing that second's work on `level`, for each GPU more (negative where scaling is less
  // than linear). The first GPUs of all jobs come before any second ones.
  static double MarginalReturn(const Candidate& job, int level) {
    if (level < 0) {
      return std::numeric_limits<double>::infinity();
    }
    const Scaling::Level& low = LevelOf(job, level);
    const Scaling::Level& high = LevelOf(job, level + 1);
    return (low.gpus * high.rate / low.rate - high.gpus) / (high.gpus - low.gpus);
  }

  // The levels that all jobs would hold now if what is free now went where it returns most, but at
  // most `limits`.
  [[nodiscard]] std::vector<int> SharesOfSurplus(const std::vector<int>& limits) const {
    using Turn = std::pair<double, std::size_t>;  // return, - position
    const auto after = [](const Turn& a, const Turn& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Turn, std::vector<Turn>, decltype(after)> turns(after);
    std::vector<int> levels(jobs_.size());
    const auto enqueue = [&](std::size_t i) {
      if (levels[i] < limits[i]) {
        turns.push({MarginalReturn(jobs_[i], levels[i]), i});
      }
    };
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      levels[i] = LevelNow(jobs_[i]);
      enqueue(i);
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
        enqueue(i);
      }
    }
    return levels;
  }

  // Of the plan at hand.
  [[nodiscard]] int LevelNow(const Candidate& job) const {
    return job.memory->scaling.Under(job.plan.At(snapshot_.now));
  }

  // A job whose work would be done before it had paid for a change of its GPUs keeps them, if no
  // other plan needs them.
  void LetEnd() {
    for (Candidate& job : jobs_) {
      const int held = job.state.level;
      if (held < 0 || LevelNow(job) >= held) {
        continue;
      }
      const Scaling::Level& level = LevelOf(job, held);
      if (Seconds(job.state.debt) + job.state.work_left / level.rate > Seconds(level.resize)) {
        continue;
      }
      free_.Return(job.plan);
      const JobPlanner planner(job.memory->scaling, free_);
      std::optional<GpuPlan> plan;
      if (level.gpus <= free_.now()) {
        plan = job.in_time ? planner.InTimeHolding(held, job.state, job.due)
                           : planner.Holding(held, job.state);
      }
      if (plan) {
        job.plan = std::move(*plan);
      }
      free_.Take(job.plan);
    }
  }

  // What one job cannot use goes to the others.
  void Distribute() {
    LetEnd();
    std::vector<int> limits;
    limits.reserve(jobs_.size());
    for (const Candidate& job : jobs_) {
      limits.push_back(job.memory->scaling.most());
    }
    for (bool refused = true; refused && free_.now() > 0;) {
      refused = false;
      const std::vector<int> levels = SharesOfSurplus(limits);
      for (std::size_t i = 0; i < jobs_.size(); ++i) {
        Raise(jobs_[i], levels[i]);
        if (const int level = LevelNow(jobs_[i]); level < levels[i]) {
          limits[i] = level;
          refused = true;
        }
      }
    }
  }

  // To `level` from now on for as long as that is free, or the next lower level that keeps the
  // promise in spite of the restart, and that is worth it.
  void Raise(Candidate& job, int level) {
    const int base = LevelNow(job);
    if (level <= base) {
      return;
    }
    free_.Return(job.plan);
    const JobPlanner planner(job.memory->scaling, free_);
    for (; level > base; --level) {
      std::optional<GpuPlan> plan = job.in_time ? planner.InTimeHolding(level, job.state, job.due)
                                                : planner.Holding(level, job.state);
      if (plan && Pays(job, planner, level, *plan)) {
        job.plan = std::move(*plan);
        break;
      }
    }
    free_.Take(job.plan);
  }

  // A raise beyond what the job may keep must bring it further than that. Otherwise a promised job
  // has its plan to compare with: the end, or the GPU-seconds to it.
  [[nodiscard]] bool Pays(const Candidate& job, const JobPlanner& planner, int level,
                          const GpuPlan& plan) const {
    const bool may_stay =
        job.state.level >= 0 && (!job.in_time || job.state.level >= LevelNow(job));
    if (may_stay && level > job.state.level) {
      return planner.RaisePays(level, job.state);
    }
    return !job.in_time || level == job.state.level || plan.end < job.plan.end ||
           plan.GpuSeconds(snapshot_.now) < job.plan.GpuSeconds(snapshot_.now);
  }

  // --------------------------------------------------------------------------------------- result

  // Decide again where a plan changes, and where GPUs that a job without a plan holds are needed.
  [[nodiscard]] std::optional<TimePoint> NextChange(const Candidate& job) const {
    for (const GpuStep& step : job.plan.steps) {
      if (step.from > snapshot_.now) {
        return step.from;
      }
    }
    return job.in_time || job.plan.steps.empty() ? std::nullopt : std::optional(job.plan.end);
  }

  Proposal Finish() {
    Proposal proposal{.walk = {.largest_first = true}, .verdicts = std::move(verdicts_)};
    std::map<JobId, Remembered> kept;
    for (Candidate& job : jobs_) {
      if (const int gpus = job.plan.At(snapshot_.now); gpus > 0) {
        proposal.demands.push_back({.job = job.id, .gpus = gpus, .may_split = true});
      }
      if (const std::optional<TimePoint> change = NextChange(job)) {
        proposal.wake_at = std::min(proposal.wake_at.value_or(kEndOfTime), *change);
      }
      kept[job.id] = {.scaling = std::move(job.memory->scaling),
                      .plan = std::move(job.plan),
                      .promised = job.in_time};
    }
    memory_.jobs = std::move(kept);
    return proposal;
  }

  const Snapshot& snapshot_;
  const Duration slack_;
  PlanMemory& memory_;
  std::vector<Candidate> jobs_;
  GpuTimeline free_;
  std::vector<Verdict> verdicts_;
};

class ElasticFlow final : public Policy {
 public:
  explicit ElasticFlow(Duration slack) : slack_(slack) {}
  [[nodiscard]] std::string_view name() const override { return "elasticflow"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<PlanMemory>();
  }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true, .gpu_types = TypeSupport::kAlike},
            .may = {.resize = true, .admit = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return ElasticFlowDecision(snapshot, slack_, static_cast<PlanMemory&>(*memory)).Decide();
  }

 private:
  const Duration slack_;
};

Result<Components> MakeElasticFlow(const Options& options, const ComponentContext& /*context*/) {
  const Duration slack = FromSeconds(options.Number("slack"));
  if (slack < Duration{0}) {
    return InvalidArgument("policy 'elasticflow': option 'slack' is negative; expected seconds");
  }
  return Components{.policy = std::make_unique<ElasticFlow>(slack)};
}

}  // namespace

ComponentEntry ElasticFlowEntry() {
  return {ComponentKind::kPolicy,
          "elasticflow",
          "deadlines guaranteed with the least GPUs, the rest where it helps most",
          kElasticFlowOptions,
          MakeElasticFlow,
          "deadline",
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::policies
