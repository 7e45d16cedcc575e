// SPDX-License-Identifier: Apache-2.0
#include "policies/pollux/allocation_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "policies/pollux/keep_places.h"
#include "policies/pollux/pollux.h"

namespace trainyard::policies {
namespace {

// "12. .3.": a row of GPUs by node for each job.
AllocationMatrix Matrix(const std::string& text) {
  const std::size_t nodes = text.find(' ') == std::string::npos ? text.size() : text.find(' ');
  AllocationMatrix matrix((text.size() + 1) / (nodes + 1), nodes);
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    for (std::size_t node = 0; node < nodes; ++node) {
      const char cell = text[job * (nodes + 1) + node];
      matrix.row(job)[node] = static_cast<std::uint8_t>(cell == '.' ? 0 : cell - '0');
    }
  }
  return matrix;
}

std::string TextOf(const AllocationMatrix& matrix) {
  std::string text;
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    text += job > 0 ? " " : "";
    for (const std::uint8_t gpus : matrix.row(job)) {
      text += gpus == 0 ? "." : std::to_string(gpus);
    }
  }
  return text;
}

// As many times as fast on k GPUs, and a tenth less on several nodes.
SearchJob Linear(int most) {
  SearchJob job{.most_gpus = most};
  for (int gpus = 1; gpus <= most; ++gpus) {
    job.on_one_node.push_back(gpus);
    job.on_several.push_back(0.9 * gpus);
  }
  return job;
}

SearchProblem Problem(std::vector<SearchJob> jobs, std::vector<std::uint8_t> capacity) {
  AllocationMatrix base(jobs.size(), capacity.size());
  return {.jobs = std::move(jobs),
          .capacity = std::move(capacity),
          .base = std::move(base),
          .separate = SeparateDistributed};
}

std::string Repaired(const SearchProblem& problem, const std::string& text) {
  RandomStream random(1);
  AllocationMatrix matrix = Matrix(text);
  problem.Repair(matrix, random);
  return TextOf(matrix);
}

TEST(AllocationSearchTest, ANodeHasOneDistributedJobAndOthersOfOneNode) {
  const SearchProblem problem = Problem({Linear(8), Linear(8), Linear(8)}, {8, 8, 8});
  EXPECT_EQ(Repaired(problem, "22. 22. 2.."), "22. .2. 2..");
  EXPECT_EQ(Repaired(problem, "22. 222 1.."), "22. ..2 1..");
  EXPECT_EQ(Repaired(problem, "2.. 22. .22"), "2.. 22. ..2");
}

TEST(AllocationSearchTest, GpusGoByPriorityAndNoJobHasMoreThanItsMost) {
  EXPECT_EQ(Repaired(Problem({Linear(8), Linear(8)}, {4, 4}), "3. 3."), "3. 1.");
  const std::string cut = Repaired(Problem({Linear(3)}, {4, 4}), "33");
  EXPECT_TRUE(cut == "3." || cut == ".3") << cut;
}

TEST(AllocationSearchTest, GpusThatAJobCannotUseAreLeftToOthers) {
  SearchJob powers = Linear(8);
  powers.usable = {1, 2, 2, 4, 4, 4, 4, 8};
  EXPECT_EQ(Repaired(Problem({powers, Linear(8)}, {4, 4}), "3. 3."), "2. 2.");
}

TEST(AllocationSearchTest, TheFitnessIsTheHarmonicMeanAndMovingCounts) {
  SearchProblem problem = Problem({Linear(4), Linear(4)}, {4, 4});
  problem.base = Matrix("4. ..");
  problem.jobs[1].if_moved = 0.5;
  const Objectives objectives = ObjectivesOf(problem, Matrix("4. .2"));
  EXPECT_NEAR(objectives.unfitness, -2 / (1 / 4.001 + 1 / 1.001), 1e-12);
  EXPECT_NEAR(objectives.unused, -(4.0 + 2.0) / 8, 1e-12);
  // A job without GPUs counts as a thousandth.
  EXPECT_NEAR(ObjectivesOf(problem, Matrix("4. ..")).unfitness, -2 / (1 / 4.001 + 1000), 1e-12);
}

