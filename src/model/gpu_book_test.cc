// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_book.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

Cluster TwoNodes() { return {.nodes = {{.name = "a", .gpus = 4}, {.name = "b", .gpus = 4}}}; }

Grant HeldOn(NodeId node, std::uint64_t gpus, int count) {
  return {.gpus = count, .slices = {{.node = node, .gpus = gpus}}};
}

Grant Interleaved(std::vector<JobId> group) {
  Grant grant = HeldOn(NodeAt(0), 0b0011, 2);
  grant.sharing = Sharing::kInterleaved;
  grant.group = std::move(group);
  return grant;
}

Grant Collocated(std::uint64_t gpus, int count) {
  Grant grant = HeldOn(NodeAt(0), gpus, count);
  grant.sharing = Sharing::kCollocated;
  return grant;
}

TEST(GpuBooksTest, ExclusiveGpusHaveOneHolder) {
  for (const bool shared : {false, true}) {
    const Cluster cluster = TwoNodes();
    GpuBook books(cluster, shared);
    books.Own(JobAt(0), HeldOn(NodeAt(1), 0b0110, 2));
    EXPECT_EQ(books.used(), 2);
    EXPECT_EQ(books.Conflict(JobAt(1), HeldOn(NodeAt(1), 0b0100, 1)),
              "GPUs of node b are granted twice");
    EXPECT_EQ(books.Conflict(JobAt(1), HeldOn(NodeAt(1), 0b1001, 2)), "");
    books.Disown(JobAt(0), HeldOn(NodeAt(1), 0b0110, 2));
    EXPECT_EQ(books.used(), 0);
    EXPECT_EQ(books.Conflict(JobAt(1), HeldOn(NodeAt(1), 0b0100, 1)), "");
  }
}

TEST(GpuBooksTest, AGangIsComplete) {
  const Cluster cluster = TwoNodes();
  const GpuBook books(cluster, false);
  EXPECT_EQ(books.Conflict(JobAt(0), HeldOn(NodeAt(0), 0b0111, 4)), "its gang is not complete");
}

TEST(GpuBooksTest, AGroupCountsItsGpusOnce) {
  const Cluster cluster = TwoNodes();
  GpuBook books(cluster, true);
  const Grant grant = Interleaved({JobAt(3), JobAt(5)});
  books.Own(JobAt(3), grant);
  EXPECT_EQ(books.Conflict(JobAt(5), grant), "");
  books.Own(JobAt(5), grant);
  EXPECT_EQ(books.used(), 2);
  EXPECT_NE(books.Conflict(JobAt(7), Interleaved({JobAt(7), JobAt(8)})), "");
  EXPECT_NE(books.Conflict(JobAt(7), Collocated(0b0001, 1)), "");
  books.Disown(JobAt(3), grant);
  EXPECT_EQ(books.used(), 2);  // the other is still there
  EXPECT_NE(books.Conflict(JobAt(7), HeldOn(NodeAt(0), 0b0001, 1)), "");
  books.Disown(JobAt(5), grant);
  EXPECT_EQ(books.used(), 0);
}

TEST(GpuBooksTest, CollocatedJobsAreNeighboursWhereTheyMeet) {
  const Cluster cluster = TwoNodes();
  GpuBook books(cluster, true);
  books.Own(JobAt(0), Collocated(0b0011, 2));
  EXPECT_EQ(books.Conflict(JobAt(1), Collocated(0b0110, 2)), "");
  books.Own(JobAt(1), Collocated(0b0110, 2));
  books.Own(JobAt(2), Collocated(0b1000, 1));
  EXPECT_EQ(books.used(), 4);
  EXPECT_EQ(books.Neighbours(JobAt(0), Collocated(0b0011, 2)), std::vector{JobAt(1)});
  EXPECT_TRUE(books.Neighbours(JobAt(2), Collocated(0b1000, 1)).empty());
}

TEST(GpuBooksTest, CountedGpusAreUsed) {
  const Cluster cluster = TwoNodes();
  GpuBook books(cluster, false);
  books.Own(JobAt(0), {.gpus = 3});
  EXPECT_EQ(books.used(), 3);
  books.Disown(JobAt(0), {.gpus = 3});
  EXPECT_EQ(books.used(), 0);
}

}  // namespace
}  // namespace trainyard::model
