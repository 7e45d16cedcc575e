// SPDX-License-Identifier: Apache-2.0
// Facts that go into the engine and actions that come out of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard {

// In the order in which facts of one instant are taken.
enum class EventKind : std::uint8_t {
  kEnded = 0,  // a running job finished its work
  kNodeDown,   // its jobs lose their GPUs
  kNodeUp,
  kCancel,
  kSubmit,
  kNoMoreSubmits,  // the trace is exhausted
};

struct Event {
  EventKind kind{};
  TimePoint at{};
  JobId job{};    // kEnded, kCancel, kSubmit
  NodeId node{};  // kNodeDown, kNodeUp
  // kSubmit. Shared with the trace that it came from, so that a million rows are stored once.
  std::shared_ptr<const JobSpec> spec{};
};

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
  kMigrate,  // the same number elsewhere
  kRelease,  // an ended job's GPUs are free again
};

struct Action {
  ActionKind kind{};
  JobId job{};
  Grant grant{};         // kLaunch, kResize, kMigrate
  std::string reason{};  // kReject
};

}  // namespace trainyard
