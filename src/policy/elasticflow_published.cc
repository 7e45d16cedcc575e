// SPDX-License-Identifier: Apache-2.0
#include "policy/elasticflow_published.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <vector>

#include "base/rounding.h"
#include "policy/elastic_jobs.h"
#include "policy/gpu_timeline.h"

namespace trainyard {
namespace {

// Deadline of jobs without one: later than any plan, and far from overflow.
constexpr TimePoint kFar{Duration{4'000'000'000'000'000'000}};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Level {
  int gpus = 0;
  double rate = 0;
};

struct PlannedJob {
  JobId id{};
  std::uint64_t arrival = 0;
  TimePoint former_end = kEndOfTime;  // as registered so far
  TimePoint deadline = kFar;
  bool best_effort = false;
  double work_left = 0;
  bool started = false;
  bool started_now = false;
  int level = -1;                   // now, by the plan
  std::span<const Level> levels{};  // in Decision::levels_
  GpuPlan plan{};  // its end lies a multiple of the slot after its last interval's begin
  TimePoint real_end{};
  bool in_time = false;
  double marginal = 0;

  [[nodiscard]] int gpus() const { return level < 0 ? 0 : Of(level).gpus; }
  [[nodiscard]] const Level& Of(int index) const { return levels[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int most() const { return static_cast<int>(levels.size()) - 1; }
};

// Free GPUs over time; steps are inserted and merged exactly where the original does so.
class FreeTable {
 public:
  FreeTable() = default;
  FreeTable(TimePoint now, int gpus) : steps_{{now, gpus}} {}

  [[nodiscard]] const std::vector<GpuStep>& steps() const { return steps_; }

  // A breakpoint with the value of its predecessor, unless there is one.
  std::size_t Insert(TimePoint at) {
    const auto place =
        std::lower_bound(steps_.begin(), steps_.end(), at,
                         [](const GpuStep& step, TimePoint t) { return step.from < t; });
    const auto index = static_cast<std::size_t>(place - steps_.begin());
    if (place == steps_.end() || place->from != at) {
      steps_.insert(place, {at, place == steps_.begin() ? 0 : (place - 1)->gpus});
    }
    return index;
  }

  void Add(const GpuPlan& plan, int sign) {
    std::size_t first = Insert(plan.steps.front().from);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const bool last = i + 1 == plan.steps.size();
      const std::size_t next = Insert(last ? plan.end : plan.steps[i + 1].from);
      for (std::size_t step = first; step < next; ++step) {
        steps_[step].gpus += sign * plan.steps[i].gpus;
      }
      first = next;
    }
  }

  void Merge() {
    const auto merged =
        std::unique(steps_.begin(), steps_.end(),
                    [](const GpuStep& a, const GpuStep& b) { return a.gpus == b.gpus; });
    steps_.erase(merged, steps_.end());
  }

 private:
  std::vector<GpuStep> steps_;
};

// Not NextMultiple(): a length below 0 (a job that its forced level would finish, but too late)
// goes back in time, in slots rounded towards 0.
TimePoint SlotsAfter(TimePoint from, Duration length, Duration slot) {
  const std::int64_t slots = length.count() <= 0
                                 ? length.count() / slot.count()
                                 : (length.count() + slot.count() - 1) / slot.count();
  return from + slots * slot;
}

double GpuTime(const GpuPlan& plan) { return plan.GpuSeconds(plan.steps.front().from); }

// One job against what the others leave (reference 4.2). `free` is changed: the plan is taken.
class SlotPlanner {
 public:
  SlotPlanner(TimePoint now, Duration slot) : now_(now), slot_(slot) {}

  // `forced` >= 0: that level is held until the next breakpoint.
  void Plan(PlannedJob& job, FreeTable& free, int forced = -1) {
    job_ = &job;
    due_ = SlotsAfter(now_, job.deadline - now_, slot_);
    if (due_ >= now_) {
      free.Insert(due_);
    }
    steps_ = &free.steps();
    job.plan.steps.clear();
    left_ = job.work_left;
    first_ = 0;
    if (forced < 0 || !Force(forced)) {
      const int level = LeastLevel();
      FillForward(level);
    }
    job.in_time = job.real_end <= job.deadline;
    free.Add(job.plan, -1);
    if (forced < 0) {  // while surplus is given away, old breakpoints stay
      free.Merge();
    }
    job.level = LevelUnder(job.plan.steps.front().gpus);
  }

 private:
  [[nodiscard]] bool Last(std::size_t i) const { return i + 1 == steps_->size(); }
  // The end of an interval; one that touches the slot of the deadline ends with the deadline.
  [[nodiscard]] TimePoint Until(std::size_t i) const {
    const TimePoint next = (*steps_)[i + 1].from;
    return next == due_ ? job_->deadline : next;
  }
  [[nodiscard]] int LevelUnder(int gpus) const {
    int level = job_->most();
    while (level >= 0 && job_->Of(level).gpus > gpus) {
      --level;
    }
    return level;
  }

