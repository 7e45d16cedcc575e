// SPDX-License-Identifier: Apache-2.0
#include "originals/elasticflow_published.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "model/job_order.h"
#include "originals/originals.h"
#include "originals/slot_planner.h"
#include "policies/decision_policy.h"
#include "policies/elasticflow/elasticflow_planner.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

// Deadline of jobs without one: later than any plan, and far from overflow.
constexpr TimePoint kFar{Duration{4'000'000'000'000'000'000}};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PlannedJob {
  JobId id{};
  std::uint64_t arrival = 0;
  TimePoint registered = kEndOfTime;  // its end
  bool best_effort = false;
  bool started = false;
  bool started_now = false;
  int gpus_up = 0;  // of the cluster, when its levels were set
  SlotJob need{};
  SlotPlan now{};  // what it gets

  SlotPlan next{};  // with one level more
  bool next_holds = false;
  double growth = 0;    // of GPU time, for each GPU that the next level takes
  double marginal = 0;  // of one level more; once there is none, what the last one was given for

  [[nodiscard]] int gpus() const { return need.levels.gpus(now.level); }
  [[nodiscard]] bool at_most() const { return now.level == need.levels.most(); }
  [[nodiscard]] int step() const { return need.levels.gpus(now.level + 1) - gpus(); }
  void Serialize(StateStream& state) {
    state(id, arrival, registered, best_effort, started, started_now, gpus_up, need, now, next,
          next_holds, growth, marginal);
  }
};

class PublishedMemory final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(jobs, runnable, by_start, changes); }
  std::map<JobId, PlannedJob> jobs;  // their levels, and storage for their plans
  std::vector<JobId> runnable;       // in the order in which the original keeps them
  std::vector<JobId> by_start;       // jobs that have started, in that order
  std::set<TimePoint> changes;       // without admission: plan changes to decide at
};

class ElasticFlowPublishedDecision {
 public:
  ElasticFlowPublishedDecision(const PublishedElasticFlowOptions& options, const Snapshot& snapshot,
                               PublishedMemory& memory)
      : options_(options),
        snapshot_(snapshot),
        memory_(memory),
        planner_(snapshot.now, options.slot) {}

  Proposal Take() {
    Collect();
    if (!snapshot_.unjudged.empty()) {
      JudgeArrivals();
    }
    PlanBase(jobs_, free_);
    for (PlannedJob* job : jobs_) {
      MoveEnd(*job, job->now.plan.end);
    }
    StartPlanned();
    Distribute();
    return Finish();
  }

 private:
  static bool EarlierDeadline(const PlannedJob* a, const PlannedJob* b) {
    return a->need.deadline < b->need.deadline;
  }

  [[nodiscard]] int CapOf(const JobSpec& spec) const {
    const auto cap = options_.caps.find({spec.model, spec.batch_size});
    return cap != options_.caps.end() ? cap->second : policies::PublishedCap(spec);
  }

  PlannedJob* Make(JobId id) {
    const JobView view = snapshot_.jobs->at(id);
    const JobSpec& spec = *view.spec;
    PlannedJob& job = memory_.jobs[id];
    job.id = id;
    job.arrival = view.arrival;
    job.registered = view.expected_end;
    job.best_effort = spec.best_effort || !spec.deadline;
    job.started = view.started;
    job.started_now = false;
    job.next_holds = false;
    job.need.deadline = job.best_effort ? kFar : *spec.deadline;
    job.need.work_left = view.work_left.value_or(0);
    if (std::exchange(job.gpus_up, snapshot_.gpus_up) != snapshot_.gpus_up) {
      SetLevels(spec, job.need.levels);
    }
    return &job;
  }

  void SetLevels(const JobSpec& spec, Levels& levels) {
    levels.Clear();
    const int cap = std::min(CapOf(spec), snapshot_.gpus_up);
    for (const int gpus : snapshot_.rates->Levels(spec)) {
      const double rate = snapshot_.rates->Rate(spec, gpus);
      if (gpus <= cap && rate > 0) {  // none outside of the job's range
        levels.Append({gpus, rate});
      }
    }
  }

  // In the kept order, new jobs last.
  void Collect() {
    for (const JobId id : model::InKeptOrder(memory_.runnable, snapshot_.jobs->live())) {
      jobs_.push_back(Make(id));
    }
  }