TEST(AllocationSearchTest, FindsTheFairestOfFewAllocations) {
  const SearchProblem problem = Problem({Linear(4), Linear(4), Linear(4), Linear(4)}, {4, 4});
  RandomStream random(3);
  const SearchResult found = SearchAllocations(problem, {problem.base}, {}, random);
  const AllocationMatrix& best = found.front[found.best];
  for (std::size_t job = 0; job < 4; ++job) {
    const auto row = best.row(job);
    EXPECT_EQ(std::accumulate(row.begin(), row.end(), 0), 2) << TextOf(best);
    EXPECT_FALSE(best.IsDistributed(job)) << TextOf(best);
  }
}

TEST(AllocationSearchTest, SeveralNodesAreTakenWhereTheyAreWorthIt) {
  const SearchProblem problem = Problem({Linear(8)}, {4, 4});
  RandomStream random(3);
  const SearchResult found = SearchAllocations(problem, {problem.base}, {}, random);
  EXPECT_EQ(TextOf(found.front[found.best]), "44");
}

TEST(AllocationSearchTest, IsTheSameForTheSameSeedAndEndsEarlyWithPatience) {
  const SearchProblem problem =
      Problem({Linear(16), Linear(3), Linear(8), Linear(2)}, {4, 4, 4, 2});
  const auto search = [&](std::uint64_t seed, std::optional<int> patience) {
    RandomStream random(seed);
    return SearchAllocations(problem, {problem.base}, {.patience = patience}, random);
  };
  const SearchResult once = search(7, 15);
  const SearchResult again = search(7, 15);
  EXPECT_EQ(once.front, again.front);
  EXPECT_LE(search(7, std::nullopt).objectives[search(7, std::nullopt).best].unfitness,
            once.objectives[once.best].unfitness);
}

// On random problems: what must hold of every result.
TEST(AllocationSearchTest, ResultsCanBeAndAreNeverWorseThanWhatJobsHold) {
  RandomStream random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<SearchJob> jobs;
    for (std::size_t job = 0, count = 1 + random.Below(8); job < count; ++job) {
      jobs.push_back(Linear(1 + static_cast<int>(random.Below(16))));
      jobs.back().if_moved = random.Share();
    }
    std::vector<std::uint8_t> capacity(1 + random.Below(5));
    for (std::uint8_t& gpus : capacity) {
      gpus = static_cast<std::uint8_t>(random.Below(9));
    }
    SearchProblem problem = Problem(std::move(jobs), capacity);
    for (std::size_t job = 0; job < problem.jobs.size(); ++job) {
      for (std::uint8_t& cell : problem.base.row(job)) {
        cell = static_cast<std::uint8_t>(random.Below(3));
      }
    }
    problem.Repair(problem.base, random);
    const SearchResult found =
        SearchAllocations(problem, {problem.base}, {.population = 20, .generations = 10}, random);
    EXPECT_LE(found.objectives[found.best].unfitness,
              ObjectivesOf(problem, problem.base).unfitness);
    for (const AllocationMatrix& matrix : found.front) {
      for (std::size_t node = 0; node < capacity.size(); ++node) {
        int used = 0;
        int distributed = 0;
        for (std::size_t job = 0; job < matrix.jobs(); ++job) {
          used += matrix.row(job)[node];
          distributed += matrix.row(job)[node] > 0 && matrix.IsDistributed(job) ? 1 : 0;
        }
        EXPECT_LE(used, capacity[node]);
        EXPECT_LE(distributed, 1) << TextOf(matrix);
      }
      for (std::size_t job = 0; job < matrix.jobs(); ++job) {
        const auto row = matrix.row(job);
        EXPECT_LE(std::accumulate(row.begin(), row.end(), 0), problem.jobs[job].most_gpus);
      }
    }
  }
}