  void EndAt(TimePoint from, double rate) {
    const Duration length = CeilToSecond(left_ / rate);
    job_->plan.end = SlotsAfter(from, length, slot_);
    job_->real_end = from + length;
  }

  // True: the job ends in the forced interval.
  bool Force(int level) {
    const double rate = job_->Of(level).rate;
    job_->plan.Append(now_, job_->Of(level).gpus);
    if (Last(0) || (left_ <= rate * Seconds(Until(0) - now_) &&
                    now_ + CeilToSecond(left_ / rate) <= job_->deadline)) {
      EndAt(now_, rate);
      return true;
    }
    left_ -= rate * Seconds(Until(0) - now_);
    first_ = 1;
    return false;
  }

  // The least level that suffices; `turn_` is where it begins. -1: none does.
  int LeastLevel() {
    for (int level = 0; level <= job_->most(); ++level) {
      double done = 0;
      for (std::size_t i = steps_->size(); i-- > first_;) {
        const GpuStep& step = (*steps_)[i];
        const int held = step.from >= due_ ? -1 : std::min(level, LevelUnder(step.gpus));
        if (held < 0) {
          continue;
        }
        done += Seconds((Last(i) ? job_->deadline : Until(i)) - step.from) * job_->Of(held).rate;
        if (done >= left_) {
          turn_ = step.from;
          return level;
        }
      }
    }
    return -1;
  }

  void FillForward(int level) {
    for (std::size_t i = first_;; ++i) {
      const GpuStep& step = (*steps_)[i];
      const int wanted = level < 0 ? job_->most() : step.from < turn_ ? level - 1 : level;
      const int held = level < 0 && Last(i) ? wanted : std::min(wanted, LevelUnder(step.gpus));
      job_->plan.Append(step.from, held < 0 ? 0 : job_->Of(held).gpus);
      if (held < 0) {
        continue;
      }
      const double rate = job_->Of(held).rate;
      if (Last(i) || left_ <= rate * Seconds(Until(i) - step.from)) {
        return EndAt(step.from, rate);
      }
      left_ -= rate * Seconds(Until(i) - step.from);
    }
  }

  const TimePoint now_;
  const Duration slot_;
  PlannedJob* job_ = nullptr;
  const std::vector<GpuStep>* steps_ = nullptr;
  TimePoint due_{};
  TimePoint turn_{};
  double left_ = 0;
  std::size_t first_ = 0;
};

class PublishedMemory final : public Memory {
 public:
  [[nodiscard]] std::unique_ptr<Memory> Clone() const override {
    return std::make_unique<PublishedMemory>(*this);
  }
  std::vector<JobId> runnable;  // in the order in which the original keeps them
  std::vector<JobId> by_start;  // jobs that have started, in that order
  std::set<TimePoint> changes;  // without admission: plan changes to decide at
};

class Decision {
 public:
  Decision(const Snapshot& snapshot, PublishedMemory& memory,
           const PublishedElasticFlowOptions& options)
      : snapshot_(snapshot),
        memory_(memory),
        options_(options),
        planner_(snapshot.now, options.slot) {}

  Proposal Take(bool judges) {
    Collect();
    if (!snapshot_.unjudged.empty()) {
      JudgeArrivals();
    }
    PlanBase(jobs_, free_);
    StartPlanned();
    Distribute();
    return Finish(judges);
  }

 private:
  static bool EarlierDeadline(const PlannedJob& a, const PlannedJob& b) {
    return a.deadline < b.deadline;
  }

  [[nodiscard]] int CapOf(const JobSpec& spec) const {
    const auto cap = options_.caps.find({spec.model, spec.batch_size});
    return cap != options_.caps.end() ? cap->second : PublishedCap(spec);
  }

  PlannedJob Make(JobId id) {
    const JobView view = snapshot_.jobs->at(id);
    const JobSpec& spec = *view.spec;
    PlannedJob job{.id = id,
                   .arrival = view.arrival,
                   .former_end = view.expected_end,
                   .best_effort = spec.best_effort || !spec.deadline,
                   .work_left = view.work_left.value_or(0),
                   .started = view.started};
    job.deadline = job.best_effort ? kFar : *spec.deadline;
    const int cap = std::min(CapOf(spec), snapshot_.gpus_up);
    std::vector<Level>& levels = levels_.emplace_back();
    for (const int gpus : snapshot_.rates->Levels(spec)) {
      if (gpus <= cap) {
        levels.push_back({gpus, snapshot_.rates->Rate(spec, gpus)});
      }
    }
    job.levels = levels;
    return job;
  }

