// SPDX-License-Identifier: Apache-2.0
// The search for who gets which GPUs (Pollux, OSDI'21, section 4.2): a genetic algorithm over
// matrices of GPUs by job and node, NSGA-II (Deb et al., 2002) with two objectives. The first, the
// fitness of the cluster, decides; the second, how well its GPUs are used, keeps the population
// diverse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policies/pollux/random_stream.h"
#include "policies/rest_of_job.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// How many GPUs each job has on each node, row by row.
class AllocationMatrix {
 public:
  AllocationMatrix() = default;
  AllocationMatrix(std::size_t jobs, std::size_t nodes) : nodes_(nodes), cells_(jobs * nodes) {}

  [[nodiscard]] std::size_t jobs() const { return nodes_ == 0 ? 0 : cells_.size() / nodes_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  [[nodiscard]] std::span<std::uint8_t> row(std::size_t job) {
    return std::span(cells_).subspan(job * nodes_, nodes_);
  }
  [[nodiscard]] std::span<const std::uint8_t> row(std::size_t job) const {
    return std::span(cells_).subspan(job * nodes_, nodes_);
  }
  [[nodiscard]] std::span<const std::uint8_t> cells() const { return cells_; }
  // On how many nodes the job has GPUs, and whether on more than one.
  [[nodiscard]] std::size_t NodesOf(std::size_t job) const;
  [[nodiscard]] bool IsDistributed(std::size_t job) const { return NodesOf(job) > 1; }
  void Serialize(StateStream& state) {
    state(nodes_, cells_);
    if (nodes_ == 0 ? !cells_.empty() : cells_.size() % nodes_ != 0) {
      state.Fail();
    }
  }
  friend bool operator==(const AllocationMatrix&, const AllocationMatrix&) = default;

 private:
  std::size_t nodes_ = 0;
  std::vector<std::uint8_t> cells_;
};

// What the search must know of one job.
struct SearchJob {
  int most_gpus = 1;
  // By [k - 1], for k GPUs of one node and of several: its goodput over that on a fair share.
  // REQUIRES: at least `most_gpus` long.
  std::vector<double> on_one_node{};
  std::vector<double> on_several{};
  // By [k - 1]: how many of k GPUs it uses; the others are left to other jobs. Empty: all of them.
  std::vector<int> usable{};
  // By how much its speedup counts less wherever it is moved: 0 to 1.
  double if_moved = 1;
  // What is left of it, and its speedup by what it holds, > 0: a move that it would end later by
  // counts less than to stay. None: not known.
  std::optional<RestOfJob> rest{};
  double held_speedup = 0;

  [[nodiscard]] double Speedup(std::span<const std::uint8_t> row) const;
  // What a speedup counts for if the job is moved for it.
  [[nodiscard]] double Moved(double speedup) const {
    const double often = speedup * if_moved;
    return rest && speedup > 0 ? std::min(often, rest->Worth(speedup, held_speedup)) : often;
  }
};

struct SearchProblem {
  std::vector<SearchJob> jobs;         // in order of priority
  std::vector<std::uint8_t> capacity;  // GPUs by node
  AllocationMatrix base;               // what jobs hold
  double weight = 1;                   // of all speedups in the fitness
  // Takes GPUs away until no node has two jobs that lie on several nodes each (section 4.2.1).
  void (*separate)(AllocationMatrix& matrix) = nullptr;

  // Makes a matrix one that can be: jobs separated, no job above its most (which GPUs it loses is
  // random) or with GPUs that it does not use, and no node above its capacity, by priority.
  void Repair(AllocationMatrix& matrix, RandomStream& random) const;
  // Whether the row is another one than the job holds, with as many GPUs or more, and yet it would
  // end later by it than if it stayed.
  [[nodiscard]] bool IsHarmed(std::size_t job, std::span<const std::uint8_t> row) const;
};

// Both to be minimised.
struct Objectives {
  // Less the power mean (p = -1, the harmonic mean) of the speedups, in which one of 0 counts as
  // 0.001.
  double unfitness = 0;
  // Less the sum of speedups over the GPUs of nodes in use.
  double unused = 0;

  [[nodiscard]] bool Dominates(const Objectives& other) const {
    return unfitness <= other.unfitness && unused <= other.unused && !(*this == other);
  }
  friend bool operator==(const Objectives&, const Objectives&) = default;
};
[[nodiscard]] Objectives ObjectivesOf(const SearchProblem& problem, const AllocationMatrix& matrix);

struct SearchLimits {
  std::size_t population = 100;
  int generations = 100;  // the initial population included
  // The search ends after so many without a better best one; none: it does not.
  std::optional<int> patience{};
};

struct SearchResult {
  // Those that no other one dominates, each once; at most a population. Not empty.
  std::vector<AllocationMatrix> front;
  std::vector<Objectives> objectives;  // of these
  std::size_t best = 0;                // of the least unfitness, the first of equals
};

// Searches from `initial`, which is repaired. The same for the same arguments and numbers.
// REQUIRES: `initial` is not empty; all matrices have as many jobs and nodes as the problem, one at
// least. O(generations x population x jobs x nodes).
[[nodiscard]] SearchResult SearchAllocations(const SearchProblem& problem,
                                             std::vector<AllocationMatrix> initial,
                                             const SearchLimits& limits, RandomStream& random);

}  // namespace trainyard::policies
