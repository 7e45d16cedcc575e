// SPDX-License-Identifier: Apache-2.0
// The simulator behind E. Gaussier, D. Glesser, V. Reis, D. Trystram, SC'15: FCFS, EASY and
// conservative backfilling of jobs on equal processors, decided after each submission and each end
// of an instant.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/free_over_time.h"
#include "originals/originals.h"
#include "policies/decision_policy.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

using model::FreeOverTime;

struct PublishedBackfillOptions {
  enum class Kind : std::uint8_t { kFcfs, kEasy, kConservative };
  Kind kind = Kind::kEasy;
  bool shortest_first = false;   // of the jobs behind the first
  bool knows_durations = false;  // otherwise their time limits
};

struct HeldJob {
  JobId id{};
  int gpus = 0;
  TimePoint known_end{};

  void Serialize(StateStream& state) { state(id, gpus, known_end); }
};

struct QueuedJob {
  JobId id{};
  int gpus = 0;
  Duration known{};   // for which it is taken to run
  TimePoint start{};  // conservative: of its reservation

  void Serialize(StateStream& state) { state(id, gpus, known, start); }
};

struct BackfillQueue final : Memory {
  std::vector<HeldJob> running;    // in the order of their starts
  std::vector<QueuedJob> waiting;  // in the order of arrival

  void Serialize(StateStream& state) override { state(running, waiting); }
};

// All decisions of one instant: submissions come first, then ends, then planned starts.
class PublishedBackfillDecision {
 public:
  PublishedBackfillDecision(const PublishedBackfillOptions& options, const Snapshot& snapshot,
                            BackfillQueue& memory)
      : options_(options),
        now_(snapshot.now),
        snapshot_(snapshot),
        memory_(memory),
        profile_(now_, snapshot.gpus_up) {}

  [[nodiscard]] Proposal Take() {
    Meet();
    for (const QueuedJob& job : arrivals_) {
      Submit(job);
    }
    for (const HeldJob& job : ended_) {
      End(job);
    }
    if (IsConservative()) {
      StartPlanned();
    }
    return Finish();
  }

 private:
  [[nodiscard]] bool IsConservative() const {
    return options_.kind == PublishedBackfillOptions::Kind::kConservative;
  }

  // What has come and gone since the last decision; the profile is of before that.
  void Meet() {
    const std::span<const JobId> all = snapshot_.jobs->live();
    std::set<JobId> unknown(all.begin(), all.end());
    std::erase_if(memory_.waiting,
                  [&](const QueuedJob& job) { return unknown.erase(job.id) == 0; });
    std::erase_if(memory_.running, [&](const HeldJob& job) {
      const bool runs = unknown.contains(job.id) && snapshot_.jobs->grant(job.id).gpus > 0;
      if (runs) {
        unknown.erase(job.id);  // who has lost its GPUs comes anew
      }
      profile_.Take(now_, runs ? std::max(job.known_end, now_ + Duration{1}) : job.known_end,
                    job.gpus);
      if (!runs) {
        ended_.push_back(job);
      }
      return !runs;
    });
    for (const QueuedJob& job : memory_.waiting) {
      if (IsConservative()) {
        profile_.Take(job.start, FreeOverTime::EndOf(job.start, job.known), job.gpus);
      }
    }
    std::map<std::uint64_t, JobId> by_arrival;
    for (const JobId id : unknown) {
      by_arrival.emplace(snapshot_.jobs->at(id).arrival, id);
    }
    for (const auto& [arrival, id] : by_arrival) {
      const JobSpec& spec = snapshot_.jobs->spec(id);
      arrivals_.push_back({.id = id, .gpus = spec.gpus, .known = KnownTime(spec)});
    }
  }

  [[nodiscard]] Duration KnownTime(const JobSpec& job) const {
    const Duration runs = job.duration.value_or(kEndOfTime - TimePoint{});
    return options_.knows_durations || job.traits == nullptr
               ? runs
               : job.traits->time_limit.value_or(runs);
  }

  void Submit(const QueuedJob& job) {
    memory_.waiting.push_back(job);
    if (IsConservative()) {
      Reserve(memory_.waiting.back());
    } else if (profile_.free_now() >= job.gpus) {
      Decide();
    }
  }

  // The unused rest of its time is given back.
  void End(const HeldJob& job) {
    profile_.Give(now_, job.known_end, job.gpus);
    if (!IsConservative()) {
      return Decide();
    }
    for (QueuedJob& waiting : memory_.waiting) {
      profile_.Give(waiting.start, FreeOverTime::EndOf(waiting.start, waiting.known), waiting.gpus);
      Reserve(waiting);
    }
  }

