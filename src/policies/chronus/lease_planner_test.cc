// SPDX-License-Identifier: Apache-2.0
#include "policies/chronus/lease_planner.h"
#include "policies/chronus/lease_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "solver/milp.h"
#include "support/dice.h"
#include "support/sanitized.h"

namespace trainyard::policies {
namespace {

LeaseProblem RandomProblem(unsigned seed) {
  Dice dice(seed);
  LeaseProblem problem{.capacity = {dice.From(2, 8)}, .fill_first = dice.From(0, 1) == 1};
  for (int lease = 1; lease < 7; ++lease) {
    problem.capacity.push_back(dice.From(0, 2) > 0 ? problem.capacity[0] : dice.From(1, 8));
  }
  const int jobs = dice.From(1, 6);
  for (int i = 0; i < jobs; ++i) {
    LeaseJob job{.gpus = 1 << dice.From(0, 2)};
    int window = dice.From(1, 4);
    job.need = dice.From(1, window);
    const int deadlines = dice.From(1, 3);
    for (int d = 0; d < deadlines; ++d, window += dice.From(1, 2)) {
      job.deadlines.push_back({.window = std::min(window, 7), .value = 10.0 - 3 * d});
    }
    problem.jobs.push_back(job);
  }
  return problem;
}

// The program as published, variable by variable (reference 6.1); negative if there is no plan.
double PublishedOptimum(const LeaseProblem& problem) {
  const int horizon = static_cast<int>(problem.capacity.size());
  const double most = *std::max_element(problem.capacity.begin(), problem.capacity.end());
  solver::MilpModel model;
  std::vector<std::vector<solver::MilpTerm>> used(problem.capacity.size());
  for (const LeaseJob& job : problem.jobs) {
    std::vector<solver::MilpTerm> one;
    for (const LeaseDeadline& deadline : job.deadlines) {
      const int chosen = model.AddColumn({.objective = deadline.value});
      one.push_back({chosen, 1});
      std::vector<solver::MilpTerm> before{{chosen, static_cast<double>(-job.need)}};
      std::vector<solver::MilpTerm> after;
      for (int lease = 0; lease < horizon; ++lease) {
        const double share = (problem.fill_first ? 1 : -1) * job.gpus / most;
        const int held = model.AddColumn({.objective = lease == 0 ? share : 0});
        (lease < deadline.window ? before : after).push_back({held, 1});
        used[static_cast<std::size_t>(lease)].push_back({held, static_cast<double>(job.gpus)});
      }
      model.AddRow(before, solver::MilpSense::kEqual, 0);
      model.AddRow(after, solver::MilpSense::kEqual, 0);
    }
    model.AddRow(one, solver::MilpSense::kEqual, 1);
  }
  for (std::size_t lease = 0; lease < used.size(); ++lease) {
    model.AddRow(used[lease], solver::MilpSense::kAtMost, problem.capacity[lease]);
  }
  const solver::MilpSolution solution = solver::SolveMilp(model, {.maximize = true});
  return solution.status == solver::MilpStatus::kOptimal ? solution.objective : -1;
}

// Every job that is planned has its leases before its deadline, and the GPUs suffice.
void ExpectPossible(const LeaseProblem& problem, const LeasePlan& plan) {
  LeaseCapacity free = problem.capacity;
  ASSERT_EQ(plan.jobs.size(), problem.jobs.size());
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    if (plan.jobs[i].deadline < 0) {
      EXPECT_TRUE(plan.jobs[i].leases.empty());
      continue;
    }
    const LeaseJob& job = problem.jobs[i];
    EXPECT_EQ(static_cast<int>(plan.jobs[i].leases.size()), job.need);
    for (const int lease : plan.jobs[i].leases) {
      EXPECT_LT(lease, job.deadlines[static_cast<std::size_t>(plan.jobs[i].deadline)].window);
      free[static_cast<std::size_t>(lease)] -= job.gpus;
      EXPECT_GE(free[static_cast<std::size_t>(lease)], 0);
    }
  }
}

bool IsComplete(const LeasePlan& plan) {
  return std::all_of(plan.jobs.begin(), plan.jobs.end(),
                     [](const PlannedLeases& job) { return job.deadline >= 0; });
}

TEST(LeasePlannerTest, ThePlanIsAsGoodAsThePublishedProgram) {
  int by_bounds = 0;
  int by_solver = 0;
  int impossible = 0;
  for (unsigned seed = 0; seed < Rounds(300U); ++seed) {
    const LeaseProblem problem = RandomProblem(seed);
    const LeasePlan plan = PlanLeases(problem);
    ExpectPossible(problem, plan);
    const double optimum = PublishedOptimum(problem);
    if (optimum < 0) {
      EXPECT_FALSE(plan.optimal) << "seed " << seed;
      EXPECT_FALSE(IsComplete(plan)) << "seed " << seed;
      ++impossible;
      continue;
    }
    EXPECT_TRUE(plan.optimal) << "seed " << seed;
    EXPECT_TRUE(IsComplete(plan)) << "seed " << seed;
    EXPECT_NEAR(plan.objective, optimum, 1e-6) << "seed " << seed;
    ++(plan.solved ? by_solver : by_bounds);
  }
  EXPECT_GT(by_bounds, Rounds(50));
  EXPECT_GT(by_solver, Rounds(20));
  EXPECT_GT(impossible, Rounds(20));
}

TEST(LeasePlannerTest, WithoutASolverAllPlansArePossible) {
  int complete = 0;
  for (unsigned seed = 0; seed < Rounds(300U); ++seed) {
    const LeaseProblem problem = RandomProblem(seed);
    const LeasePlan plan = PlanLeases(problem, {.solver = SolverUse::kNever});
    EXPECT_FALSE(plan.solved);
    ExpectPossible(problem, plan);
    complete += IsComplete(plan) ? 1 : 0;
  }
  EXPECT_GT(complete, Rounds(150));
}

TEST(LeasePlannerTest, FillingTheFirstLeasePrefersEarlyDeadlines) {
  LeaseProblem problem{.capacity = {4, 4, 4, 4, 4}};
  for (const int window : {5, 3, 4}) {
    problem.jobs.push_back({.gpus = 2, .need = 1, .deadlines = {{window, 10}}});
  }
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_TRUE(plan.optimal);
  EXPECT_DOUBLE_EQ(plan.objective, 31);
  EXPECT_EQ(plan.jobs[1].leases, (Leases{0}));
  EXPECT_EQ(plan.jobs[2].leases, (Leases{0}));
  EXPECT_EQ(plan.jobs[0].leases, (Leases{4}));
}

TEST(LeasePlannerTest, FillingMayNeedAnotherSetThanTheFirstThatFits) {
  LeaseProblem problem{.capacity = {4, 4, 4, 4}};
  problem.jobs.push_back({.gpus = 1, .need = 1, .deadlines = {{2, 10}}});
  problem.jobs.push_back({.gpus = 2, .need = 1, .deadlines = {{3, 10}}});
  problem.jobs.push_back({.gpus = 2, .need = 1, .deadlines = {{4, 10}}});
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_TRUE(plan.optimal);
  EXPECT_FALSE(plan.solved);
  EXPECT_DOUBLE_EQ(plan.objective, 31);
  EXPECT_EQ(plan.jobs[0].leases, (Leases{1}));
}

TEST(LeasePlannerTest, TheFirstLeaseIsLeftToOthersWherePossible) {
  LeaseProblem problem{.capacity = {4}, .fill_first = false};
  problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{3, 10}}});
  problem.jobs.push_back({.gpus = 2, .need = 2, .deadlines = {{4, 10}}});
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_TRUE(plan.optimal);
  EXPECT_DOUBLE_EQ(plan.objective, 19.5);  // 2 of 4 GPUs: one of the second job's leases
  EXPECT_EQ(plan.jobs[0].leases, (Leases{1, 2}));
  EXPECT_EQ(plan.jobs[1].leases, (Leases{0, 3}));
}