  // In order of deadline, from an empty cluster. True: everybody is in time.
  bool PlanBase(std::vector<PlannedJob*>& jobs, policies::GpuTimeline& free) {
    std::stable_sort(jobs.begin(), jobs.end(), EarlierDeadline);
    free = policies::GpuTimeline(snapshot_.now, snapshot_.gpus_up);
    bool in_time = true;
    for (PlannedJob* job : jobs) {
      planner_.Plan(job->need, free, job->now);
      free.Take(job->now.plan);
      in_time = in_time && job->now.in_time;
    }
    return in_time;
  }

  void JudgeArrivals() {
    std::vector<PlannedJob*> arrivals;
    for (const JobId id : snapshot_.unjudged) {
      arrivals.push_back(Make(id));
    }
    if (!options_.whole_batches) {
      for (PlannedJob*& job : arrivals) {
        Judge({&job, 1});
      }
      return;
    }
    Judge(arrivals);
  }

  // All of these or none, best-effort jobs excepted.
  void Judge(std::span<PlannedJob* const> arrivals) {
    std::vector<PlannedJob*> trial = jobs_;
    policies::GpuTimeline free;
    std::set<JobId> late;
    if (!options_.whole_batches) {
      PlanBase(trial, free);
      for (const PlannedJob* job : trial) {
        if (!job->now.in_time) {
          late.insert(job->id);
        }
      }
    }
    trial.insert(trial.end(), arrivals.begin(), arrivals.end());
    PlanBase(trial, free);
    const bool good = std::all_of(trial.begin(), trial.end(), [&late](const PlannedJob* job) {
      return job->now.in_time || late.count(job->id) > 0;
    });
    for (PlannedJob* job : arrivals) {
      const bool admitted = good || job->best_effort;
      proposal_.verdicts.push_back(
          {.job = job->id, .judgement = admitted ? Judgement::kAdmit : Judgement::kReject});
      if (admitted) {
        jobs_.push_back(job);
      } else {
        proposal_.verdicts.back().reason = "not everybody could be finished in time";
      }
    }
  }

  // Those that the plans give GPUs now, in order of arrival.
  void StartPlanned() {
    std::vector<PlannedJob*> starting;
    for (PlannedJob* job : jobs_) {
      if (!job->started && job->now.level >= 0) {
        starting.push_back(job);
      } else if (!job->started && !options_.with_admission) {
        DecideAtChange(*job);
      }
    }
    std::sort(starting.begin(), starting.end(),
              [](const PlannedJob* a, const PlannedJob* b) { return a->arrival < b->arrival; });
    for (PlannedJob* job : starting) {
      Start(*job);
    }
  }

  void DecideAtChange(const PlannedJob& job) {
    if (const TimePoint change = job.now.Change(); change != job.now.plan.end) {
      memory_.changes.insert(change);
    }
  }

  // Without admission, a plan change kept for the time of an end goes with the last end that moves
  // away from there.
  void MoveEnd(PlannedJob& job, TimePoint to) {
    const TimePoint from = std::exchange(job.registered, to);
    const auto change = from == to ? memory_.changes.end() : memory_.changes.find(from);
    if (change != memory_.changes.end() &&
        std::none_of(jobs_.begin(), jobs_.end(),
                     [from](const PlannedJob* other) { return other->registered == from; })) {
      memory_.changes.erase(change);
    }
  }

  void Start(PlannedJob& job) {
    if (!job.started && !job.started_now && job.now.level >= 0) {
      job.started_now = true;
      memory_.by_start.push_back(job.id);
    }
  }

  // ------------------------------------------------------------------------------------- surplus

  // Sets `job.next` and `job.growth`.
  void PlanNext(PlannedJob& job) {
    if (options_.replan_all) {
      policies::GpuTimeline returned = free_;
      returned.Return(job.now.plan);
      planner_.PlanFrom(job.now.level + 1, job.need, {}, returned, job.next);
    } else if (!job.next_holds) {
      planner_.PlanFrom(job.now.level + 1, job.need, job.now.plan, free_, job.next);
    } else {
      return;
    }
    job.growth = (job.next.GpuTime() - job.now.GpuTime()) / job.step();
    job.next_holds = true;
  }

  // What one level more is worth now, for each GPU that it takes.
  double Marginal(PlannedJob& job, int free_now) {
    if (job.at_most() || job.step() > free_now) {
      return -kInfinity;
    }
    if (job.now.level < 0) {
      return kInfinity;
    }
    PlanNext(job);
    return options_.prefer_increase ? job.growth : -job.growth;
  }

