// SPDX-License-Identifier: Apache-2.0
// No job is moved that could stay, and no change is made that costs a job more than it gains.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine_tests/harness.h"
#include "engine_tests/random_profiles.h"
#include "policies/policies.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

profile::OverheadModel Costs(double start, double restart, double resize, double migrate) {
  return profile::OverheadModel(
      profile::OverheadTable{.fallback = {.start = FromSeconds(start),
                                          .restart = FromSeconds(restart),
                                          .resize = FromSeconds(resize),
                                          .migrate = FromSeconds(migrate)},
                             .models = {}});
}

// ------------------------------------------------------------------------------------- migrations

// Declared durations; each model wants other CPUs and memory beside its GPUs.
class WithDemands final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return Seconds(*job.duration);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus ? 1 : 0;
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    const std::int64_t cpus[] = {1, 3, 6, 12};
    const std::int64_t memory[] = {60, 10, 90, 20};
    const auto kind = static_cast<std::size_t>(Seconds(*job.duration)) % 4;
    return {.milli_cpus = 1000 * cpus[kind] * job.gpus,
            .memory_mib = 1024 * memory[kind] * job.gpus};
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
};

// All placements of the catalogue that choose GPUs, the mechanisms of `synergy` one by one.
std::vector<std::string> AllPlacements() {
  std::vector<std::string> names;
  for (const ComponentEntry& entry : catalog::Catalog(ComponentKind::kPlacement)) {
    const std::string name(entry.name);
    if (name == "synergy") {
      for (const char* mechanism : {"fill", "tune", "greedy", "proportional", "lend"}) {
        names.push_back("synergy:mechanism=" + std::string(mechanism));
        names.push_back(names.back() + ",consolidate=0");
      }
    } else if (name != "gandiva" && name != "count" && name != "buddy-groups") {
      names.push_back(name);  // they choose nothing, or place anew as published
      if (name == "consolidated") {
        names.emplace_back("consolidated:spread=1");
      }
    }
  }
  return names;
}

bool Overlap(const Slices& a, const Slices& b) {
  return std::any_of(a.begin(), a.end(), [&b](const Slice& one) {
    return std::any_of(b.begin(), b.end(), [&one](const Slice& other) {
      return one.node == other.node && (one.gpus & other.gpus) != 0;
    });
  });
}

// A job that runs before and after a decision has its GPUs, unless another job has taken one of
// them.
void ExpectMovesForOthers(const TestRun& run, const std::string& name) {
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                              engine);
  for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
       batch = world.Next(engine.next_wakeup())) {
    std::vector<Grant> before(run.jobs.size());
    for (std::size_t i = 0; i < engine.records().size(); ++i) {
      before[i] = engine.records()[i].grant;
    }
    const auto actions = engine.Step(batch);
    ASSERT_TRUE(actions.ok()) << name << ": " << actions.error().message;
    for (const model::Action& action : actions.value()) {
      if (action.kind != model::ActionKind::kMigrate) {
        continue;
      }
      const bool taken = std::any_of(
          actions.value().begin(), actions.value().end(), [&](const model::Action& other) {
            return other.job != action.job && other.grant.gpus > 0 &&
                   Overlap(other.grant.slices, before[Index(action.job)].slices);
          });
      EXPECT_TRUE(taken) << name << ": job " << Index(action.job) << " at " << Seconds(batch.now);
    }
  }
}

class EveryPlacement : public testing::TestWithParam<std::string> {
 protected:
  // `cores`: of each node, with memory to match. 12 are short: the placements of Synergy may move
  // preempted jobs for CPUs and memory then.
  TestRun RunOf(const std::string& policy, unsigned seed, double cores = 12) {
    TestRun run{.jobs = RandomJobs(seed, 120, 4),
                .cluster = MakeCluster(3, 4),
                .policy = policy,
                .placement = GetParam(),
                .overheads = Costs(2, 4, 3, 3),
                .rates = &rates_};
    for (NodeSpec& node : run.cluster.nodes) {
      node.capacity = {.milli_cpus = static_cast<std::int64_t>(1000 * cores),
                       .memory_mib = static_cast<std::int64_t>(250 * 1024 * cores / 12)};
    }
    run.rules.debt = {};
    return run;
  }
  static std::uint32_t Sum(const TestResult& result, std::uint32_t model::JobRecord::*count) {
    std::uint32_t sum = 0;
    for (const model::JobRecord& job : result.records) {
      sum += job.*count;
    }
    return sum;
  }
  const WithDemands rates_{};
};

TEST_P(EveryPlacement, WhereNoJobGivesWayNoneIsMoved) {
  for (const char* policy : {"fifo", "fjf", "sjf"}) {
    for (unsigned seed = 0; seed < Rounds(15U); ++seed) {
      const TestResult result = RunTest(RunOf(policy, seed));
      ASSERT_TRUE(result.status.ok()) << result.status.error().message;
      EXPECT_EQ(Sum(result, &model::JobRecord::migrations), 0U) << policy << " seed " << seed;
      EXPECT_EQ(Sum(result, &model::JobRecord::preemptions), 0U) << policy << " seed " << seed;
    }
  }
}

