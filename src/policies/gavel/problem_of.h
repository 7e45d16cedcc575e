// SPDX-License-Identifier: Apache-2.0
// The allocation problem of a snapshot: the live jobs, their rates by type of GPU and in pairs.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/node_classes.h"
#include "policies/gavel/allocation_problem.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

// Prices of GPUs by type: "v100:0.74/p100:0.43"; types that are not named cost 1.
[[nodiscard]] Result<std::map<std::string, double>> ParsePrices(std::string_view text);

class ProblemOf {
 public:
  // `pairs`: with the pairs of jobs that both run on the same GPUs.
  ProblemOf(const Snapshot& snapshot, bool pairs, const std::map<std::string, double>& prices);

  // Jobs in the order of arrival. Those that run on no type, or ask for more GPUs than any of their
  // types has, are left out.
  [[nodiscard]] const AllocationProblem& problem() const { return problem_; }
  // By job of the problem.
  [[nodiscard]] const std::vector<JobView>& views() const { return views_; }
  [[nodiscard]] AllocationProblem& problem() { return problem_; }
  [[nodiscard]] const model::NodeClasses& classes() const { return classes_; }

 private:
  void AddJob(const JobView& view);
  [[nodiscard]] PairRates RatesOfPair(std::size_t first_kind, std::size_t second_kind) const;
  void AddPairs();
  [[nodiscard]] double RateBeside(std::size_t job, std::size_t other, std::size_t type) const;

  const Snapshot& snapshot_;
  const model::NodeClasses classes_;
  std::vector<NodeId> node_of_;  // by type: one that is up
  AllocationProblem problem_;
  std::vector<JobView> views_;
  // Row of the profile, GPUs, nodes: jobs of one kind have the same rates.
  std::map<std::tuple<std::int32_t, int, model::NodeClassSet>, int> kinds_;
  std::vector<std::size_t> of_kind_;  // the first job of each
};

}  // namespace trainyard::policies