  // The largest marginal; of equals the one that came first so far. Those who can get no more keep
  // their places, which say who is placed when. Null: nobody fits.
  PlannedJob* Choose(int free_now) {
    const auto more = [](const PlannedJob* a, const PlannedJob* b) {
      return a->marginal > b->marginal;
    };
    if (!std::is_sorted(jobs_.begin(), jobs_.end(), more)) {
      std::stable_sort(jobs_.begin(), jobs_.end(), more);
    }
    const auto first = std::find_if(jobs_.begin(), jobs_.end(), [free_now](const PlannedJob* job) {
      return !job->at_most() && job->step() <= free_now;
    });
    return first == jobs_.end() ? nullptr : *first;
  }

  void GiveNext(PlannedJob& job) {
    PlanNext(job);
    before_.assign(free_.steps().begin(), free_.steps().end());
    free_.Return(job.now.plan);
    free_.Take(job.next.plan);
    std::swap(job.now, job.next);
    job.next_holds = false;
    KeepWhatHolds();
    Start(job);
    MoveEnd(job, job.now.plan.end);
  }

  // A plan with one level more still holds if what has changed lies beyond what it depends on: the
  // breakpoints from the first one that differs on, and of the job's own those up to the first one
  // of all, as fewer GPUs are free until then.
  void KeepWhatHolds() {
    const std::span<const policies::GpuStep> after = free_.steps();
    const auto [in_a, in_b] =
        std::mismatch(before_.begin() + 1, before_.end(), after.begin() + 1, after.end());
    const TimePoint changed_from = std::min(in_a == before_.end() ? kEndOfTime : in_a->from,
                                            in_b == after.end() ? kEndOfTime : in_b->from);
    const TimePoint first = after.size() > 1 ? after[1].from : kEndOfTime;
    for (PlannedJob* job : jobs_) {
      const policies::GpuPlan& own = job->now.plan;
      const TimePoint own_first = own.steps.size() > 1 ? own.steps[1].from : own.end;
      job->next_holds = job->next_holds && changed_from >= job->next.seen_before &&
                        (own_first > first || own_first >= job->next.seen_before);
    }
  }

  void Distribute() {
    int free_now = snapshot_.gpus_up;
    for (const PlannedJob* job : jobs_) {
      free_now -= job->gpus();
    }
    if (free_now == 0) {
      return;
    }
    for (PlannedJob* job : jobs_) {
      job->marginal = Marginal(*job, free_now);
    }
    while (PlannedJob* const best = Choose(free_now)) {
      free_now -= best->step();
      GiveNext(*best);
      for (PlannedJob* job : jobs_) {
        if (!job->at_most()) {
          job->marginal = Marginal(*job, free_now);
        }
      }
    }
  }

  // -------------------------------------------------------------------------------------- result

  // With admission only the first change counts, and only if nothing that is known comes before.
  void WakeAtFirstChange() {
    TimePoint change = kEndOfTime;
    TimePoint end = kEndOfTime;
    for (const PlannedJob* job : jobs_) {
      change = std::min(change, job->now.Change());
      end = std::min(end, job->registered);
    }
    if (change < end) {
      proposal_.wake_at = change;
    }
  }

  // Without, every change that was ever planned for a running job.
  void WakeAtAllChanges() {
    for (const PlannedJob* job : jobs_) {
      if (job->started || job->started_now) {
        DecideAtChange(*job);
      }
    }
    for (PlannedJob* job : jobs_) {
      if (job->now.level >= 0) {
        MoveEnd(*job, kEndOfTime);  // the cost of this decision puts it off
      }
    }
    memory_.changes.erase(memory_.changes.begin(), memory_.changes.upper_bound(snapshot_.now));
    if (!memory_.changes.empty()) {
      proposal_.wake_at = *memory_.changes.begin();
    }
  }