TEST_P(EveryPlacement, AJobIsMovedOnlyForOneThatGetsItsGpus) {
  const double cores = GetParam().starts_with("synergy") ? 1000 : 12;
  for (const char* policy : {"srtf", "edf", "las"}) {
    for (unsigned seed = 0; seed < Rounds(15U); ++seed) {
      ExpectMovesForOthers(RunOf(policy, seed, cores),
                           std::string(policy) + " seed " + std::to_string(seed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryPlacement, testing::ValuesIn(AllPlacements()),
                         [](const testing::TestParamInfo<std::string>& one) {
                           return "case" + std::to_string(one.index);
                         });

// Muri regroups jobs, which is worth a move; torchloader and auto are not made of this.
TEST(EveryPolicyTest, AJobIsMovedOnlyForOneThatGetsItsGpus) {
  const WithDemands rates;
  for (const ComponentEntry& entry :
       base::EntriesOfKind(policies::Policies(), ComponentKind::kPolicy)) {
    const std::string name(entry.name);
    if (name.starts_with("muri") || name == "torchloader" || name == "auto") {
      continue;
    }
    for (unsigned seed = 0; seed < Rounds(5U); ++seed) {
      TestRun run{
          .jobs = RandomJobs(seed, 100, 4),
          .cluster = MakeCluster(3, 4),
          .policy = name,
          .placement = entry.placement.empty() ? "consolidated" : std::string(entry.placement),
          .overheads = Costs(2, 4, 3, 3),
          .rates = &rates};
      for (JobSpec& job : run.jobs) {
        job.user = "user" + std::to_string(job.gpus);
      }
      run.rules.debt = {};
      ExpectMovesForOthers(run, name + " seed " + std::to_string(seed));
    }
  }
}

// ---------------------------------------------------------------------------------------- resizes

struct Elastic {
  std::string policy;
  bool with_deadlines = false;
  std::string placement = "consolidated";
};

// What a raise costs a job it must bring it.
class ElasticPolicy : public testing::TestWithParam<Elastic> {};

TEST_P(ElasticPolicy, NoJobIsRaisedThatWouldEndEarlierIfLeftAlone) {
  const Elastic& elastic = GetParam();
  int raises = 0;
  for (unsigned seed = 0; seed < Rounds(80U); ++seed) {
    const RandomProfiles rates(seed);
    TestRun run = RandomPromises(seed, rates);
    run.policy = elastic.policy;
    run.placement = elastic.placement;
    run.admission = elastic.policy == "elasticflow" ? "deadline" : "all";
    constexpr int kShorter = 10;  // so that restarts matter
    for (JobSpec& job : run.jobs) {
      job.iterations = *job.iterations / kShorter;
      if (!elastic.with_deadlines) {
        job.deadline.reset();
      } else if (job.deadline) {  // as tight as before
        job.deadline = job.submit + (*job.deadline - job.submit) / kShorter;
      }
    }
    const TestParts parts(run);
    engine::Engine engine(parts.Setup());
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                                engine);
    for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
         batch = world.Next(engine.next_wakeup())) {
      struct Before {
        int gpus = 0;
        TimePoint end = kEndOfTime;
      };
      std::vector<Before> before(run.jobs.size());
      for (std::size_t i = 0; i < engine.records().size(); ++i) {
        before[i] = {engine.records()[i].grant.gpus, engine.records()[i].forecast.done};
      }
      const auto actions = engine.Step(batch);
      ASSERT_TRUE(actions.ok()) << actions.error().message;
      for (const model::Action& action : actions.value()) {
        const Before& was = before[Index(action.job)];
        if (action.kind == model::ActionKind::kResize && action.grant.gpus > was.gpus) {
          ++raises;
          EXPECT_LT(engine.records()[Index(action.job)].forecast.done, was.end)
              << "seed " << seed << ": job " << Index(action.job) << " at " << Seconds(batch.now)
              << " from " << was.gpus << " to " << action.grant.gpus;
        }
      }
    }
  }
  EXPECT_GT(raises, Rounds(100));
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, ElasticPolicy,
    testing::Values(Elastic{"elasticflow"}, Elastic{"elastic-edf"}, Elastic{"optimus"},
                    Elastic{"optimus:interval=0"}, Elastic{"elasticflow", true},
                    Elastic{"elastic-edf", true}, Elastic{"optimus", true},
                    Elastic{"optimus:interval=0", true}, Elastic{"pollux", false, "gandiva"},
                    Elastic{"sia", false, "gandiva"}),
    [](const testing::TestParamInfo<Elastic>& one) { return "case" + std::to_string(one.index); });

}  // namespace
}  // namespace trainyard
