// SPDX-License-Identifier: Apache-2.0
// Chronus (SoCC'21): deadlines by leases. Jobs with a deadline are accepted if they can be promised
// enough leases, intervals of equal length, before it. At the start of a lease a plan says which of
// them hold their GPUs for it; all other GPUs go to whoever makes the best use of them, the
// accepted included, until a lease needs them back.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "policies/chronus/chronus.h"
#include "policies/chronus/lease_packing.h"
#include "policies/chronus/lease_planner.h"
#include "policies/policies.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr double kFullValue = 10;  // of a deadline that is not soft
constexpr double kMostLeasesOfJob = 1e6;
constexpr Duration kReserve{1'000};  // of each lease: more than all roundings

constexpr std::array<OptionSpec, 6> kChronusOptions{{
    {"lease", OptionSpec::Kind::kNumber, "1200", "length of a lease in units"},
    {"margin", OptionSpec::Kind::kNumber, "1.1", "factor on the declared duration, for promises"},
    kLeaseObjectiveOption,
    kLeaseSolverOption,
    kLeaseNodesOption,
    {"unit", OptionSpec::Kind::kNumber, "1", "seconds in a unit of `lease`"},
}};

struct ChronusSettings {
  Duration lease{};
  double margin = 1;
  LeaseObjective objective = LeaseObjective::kAdaptive;
  LeasePlannerOptions planner{};
};

// A job whose deadline was promised, or not.
struct Promise {
  // Up to the promised one; empty: not accepted.
  std::vector<SoftDeadline> deadlines;
  Leases plan;  // numbers of leases to come
  int planned_deadline = 0;
  std::int64_t held_lease = -1;  // the last one that it was given
  bool is_new = true;

  [[nodiscard]] bool accepted() const { return !deadlines.empty(); }
  void Serialize(StateStream& state) {
    state(deadlines, plan, planned_deadline, held_lease, is_new);
  }
};

class LeaseMemory final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(jobs, last_lease); }
  std::map<JobId, Promise> jobs;
  std::int64_t last_lease = -1;  // the last one that was planned
};

// A live job at this decision.
struct LeaseStanding {
  JobId id{};
  std::uint64_t arrival = 0;
  int gpus = 0;
  bool running = false;
  Duration left{0};     // running time to its end, the restart that it is paying for included
  Duration work{0};     // without that
  Duration restart{0};  // cost of one
  const JobSpec* spec = nullptr;
  Promise* promise = nullptr;
};

class ChronusDecision {
 public:
  ChronusDecision(const Snapshot& snapshot, LeaseMemory& memory, const ChronusSettings& settings)
      : snapshot_(snapshot),
        memory_(memory),
        settings_(settings),
        lease_(snapshot.now.time_since_epoch() / settings.lease),
        lease_end_(TimePoint{(lease_ + 1) * settings.lease}) {}

  Proposal Decide() {
    CollectJobs();
    const bool starts = memory_.last_lease != lease_;
    if (starts) {
      memory_.last_lease = lease_;
      StartLease();
    }
    for (LeaseStanding& job : jobs_) {
      if (std::exchange(job.promise->is_new, false)) {
        Judge(job);
      }
    }
    GiveLeases();
    GiveRest(starts);
    return Finish();
  }

 private:
  // The live jobs in the order of their arrival, each with its promise.
  void CollectJobs() {
    std::set<JobId> live;
    for (const JobId id : snapshot_.jobs->live()) {
      live.insert(id);
    }
    std::erase_if(memory_.jobs, [&live](const auto& job) { return live.count(job.first) == 0; });
    for (const JobId id : snapshot_.resized) {
      memory_.jobs.erase(id);  // it asks for something else now: judged anew
    }
    for (const JobId id : live) {
      const JobView view = snapshot_.jobs->at(id);
      const Change change = view.started ? Change::kRestart : Change::kStart;
      // Leases count starts themselves.
      const Duration left =
          view.time_left.value_or(Duration{0}) -
          (view.time_left && view.grant == nullptr ? view.start_cost : Duration{0});
      jobs_.push_back({.id = id,
                       .arrival = view.arrival,
                       .gpus = view.spec->gpus,
                       .running = view.grant != nullptr,
                       .left = left,
                       .work = view.time_left ? left - view.debt : Duration{0},
                       .restart = snapshot_.costs->Of(*view.spec, change, view.spec->gpus),
                       .spec = view.spec,
                       .promise = &memory_.jobs[id]});
    }
    std::sort(jobs_.begin(), jobs_.end(),
              [](const LeaseStanding& a, const LeaseStanding& b) { return a.arrival < b.arrival; });
  }

