// SPDX-License-Identifier: Apache-2.0
#include "originals/chronus_published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "originals/originals.h"
#include "policies/chronus/chronus.h"
#include "policies/chronus/lease_packing.h"
#include "policies/chronus/lease_planner.h"
#include "policies/decision_policy.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

constexpr double kPublishedFullValue = 10;  // of a deadline that is not soft
constexpr double kMargin = 1.1;             // of the estimated duration
constexpr double kResume = 0.5;             // units for a resume of one GPU, and for each doubling

struct PublishedChronusOptions {
  Duration unit{};         // the program's unit of time
  std::int64_t lease = 0;  // units
  std::int64_t slot = 0;   // units between admissions, and between starts of jobs without a lease
  bool accepted_wait = true;  // accepted jobs run in their leases only
  bool forces = false;        // jobs that end within the lease may be forced in
  bool backfills = false;     // at odd units
  policies::LeaseObjective objective = policies::LeaseObjective::kAdaptive;
  policies::LeasePlannerOptions planner{};
};

// The GPUs that a job counts as in plans.
int Bin(int gpus) {
  if (gpus == 3) {
    return 4;
  }
  return gpus > 4 && gpus < 8 ? 8 : gpus;
}

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Deadline {
  std::int64_t at = 0;  // units, absolute
  double value = 0;

  void Serialize(StateStream& state) { state(at, value); }
};

// What the policy knows of a live job. Times in units.
struct LeasedJob {
  JobId id{};
  int gpus = 0;
  std::int64_t submit = 0;
  std::int64_t duration = 0;
  std::vector<Deadline> deadlines;  // empty: best effort
  LeaseRank rank = LeaseRank::kBestEffort;
  std::int64_t estimate = 0;
  std::int64_t deadline = 0;  // the one that it is ranked by
  std::int64_t progress = 0;
  std::int64_t run_time = 0;
  std::int64_t checked = 0;  // when progress was last counted
  int need = 0;              // leases
  bool refused = false;      // at admission
  bool plannable = false;    // takes part in plans
  bool is_planned = false;   // `plan` is one
  policies::Leases plan;     // numbers of leases to come
  int planned_deadline = 0;  // the one that the plan is for
  bool running = false;
  bool leased = false;  // holds this lease
  bool forced = false;
  bool overrun = false;  // has run for longer than estimated

  void Serialize(StateStream& state) {
    state(id, gpus, submit, duration, deadlines, rank, estimate, deadline, progress, run_time,
          checked, need, refused, plannable, is_planned, plan, planned_deadline, running, leased,
          forced, overrun);
  }
};

class PublishedLeases final : public Memory {
 public:
  void Serialize(StateStream& state) override { state(jobs, arrivals, last_lease, unaccepted); }
  std::vector<LeasedJob> jobs;   // admitted, in that order
  std::vector<JobId> arrivals;   // not yet
  std::int64_t last_lease = -1;  // the last that was planned
  int unaccepted = 0;            // then, and those that were not accepted since
};

// One decision: stages that each look at what the former left (reference 3).
class ChronusPublishedDecision {
 public:
  ChronusPublishedDecision(const PublishedChronusOptions& options, const Snapshot& snapshot,
                           PublishedLeases& memory)
      : options_(options),
        snapshot_(snapshot),
        memory_(memory),
        now_(Units(snapshot.now.time_since_epoch())),
        leases_begun_(now_ / options.lease + 1) {}

  Proposal Take() {
    Meet();
    Advance();
    if (now_ % options_.lease == 0 && memory_.last_lease != now_ / options_.lease) {
      StartLease();
    }
    if (now_ % options_.slot == 0) {
      Admit();
      StartOthers();
    }
    if (options_.backfills && now_ % 2 == 1) {
      Backfill();
    }
    return Finish();
  }

 private:
  // How a job comes to run now.
  struct Start {
    bool stopped = false;  // it ran until now
    Duration credit{0};
  };

  [[nodiscard]] std::int64_t Units(Duration time) const {
    return std::llround(Micros(time) / Micros(options_.unit));
  }
  [[nodiscard]] Duration Time(std::int64_t units) const { return units * options_.unit; }

  // --------------------------------------------------------------------------------- what happened

