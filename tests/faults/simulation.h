// SPDX-License-Identifier: Apache-2.0
// The production controller and agents in a pretended world of clocks, networks, disks and
// processes, in which everything that can go wrong does, as a seed says. One thread, no sleeping:
// a failing seed fails again.
#pragma once

#include <cstdint>
#include <string>

#include "faults/coverage.h"

namespace trainyard {

// Bugs that the simulation must find; for its own test.
enum class PlantedBug : unsigned char {
  kNone,
  kAckBeforeSync,  // the disk says "written" before it is
  kNoFencing,      // agents let their attempts run on when their lease is over
  kDoubleGrant,    // GPUs are called free with the notice, not when the processes are gone
  kOldSnapshot,    // what is written is the snapshot before
  kBlamesJobs,     // agents do not say that it is their node's fault that a job cannot be started
  kNoTurns,        // members of a group begin their stages whenever they want
  kLostShares,     // workers do not hear of all changes of their share
  kOtherMeasured,  // a controller that starts again has measured other things
  kForgetsUse,     // an agent that starts again does not know which data sets its attempts use
  kNewTokens,      // a submission that is repeated comes with another token
  kLosesStarts,    // what is to be started is not, and nobody is told
  kDeadAtOnce,     // the controller takes nodes for dead long before their lease is over
  kIdleVictims,    // a policy takes GPUs away for nobody
  kMischarges,     // GPUs that are taken away are charged on
  kStaysAway,      // agents that have crashed are not started again
  kForgetsLoss,    // what a node ran when it crashed is said to have failed by itself
  kLeavesDaemons,  // daemons of mpirun outlive the end that is told of them
  // What clients have asked for does not reach the controller as they said it.
  kForgetsDependencies,
  kTurnsDependencies,  // afterany is taken for afternotok
  kForgetsBegins,
  kForgetsLimits,
  kHalvesLimits,
  kForgetsArrayLimits,
  kLosesTasks,    // the last one of an array
  kForgetsHolds,  // they are acknowledged, and nothing follows
  kForgetsUpdates,
};

struct FaultOptions {
  std::uint64_t seed = 1;
  int jobs = 50;
  int nodes = 4;
  int gpus = 4;  // of each node
  PlantedBug bug = PlantedBug::kNone;
  bool verbose = false;
};

struct FaultResult {
  std::string violation;  // empty: none
  std::string digest;     // of the journal at the end
  int controller_crashes = 0;
  int agent_crashes = 0;
  int node_crashes = 0;
  int partitions = 0;
  int full_disks = 0;
  int sick_nodes = 0;
  int node_failures = 0;      // attempts that sick nodes have ended
  int failed_for_others = 0;  // workers that have failed as others of their attempt had gone
  int drains = 0;             // by the controller itself, as seen
  int configured = 0;         // other configurations in force
  int parted = 0;             // grants on clusters with partitions
  int paused_steps = 0;       // of controllers whose decisions are paused
  int completed = 0;
  int cancelled = 0;
  int over_limit = 0;           // jobs that were ended at their time limit
  int impossible = 0;           // whose dependency could not be met
  int starts_after_others = 0;  // jobs that had a dependency, and have started
  int answers_compared = 0;     // statuses of jobs, with what their clients know
  int resumed = 0;              // restarts from a snapshot
  int upgrades = 0;             // starts of a program that would have decided otherwise
  int turns = 0;                // stages that workers have begun by turns
  int tunes = 0;                // changes of shares of which workers have heard
  int loaders_checked = 0;
  int fetches = 0;  // of data sets, that have ended well
  int failed_fetches = 0;
  int broken_fetches = 0;   // by the end of their agent
  int resumed_fetches = 0;  // of these
  int removed_copies = 0;
  int local_starts = 0;  // attempts that have a copy of their data set
  int home_starts = 0;   // that have none
  int clock_jumps = 0;   // of nodes
  int newcomers = 0;     // jobs that got GPUs of a node, policies that name none
  int victims = 0;       // jobs that ran and lost their GPUs to others
  int charges = 0;       // jobs whose charge was compared with what they held
  int watched = 0;       // looks at a job that had GPUs and had not started
  faults::Coverage coverage;
  int measurements = 0;  // samples in the controller's book at the end
};

[[nodiscard]] FaultResult RunFaults(const FaultOptions& options);

}  // namespace trainyard