TEST(KeepPlacesTest, JobsThatNeedNotMoveStay) {
  SearchProblem problem = Problem({Linear(4), Linear(4), Linear(4)}, {4, 4});
  problem.base = Matrix("3. .2 ..");
  // The second one has taken the place of the first for nothing; the third one fits beside it.
  EXPECT_EQ(TextOf(KeepPlaces(problem, Matrix(".3 2. 1."))), "3. .2 1.");
  // The first one is to have less, and the third one finds room only beside it.
  EXPECT_EQ(TextOf(KeepPlaces(problem, Matrix(".1 2. 2."))), ".1 .2 2.");
}

// A job with 1 GPU that ends in `left` seconds, and pays 30 s for any change.
SearchProblem NearlyDone(double left) {
  SearchProblem problem = Problem({Linear(4), Linear(4)}, {4, 4});
  problem.base = Matrix("1. .1");
  problem.jobs[0].held_speedup = 1;
  problem.jobs[0].rest = RestOfJob{.work = left, .stay = left, .cost = 30};
  return problem;
}

TEST(AllocationSearchTest, AMoveThatAJobWouldEndLaterByCountsLessThanToStay) {
  const SearchProblem problem = NearlyDone(36);  // 4 GPUs: 30 s and 9 s
  EXPECT_DOUBLE_EQ(problem.jobs[0].Moved(4), 36.0 / 39);
  EXPECT_GT(ObjectivesOf(problem, Matrix("4. .1")).unfitness,
            ObjectivesOf(problem, Matrix("1. .1")).unfitness);
  EXPECT_TRUE(problem.IsHarmed(0, Matrix("4. .1").row(0)));
  EXPECT_TRUE(problem.IsHarmed(0, Matrix(".1 1.").row(0)));
  EXPECT_FALSE(problem.IsHarmed(0, Matrix("1. .1").row(0)));
  EXPECT_FALSE(problem.IsHarmed(0, Matrix(".. .1").row(0)));  // what others gain by that counts
  EXPECT_FALSE(problem.IsHarmed(1, Matrix("1. .4").row(1)));  // nothing is known of it
  EXPECT_FALSE(NearlyDone(41).IsHarmed(0, Matrix("4. .1").row(0)));
}

TEST(KeepPlacesTest, AJobThatWouldEndLaterGoesBack) {
  EXPECT_EQ(TextOf(KeepPlaces(NearlyDone(36), Matrix("4. .2"))), "1. .2");
  EXPECT_EQ(TextOf(KeepPlaces(NearlyDone(41), Matrix("4. .2"))), "4. .2");
  // Another job has its place.
  EXPECT_EQ(TextOf(KeepPlaces(NearlyDone(36), Matrix(".4 4."))), "1. .4");
}

TEST(KeepPlacesTest, WhoMovesHasLostItsPlace) {
  SearchProblem problem = Problem({Linear(4), Linear(4)}, {4, 4});
  problem.base = Matrix("2. ..");
  EXPECT_EQ(TextOf(KeepPlaces(problem, Matrix(".2 4."))), "2. .4");
  EXPECT_EQ(TextOf(KeepPlaces(problem, Matrix(".2 2."))), "2. 2.");
}

TEST(RandomStreamTest, SkipsTakeEachWithTheSameChance) {
  RandomStream random(5);
  const Skips tenth(0.1);
  int taken = 0;
  constexpr std::size_t kAll = 100'000;
  for (std::size_t i = tenth.Next(random); i < kAll; i += 1 + tenth.Next(random)) {
    ++taken;
  }
  EXPECT_NEAR(taken, kAll / 10.0, 400);
  EXPECT_EQ(Skips(1).Next(random), 0U);
}

}  // namespace
}  // namespace trainyard::policies
