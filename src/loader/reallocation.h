// SPDX-License-Identifier: Apache-2.0
// Who is told what when jobs arrive, report and depart: the published scheduler's events as pure
// transitions (docs/policies/torchloader.md). A job whose number of workers changes is paused and
// launched again; whoever arrives waits until all these have stopped.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::loader {

enum class ReallocationMode : unsigned char {
  kNever = 1,      // jobs keep the workers that they asked for
  kOnArrival = 2,  // workers are divided anew when jobs arrive
  kAlways = 3,     // and when jobs depart
};

struct LoaderCommand {
  enum class Kind : unsigned char { kLaunch, kPause };
  Kind kind{};
  JobId job{};
  int workers = 0;               // all devices together, from the next launch on
  int restarts = 0;              // pauses so far
  bool from_checkpoint = false;  // it has been paused before

  friend bool operator==(const LoaderCommand&, const LoaderCommand&) = default;
};

// The queues in their published order.
struct LoaderQueues {
  struct Job {
    int workers = 0;
    int restarts = 0;
    bool from_checkpoint = false;

    void Serialize(StateStream& state) { state(workers, restarts, from_checkpoint); }
  };
  std::vector<JobId> ready;  // to be launched when nobody is left to be waited for
  std::vector<JobId> running;
  std::vector<JobId> paused;
  std::vector<JobId> finished;
  std::set<JobId> told;       // running, told to pause, not heard of since
  std::map<JobId, Job> jobs;  // all of the above
  // The published flag: set by each departure that divides anew, even where nobody has to pause.
  // It is shown, and stops nothing: what counts is `told`.
  bool pausing = false;

  void Serialize(StateStream& state) {
    state(ready, running, paused, finished, told, jobs, pausing);
  }
};

// A transition: the queues after it and what to do, in order.
struct LoaderStep {
  LoaderQueues queues;
  std::vector<LoaderCommand> commands;
};

// Workers of each of `jobs`, all devices together.
using DivideWorkers =
    std::function<std::vector<int>(const LoaderQueues& queues, std::span<const JobId> jobs)>;

struct LoaderArrival {
  JobId job{};
  int workers = 0;  // asked for
};

class Reallocation {
 public:
  Reallocation(ReallocationMode mode, DivideWorkers divide)
      : mode_(mode), divide_(std::move(divide)) {}

  // Jobs that are handed over together.
  [[nodiscard]] LoaderStep Arrive(LoaderQueues queues, std::span<const LoaderArrival> batch) const;
  // A job that was told to pause has stopped. Of any other job: nothing.
  [[nodiscard]] LoaderStep Paused(LoaderQueues queues, JobId job) const;
  // Jobs that depart together, whatever they were told.
  [[nodiscard]] LoaderStep Finish(LoaderQueues queues, std::span<const JobId> jobs) const;

 private:
  ReallocationMode mode_;
  DivideWorkers divide_;
};

// The published submitter looks ahead: whoever arrives within a window is handed over at its start.
// The end of a window belongs to it. A window of zero: at the arrival itself.
[[nodiscard]] TimePoint HandoverOf(TimePoint arrival, Duration window);

}  // namespace trainyard::loader
