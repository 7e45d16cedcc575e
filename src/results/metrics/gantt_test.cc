// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/gantt.h"

#include <gtest/gtest.h>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

RunResult RunWith(std::vector<Holding> holdings) {
  RunResult run = RunOf({{.submit = AtSeconds(100)}, {.submit = AtSeconds(200)}});
  run.allocations = Allocations{.nodes = {{.name = "n0", .gpus = 64}, {.name = "n1", .gpus = 8}},
                                .holdings = std::move(holdings)};
  return run;
}

TEST(MakeGanttTest, NeighbouringGpusAreOneBar) {
  const Gantt gantt = MakeGantt(
      RunWith({{.gpus = 0b1101'1000, .start = AtSeconds(100), .end = AtSeconds(102)}}), 10, 10);
  ASSERT_EQ(gantt.bars.size(), 2U);
  EXPECT_EQ(gantt.bars[0].first_gpu, 3);
  EXPECT_EQ(gantt.bars[0].gpus, 2);
  EXPECT_EQ(gantt.bars[1].first_gpu, 6);
  EXPECT_EQ(gantt.bars[1].gpus, 2);
  EXPECT_EQ(gantt.bars[0].start, 0);
  EXPECT_EQ(gantt.bars[0].length, 2000);
  EXPECT_EQ(gantt.unit, 0.001);
}

TEST(MakeGanttTest, ANodeOf64IsOneBar) {
  const Gantt gantt = MakeGantt(
      RunWith({{.gpus = ~std::uint64_t{0}, .start = AtSeconds(100), .end = AtSeconds(102)}}), 10,
      10);
  ASSERT_EQ(gantt.bars.size(), 1U);
  EXPECT_EQ(gantt.bars[0].gpus, 64);
}

TEST(MakeGanttTest, LongRunsHaveCoarserUnits) {
  const Gantt gantt =
      MakeGantt(RunWith({{.gpus = 1, .start = AtSeconds(100), .end = AtSeconds(100.1)},
                         {.gpus = 1, .start = AtSeconds(5'000'100), .end = AtSeconds(20'000'100)}}),
                10, 10);
  EXPECT_EQ(gantt.unit, 100);
  EXPECT_EQ(gantt.bars[0].length, 1);  // still seen
  EXPECT_EQ(gantt.bars[1].start, 50'000);
  EXPECT_EQ(gantt.bars[1].length, 150'000);
}

TEST(MakeGanttTest, BeyondTheLimitTheShortestBecomeCells) {
  const Gantt gantt = MakeGantt(
      RunWith(
          {{.gpus = 1, .start = AtSeconds(100), .end = AtSeconds(200)},
           {.job = 1, .node = 1, .gpus = 0b11, .start = AtSeconds(125), .end = AtSeconds(165)}}),
      1, 8);
  ASSERT_EQ(gantt.bars.size(), 1U);
  EXPECT_EQ(gantt.bars[0].job, 0U);
  EXPECT_EQ(gantt.bars_left_out, 1);
  // Four columns of 25 s (and a bit) for each of two nodes.
  EXPECT_EQ(gantt.column_units, 25'001);
  ASSERT_EQ(gantt.cells.size(), 3U);
  EXPECT_EQ(gantt.cells[0].node, 1U);
  EXPECT_EQ(gantt.cells[0].column, 0);
  EXPECT_NEAR(gantt.cells[0].gpus, 2.0 / 25'001, 1e-9);
  EXPECT_NEAR(gantt.cells[1].gpus, 2, 1e-9);
  EXPECT_NEAR(gantt.cells[2].gpus, 2 * 14'998 / 25'001.0, 1e-9);
}

}  // namespace
}  // namespace trainyard::results
