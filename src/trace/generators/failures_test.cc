// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/failures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/scratch_folder.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::trace {
namespace {

Cluster Nodes(int count) { return ReadCluster(std::to_string(count) + "x8").value(); }

constexpr FailureOptions kOptions{.mtbf_hours = 100, .repair_hours = 5, .days = 365, .seed = 3};

TEST(GenerateFailuresTest, HasTheMeansAskedFor) {
  const auto failures = GenerateFailures(Nodes(200), kOptions);
  // A node fails once in 105 hours.
  const double expected = 200 * 365 * 24 / 105.0;
  EXPECT_NEAR(static_cast<double>(failures.size()), expected, 4 * std::sqrt(expected));
  double down = 0;
  for (const NodeFailure& failure : failures) {
    EXPECT_GT(failure.up, failure.down);
    EXPECT_LT(failure.down, 365 * 86'400);
    down += static_cast<double>(failure.up - failure.down);
  }
  const double mean = 5 * 3600;
  EXPECT_NEAR(down / static_cast<double>(failures.size()), mean, 4 * mean / std::sqrt(expected));
}

TEST(GenerateFailuresTest, AFurtherNodeChangesNothingForTheOthers) {
  std::map<std::string, std::vector<std::int64_t>> few;
  std::map<std::string, std::vector<std::int64_t>> more;
  for (const NodeFailure& failure : GenerateFailures(Nodes(3), kOptions)) {
    few[failure.node].push_back(failure.down);
  }
  for (const NodeFailure& failure : GenerateFailures(Nodes(4), kOptions)) {
    more[failure.node].push_back(failure.down);
  }
  EXPECT_EQ(few.size(), 3U);
  for (const auto& [node, downs] : few) {
    EXPECT_EQ(more[node], downs);
  }
}

TEST(GenerateFailuresTest, IsReadBackAsPartOfACluster) {
  const ScratchFolder folder;
  const auto failures = GenerateFailures(Nodes(2), kOptions);
  const auto cluster = ReadCluster(
      folder.Write("c.toml", "[[nodes]]\ncount = 2\ngpus = 8\n" + FailuresToml(failures)));
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().changes.size(), 2 * failures.size());
  EXPECT_EQ(cluster.value().changes.front().at, AtSeconds(static_cast<double>(failures[0].down)));
}

}  // namespace
}  // namespace trainyard::trace
