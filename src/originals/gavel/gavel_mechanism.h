// SPDX-License-Identifier: Apache-2.0
// The rounds of Gavel's published simulator (OSDI'20, section 5; artifact of 2022-01): who holds
// which GPUs by the priorities that follow from an allocation, with its defects.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "originals/gavel/gavel_state.h"
#include "policies/gavel/allocation_problem.h"

namespace trainyard::originals {

struct GavelRules {
  double round = 360;            // seconds
  double between_resets = 1920;  // seconds
  bool shuffles_types = true;    // types take turns to be first; false: from the last one on
  bool needs_priority = false;   // nobody runs by free GPUs alone (fifo)
  bool pairs = false;            // jobs share GPUs
};

// Iterations per second of two jobs of these kinds on the same GPUs, by type.
using GavelPairs = std::function<const policies::PairRates*(int kind, int other)>;
// The shares of all units by a policy; `numbers`: of the problem's jobs.
using GavelSolver = std::function<policies::Allocation(
    const policies::AllocationProblem& problem, std::span<const int> numbers, GavelState& state)>;

class GavelMechanism {
 public:
  // `gpus`: of each type, in alphabetical order of the types. All must outlive the mechanism.
  GavelMechanism(const GavelRules& rules, std::span<const int> gpus, const GavelPairs& pairs,
                 const GavelSolver& solve, GavelState& state);

  // A turn of the published loop: the round that runs ends at its latest finish; or, if none runs,
  // it is `now`. `arrived`: the jobs that have come by then, in order; none though nothing runs: no
  // more will come.
  void Turn(double now, std::vector<GavelJob> arrived);
  // The job has gone otherwise than by its end: cancelled, failed.
  void Leave(int job);
  // The GPUs have been numbered anew: nobody has any, and shares are due.
  void ForgetGpus();
  // When the round that runs ends; nothing runs: none.
  [[nodiscard]] std::optional<double> RoundEnd() const;
  // The jobs that end with the task, by their numbers.
  [[nodiscard]] std::vector<int> EndingWith(const GavelTask& task) const;

 private:
  struct Candidate {
    GavelUnitId unit{};
    double priority = 0;
    double deficit = 0;
    double share = 0;
  };

  [[nodiscard]] bool Fails(const GavelTask& task) const;
  void EndTasks();
  void EndTask(const GavelTask& task);
  // A job leaves, with all units that it is in.
  void Remove(int job);
  void Add(GavelJob job);
  void Solve();
  void Reset();
  [[nodiscard]] policies::AllocationProblem Problem(std::vector<int>& numbers) const;
  void Take(const policies::Allocation& allocation, std::span<const int> numbers);
  void Schedule();
  [[nodiscard]] std::vector<std::size_t> TypeOrder();
  [[nodiscard]] std::vector<Candidate> Candidates(std::size_t type) const;
  // By type, the units that run in the next round.
  [[nodiscard]] std::vector<std::vector<Candidate>> Choose();
  void Assign(std::size_t type, std::vector<Candidate> chosen);
  void Start(GavelTask& task);

  // By job of the unit; 0: does not run so.
  [[nodiscard]] std::vector<double> RatesOf(GavelUnitId unit, std::size_t type) const;
  [[nodiscard]] int GpusOf(GavelUnitId unit) const { return state_.jobs.at(unit.first).gpus; }

  const GavelRules& rules_;
  const std::span<const int> gpus_;
  const GavelPairs& pairs_;
  const GavelSolver& solve_;
  GavelState& state_;
};

}  // namespace trainyard::originals