  // Jobs that have come and gone, and those that lost their GPUs. Who asks for another number of
  // GPUs comes anew.
  void Meet() {
    const std::span<const JobId> live = snapshot_.jobs->live();
    std::vector<JobId> here(live.begin(), live.end());
    std::sort(here.begin(), here.end());
    const auto gone = [&](JobId id) {
      const std::span<const JobId> resized = snapshot_.resized;
      return !std::binary_search(here.begin(), here.end(), id) ||
             std::find(resized.begin(), resized.end(), id) != resized.end();
    };
    std::erase_if(memory_.jobs, [&](const LeasedJob& job) { return gone(job.id); });
    std::erase_if(memory_.arrivals, gone);
    std::vector<JobId> known = memory_.arrivals;
    for (LeasedJob& job : memory_.jobs) {
      known.push_back(job.id);
      const bool holds = snapshot_.jobs->grant(job.id).gpus > 0;
      job.leased = job.leased && holds;
      job.forced = job.forced && holds;
      job.running = job.running && holds;
    }
    std::sort(known.begin(), known.end());
    std::vector<std::pair<std::uint64_t, JobId>> added;
    for (const JobId id : here) {
      if (!std::binary_search(known.begin(), known.end(), id)) {
        added.emplace_back(snapshot_.jobs->at(id).arrival, id);
      }
    }
    std::sort(added.begin(), added.end());
    for (const auto& [arrival, id] : added) {
      memory_.arrivals.push_back(id);
    }
  }

  // Reference 4. Placement has no effect on the speed.
  void Advance() {
    for (LeasedJob& job : memory_.jobs) {
      if (!job.running) {
        continue;
      }
      const std::int64_t passed = now_ - job.checked;
      job.progress += passed;
      job.run_time += passed;
      job.checked = now_;
      if (job.run_time >= job.estimate && (now_ % options_.lease == 0 || !job.leased)) {
        if (job.rank == LeaseRank::kAccepted) {
          Demote(job, LeaseRank::kUnaccepted);
        }
        job.overrun = true;
      }
      if (!job.leased) {
        SaveLeases(job);
      }
    }
  }

  static void Demote(LeasedJob& job, LeaseRank rank) {
    job.rank = rank;
    job.plannable = false;
    job.is_planned = false;
    job.plan.clear();
  }

  // An accepted job that has run without a lease needs fewer: the earliest ones are given back.
  void SaveLeases(LeasedJob& job) const {
    if (job.rank != LeaseRank::kAccepted || !job.plannable) {
      return;
    }
    const auto need = static_cast<int>(
        std::max<std::int64_t>(0, CeilDiv(job.estimate - job.progress, options_.lease)));
    for (; job.need > need; --job.need) {
      if (!job.plan.empty()) {
        job.plan.erase(job.plan.begin());
      }
    }
  }

  // ---------------------------------------------------------------------------------------- leases

  // Reference 6.
  void StartLease() {
    const std::int64_t lease = now_ / options_.lease;
    if (lease > memory_.last_lease + 1) {
      memory_.unaccepted = 0;  // there were leases without jobs in between
    }
    memory_.last_lease = lease;
    for (LeasedJob& job : memory_.jobs) {
      starts_[job.id].stopped = job.running;
      job.checked = job.running ? now_ : job.checked;
      job.running = false;
      job.leased = false;
      job.forced = false;
      SaveLeases(job);
    }
    const bool fill = FillsFirstLease();
    memory_.unaccepted = static_cast<int>(
        std::count_if(memory_.jobs.begin(), memory_.jobs.end(),
                      [](const LeasedJob& job) { return job.rank == LeaseRank::kUnaccepted; }));
    PlanLease(lease, fill);
  }

  [[nodiscard]] bool FillsFirstLease() const {
    return options_.objective == policies::LeaseObjective::kAdaptive
               ? memory_.unaccepted == 0
               : options_.objective == policies::LeaseObjective::kFill;
  }