  // The order decides who lies where, and so who pays for a set of GPUs that is new to him.
  void Ask() {
    if (options_.with_admission) {
      std::stable_sort(jobs_.begin(), jobs_.end(), [](const PlannedJob* a, const PlannedJob* b) {
        return a->gpus() > b->gpus();
      });
      return AskInOrder(jobs_);
    }
    std::map<JobId, PlannedJob*> by_id;
    for (PlannedJob* job : jobs_) {
      by_id[job->id] = job;
    }
    std::erase_if(memory_.by_start, [&](JobId id) { return by_id.count(id) == 0; });
    std::vector<PlannedJob*> order;
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

  void AskInOrder(std::span<PlannedJob* const> order) {
    proposal_.demands.reserve(order.size());
    for (const PlannedJob* job : order) {
      if (job->now.level >= 0) {
        proposal_.demands.push_back({.job = job->id, .gpus = job->gpus()});
      }
    }
  }

  // Jobs that have gone or were rejected.
  void ForgetOthers() {
    std::set<JobId> known;
    for (const PlannedJob* job : jobs_) {
      known.insert(job->id);
    }
    std::erase_if(memory_.jobs, [&known](const auto& job) { return known.count(job.first) == 0; });
  }

  Proposal Finish() {
    options_.with_admission ? WakeAtFirstChange() : WakeAtAllChanges();
    Ask();
    if (memory_.jobs.size() > jobs_.size()) {
      ForgetOthers();
    }
    memory_.runnable.clear();
    proposal_.ends.reserve(jobs_.size());
    for (const PlannedJob* job : jobs_) {
      memory_.runnable.push_back(job->id);
      proposal_.ends.push_back(
          {.job = job->id, .registered = job->now.plan.end, .done = job->now.real_end});
    }
    proposal_.walk = {.keep_running = false};
    return std::move(proposal_);
  }

  const PublishedElasticFlowOptions& options_;
  const Snapshot& snapshot_;
  PublishedMemory& memory_;
  SlotPlanner planner_;
  std::vector<PlannedJob*> jobs_;
  policies::GpuTimeline free_;
  std::vector<policies::GpuStep> before_;  // scratch
  Proposal proposal_;
};

constexpr std::array<OptionSpec, 5> kPublishedElasticFlowOptions{{
    {"slot", OptionSpec::Kind::kNumber, "240", "seconds, the grain of plans"},
    {"planned_admission", OptionSpec::Kind::kNumber, "1",
     "0: decide and place as without admission control"},
    {"admit", OptionSpec::Kind::kChoice, "job",
     "batch: the arrivals of one instant together or not at all", "job|batch"},
    {"marginal", OptionSpec::Kind::kChoice, "saving",
     "increase: surplus where GPU time grows most (a published mistake)", "saving|increase"},
    {"caps", OptionSpec::Kind::kText, "", "MODEL@BATCH:GPUS+..., most GPUs of a job"},
}};

// "gpt2@128:16+bert@64:8": most GPUs by model and batch size.
Result<std::map<std::pair<std::string, std::int64_t>, int>> ParseCaps(std::string_view text) {
  std::map<std::pair<std::string, std::int64_t>, int> caps;
  if (text.empty()) {
    return caps;
  }
  for (const std::string_view cap : base::Split(text, "+")) {
    const std::size_t at = cap.find('@');
    const std::size_t colon = cap.find(':');
    const auto number = [&cap](std::size_t from, std::size_t count) {
      return from == std::string_view::npos ? std::nullopt
                                            : base::ToNumber(cap.substr(from + 1, count));
    };
    const std::optional<double> batch =
        at < colon && colon != std::string_view::npos ? number(at, colon - at - 1) : std::nullopt;
    const std::optional<double> gpus = number(colon, std::string_view::npos);
    if (!batch || !gpus || *gpus < 1) {
      return InvalidArgument("policy 'elasticflow-published': option 'caps' has '" +
                             std::string(cap) + "'; expected MODEL@BATCH:GPUS, with '+' between");
    }
    caps[{std::string(cap.substr(0, at)), static_cast<std::int64_t>(*batch)}] =
        static_cast<int>(*gpus);
  }
  return caps;
}

Result<Components> MakeElasticFlowPublished(const Options& options,
                                            const ComponentContext& /*context*/) {
  PublishedElasticFlowOptions published{.slot = FromSeconds(options.Number("slot")),
                                        .with_admission = options.Flag("planned_admission"),
                                        .whole_batches = options.Text("admit") == "batch",
                                        .prefer_increase = options.Text("marginal") == "increase"};
  if (published.slot.count() <= 0) {
    return InvalidArgument("policy 'elasticflow-published': plans need a slot; expected slot > 0");
  }
  ASSIGN_OR_RETURN(auto caps, ParseCaps(options.Text("caps")));
  published.caps = std::move(caps);
  return Components{.policy = MakePublishedElasticFlow(std::move(published))};
}

}  // namespace

std::unique_ptr<Policy> MakePublishedElasticFlow(PublishedElasticFlowOptions options) {
  return policies::PolicyOf<ElasticFlowPublishedDecision, PublishedMemory>(
             "elasticflow-published",
             {.needs = {.work_left = true, .gpu_types = TypeSupport::kOne},
              .may = {.resize = true, .admit = true, .plan_ends = true}},
             std::move(options))
      .policy;
}

ComponentEntry ElasticFlowPublishedEntry() {
  return {ComponentKind::kPolicy,
          "elasticflow-published",
          "ElasticFlow as its simulator plans: in slots, without restart costs",
          kPublishedElasticFlowOptions,
          MakeElasticFlowPublished,
          "deadline",
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::originals
