// SPDX-License-Identifier: Apache-2.0
// How the workers of an attempt come to work together, and how they leave one another, in the
// pretended world. As in src/supervisor, each node's part is started by its own agent; what joins
// the parts is the job's launcher:
//
//   plain     the workers of each node begin at once, and look for the others
//   torchrun  a program on each node, which takes a while to come up, and meets the others at the
//             first node; workers begin when all have met
//   mpi       mpirun on the first node; the part of each other node asks mpirun's desk for the
//             command of its daemon, for as long as it takes, and the daemon joins mpirun; ranks
//             begin when all have
//
// When one part goes, others fail soon, as they would for a mistake of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faults/coverage.h"
#include "faults/witness.h"
#include "trainyard/live.pb.h"
#include "trainyard/time.h"

namespace trainyard::faults {

class World;

[[nodiscard]] Starter StarterOf(const v1::LaunchSpec& launch);
// Iterations a second of workers that the controller, which has measured them, thinks to make
// `said`: real ones are not slower for being thought so, again and again.
double RateOf(const v1::StartAttempt& start, double said);

class PretendedLaunches {
 public:
  explicit PretendedLaunches(World& world) : world_(world) {}

  // A part of an attempt begins on a node. What its order says of the others has to agree with what
  // theirs say: first ranks, and where they meet.
  void Begin(int node, const v1::StartAttempt& start);
  // Nothing is left of the part: its work is done, or it has been ended or has failed.
  void Leave(int node, const AttemptKey& key, bool done);
  // None: the part is gone, or emulated.
  [[nodiscard]] std::optional<LaunchStep> StepOf(int node, const AttemptKey& key) const;

 private:
  enum class Step : std::uint8_t { kComes, kMeets, kWorks, kGone };
  struct Part {
    int node = 0;
    Step step = Step::kComes;
    bool asks = false;  // the first node, which is not ready
  };
  struct Launch {
    v1::StartAttempt start;     // of the part that began last
    std::map<int, Part> parts;  // by rank of their nodes
  };

  [[nodiscard]] std::string WhyNotOf(const Launch& launch, const v1::StartAttempt& start) const;
  void Arrive(const AttemptKey& key, int rank);
  void Meet(const AttemptKey& key, Launch& launch);
  [[nodiscard]] std::optional<Duration> NoticesIn(const Launch& launch, int gone, Step was,
                                                  int rank);

  World& world_;
  std::map<AttemptKey, Launch> launches_;
};

}  // namespace trainyard::faults