  // In the kept order, new jobs last.
  void Collect() {
    for (const JobId id : InKeptOrder(memory_.runnable, snapshot_.jobs->live())) {
      jobs_.push_back(Make(id));
    }
  }

  // In order of deadline, from an empty cluster. True: everybody is in time.
  bool PlanBase(std::vector<PlannedJob>& jobs, FreeTable& free) {
    std::stable_sort(jobs.begin(), jobs.end(), EarlierDeadline);
    free = FreeTable(snapshot_.now, snapshot_.gpus_up);
    bool in_time = true;
    for (PlannedJob& job : jobs) {
      planner_.Plan(job, free);
      in_time = in_time && job.in_time;
    }
    return in_time;
  }

  void JudgeArrivals() {
    std::vector<PlannedJob> arrivals;
    for (const JobId id : snapshot_.unjudged) {
      arrivals.push_back(Make(id));
    }
    if (!options_.whole_batches) {
      for (PlannedJob& job : arrivals) {
        Judge({&job, 1});
      }
      return;
    }
    Judge(arrivals);
  }

  // All of these or none, best-effort jobs excepted.
  void Judge(std::span<const PlannedJob> arrivals) {
    std::vector<PlannedJob> trial = jobs_;
    FreeTable free;
    std::set<JobId> late;
    if (!options_.whole_batches) {
      PlanBase(trial, free);
      for (const PlannedJob& job : trial) {
        if (!job.in_time) {
          late.insert(job.id);
        }
      }
    }
    trial.insert(trial.end(), arrivals.begin(), arrivals.end());
    PlanBase(trial, free);
    const bool good = std::all_of(trial.begin(), trial.end(), [&late](const PlannedJob& job) {
      return job.in_time || late.count(job.id) > 0;
    });
    for (const PlannedJob& job : arrivals) {
      const bool admitted = good || job.best_effort;
      proposal_.verdicts.push_back(
          {.job = job.id, .judgement = admitted ? Judgement::kAdmit : Judgement::kReject});
      if (admitted) {
        jobs_.push_back(job);
      } else {
        proposal_.verdicts.back().reason = "declined: not everybody could be finished in time";
      }
    }
  }

  // Those that the plans give GPUs now, in order of arrival.
  void StartPlanned() {
    std::vector<PlannedJob*> starting;
    for (PlannedJob& job : jobs_) {
      if (!job.started && job.level >= 0) {
        starting.push_back(&job);
      }
    }
    std::sort(starting.begin(), starting.end(),
              [](const PlannedJob* a, const PlannedJob* b) { return a->arrival < b->arrival; });
    for (PlannedJob* job : starting) {
      Start(*job);
    }
  }

  void Start(PlannedJob& job) {
    if (!job.started && !job.started_now && job.level >= 0) {
      job.started_now = true;
      memory_.by_start.push_back(job.id);
    }
  }

  // ------------------------------------------------------------------------------------- surplus

  static bool HasRoom(const PlannedJob& job, int free_now) {
    return job.level < job.most() && job.Of(job.level + 1).gpus - job.gpus() <= free_now;
  }

  // The job with its next level from now on, and what is free then.
  void TryNext(const PlannedJob& job) {
    next_ = job;
    next_free_ = free_;
    next_free_.Add(job.plan, 1);
    planner_.Plan(next_, next_free_, job.level + 1);
  }

  double Marginal(const PlannedJob& job, int free_now) {
    if (!HasRoom(job, free_now)) {
      return -kInfinity;
    }
    if (job.level < 0) {
      return kInfinity;
    }
    TryNext(job);
    const double growth =
        (GpuTime(next_.plan) - GpuTime(job.plan)) / (job.Of(job.level + 1).gpus - job.gpus());
    return options_.prefer_increase ? growth : -growth;
  }

  void Distribute() {
    int free_now = snapshot_.gpus_up;
    for (const PlannedJob& job : jobs_) {
      free_now -= job.gpus();
    }
    while (free_now > 0 && !jobs_.empty()) {
      for (PlannedJob& job : jobs_) {
        job.marginal = Marginal(job, free_now);
      }
      std::stable_sort(jobs_.begin(), jobs_.end(), [](const PlannedJob& a, const PlannedJob& b) {
        return a.marginal > b.marginal;
      });
      PlannedJob& best = jobs_.front();
      if (best.marginal == -kInfinity) {
        return;
      }
      TryNext(best);
      free_now += best.gpus();
      std::swap(best, next_);
      std::swap(free_, next_free_);
      free_now -= best.gpus();
      Start(best);
    }
  }

  // -------------------------------------------------------------------------------------- result