  void PlanLease(std::int64_t lease, bool fill) {
    policies::LeaseProblem problem{.capacity = {snapshot_.gpus_up}, .fill_first = fill};
    std::vector<LeasedJob*> jobs;
    for (LeasedJob& job : memory_.jobs) {
      if (job.plannable && job.need > 0) {
        jobs.push_back(&job);
        problem.jobs.push_back(ProblemOf(job, lease));
      }
    }
    const policies::LeasePlan plan = policies::PlanLeases(problem, options_.planner);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (plan.jobs[i].deadline < 0) {
        Demote(*jobs[i], LeaseRank::kUnaccepted);
        ++memory_.unaccepted;
      } else {
        TakePlan(*jobs[i], plan.jobs[i], lease);
      }
    }
  }

  [[nodiscard]] policies::LeaseJob ProblemOf(const LeasedJob& job, std::int64_t lease) const {
    policies::LeaseJob one{.gpus = Bin(job.gpus), .need = job.need};
    for (const Deadline& deadline : job.deadlines) {
      one.deadlines.push_back({Window(deadline.at, lease), deadline.value});
    }
    if (job.is_planned) {
      one.known_deadline = job.planned_deadline;
      for (const int planned : job.plan) {
        one.known.push_back(planned - static_cast<int>(lease));
      }
    }
    return one;
  }

  // Leases from this one on that end by then.
  [[nodiscard]] int Window(std::int64_t deadline, std::int64_t lease) const {
    return static_cast<int>(std::max<std::int64_t>(0, deadline / options_.lease - lease));
  }

  void TakePlan(LeasedJob& job, const policies::PlannedLeases& planned, std::int64_t lease) {
    job.is_planned = true;
    job.planned_deadline = planned.deadline;
    job.plan.clear();
    for (const int number : planned.leases) {
      if (number > 0) {
        job.plan.push_back(static_cast<int>(lease) + number);
      }
    }
    if (!planned.leases.empty() && planned.leases.front() == 0) {
      job.leased = true;
      --job.need;
      // Who waited is credited with the time since the last slot: `checked` is not now.
      starts_[job.id].credit = starts_[job.id].stopped ? Duration{0} : Time(now_ - job.checked);
      starts_[job.id].stopped = false;
      job.running = true;
    }
  }

  // ------------------------------------------------------------------------------------- admission

  // Reference 5. Rows are one for each job, at its tightest deadline: the check never gets to the
  // others.
  void Admit() {
    if (memory_.arrivals.empty()) {
      return;
    }
    policies::LeaseCapacity capacity = FreeInLeases();
    std::vector<policies::LeaseDemand> rows;
    for (const LeasedJob& job : memory_.jobs) {
      if (job.plannable && !job.is_planned) {
        rows.push_back(RowOf(job));
      }
    }
    for (const JobId id : std::exchange(memory_.arrivals, {})) {
      LeasedJob job = NewJob(id);
      if (job.rank == LeaseRank::kAccepted && !IsAccepted(job, rows, capacity)) {
        job.rank = LeaseRank::kUnaccepted;
        job.refused = true;
        ++memory_.unaccepted;
      } else if (job.rank == LeaseRank::kAccepted) {
        job.plannable = true;
        job.deadline = job.deadlines.back().at / options_.lease * options_.lease;
      }
      memory_.jobs.push_back(std::move(job));
    }
  }

  // GPUs without a plan, from the next lease on.
  [[nodiscard]] policies::LeaseCapacity FreeInLeases() const {
    policies::LeaseCapacity capacity{snapshot_.gpus_up};
    for (const LeasedJob& job : memory_.jobs) {
      for (const int lease : job.plan) {
        const auto ahead = static_cast<std::size_t>(lease - leases_begun_);
        if (capacity.size() < ahead + 2) {
          capacity.resize(ahead + 2, snapshot_.gpus_up);
        }
        capacity[ahead] -= job.gpus;
      }
    }
    return capacity;
  }

  [[nodiscard]] policies::LeaseDemand RowOf(const LeasedJob& job) const {
    return {.gpus = Bin(job.gpus),
            .need = job.need,
            .window = Window(job.deadlines.front().at, leases_begun_)};
  }

  [[nodiscard]] LeasedJob NewJob(JobId id) const {
    const JobSpec& spec = snapshot_.jobs->spec(id);
    LeasedJob job{.id = id,
                  .gpus = spec.gpus,
                  .submit = Units(spec.submit.time_since_epoch()),
                  .duration = Units(spec.duration.value_or(Duration{0})),
                  .checked = now_};
    const double doublings = std::log2(spec.gpus);
    job.estimate = static_cast<std::int64_t>(
        static_cast<double>(job.duration) *
        (1 + (1 + doublings) * kResume / static_cast<double>(options_.lease)) * kMargin);
    job.need = static_cast<int>(CeilDiv(job.estimate, options_.lease));
    if (spec.best_effort || !spec.deadline) {
      return job;
    }
    job.rank = LeaseRank::kAccepted;
    if (spec.traits != nullptr) {
      for (const SoftDeadline& soft : spec.traits->deadlines) {
        job.deadlines.push_back({Units(soft.at.time_since_epoch()), soft.value});
      }
    }
    if (job.deadlines.empty()) {
      job.deadlines.push_back({Units(spec.deadline->time_since_epoch()), kPublishedFullValue});
    }
    job.deadline = job.deadlines.front().at;
    return job;
  }

  // Adds its row; a rejected job's row stays as well, with the window in which it would have
  // fitted.
  [[nodiscard]] bool IsAccepted(const LeasedJob& job, std::vector<policies::LeaseDemand>& rows,
                                const policies::LeaseCapacity& capacity) const {
    rows.push_back(RowOf(job));
    const int loosest = Window(job.deadlines.back().at, leases_begun_);
    if (job.need <= loosest && policies::PackLatestFirst(rows, capacity)) {
      return true;
    }
    if (job.deadlines.size() == 1) {
      if (const std::optional<int> window = policies::SmallestWindow(rows, capacity)) {
        rows.back().window = *window;
      }
    }
    return false;
  }

  // ---------------------------------------------------------------------------------------- others

  [[nodiscard]] int FreeNow() const {
    int free = snapshot_.gpus_up;
    for (const LeasedJob& job : memory_.jobs) {
      free -= job.running ? job.gpus : 0;
    }
    return free;
  }

  [[nodiscard]] std::vector<LeasedJob*> Waiting() {
    std::vector<LeasedJob*> waiting;
    for (LeasedJob& job : memory_.jobs) {
      if (!job.running) {
        waiting.push_back(&job);
      }
    }
    return waiting;
  }

  // Reference 7.
  void StartOthers() {
    int free = FreeNow();
    std::vector<LeasedJob*> waiting = Waiting();
    if (options_.forces) {
      Force(waiting);
    }
    for (LeasedJob* job : waiting) {
      job->checked = now_;
      CheckHope(*job);
    }
    StartForced(waiting, free);
    std::stable_sort(
        waiting.begin(), waiting.end(),
        [this](const LeasedJob* a, const LeasedJob* b) { return KeyOf(*a) > KeyOf(*b); });
    for (LeasedJob* job : waiting) {
      const bool waits = options_.accepted_wait && job->rank == LeaseRank::kAccepted;
      if (!job->running && !waits && job->gpus <= free) {
        job->running = true;
        free -= job->gpus;
      }
    }
  }

  // Jobs that are not accepted but would end within this lease may run in it for certain.
  void Force(const std::vector<LeasedJob*>& waiting) {
    const std::int64_t rest = leases_begun_ * options_.lease - now_;
    std::vector<LeasedJob*> short_ones;
    for (LeasedJob* job : waiting) {
      if (job->rank == LeaseRank::kUnaccepted && job->duration - job->progress <= rest) {
        short_ones.push_back(job);
      }
    }
    const auto work = [](const LeasedJob& job) { return (job.duration - job.progress) * job.gpus; };
    std::stable_sort(short_ones.begin(), short_ones.end(),
                     [&](const LeasedJob* a, const LeasedJob* b) { return work(*a) < work(*b); });
    int spot = snapshot_.gpus_up;
    for (const LeasedJob& job : memory_.jobs) {
      spot -= job.leased || job.forced ? job.gpus : 0;
    }
    for (LeasedJob* job : short_ones) {
      if (job->gpus <= spot) {
        spot -= job->gpus;
        job->forced = true;
        if (job->submit >= (leases_begun_ - 1) * options_.lease) {
          job->rank = LeaseRank::kAccepted;
        }
      }
    }
  }

  void CheckHope(LeasedJob& job) const {
    if (job.rank != LeaseRank::kBestEffort && job.rank != LeaseRank::kHopeless &&
        job.deadline < now_ + job.duration - job.progress) {
      Demote(job, LeaseRank::kHopeless);
    }
  }

  // Those who deserve their GPUs least make room.
  void StartForced(std::vector<LeasedJob*>& waiting, int& free) {
    int wanted = 0;
    for (const LeasedJob* job : waiting) {
      wanted += job->forced ? job->gpus : 0;
    }
    if (wanted > free) {
      for (LeasedJob* job : Victims()) {
        if (wanted <= free) {
          break;
        }
        job->running = false;
        free += job->gpus;
        waiting.push_back(job);
      }
    }
    for (LeasedJob* job : waiting) {
      if (job->forced && job->gpus <= free) {
        job->running = true;
        free -= job->gpus;
      }
    }
  }

  [[nodiscard]] std::vector<LeasedJob*> Victims() {
    std::vector<LeasedJob*> victims;
    for (LeasedJob& job : memory_.jobs) {
      if (job.running && !job.leased && !job.forced) {
        CheckHope(job);
        victims.push_back(&job);
      }
    }
    std::stable_sort(
        victims.begin(), victims.end(),
        [this](const LeasedJob* a, const LeasedJob* b) { return KeyOf(*a) < KeyOf(*b); });
    return victims;
  }

  using Key = std::tuple<bool, int, std::int64_t, std::int64_t>;

  // Larger first.
  [[nodiscard]] Key KeyOf(const LeasedJob& job) const {
    return {job.overrun, std::min(static_cast<int>(job.rank), 1), UrgencyOf(job), -job.submit};
  }

  // Little work left; for deadlines: little slack.
  [[nodiscard]] std::int64_t UrgencyOf(const LeasedJob& job) const {
    const std::int64_t left = job.estimate - job.progress;
    const bool by_work = job.rank == LeaseRank::kBestEffort || job.rank == LeaseRank::kUnaccepted;
    return -(by_work ? left : job.deadline - now_ - left) * job.gpus;
  }

  // Reference 8: upside down as published, and for nothing: neither the resume nor the time since
  // the last slot is charged.
  void Backfill() {
    int free = FreeNow();
    std::vector<LeasedJob*> waiting = Waiting();
    std::stable_sort(waiting.begin(), waiting.end(),
                     [this](const LeasedJob* a, const LeasedJob* b) {
                       return std::pair(a->rank, UrgencyOf(*a)) < std::pair(b->rank, UrgencyOf(*b));
                     });
    for (LeasedJob* job : waiting) {
      if (job->gpus <= free) {
        job->running = true;
        free -= job->gpus;
        const Change change = snapshot_.jobs->started(job->id) ? Change::kRestart : Change::kStart;
        starts_[job->id].credit =
            Time(now_ - job->checked) +
            snapshot_.costs->Of(snapshot_.jobs->spec(job->id), change, job->gpus);
      }
    }
  }

  // ---------------------------------------------------------------------------------------- result

  Proposal Finish() {
    Proposal proposal;
    for (const bool certain : {true, false}) {
      for (const LeasedJob& job : memory_.jobs) {
        if (job.running && (job.leased || job.forced) == certain) {
          const Start start = starts_[job.id];
          proposal.demands.push_back({.job = job.id,
                                      .gpus = job.gpus,
                                      .may_split = true,
                                      .restart = start.stopped,
                                      .credit = start.credit});
        }
      }
    }
    if (!memory_.jobs.empty() || !memory_.arrivals.empty()) {
      proposal.wake_at = snapshot_.now + options_.unit;
    }
    return proposal;
  }

  const PublishedChronusOptions& options_;
  const Snapshot& snapshot_;
  PublishedLeases& memory_;
  const std::int64_t now_;           // units
  const std::int64_t leases_begun_;  // after this decision
  std::map<JobId, Start> starts_;
};

