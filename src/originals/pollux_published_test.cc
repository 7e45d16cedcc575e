// SPDX-License-Identifier: Apache-2.0
// What the published Pollux does otherwise than the paper. Searches and whole runs:
// tests/golden/pollux_test.cc.
#include "originals/pollux_published.h"

#include <gtest/gtest.h>

#include <string>

#include "originals/originals.h"
#include "support/equal_costs.h"
#include "support/hand_made_jobs.h"

namespace trainyard::originals {
namespace {

policies::AllocationMatrix Matrix(const std::vector<std::vector<int>>& rows) {
  policies::AllocationMatrix matrix(rows.size(), rows.front().size());
  for (std::size_t job = 0; job < rows.size(); ++job) {
    std::copy(rows[job].begin(), rows[job].end(), matrix.row(job).begin());
  }
  return matrix;
}

TEST(PolluxPublishedTest, BehindTheSecondDistributedJobNobodyKeepsANode) {
  policies::AllocationMatrix matrix = Matrix({{2, 2, 0}, {0, 1, 1}, {0, 1, 0}, {0, 0, 2}});
  SeparateAsPublished(matrix);
  // The last two lie on one node each; the third loses it all the same.
  EXPECT_EQ(matrix, Matrix({{2, 2, 0}, {0, 0, 1}, {0, 0, 0}, {0, 0, 2}}));
}

TEST(PolluxPublishedTest, AJobBeginsWithOneGpu) {
  Result<Components> made = base::MakeFrom(Originals(), ComponentKind::kPolicy,
                                           ParseNamedOptions("pollux-published").value(), {});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Policy& policy = *made.value().policy;
  const std::unique_ptr<Memory> memory = policy.NewMemory();
  Profiles profiles;
  profiles.Set("net", {{1, 1}, {4, 4}});
  const EqualCosts costs;
  Cluster cluster;
  cluster.nodes = {{.name = "0", .gpus = 4}};
  HandMadeJobs jobs;
  (void)jobs.Add({.name = "job", .model = "net", .gpus = 4, .submit = AtSeconds(60)});
  const auto decide = [&](double now) {
    return policy.Decide({.now = AtSeconds(now),
                          .cluster = &cluster,
                          .gpus_up = 4,
                          .jobs = &jobs,
                          .rates = &profiles,
                          .costs = &costs},
                         memory.get());
  };
  const Proposal proposal = decide(120);
  ASSERT_EQ(proposal.demands.size(), 1U);
  EXPECT_EQ(proposal.demands[0].gpus, 1);
}

}  // namespace
}  // namespace trainyard::originals
