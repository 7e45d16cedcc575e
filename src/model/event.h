// SPDX-License-Identifier: Apache-2.0
// Facts that go into the engine and actions that come out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard::model {

// The copies of data sets on a node, and how it gets others.
struct NodeData {
  std::int64_t cache_mib = 0;
  std::int64_t rate_kbps = 0;  // of each fetch; 0: as the cluster file says
  std::vector<DataSet> held;   // whole ones, by name, with their size there

  friend bool operator==(const NodeData&, const NodeData&) = default;
};

// What has happened: a type for each kind. `others` are further jobs of which the fact says the
// same, ascending, behind `job`.
namespace fact {

// A job finished its work.
struct Ended {
  JobId job{};
};
// Its jobs lose their GPUs, and the work since their last checkpoint.
struct NodeDown {
  NodeId node{};
};
struct NodeUp {
  NodeId node{};
};
struct Cancelled {
  JobId job{};
  std::vector<JobId> others{};
};
struct Submitted {
  JobId job{};
  // Shared with the trace that it came from, so that a million rows are stored once.
  std::shared_ptr<const JobSpec> spec{};
};
// The trace is exhausted.
struct NoMoreSubmits {};

// What only a live world can know.

// A job ended without having done its work.
struct Failed {
  JobId job{};
  int exit_code = 0;  // of its workers; 0: none of them failed
};
// A running job's workers are gone; it waits again.
struct GpusLost {
  JobId job{};
  int exit_code = 0;  // as of Failed
};
// How much work a job has really done.
struct Progress {
  JobId job{};
  double work_done = 0;  // since the beginning, in units of the execution model
};
// The user asks for another number of GPUs.
struct Resized {
  JobId job{};
  int gpus = 0;
};
// Gets no jobs until NodeUp; jobs on it are preempted and lose no work.
struct NodeDrained {
  NodeId node{};
};
// May come up again; NodeUp says that it does.
struct NodeUndrained {
  NodeId node{};
};
// Gets no other jobs until NodeUp; those on it run on until they end. Jobs that share GPUs, or
// whose policy names them and that lie on further nodes, are preempted and lose no work.
struct NodeCordoned {
  NodeId node{};
  TimePoint until = kEndOfTime;  // then NodeDrained follows; nothing to the engine
};
// What a job says of itself.
struct Reported {
  JobId job{};
  std::vector<Metric> metrics{};  // those that have changed
};
// What only the live world must remember; nothing to the engine.
struct Noted {
  JobId job{};
  NodeId node{};
  std::string bytes{};  // of live/notes.h
};
// The nodes that a job may not lie on, and whether it may run at all for now.
struct Barred {
  JobId job{};
  std::vector<NodeId> nodes{};  // all that it avoids from now on, ascending
  bool held = false;            // it gets no GPUs until another fact of the kind says otherwise
};
// Which data sets a node keeps.
struct DataKept {
  NodeId node{};
  std::shared_ptr<const NodeData> data{};
};
// What has been measured of a job: rate, stages, costs of changes.
struct Measured {
  JobId job{};
  int gpus = 0;  // on so many
  std::string gpu_type{};
  std::vector<Metric> metrics{};  // by the names of profile::Measure
};
// Its user holds a job back, or does so no longer.
struct Held {
  JobId job{};
  std::vector<JobId> others{};
  bool held = false;
};
// Its user makes a job give its GPUs back and wait again.
struct Requeued {
  JobId job{};
  std::vector<JobId> others{};
  bool held = false;
};
// A job for each task of an array: `job` is the first, the others follow it.
struct ArraySubmitted {
  JobId job{};
  std::shared_ptr<const JobSpec> spec{};
};
// Another specification; Resized says of another number of GPUs besides.
struct Updated {
  JobId job{};
  std::shared_ptr<const JobSpec> spec{};
};
// A running job has run longer than what is known of its work takes.
struct Overrun {
  JobId job{};
  double work_done = 0;  // as of Progress; 0: unknown
};
// Another configuration takes the place of the present one.
struct Configured {
  std::string note{};  // as engine::ConfigurationSource reads it
};
// Operators have switched something off or on: both switches as they are from now on.
struct Switched {
  bool paused = false;   // no decisions
  bool closed = false;   // no submissions; nothing to the engine
  std::string by{};      // for people
  std::string reason{};  // likewise
};
// Another program decides from here on; some of what has been decided before it would have decided
// otherwise.
struct Upgraded {
  std::string from{};  // for people, as `to`
  std::string to{};
};

}  // namespace fact

