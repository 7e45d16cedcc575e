// SPDX-License-Identifier: Apache-2.0
// Facts that go into the engine and actions that come out of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard::model {

enum class EventKind : std::uint8_t {
  kEnded = 0,  // a job finished its work
  kNodeDown,   // its jobs lose their GPUs, and the work since their last checkpoint
  kNodeUp,
  kCancel,
  kSubmit,
  kNoMoreSubmits,  // the trace is exhausted
  // What only a live world can know.
  kFailed,         // a job ended without having done its work
  kGpusLost,       // a running job's workers are gone; it waits again
  kProgress,       // how much work a job has really done
  kResize,         // the user asks for another number of GPUs
  kNodeDrained,    // gets no jobs until kNodeUp; jobs on it are preempted and lose no work
  kNodeUndrained,  // may come up again; kNodeUp says that it does
  kReported,       // what a job says of itself
  kNoted,          // what only the live world must remember; nothing to the engine
  kBarred,         // the nodes that a job may not lie on, and whether it may run at all for now
  kDataKept,       // which data sets a node keeps
  kMeasured,       // what has been measured of a job: rate, stages, costs of changes
  kHeld,           // its user holds a job back, or does so no longer
  kRequeued,       // its user makes a job give its GPUs back and wait again
  kSubmitArray,    // a job for each task of an array: `job` is the first, the others follow it
  kUpdated,        // another specification, on as many GPUs
  kOverrun,        // a running job has run longer than what is known of its work takes
  kConfigured,     // another configuration takes the place of the present one
};
inline constexpr EventKind kLastEventKind = EventKind::kConfigured;

// Whether the fact may be one about several jobs, Event::others.
[[nodiscard]] constexpr bool MayBeOfSeveral(EventKind kind) {
  return kind == EventKind::kCancel || kind == EventKind::kHeld || kind == EventKind::kRequeued;
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
    case EventKind::kConfigured:  // before facts about nodes that it adds
      return 6;
    case EventKind::kNodeDrained:
    case EventKind::kNodeUndrained:
    case EventKind::kNodeUp:
    case EventKind::kDataKept:
      return 7;
    case EventKind::kBarred:
      return 8;
    case EventKind::kCancel:
      return 9;
    case EventKind::kResize:
    case EventKind::kUpdated:
      return 10;
    case EventKind::kSubmit:
    case EventKind::kSubmitArray:
      return 11;
    case EventKind::kHeld:  // of what is submitted held, too
    case EventKind::kRequeued:
      return 12;
    case EventKind::kNoMoreSubmits:
      return 13;
  }
  return 14;
}

// The copies of data sets on a node, and how it gets others.
struct NodeData {
  std::int64_t cache_mib = 0;
  std::int64_t rate_kbps = 0;  // of each fetch; 0: as the cluster file says
  std::vector<DataSet> held;   // whole ones, by name, with their size there

  friend bool operator==(const NodeData&, const NodeData&) = default;
};

struct Event {
  EventKind kind{};
  TimePoint at{};
  JobId job{};  // all kinds but those about nodes
  // Further jobs of which it says the same, ascending, behind `job`; see MayBeOfSeveral.
  std::vector<JobId> others{};
  NodeId node{};  // the kinds about nodes
  // kSubmit, kSubmitArray, kUpdated. Shared with the trace that it came from, so that a million
  // rows are stored once.
  std::shared_ptr<const JobSpec> spec{};
  // kProgress, kOverrun: since the beginning, in units of the execution model; kOverrun: 0: unknown
  double work_done = 0;
  int gpus = 0;       // kResize; kMeasured: on so many
  int exit_code = 0;  // kFailed, kGpusLost: of its workers; 0: none of them failed
  // kReported: the metrics that have changed; kMeasured: by the names of profile::Measure
  std::vector<Metric> metrics{};
  std::vector<NodeId> barred{};  // kBarred: all nodes that the job avoids from now on, ascending
  // kBarred, kHeld, kRequeued: it gets no GPUs until another fact of the kind says otherwise.
  bool held = false;
  // kNoted: bytes of the live world's own; kMeasured: GPU type; kConfigured: the configuration, as
  // engine::ConfigurationSource reads it
  std::string note{};
  std::shared_ptr<const NodeData> data{};  // kDataKept
};

// The fact of each of its jobs alone.
template <typename Visit>
void ForEachJob(const Event& event, Visit visit) {
  if (event.others.empty()) {
    return visit(event);
  }
  Event one = event;
  one.others.clear();
  visit(one);
  for (const JobId job : event.others) {
    one.job = job;
    visit(one);
  }
}

// Facts that have become known by `now`, in order; an empty batch is a wake-up.
struct Batch {
  TimePoint now{};
  std::vector<Event> events;
  bool done = false;  // nothing more will come
};

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

}  // namespace trainyard::model