  void Reserve(QueuedJob& job) {
    job.start = profile_.EarliestStart(job.gpus, job.known);
    profile_.Take(job.start, FreeOverTime::EndOf(job.start, job.known), job.gpus);
  }

  void Decide() {
    std::vector<QueuedJob>& waiting = memory_.waiting;
    std::size_t started = 0;
    for (; started < waiting.size() && profile_.free_now() >= waiting[started].gpus; ++started) {
      Start(waiting[started]);
    }
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(started));
    if (options_.kind == PublishedBackfillOptions::Kind::kEasy && waiting.size() > 1 &&
        profile_.free_now() > 0) {
      Backfill(waiting);
    }
  }

  void Backfill(std::vector<QueuedJob>& waiting) {
    QueuedJob head = waiting.front();
    Reserve(head);
    std::vector<QueuedJob> others(waiting.begin() + 1, waiting.end());
    if (options_.shortest_first) {
      std::stable_sort(others.begin(), others.end(),
                       [](const QueuedJob& a, const QueuedJob& b) { return a.known < b.known; });
    }
    std::set<JobId> started;
    for (const QueuedJob& job : others) {
      if (profile_.HasUntil(FreeOverTime::EndOf(now_, job.known), job.gpus)) {
        Start(job);
        started.insert(job.id);
      }
    }
    profile_.Give(head.start, FreeOverTime::EndOf(head.start, head.known), head.gpus);
    std::erase_if(waiting, [&](const QueuedJob& job) { return started.contains(job.id); });
  }

  void Start(const QueuedJob& job) {
    const TimePoint end = FreeOverTime::EndOf(now_, job.known);
    profile_.Take(now_, end, job.gpus);
    memory_.running.push_back({.id = job.id, .gpus = job.gpus, .known_end = end});
  }

  // They are in the profile already.
  void StartPlanned() {
    std::erase_if(memory_.waiting, [&](const QueuedJob& job) {
      if (job.start > now_) {
        return false;
      }
      memory_.running.push_back(
          {.id = job.id, .gpus = job.gpus, .known_end = FreeOverTime::EndOf(job.start, job.known)});
      return true;
    });
  }

  [[nodiscard]] Proposal Finish() const {
    Proposal proposal;
    proposal.demands.reserve(memory_.running.size());
    for (const HeldJob& job : memory_.running) {
      proposal.demands.push_back({.job = job.id, .gpus = job.gpus, .may_split = true});
    }
    for (const QueuedJob& job : memory_.waiting) {
      if (IsConservative() && job.start != kEndOfTime) {
        proposal.wake_at = std::min(proposal.wake_at.value_or(job.start), job.start);
      }
    }
    return proposal;
  }

  const PublishedBackfillOptions& options_;
  const TimePoint now_;
  const Snapshot& snapshot_;
  BackfillQueue& memory_;
  FreeOverTime profile_;
  std::vector<QueuedJob> arrivals_;
  std::vector<HeldJob> ended_;  // in the order of their starts
};

constexpr std::array<OptionSpec, 1> kPublishedBackfillOptions{{
    {"variant", OptionSpec::Kind::kChoice, "easy",
     "the published policy; easy-sjbf: the shortest is backfilled first, easy-exact: run times are "
     "known",
     "fcfs|easy|easy-sjbf|easy-exact|conservative"},
}};

Result<Components> MakeBackfillPublished(const Options& options,
                                         const ComponentContext& /*context*/) {
  using Kind = PublishedBackfillOptions::Kind;
  const std::string& variant = options.Text("variant");
  return policies::PolicyOf<PublishedBackfillDecision, BackfillQueue>(
      "backfill-published", {.needs = {.gpu_types = TypeSupport::kOne}},
      PublishedBackfillOptions{.kind = variant == "fcfs"           ? Kind::kFcfs
                                       : variant == "conservative" ? Kind::kConservative
                                                                   : Kind::kEasy,
                               .shortest_first = variant == "easy-sjbf",
                               .knows_durations = variant == "easy-exact"});
}

}  // namespace

ComponentEntry BackfillPublishedEntry() {
  return {ComponentKind::kPolicy,
          "backfill-published",
          "EASY and conservative backfilling with a decision after each event of an instant",
          kPublishedBackfillOptions,
          MakeBackfillPublished,
          {},
          {},
          false,
          {}};
}

}  // namespace trainyard::originals