// In the order of EventKind.
using Fact =
    std::variant<fact::Ended, fact::NodeDown, fact::NodeUp, fact::Cancelled, fact::Submitted,
                 fact::NoMoreSubmits, fact::Failed, fact::GpusLost, fact::Progress, fact::Resized,
                 fact::NodeDrained, fact::NodeUndrained, fact::Reported, fact::Noted, fact::Barred,
                 fact::DataKept, fact::Measured, fact::Held, fact::Requeued, fact::ArraySubmitted,
                 fact::Updated, fact::Overrun, fact::Configured, fact::Switched, fact::NodeCordoned,
                 fact::Upgraded>;

// The numbers of the kinds, which the journal has: new ones come last.
enum class EventKind : std::uint8_t {
  kEnded = 0,
  kNodeDown,
  kNodeUp,
  kCancelled,
  kSubmitted,
  kNoMoreSubmits,
  kFailed,
  kGpusLost,
  kProgress,
  kResized,
  kNodeDrained,
  kNodeUndrained,
  kReported,
  kNoted,
  kBarred,
  kDataKept,
  kMeasured,
  kHeld,
  kRequeued,
  kArraySubmitted,
  kUpdated,
  kOverrun,
  kConfigured,
  kSwitched,
  kNodeCordoned,
  kUpgraded,
};
inline constexpr std::size_t kEventKinds = std::variant_size_v<Fact>;

namespace fact {

template <typename T>
concept OfJob = requires(T one) {
  one.job;
};
template <typename T>
concept OfNode = requires(T one) {
  one.node;
};
template <typename T>
concept OfSeveral = requires(T one) {
  one.others;
};
template <typename T>
concept WithSpec = requires(T one) {
  one.spec;
};

}  // namespace fact

struct Event {
  TimePoint at{};
  Fact fact{};

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(fact.index()); }
  // REQUIRES: it is one of that kind.
  template <typename T>
  [[nodiscard]] const T& As() const {
    return std::get<T>(fact);
  }
  // The job and the node that it is about; the first ones: it is about none.
  [[nodiscard]] JobId job() const {
    return std::visit(
        [](const auto& one) {
          if constexpr (fact::OfJob<decltype(one)>) {
            return one.job;
          }
          return JobId{};
        },
        fact);
  }
  [[nodiscard]] NodeId node() const {
    return std::visit(
        [](const auto& one) {
          if constexpr (fact::OfNode<decltype(one)>) {
            return one.node;
          }
          return NodeId{};
        },
        fact);
  }
  [[nodiscard]] bool is_of_job() const {
    return std::visit([](const auto& one) { return fact::OfJob<decltype(one)>; }, fact);
  }
  [[nodiscard]] bool is_of_node() const {
    return std::visit([](const auto& one) { return fact::OfNode<decltype(one)>; }, fact);
  }
  // Further jobs of which it says the same.
  [[nodiscard]] std::span<const JobId> others() const {
    return std::visit(
        [](const auto& one) -> std::span<const JobId> {
          if constexpr (fact::OfSeveral<decltype(one)>) {
            return one.others;
          }
          return {};
        },
        fact);
  }
  // Of a fact that has one; null: it has none.
  [[nodiscard]] std::shared_ptr<const JobSpec> spec() const {
    return std::visit(
        [](const auto& one) -> std::shared_ptr<const JobSpec> {
          if constexpr (fact::WithSpec<decltype(one)>) {
            return one.spec;
          }
          return nullptr;
        },
        fact);
  }
};

