// SPDX-License-Identifier: Apache-2.0
// The engine's rules: when to decide, how work accrues, what a change costs and which end counts.
// All are data; the defaults are sound mode, other values come from a preset file
// (docs/presets.md). Nothing in the engine knows a preset's name.
#pragma once

#include <cstdint>
#include <optional>

#include "trainyard/time.h"

namespace trainyard::model {

struct ClockRules {
  enum class Mode : std::uint8_t {
    kEveryEvent,
    kSpacing,  // next instant = max(first undecided fact, last + length)
    kRounds,   // anchor + k * length
    // kSpacing for submits, and every `length` after the last one; ends are no cause to decide.
    kArrivals,
  };
  Mode mode = Mode::kEveryEvent;
  Duration length{0};
  std::optional<TimePoint> anchor;  // kRounds; none: the first submit
};

// Units in which work counts.
enum class Quantum : std::uint8_t {
  kNone,
  kSecond,             // declared work is cut to whole units (seconds of duration)
  kIterationPerRound,  // whole units in each round: what is begun is lost (kRounds)
};

struct Debt {
  enum class Charge : std::uint8_t {
    kNone,
    kStart,         // a job that gets GPUs while it has none
    kChange,        // a start, restart, resize or migration
    kEveryInstant,  // every job with GPUs, at every decision
    // Every job that has started, at every decision while submits are to come. A job that holds
    // nothing then pays when it does, unless it was not started by the decision that admitted it.
    kEveryArrival,
  };
  enum class Pay : std::uint8_t {
    kDelay,     // before progress; the unpaid rest carries over
    kInterval,  // before progress, until the next decision; the rest is forgotten
    kAtEnd,     // it is added to the work
  };
  Charge charge = Charge::kChange;
  Pay pay = Pay::kDelay;
};

struct EndRule {
  enum class Finish : std::uint8_t {
    kExact,
    kCeilSecond,   // the end is registered at the next whole second
    kFloorSecond,  // at the last whole second
    kRoundEnd,     // with the round in which the work is done (kRounds)
  };
  // How the engine learns of an end.
  enum class Source : std::uint8_t {
    kPredicted,  // from the job's present rate
    // From the policy's plan (Proposal::ends). A job makes no progress beyond the planned end, and
    // one that is finished before leaves at the next decision.
    kPlanned,
    // An end wakes nobody: it is found at the next decision, and GPUs are held until then.
    kFound,
  };
  Finish finish = Finish::kExact;
  Source source = Source::kPredicted;
  bool release_at_instant = false;  // GPUs come back at the next decision, not at the end
};

// When running jobs give way to waiting ones.
struct Preemption {
  enum class Rule : std::uint8_t {
    // Restart costs count in the time left, equal keys leave running jobs alone, and a job stays
    // for a while where keys make equal jobs take turns (Standing::stay).
    kSound,
    kPublished,  // as keys say, at every decision
  };
  Rule rule = Rule::kSound;
  Duration min_runtime{0};  // kSound: a running job is no victim before it has trained so long
};

// What only exists to give the numbers of a published program. Each rule is read in one place of
// the engine, which its comment names after the program; with the defaults that place does nothing.
struct PublishedRules {
  // Under ClockRules::kSpacing a lone remaining fact is not delayed. Which facts count as
  // remaining:
  enum class LoneFact : std::uint8_t {
    kDelayed,  // no exception
    kStarted,  // submits to come, and the ends of all jobs that have started
    kSubmits,  // submits only
  };
  // ElasticFlow: instants.
  LoneFact lone_fact = LoneFact::kDelayed;
  // Progress is folded in at every decision, not only when a rate changes. ElasticFlow, Muri:
  // engine.
  bool every_instant = false;
  // An instant that an end causes lies up to a microsecond before the one that is kept; progress is
  // counted to the true one. For programs whose times are real numbers: the error would add up.
  // Muri: books/ledger.
  bool true_instants = false;
  // Predicted ends include the unpaid debt. Not in ElasticFlow's Tiresias, nor in Muri:
  // books/ledger.
  bool debt_in_forecast = true;
  // Every so many decisions all jobs with GPUs are restarted and charged; 0: never. Such a charge
  // is always in the forecast. ElasticFlow: books/charges.
  int restart_every = 0;
  // Each member of an interleaving group owes the costs of all. Muri: books/charges.
  bool group_sum = false;
  // A set of GPUs that a job of that size has used since the last such restart (its process groups
  // exist) costs only the base of the overhead formula. A set is told by its first GPU and its
  // size. ElasticFlow: books/charges.
  bool warm_sets = false;
  // A planned end comes even for a job that holds nothing then. ElasticFlow: engine.
  bool ends_without_gpus = false;
  // Ends that lie this close to the first one, as a share of its time or absolutely, come with it.
  // Muri: books/ends.
  double join_relative = 0;
  Duration join_absolute{0};
  // All ends within `join_relative` of the first one come at that of the job of the least priority
  // number among them, of equals the first to arrive. Muri's AntMan: books/ends.
  bool join_by_priority = false;

  friend bool operator==(const PublishedRules&, const PublishedRules&) = default;
};

struct Rules {
  ClockRules clock{};
  Quantum quantum = Quantum::kNone;
  Debt debt{};
  EndRule end{};
  Preemption preemption{};
  PublishedRules published{};

  // Whether jobs without GPUs may run, of which published programs know nothing: only if ends
  // follow from rates as they are, and changes are charged as they are made.
  [[nodiscard]] bool TakeCpuJobs() const {
    return preemption.rule == Preemption::Rule::kSound && quantum == Quantum::kNone &&
           end.source == EndRule::Source::kPredicted && end.finish == EndRule::Finish::kExact &&
           !end.release_at_instant && debt.charge <= Debt::Charge::kChange &&
           published == PublishedRules{};
  }
};

}  // namespace trainyard::model
