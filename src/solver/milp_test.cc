// SPDX-License-Identifier: Apache-2.0
#include "solver/milp.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "support/sanitized.h"

namespace trainyard::solver {
namespace {

struct Item {
  double value;
  double weight;
};
constexpr std::array kItems{Item{10, 5}, Item{40, 4}, Item{30, 6}, Item{50, 3}, Item{35, 7}};

MilpModel Knapsack(double capacity) {
  MilpModel model;
  std::vector<MilpTerm> weights;
  for (const Item& item : kItems) {
    const int column = model.AddColumn({.objective = item.value});
    weights.push_back({column, item.weight});
  }
  model.AddRow(weights, MilpSense::kAtMost, capacity);
  return model;
}

double BestByTrial(double capacity) {
  double best = 0;
  for (unsigned set = 0; set < 1U << kItems.size(); ++set) {
    double value = 0;
    double weight = 0;
    for (std::size_t i = 0; i < kItems.size(); ++i) {
      if ((set >> i & 1U) != 0) {
        value += kItems[i].value;
        weight += kItems[i].weight;
      }
    }
    best = weight <= capacity && value > best ? value : best;
  }
  return best;
}

TEST(MilpTest, KnapsacksAreSolvedToTheOptimum) {
  for (double capacity = 0; capacity <= 25; ++capacity) {
    const MilpSolution solution = SolveMilp(Knapsack(capacity), {.maximize = true});
    ASSERT_EQ(solution.status, MilpStatus::kOptimal);
    EXPECT_NEAR(solution.objective, BestByTrial(capacity), 1e-9) << "capacity " << capacity;
    ASSERT_EQ(solution.values.size(), kItems.size());
  }
}

TEST(MilpTest, RowsOfAllSensesHold) {
  MilpModel model;  // minimize x + 2 y + 0.5 z, z not an integer
  const int x = model.AddColumn({.upper = 10, .objective = 1});
  const int y = model.AddColumn({.upper = kMilpInfinity, .objective = 2});
  const int z = model.AddColumn({.lower = -5, .upper = 5, .objective = 0.5, .integer = false});
  model.AddRow(std::array{MilpTerm{x, 1}, MilpTerm{y, 1}}, MilpSense::kAtLeast, 3.5);
  model.AddRow(std::array{MilpTerm{x, 1}}, MilpSense::kAtMost, 2);
  model.AddRow(std::array{MilpTerm{y, 1}, MilpTerm{z, 2}}, MilpSense::kEqual, 1);
  const MilpSolution solution = SolveMilp(model);
  ASSERT_EQ(solution.status, MilpStatus::kOptimal);
  EXPECT_EQ(solution.values[0], 2);
  EXPECT_EQ(solution.values[1], 2);
  EXPECT_NEAR(solution.values[2], -0.5, 1e-9);
  EXPECT_NEAR(solution.objective, 5.75, 1e-9);
}

TEST(MilpTest, WhatCannotBeIsInfeasible) {
  MilpModel model;
  const int x = model.AddColumn({});
  const int y = model.AddColumn({});
  model.AddRow(std::array{MilpTerm{x, 2}, MilpTerm{y, 2}}, MilpSense::kEqual, 3);
  const MilpSolution solution = SolveMilp(model);
  EXPECT_EQ(solution.status, MilpStatus::kInfeasible);
  EXPECT_FALSE(solution.has_values());
}

TEST(MilpTest, RowsThatContradictThePresolvedBoundsAreInfeasible) {
  MilpModel model;
  const int x = model.AddColumn({});
  model.AddRow(std::array{MilpTerm{x, 1}}, MilpSense::kAtLeast, 2);
  EXPECT_EQ(SolveMilp(model).status, MilpStatus::kInfeasible);
}

TEST(MilpTest, ProgramsWithoutIntegerColumnsAreSolved) {
  MilpModel model;
  const int x = model.AddColumn({.upper = 4, .objective = 3, .integer = false});
  const int y = model.AddColumn({.upper = 4, .objective = 2, .integer = false});
  model.AddRow(std::array{MilpTerm{x, 1}, MilpTerm{y, 2}}, MilpSense::kAtMost, 7);
  const MilpSolution solution = SolveMilp(model, {.maximize = true});
  ASSERT_EQ(solution.status, MilpStatus::kOptimal);
  EXPECT_NEAR(solution.objective, 15, 1e-9);
}

TEST(MilpTest, AModelMayBeChangedAndSolvedAgain) {
  MilpModel model = Knapsack(8);
  const MilpSolution before = SolveMilp(model, {.maximize = true});
  EXPECT_NEAR(before.objective, 90, 1e-9);
  model.SetBounds(3, 0, 0);
  model.SetObjective(0, 100);
  const MilpSolution after = SolveMilp(model, {.maximize = true});
  EXPECT_NEAR(after.objective, 100, 1e-9);
}

// A market split: hard for branch and bound although it is small.
MilpModel MarketSplit() {
  MilpModel model;
  unsigned state = 7;
  std::vector<std::vector<MilpTerm>> rows(4);
  for (int column = 0; column < 30; ++column) {
    model.AddColumn({.objective = 1.0 + column % 3});
    for (std::vector<MilpTerm>& row : rows) {
      state = state * 1664525U + 1013904223U;
      row.push_back({column, static_cast<double>(state >> 8U) / 167772.16});
    }
  }
  for (std::vector<MilpTerm>& row : rows) {
    double sum = 0;
    for (MilpTerm& term : row) {
      term.coefficient = static_cast<double>(static_cast<int>(term.coefficient));
      sum += term.coefficient;
    }
    const int slack = model.AddColumn({.upper = 1000, .objective = 100});
    row.push_back({slack, -1});
    model.AddRow(row, MilpSense::kEqual, static_cast<double>(static_cast<int>(sum / 2)));
  }
  return model;
}

TEST(MilpTest, TheNodeLimitStopsTheSearch) {
  const MilpSolution one = SolveMilp(MarketSplit(), {.node_limit = Rounds(200)});
  EXPECT_TRUE(one.status == MilpStatus::kFeasible || one.status == MilpStatus::kUnsolved);
  EXPECT_EQ(one.has_values(), !one.values.empty());
  const MilpSolution other = SolveMilp(MarketSplit(), {.node_limit = Rounds(200)});
  EXPECT_EQ(one.values, other.values);
}

TEST(MilpTest, TheSameModelGivesTheSameSolution) {
  EXPECT_EQ(SolveMilp(Knapsack(13), {.maximize = true}).values,
            SolveMilp(Knapsack(13), {.maximize = true}).values);
}

TEST(MilpTest, AnEmptyModelHasAnEmptySolution) {
  const MilpSolution solution = SolveMilp(MilpModel());
  EXPECT_EQ(solution.status, MilpStatus::kOptimal);
  EXPECT_TRUE(solution.values.empty());
}

TEST(MilpTest, NothingIsPrinted) {
  testing::internal::CaptureStdout();
  const MilpSolution solution = SolveMilp(Knapsack(13), {.maximize = true});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(solution.status, MilpStatus::kOptimal);
}

// Jobs of some kinds, each served in one of some ways, out of two resources.
MilpModel RandomDivision(std::mt19937& random) {
  MilpModel model;
  std::array<std::vector<MilpTerm>, 2> used;
  for (auto kind = random() % 6 + 1; kind > 0; --kind) {
    const auto members = static_cast<double>(random() % 5 + 1);
    std::vector<MilpTerm> all;
    for (auto way = random() % 5 + 1; way > 0; --way) {
      const int column = model.AddColumn(
          {.upper = members, .objective = 1 + static_cast<double>(random() % 1000) / 300});
      all.push_back({column, 1});
      for (std::vector<MilpTerm>& resource : used) {
        resource.push_back({column, static_cast<double>(random() % 20 + 1) / 2});
      }
    }
    model.AddRow(all, MilpSense::kEqual, members);
  }
  for (const std::vector<MilpTerm>& resource : used) {
    model.AddRow(resource, MilpSense::kAtMost, static_cast<double>(random() % 120));
  }
  return model;
}

TEST(MilpTest, TheTreeAloneFindsTheSameOptimum) {
  std::mt19937 random(3);
  int solved = 0;
  for (int i = 0; i < 300; ++i) {
    const MilpModel model = RandomDivision(random);
    const MilpSolution whole = SolveMilp(model, {.maximize = true});
    const MilpSolution tree = SolveMilp(model, {.maximize = true, .tree_only = true});
    ASSERT_EQ(tree.status, whole.status) << i;
    EXPECT_NEAR(tree.objective, whole.objective, 1e-6) << i;
    solved += tree.has_values() ? 1 : 0;
  }
  EXPECT_GT(solved, 100);
  EXPECT_LT(solved, 300);
}

TEST(MilpTest, TheTreeAloneStopsAtTheNodeLimit) {
  const MilpOptions options{.node_limit = Rounds(200), .tree_only = true};
  const MilpSolution one = SolveMilp(MarketSplit(), options);
  EXPECT_TRUE(one.status == MilpStatus::kFeasible || one.status == MilpStatus::kUnsolved);
  EXPECT_EQ(one.has_values(), !one.values.empty());
  EXPECT_EQ(one.values, SolveMilp(MarketSplit(), options).values);
}

// maximize 3 x + 2 y with x + y <= 4, x <= 3
TEST(LinearTest, AVertexHasPrices) {
  MilpModel model;
  const int x = model.AddColumn({.upper = kMilpInfinity, .objective = 3});
  const int y = model.AddColumn({.upper = kMilpInfinity, .objective = 1});
  model.AddObjective(y, 1);
  const std::array<MilpTerm, 2> both{MilpTerm{x, 1}, MilpTerm{y, 1}};
  model.AddRow(both, MilpSense::kAtMost, 4);
  model.AddRow(std::array{MilpTerm{x, 1}}, MilpSense::kAtMost, 3);
  LinearBasis basis;
  for (int i = 0; i < 2; ++i) {  // from the beginning, and from the optimum
    const LinearSolution solution = SolveLinear(model, {.maximize = true}, &basis);
    ASSERT_EQ(solution.status, MilpStatus::kOptimal);
    EXPECT_NEAR(solution.objective, 11, 1e-9);
    EXPECT_NEAR(solution.values[0], 3, 1e-9);
    EXPECT_NEAR(solution.prices[0], 2, 1e-9);
    EXPECT_NEAR(solution.prices[1], 1, 1e-9);
  }
}

TEST(LinearTest, ColumnsAreNotRounded) {
  MilpModel model;
  const int x = model.AddColumn({.upper = kMilpInfinity, .objective = 1});
  model.AddRow(std::array{MilpTerm{x, 2}}, MilpSense::kAtMost, 1);
  EXPECT_NEAR(SolveLinear(model, {.maximize = true}).objective, 0.5, 1e-12);
}

TEST(LinearTest, SaysWhatHasNoSolution) {
  MilpModel model;
  const int x = model.AddColumn({.upper = 1, .objective = 1});
  model.AddRow(std::array{MilpTerm{x, 1}}, MilpSense::kAtLeast, 2);
  EXPECT_EQ(SolveLinear(model).status, MilpStatus::kInfeasible);
  EXPECT_TRUE(SolveLinear(model).values.empty());
}

}  // namespace
}  // namespace trainyard::solver