// Whether facts of the kind may be about several jobs.
[[nodiscard]] constexpr bool MayBeOfSeveral(EventKind kind) {
  return kind == EventKind::kCancelled || kind == EventKind::kHeld || kind == EventKind::kRequeued;
}

// The order in which facts of one instant are taken; then by job. Where it says the same of two, as
// of whether a node may be used, they stay as they have come; so do those that may be of several
// jobs.
[[nodiscard]] constexpr int TakingOrder(EventKind kind) {
  switch (kind) {
    case EventKind::kNoted:
      return -1;
    case EventKind::kEnded:
      return 0;
    case EventKind::kFailed:
      return 1;
    case EventKind::kGpusLost:
      return 2;
    case EventKind::kNodeDown:
      return 3;
    case EventKind::kProgress:
      return 4;
    case EventKind::kReported:
    case EventKind::kMeasured:
    case EventKind::kOverrun:
      return 5;
    case EventKind::kUpgraded:
    case EventKind::kConfigured:  // before facts about nodes that it adds
    case EventKind::kSwitched:
      return 6;
    case EventKind::kNodeDrained:
    case EventKind::kNodeUndrained:
    case EventKind::kNodeUp:
    case EventKind::kNodeCordoned:
    case EventKind::kDataKept:
      return 7;
    case EventKind::kBarred:
      return 8;
    case EventKind::kCancelled:
      return 9;
    case EventKind::kResized:
    case EventKind::kUpdated:
      return 10;
    case EventKind::kSubmitted:
    case EventKind::kArraySubmitted:
      return 11;
    case EventKind::kHeld:  // of what is submitted held, too
    case EventKind::kRequeued:
      return 12;
    case EventKind::kNoMoreSubmits:
      return 13;
  }
  return 14;
}

// Calls `visit` with the fact of each of its jobs alone.
template <typename Visit>
void ForEachJob(const Event& event, Visit visit) {
  if (event.others().empty()) {
    return visit(event);
  }
  std::visit(
      [&](const auto& of) {
        if constexpr (fact::OfSeveral<decltype(of)>) {
          auto one = of;
          one.others.clear();
          visit(Event{.at = event.at, .fact = one});
          for (const JobId job : of.others) {
            one.job = job;
            visit(Event{.at = event.at, .fact = one});
          }
        }
      },
      event.fact);
}

// Facts that have become known by `now`, in order; an empty batch is a wake-up.
enum class ActionKind : std::uint8_t {
  kAdmit,
  kReject,
  kLaunch,   // GPUs to a job that has none (first start or restart)
  kPreempt,  // takes all GPUs of a job
  kResize,   // another number of GPUs
  kMigrate,  // the same number elsewhere, or shared with other jobs: its workers start anew
  kRelease,  // an ended job's GPUs are free again
  kTune,     // other CPUs, memory or loader workers; it runs on
  // Nothing of its own, but another rate, since jobs beside it have come or gone. It follows from
  // the other actions and is in no journal.
  kPace,
};

struct Action {
  ActionKind kind{};
  JobId job{};
  Grant grant{};         // kLaunch, kResize, kMigrate, kTune
  std::string reason{};  // kReject, and kRelease of a job that was ended by a rule of its own
  // Of a job with a grant, and of kPace: what workers must know besides. They follow from the
  // engine's state, so that no journal holds them.
  double rate = 0;    // units of work per second
  Duration debt{0};   // restart cost that is not paid yet
  Duration fetch{0};  // the part of it for which it waits for its data set
  double work = 0;    // all of the job's
};

struct Batch {
  TimePoint now{};
  std::vector<Event> events;
  bool done = false;  // nothing more will come
  // What was decided on it, and is decided again whatever components say; nothing: they decide.
  std::optional<std::vector<Action>> decided{};
};

}  // namespace trainyard::model