  [[nodiscard]] static std::optional<TimePoint> ChangeOf(const PlannedJob& job) {
    return job.plan.steps.size() > 1 ? std::optional(job.plan.steps[1].from) : std::nullopt;
  }

  // With admission only the first change counts, and only if nothing that is known comes before.
  void WakeAtFirstChange() {
    TimePoint change = kEndOfTime;
    TimePoint end = kEndOfTime;
    for (const PlannedJob& job : jobs_) {
      change = std::min(change, ChangeOf(job).value_or(kEndOfTime));
      end = std::min(end, job.plan.end);
    }
    if (change < end) {
      proposal_.wake_at = change;
    }
  }

  // Without, every change that was ever planned for a running job.
  void WakeAtAllChanges() {
    for (const PlannedJob& job : jobs_) {
      if (job.former_end != job.plan.end) {
        memory_.changes.erase(job.former_end);  // goes with the end that moves away from there
      }
    }
    for (const PlannedJob& job : jobs_) {
      if (job.started || job.started_now) {
        if (const std::optional<TimePoint> change = ChangeOf(job)) {
          memory_.changes.insert(*change);
        }
      }
    }
    // A change at the very end of a job goes when the cost of this decision puts that end off.
    std::set<TimePoint> kept_ends;
    for (const PlannedJob& job : jobs_) {
      if (job.level < 0) {
        kept_ends.insert(job.plan.end);
      }
    }
    for (const PlannedJob& job : jobs_) {
      if (job.level >= 0 && kept_ends.count(job.plan.end) == 0) {
        memory_.changes.erase(job.plan.end);
      }
    }
    memory_.changes.erase(memory_.changes.begin(), memory_.changes.upper_bound(snapshot_.now));
    if (!memory_.changes.empty()) {
      proposal_.wake_at = *memory_.changes.begin();
    }
  }

  void AskInOrder(std::span<const PlannedJob* const> order) {
    for (const PlannedJob* job : order) {
      if (job->level >= 0 || job->started_now) {
        proposal_.demands.push_back({.job = job->id, .gpus = job->gpus()});
      }
    }
  }

  // The order decides who lies where, and so who pays for a set of GPUs that is new to him.
  void Ask(bool judges) {
    std::vector<const PlannedJob*> order;
    if (judges) {
      // Equal sizes in the reverse of the order that the surplus left: raised last, placed last.
      for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
        order.push_back(&*job);
      }
      std::stable_sort(order.begin(), order.end(), [](const PlannedJob* a, const PlannedJob* b) {
        return a->gpus() > b->gpus();
      });
      return AskInOrder(order);
    }
    std::map<JobId, const PlannedJob*> by_id;
    for (const PlannedJob& job : jobs_) {
      by_id[job.id] = &job;
    }
    std::erase_if(memory_.by_start, [&](JobId id) { return by_id.count(id) == 0; });
    for (const JobId id : memory_.by_start) {
      order.push_back(by_id[id]);
    }
    // Whole nodes in order of start, then the smaller jobs by size.
    const int node = snapshot_.cluster->largest_node();
    std::stable_sort(order.begin(), order.end(), [node](const PlannedJob* a, const PlannedJob* b) {
      return std::min(a->gpus(), node) > std::min(b->gpus(), node);
    });
    AskInOrder(order);
  }

  Proposal Finish(bool judges) {
    judges ? WakeAtFirstChange() : WakeAtAllChanges();
    Ask(judges);
    memory_.runnable.clear();
    for (const PlannedJob& job : jobs_) {
      memory_.runnable.push_back(job.id);
      proposal_.ends.push_back({.job = job.id, .registered = job.plan.end, .done = job.real_end});
    }
    proposal_.walk = {.keep_running = false};
    return std::move(proposal_);
  }

  const Snapshot& snapshot_;
  PublishedMemory& memory_;
  const PublishedElasticFlowOptions& options_;
  SlotPlanner planner_;
  std::deque<std::vector<Level>> levels_;  // by job; never moved
  std::vector<PlannedJob> jobs_;
  FreeTable free_;
  PlannedJob next_;
  FreeTable next_free_;
  Proposal proposal_;
};

class PublishedElasticFlow final : public Policy {
 public:
  explicit PublishedElasticFlow(PublishedElasticFlowOptions options)
      : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "elasticflow"; }
  [[nodiscard]] Needs needs() const override {
    return {.work_left = true, .judges = true, .elastic = true};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<PublishedMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return Decision(snapshot, static_cast<PublishedMemory&>(*memory), options_)
        .Take(options_.with_admission);
  }

 private:
  const PublishedElasticFlowOptions options_;
};

}  // namespace

std::unique_ptr<Policy> MakePublishedElasticFlow(PublishedElasticFlowOptions options) {
  return std::make_unique<PublishedElasticFlow>(std::move(options));
}

}  // namespace trainyard