TEST(LeasePlannerTest, ALooserDeadlineIsChosenWhereTheTightestDoNotFitTogether) {
  LeaseProblem problem{.capacity = {4}};
  for (int i = 0; i < 2; ++i) {
    problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{2, 10}, {4, 8}}});
  }
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_TRUE(plan.optimal);
  EXPECT_TRUE(plan.solved);
  EXPECT_DOUBLE_EQ(plan.objective, 19);
  EXPECT_EQ(plan.jobs[0].deadline, 0);  // of equal plans: the earlier job has the tighter one
  EXPECT_EQ(plan.jobs[1].deadline, 1);
  EXPECT_EQ(plan.jobs[1].leases, (Leases{2, 3}));
}

TEST(LeasePlannerTest, DeadlinesAreTightenedOneByOneWithoutASolver) {
  LeaseProblem problem{.capacity = {4}};
  for (int i = 0; i < 3; ++i) {
    problem.jobs.push_back({.gpus = 4, .need = 1, .deadlines = {{1, 10}, {2, 8}, {3, 5}}});
  }
  const LeasePlan plan = PlanLeases(problem, {.solver = SolverUse::kNever});
  EXPECT_EQ(plan.jobs[0].deadline, 0);
  EXPECT_EQ(plan.jobs[1].deadline, 1);
  EXPECT_EQ(plan.jobs[2].deadline, 2);
  EXPECT_DOUBLE_EQ(plan.objective, 24);
}