constexpr std::array<OptionSpec, 7> kPublishedChronusOptions{{
    {"variant", OptionSpec::Kind::kChoice, "original",
     "the published program, or the copy of it in ElasticFlow's artifact", "original|elasticflow"},
    {"lease", OptionSpec::Kind::kNumber, "20", "length of a lease in units"},
    {"unit", OptionSpec::Kind::kNumber, "60", "seconds in a unit"},
    {"slot", OptionSpec::Kind::kNumber, "0", "units between admissions; 0: 5 and 240"},
    policies::kLeaseObjectiveOption,
    policies::kLeaseSolverOption,
    policies::kLeaseNodesOption,
}};

// The constants of the two published programs: reference 2.
Result<Components> MakeChronusPublished(const Options& options,
                                        const ComponentContext& /*context*/) {
  const bool original = options.Text("variant") == "original";
  const double slot = options.Number("slot");
  const PublishedChronusOptions published{.unit = FromSeconds(options.Number("unit")),
                                          .lease = std::llround(options.Number("lease")),
                                          .slot = slot > 0   ? std::llround(slot)
                                                  : original ? 5
                                                             : 240,
                                          .accepted_wait = !original,
                                          .forces = original,
                                          .backfills = original,
                                          .objective = policies::LeaseObjectiveOf(options),
                                          .planner = policies::LeasePlannerOptionsOf(options)};
  if (published.unit <= Duration{0} || published.lease < 1 || published.slot < 1) {
    return InvalidArgument(
        "policy 'chronus-published': lease, unit or slot is too short; expected a lease and a slot "
        "of at least 1 unit, of more than 0 s");
  }
  return policies::PolicyOf<ChronusPublishedDecision, PublishedLeases>(
      "chronus-published", {.needs = {.gpu_types = TypeSupport::kOne}}, published);
}

}  // namespace

std::vector<LeaseStanding> StandingsOf(const Memory& memory) {
  std::vector<LeaseStanding> standings;
  for (const LeasedJob& job : static_cast<const PublishedLeases&>(memory).jobs) {
    standings.push_back({job.id, job.rank, job.refused});
  }
  return standings;
}

ComponentEntry ChronusPublishedEntry() {
  return {ComponentKind::kPolicy,
          "chronus-published",
          "Chronus as published: leases on a grid of whole units",
          kPublishedChronusOptions,
          MakeChronusPublished,
          {},
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::originals
