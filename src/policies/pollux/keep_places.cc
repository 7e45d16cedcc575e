// SPDX-License-Identifier: Apache-2.0
#include "policies/pollux/keep_places.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace trainyard::policies {
namespace {

class KeptPlaces {
 public:
  KeptPlaces(const SearchProblem& problem, const AllocationMatrix& chosen)
      : problem_(problem), chosen_(chosen) {}

  AllocationMatrix Settle() {
    if (!PlaceAround()) {
      matrix_ = chosen_;
    }
    RestorePlaces();
    return ObjectivesOf(problem_, matrix_).unfitness <= ObjectivesOf(problem_, chosen_).unfitness
               ? matrix_
               : chosen_;
  }

 private:
  [[nodiscard]] static int GpusOf(std::span<const std::uint8_t> row) {
    return std::accumulate(row.begin(), row.end(), 0);
  }
  // Whether the job is to have what it holds, on one node or on several as now.
  [[nodiscard]] bool IsAsBefore(std::size_t job) const {
    return GpusOf(chosen_.row(job)) == GpusOf(problem_.base.row(job)) &&
           chosen_.IsDistributed(job) == problem_.base.IsDistributed(job);
  }

  // Whether the job is to go back to what it holds, if that can be.
  [[nodiscard]] bool Returns(std::size_t job, std::span<const std::uint8_t> row) const {
    return IsAsBefore(job) || problem_.IsHarmed(job, row);
  }

  // Those that return stay, and the others find places around them, the largest first: on
  // the fullest node with room. False: one finds none.
  bool PlaceAround() {
    matrix_ = AllocationMatrix(chosen_.jobs(), chosen_.nodes());
    Clear();
    std::vector<std::size_t> others;
    for (std::size_t job = 0; job < chosen_.jobs(); ++job) {
      if (!Returns(job, chosen_.row(job))) {
        others.push_back(job);
      } else if (!Put(job, problem_.base.row(job))) {
        return false;
      }
    }
    std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return GpusOf(chosen_.row(a)) > GpusOf(chosen_.row(b));
    });
    return std::all_of(others.begin(), others.end(), [&](std::size_t job) {
      const int gpus = GpusOf(chosen_.row(job));
      if (gpus == 0 || Put(job, chosen_.row(job))) {
        return true;
      }
      if (chosen_.IsDistributed(job)) {
        return false;
      }
      std::size_t best = free_.size();
      for (std::size_t node = 0; node < free_.size(); ++node) {
        if (free_[node] >= gpus && (best == free_.size() || free_[node] < free_[best])) {
          best = node;
        }
      }
      if (best == free_.size()) {
        return false;
      }
      matrix_.row(job)[best] = static_cast<std::uint8_t>(gpus);
      Count(matrix_.row(job), -1);
      return true;
    });
  }

  // Gives the job these GPUs, if they are free and no second distributed job comes to a node.
  bool Put(std::size_t job, std::span<const std::uint8_t> row) {
    const bool distributed =
        std::count_if(row.begin(), row.end(), [](std::uint8_t gpus) { return gpus > 0; }) > 1;
    for (std::size_t node = 0; node < row.size(); ++node) {
      if (row[node] > free_[node] || (distributed && row[node] > 0 && shared_[node] > 0)) {
        return false;
      }
    }
    std::copy(row.begin(), row.end(), matrix_.row(job).begin());
    Count(row, -1);
    return true;
  }

  void Clear() {
    free_ = problem_.capacity;
    shared_.assign(free_.size(), 0);
  }
  // Takes the GPUs of a row (-1), or gives them back (1).
  void Count(std::span<const std::uint8_t> row, int sign) {
    const bool distributed =
        std::count_if(row.begin(), row.end(), [](std::uint8_t gpus) { return gpus > 0; }) > 1;
    for (std::size_t node = 0; node < row.size(); ++node) {
      free_[node] = static_cast<std::uint8_t>(free_[node] + sign * row[node]);
      shared_[node] -= distributed && row[node] > 0 ? sign : 0;
    }
  }

  // Who need not have moved goes back.
  void RestorePlaces() {
    Clear();
    for (std::size_t job = 0; job < matrix_.jobs(); ++job) {
      Count(matrix_.row(job), -1);
    }
    for (std::size_t job = 0; job < matrix_.jobs(); ++job) {
      const std::span<const std::uint8_t> base = problem_.base.row(job);
      const std::span<std::uint8_t> row = matrix_.row(job);
      if (std::equal(row.begin(), row.end(), base.begin()) || !Returns(job, row)) {
        continue;
      }
      const std::vector<std::uint8_t> moved(row.begin(), row.end());
      Count(row, 1);
      std::fill(row.begin(), row.end(), std::uint8_t{0});
      if (!Put(job, base)) {
        (void)Put(job, moved);
      }
    }
  }

  const SearchProblem& problem_;
  const AllocationMatrix& chosen_;
  AllocationMatrix matrix_;
  std::vector<std::uint8_t> free_;  // by node
  std::vector<int> shared_;         // distributed jobs by node
};

}  // namespace

AllocationMatrix KeepPlaces(const SearchProblem& problem, const AllocationMatrix& chosen) {
  return KeptPlaces(problem, chosen).Settle();
}

}  // namespace trainyard::policies