  // ---------------------------------------------------------------------------------------- leases

  // Leases for so much work, if each of them began with a restart; more than there are if they are
  // too short for that.
  [[nodiscard]] int LeasesFor(const LeaseStanding& job, Duration work) const {
    const double useful = Micros(settings_.lease - job.restart - kReserve);
    const double leases = std::ceil(settings_.margin * Micros(work) / std::max(1.0, useful));
    return useful <= 0 ? static_cast<int>(kMostLeasesOfJob)
                       : static_cast<int>(std::clamp(leases, 1.0, kMostLeasesOfJob));
  }

  // Whole leases from number `first` on that end by then.
  [[nodiscard]] int Window(TimePoint deadline, std::int64_t first) const {
    const std::int64_t leases = deadline.time_since_epoch() / settings_.lease - first;
    return static_cast<int>(
        std::clamp<std::int64_t>(leases, 0, static_cast<std::int64_t>(kMostLeasesOfJob)));
  }

  // Jobs that were not accepted want the GPUs that a lease leaves over.
  [[nodiscard]] bool FillsLease() const {
    if (settings_.objective != LeaseObjective::kAdaptive) {
      return settings_.objective == LeaseObjective::kFill;
    }
    return std::none_of(jobs_.begin(), jobs_.end(), [](const LeaseStanding& job) {
      return HasDeadline(*job.spec) && !job.promise->accepted() && !job.promise->is_new;
    });
  }

  [[nodiscard]] static bool HasDeadline(const JobSpec& spec) {
    return spec.deadline.has_value() && !spec.best_effort;
  }

