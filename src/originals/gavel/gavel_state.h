// SPDX-License-Identifier: Apache-2.0
// What the published Gavel (OSDI'20) remembers: jobs and pairs with the time that they have had,
// and what its policies keep from one solve to the next. Times are seconds as the program's own
// real numbers, which the engine's microseconds only round.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/python_random.h"
#include "trainyard/component.h"
#include "trainyard/ids.h"
#include "trainyard/state.h"

namespace trainyard::originals {

// A job alone (first == second), or two that share their GPUs, by the jobs' numbers, ascending.
using GavelUnitId = std::pair<int, int>;

// By type of GPU, in alphabetical order.
struct GavelUnit {
  std::vector<double> time;     // received since the last reset, and what it began with
  std::vector<double> deficit;  // still due from before the last reset
  std::vector<double> share;    // of the last solve; empty: there has been none since it came

  void Serialize(StateStream& state) { state(time, deficit, share); }
};

struct GavelJob {
  JobId id{};
  int kind = 0;  // of its model, number of GPUs and weight
  int gpus = 1;
  double weight = 1;
  double arrival = 0;
  std::int64_t steps_left = 0;
  int failures = 0;           // in a row
  std::vector<double> rates;  // steps per second, by type

  void Serialize(StateStream& state) {
    state(id, kind, gpus, weight, arrival, steps_left, failures, rates);
  }
};

// A job, or a pair, that holds GPUs for a round.
struct GavelTask {
  GavelUnitId unit{};
  std::size_t type = 0;
  std::vector<int> gpus;            // by number in the cluster, types in order, ascending
  std::vector<std::int64_t> steps;  // of its jobs, of this round
  double finish = 0;
  double priority = 0;
  double deficit = 0;

  void Serialize(StateStream& state) { state(unit, type, gpus, steps, finish, priority, deficit); }
};

// What policies keep. Each uses its own members.
struct GavelPolicyState {
  struct Isolated {  // finish-time fairness
    double time = 0;
    double steps_left = 0;  // at the last solve
    double rate = 0;
    void Serialize(StateStream& state) { state(time, steps_left, rate); }
  };
  std::optional<base::PythonRandom> random;
  std::map<int, Isolated> isolated;
  std::map<int, std::size_t> placed;  // job, type: fifo, allox
  std::map<int, int> partners;        // gandiva: of both jobs of each pair

  void Serialize(StateStream& state) { state(isolated, placed, partners); }
};

struct GavelState final : Memory {
  double now = 0;
  double round_start = 0;
  std::optional<double> round_end;
  double last_reset = 0;
  bool dirty = false;
  std::map<int, GavelJob> jobs;  // that have not left, by number in order of arrival
  std::map<GavelUnitId, GavelUnit> units;
  std::vector<GavelUnitId> order;         // of the units, as they have come
  std::vector<double> total;              // by type: received by all units
  std::vector<GavelTask> tasks;           // of this round
  std::map<GavelUnitId, GavelTask> last;  // of the last round
  std::optional<base::PythonRandom> orders;
  GavelPolicyState policy;
  int next_number = 0;
  std::int64_t rounds = 0;
  std::int64_t solves = 0;
  std::map<JobId, int> numbers;  // of all jobs that have been seen

  void Serialize(StateStream& state) override;
};

}  // namespace trainyard::originals