TEST(LeasePlannerTest, TheSolverRescuesWhatTheRulesDoNotPack) {
  LeaseProblem problem{.capacity = {5, 4}};
  for (const int gpus : {3, 2, 2, 2}) {  // 3 and 2 in the first, 2 and 2 in the second
    problem.jobs.push_back({.gpus = gpus, .need = 1, .deadlines = {{2, 10}}});
  }
  EXPECT_FALSE(IsComplete(PlanLeases(problem, {.solver = SolverUse::kNever})));
  const LeasePlan plan = PlanLeases(problem, {.solver = SolverUse::kRescue});
  EXPECT_TRUE(plan.solved);
  EXPECT_TRUE(IsComplete(plan));
  ExpectPossible(problem, plan);
}

TEST(LeasePlannerTest, WhoCannotBePlannedIsLeftOutAndTheOthersAreNot) {
  LeaseProblem problem{.capacity = {4}};
  problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{1, 10}}});  // too late already
  problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{2, 10}}});
  problem.jobs.push_back({.gpus = 8, .need = 1, .deadlines = {{9, 10}}});  // too large
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_FALSE(plan.optimal);
  EXPECT_EQ(plan.jobs[0].deadline, -1);
  EXPECT_EQ(plan.jobs[1].leases, (Leases{0, 1}));
  EXPECT_EQ(plan.jobs[2].deadline, -1);
}

TEST(LeasePlannerTest, PlansThatAreKnownStayWhereNotAllCanBePlanned) {
  LeaseProblem problem{.capacity = {4}};
  problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{2, 10}}});
  problem.jobs.push_back(
      {.gpus = 4, .need = 1, .deadlines = {{2, 5}}, .known_deadline = 0, .known = {1}});
  const LeasePlan plan = PlanLeases(problem);
  EXPECT_EQ(plan.jobs[0].deadline, -1);
  EXPECT_EQ(plan.jobs[1].leases, (Leases{1}));
}

TEST(LeasePlannerTest, ProgramsThatAreTooLargeAreNotTried) {
  LeaseProblem problem{.capacity = {4}};
  for (int i = 0; i < 2; ++i) {
    problem.jobs.push_back({.gpus = 4, .need = 2, .deadlines = {{2, 10}, {4, 8}}});
  }
  EXPECT_TRUE(SolveLeaseProgram(problem, {.most_columns = 12}).has_value());
  EXPECT_FALSE(SolveLeaseProgram(problem, {.most_columns = 11}).has_value());
  const LeasePlan plan = PlanLeases(problem, {.most_columns = 11});
  EXPECT_FALSE(plan.solved);
  EXPECT_FALSE(plan.optimal);  // as good, but not proven
  EXPECT_DOUBLE_EQ(plan.objective, 19);
}

TEST(LeasePlannerTest, NoJobsNeedNoLeases) {
  const LeasePlan plan = PlanLeases({.capacity = {4}});
  EXPECT_TRUE(plan.optimal);
  EXPECT_TRUE(plan.jobs.empty());
}

}  // namespace
}  // namespace trainyard::policies
