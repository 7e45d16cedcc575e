// SPDX-License-Identifier: Apache-2.0
// How much time each job shall have on the GPUs of each type: the question that the policies of
// Gavel (Narayanan et al., OSDI'20, section 3) answer, and the form of the answer. Nothing here
// knows of nodes, rounds or grants.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainyard/ids.h"

namespace trainyard::policies {

struct AllocationJob {
  JobId id{};     // only policies that remember jobs read it
  int kind = -1;  // of its model and number of GPUs, by which pairs are known
  int gpus = 1;   // all of one type
  double weight = 1;
  // Units of work per second on `gpus` GPUs of each type, alone; 0: does not run there.
  std::vector<double> rates;
  double work_left = 0;  // units
  double age = 0;        // seconds since it arrived
  // Seconds that the work done so far would have taken with the isolated share.
  double isolated_time = 0;
  double time_left = 0;  // seconds to its deadline; infinite: none
};

// Two jobs of these kinds on the same GPUs; kinds of equal numbers of GPUs, first <= second.
struct PairRates {
  int first = 0;
  int second = 0;
  std::vector<double> first_rates;  // by type, of the job of kind `first`
  std::vector<double> second_rates;
};

struct AllocationProblem {
  std::vector<double> gpus;      // by type; may be 0
  std::vector<double> prices{};  // by type, of a GPU and hour, > 0; empty: all alike
  std::vector<AllocationJob> jobs{};
  std::vector<PairRates> pairs{};  // that may share GPUs; empty: no two jobs may

  [[nodiscard]] std::size_t types() const { return gpus.size(); }
};

// A job alone, or two on the same GPUs.
struct AllocationUnit {
  std::size_t first = 0;       // of AllocationProblem::jobs
  std::size_t second = 0;      // `first`: alone
  std::vector<double> shares;  // of its time on each type, 0 to 1

  [[nodiscard]] bool alone() const { return first == second; }
};

struct Allocation {
  std::vector<AllocationUnit> units;  // all jobs alone, in their order; then pairs with a share
  double objective = 0;               // of the policy, where it has one
  bool optimal = true;                // false: a limit of the solver came first
};

// All jobs alone, with no share of anything.
[[nodiscard]] Allocation NoShares(const AllocationProblem& problem);

// The mean rate over all GPUs of the cluster (section 4.1: the normalised throughput's divisor).
[[nodiscard]] double MeanRate(const AllocationProblem& problem, const AllocationJob& job);

// What each job gets where all divide the cluster equally (section 4.2): of n jobs, job i with s
// GPUs is given N_j / (n s) of type j, cut so that the sum is at most 1. By job and type; and the
// rates that it has so.
[[nodiscard]] std::vector<std::vector<double>> IsolatedShares(const AllocationProblem& problem);
[[nodiscard]] std::vector<double> IsolatedRates(const AllocationProblem& problem);

// Units of work per second that the job has by the allocation.
[[nodiscard]] std::vector<double> RatesBy(const AllocationProblem& problem,
                                          const Allocation& allocation);

}  // namespace trainyard::policies