  void StartLease() {
    LeaseProblem problem{.capacity = {snapshot_.gpus_up}, .fill_first = FillsLease()};
    std::vector<LeaseStanding*> jobs;
    for (LeaseStanding& job : jobs_) {
      if (job.promise->accepted()) {
        jobs.push_back(&job);
        problem.jobs.push_back(ProblemOf(job));
      }
    }
    const LeasePlan plan = PlanLeases(problem, settings_.planner);
    proposal_.bounded = plan.solved && !plan.optimal;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      TakePlan(*jobs[i]->promise, plan.jobs[i]);
    }
  }

  [[nodiscard]] LeaseJob ProblemOf(const LeaseStanding& job) const {
    const Promise& promise = *job.promise;
    LeaseJob one{.gpus = job.gpus, .need = LeasesFor(job, job.work)};
    for (const SoftDeadline& deadline : promise.deadlines) {
      one.deadlines.push_back({Window(deadline.at, lease_), deadline.value});
    }
    one.known_deadline = promise.planned_deadline;
    for (const int lease : promise.plan) {
      if (lease >= lease_) {
        one.known.push_back(lease - static_cast<int>(lease_));
      }
    }
    // What it has done without a lease makes the earliest ones superfluous.
    while (static_cast<int>(one.known.size()) > one.need) {
      one.known.erase(one.known.begin());
    }
    return one;
  }

  // A job without a plan is accepted no longer.
  void TakePlan(Promise& promise, const PlannedLeases& planned) const {
    promise.plan.clear();
    if (planned.deadline < 0) {
      promise.deadlines.clear();
      return;
    }
    promise.planned_deadline = planned.deadline;
    for (const int number : planned.leases) {
      promise.plan.push_back(static_cast<int>(lease_) + number);
      if (number == 0) {
        promise.held_lease = lease_;
      }
    }
  }

  // ------------------------------------------------------------------------------------- promises

  // The tightest deadline before which the job fits into the leases to come: beside the plans that
  // there are, or else with new plans for all jobs.
  void Judge(LeaseStanding& job) {
    if (!HasDeadline(*job.spec)) {
      return;
    }
    std::vector<SoftDeadline> deadlines;
    if (job.spec->traits != nullptr) {
      deadlines = job.spec->traits->deadlines;
    }
    if (deadlines.empty()) {
      deadlines.push_back({*job.spec->deadline, kFullValue});
    }
    for (std::size_t d = 0; d < deadlines.size(); ++d) {
      const LeaseDemand demand{.gpus = job.gpus,
                               .need = LeasesFor(job, job.work),
                               .window = Window(deadlines[d].at, lease_ + 1)};
      if (demand.need <= demand.window && (FitsBeside(demand, job) || FitsAnew(demand, job))) {
        job.promise->planned_deadline = static_cast<int>(d);
        deadlines.resize(d + 1);
        job.promise->deadlines = std::move(deadlines);
        return;
      }
    }
  }

  void Plan(LeaseStanding& job, const Leases& leases) const {
    job.promise->plan.clear();
    for (const int number : leases) {
      job.promise->plan.push_back(static_cast<int>(lease_) + 1 + number);
    }
  }

  [[nodiscard]] bool FitsBeside(const LeaseDemand& demand, LeaseStanding& job) const {
    LeaseCapacity capacity{snapshot_.gpus_up};
    for (const LeaseStanding& other : jobs_) {
      for (const int lease : other.promise->plan) {
        if (lease > lease_) {
          const auto ahead = static_cast<std::size_t>(lease - lease_ - 1);
          capacity.resize(std::max(capacity.size(), ahead + 2), snapshot_.gpus_up);
          capacity[ahead] -= other.gpus;
        }
      }
    }
    const auto packed = PackLatestFirst({&demand, 1}, std::move(capacity));
    if (packed) {
      Plan(job, packed->front());
    }
    return packed.has_value();
  }

  [[nodiscard]] bool FitsAnew(const LeaseDemand& demand, LeaseStanding& job) {
    std::vector<LeaseDemand> demands{demand};
    std::vector<LeaseStanding*> jobs{&job};
    for (LeaseStanding& other : jobs_) {
      const Duration left = LeftAfterLease(other);
      if (other.promise->accepted() && left > Duration{0}) {
        demands.push_back({.gpus = other.gpus,
                           .need = LeasesFor(other, left),
                           .window = Window(other.promise->deadlines.back().at, lease_ + 1)});
        jobs.push_back(&other);
      }
    }
    std::optional<std::vector<Leases>> packed = PackLatestFirst(demands, {snapshot_.gpus_up});
    packed = packed ? std::move(packed) : PackLeastSlackFirst(demands, {snapshot_.gpus_up});
    for (std::size_t i = 0; packed && i < jobs.size(); ++i) {
      Plan(*jobs[i], (*packed)[i]);
      if (jobs[i] != &job) {
        jobs[i]->promise->planned_deadline =
            static_cast<int>(jobs[i]->promise->deadlines.size()) - 1;
      }
    }
    return packed.has_value();
  }

  [[nodiscard]] Duration LeftAfterLease(const LeaseStanding& job) const {
    return HoldsLease(job) ? std::max(Duration{0}, job.left - (lease_end_ - snapshot_.now))
                           : job.work;
  }

  [[nodiscard]] bool HoldsLease(const LeaseStanding& job) const {
    return job.promise->accepted() && job.promise->held_lease == lease_;
  }

  // ---------------------------------------------------------------------------------------- grants

  void Give(const LeaseStanding& job, bool may_split) {
    free_ -= job.gpus;
    proposal_.demands.push_back({.job = job.id, .gpus = job.gpus, .may_split = may_split});
  }

  void GiveLeases() {
    for (const LeaseStanding& job : jobs_) {
      if (HoldsLease(job) && job.gpus <= free_) {  // a node may have failed within the lease
        Give(job, true);
      }
    }
  }

  using Key = std::tuple<bool, int, double, std::uint64_t>;

  // Smaller first. Little work left first; accepted jobs by their slack, as they have their leases
  // anyway; last those whose deadline is lost. Running jobs go on until the next lease.
  [[nodiscard]] Key KeyOf(const LeaseStanding& job, bool lease_starts) const {
    const bool stays = !lease_starts && job.running;
    const double work = Micros(job.left) * job.gpus;
    if (!HasDeadline(*job.spec)) {
      return {!stays, 0, work, job.arrival};
    }
    const TimePoint last = LastDeadline(job);
    const Duration slack = last - snapshot_.now - job.left;
    if (slack < Duration{0}) {
      return {!stays, 2, work, job.arrival};
    }
    return job.promise->accepted() ? Key{!stays, 1, Micros(slack) * job.gpus, job.arrival}
                                   : Key{!stays, 0, work, job.arrival};
  }

  [[nodiscard]] static TimePoint LastDeadline(const LeaseStanding& job) {
    if (job.promise->accepted()) {
      return job.promise->deadlines.back().at;
    }
    const bool soft = job.spec->traits != nullptr && !job.spec->traits->deadlines.empty();
    return soft ? job.spec->traits->deadlines.back().at : *job.spec->deadline;
  }

  void GiveRest(bool lease_starts) {
    std::vector<std::pair<Key, const LeaseStanding*>> others;
    for (const LeaseStanding& job : jobs_) {
      if (!HoldsLease(job)) {
        others.emplace_back(KeyOf(job, lease_starts), &job);
      }
    }
    std::sort(others.begin(), others.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, job] : others) {
      if (job->gpus <= free_) {
        Give(*job, false);
      }
    }
  }

  // The next lease matters only to accepted jobs and to waiting ones.
  Proposal Finish() {
    const bool cares = proposal_.demands.size() < jobs_.size() ||
                       std::any_of(jobs_.begin(), jobs_.end(), [](const LeaseStanding& job) {
                         return job.promise->accepted();
                       });
    if (cares) {
      proposal_.wake_at = lease_end_;
    }
    return std::move(proposal_);
  }

  const Snapshot& snapshot_;
  LeaseMemory& memory_;
  const ChronusSettings& settings_;
  const std::int64_t lease_;  // the number of the present one
  const TimePoint lease_end_;
  std::vector<LeaseStanding> jobs_;
  int free_ = snapshot_.gpus_up;
  Proposal proposal_;
};

class Chronus final : public Policy {
 public:
  explicit Chronus(const ChronusSettings& settings) : settings_(settings) {}
  [[nodiscard]] std::string_view name() const override { return "chronus"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true, .gpu_types = TypeSupport::kAlike},
            .may = {.ignore_stay = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<LeaseMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return ChronusDecision(snapshot, *static_cast<LeaseMemory*>(memory), settings_).Decide();
  }

 private:
  const ChronusSettings settings_;
};

Result<Components> MakeChronus(const Options& options, const ComponentContext& /*context*/) {
  const Duration unit = FromSeconds(options.Number("unit"));
  if (unit <= Duration{0} || std::llround(options.Number("lease")) < 1) {
    return InvalidArgument(
        "policy 'chronus': a lease of " + std::to_string(options.Number("lease")) + " units of " +
        std::to_string(options.Number("unit")) + " s; expected at least 1 unit of more than 0 s");
  }
  if (options.Number("margin") < 1) {
    return InvalidArgument("policy 'chronus': margin is less than 1; expected at least 1");
  }
  return Components{.policy = std::make_unique<Chronus>(ChronusSettings{
                        .lease = FromSeconds(options.Number("lease") * options.Number("unit")),
                        .margin = options.Number("margin"),
                        .objective = LeaseObjectiveOf(options),
                        .planner = LeasePlannerOptionsOf(options)})};
}

}  // namespace

std::vector<LeasePromise> PromisesOf(const Memory& memory) {
  std::vector<LeasePromise> promises;
  for (const auto& [job, promise] : static_cast<const LeaseMemory&>(memory).jobs) {
    promises.push_back({.job = job, .deadline = std::nullopt});
    if (promise.accepted()) {
      promises.back().deadline = promise.deadlines.back().at;
    }
  }
  return promises;
}

ComponentEntry ChronusEntry() {
  return {ComponentKind::kPolicy,
          "chronus",
          "deadlines by leases; idle GPUs go to whoever uses them best",
          kChronusOptions,
          MakeChronus,
          {},
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::policies
