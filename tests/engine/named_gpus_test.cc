// SPDX-License-Identifier: Apache-2.0
// Policies that name the GPUs of their demands: nobody chooses, everything is checked.
#include <gtest/gtest.h>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

// Demands the same GPUs for each live job at every decision.
class Naming final : public Policy {
 public:
  explicit Naming(std::vector<Demand> demands) : demands_(std::move(demands)) {}
  [[nodiscard]] std::string_view name() const override { return "naming"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal{.walk = {.keep_running = true}};
    for (const JobId job : snapshot.jobs->live()) {
      proposal.demands.push_back(demands_[Index(job)]);
      proposal.demands.back().job = job;
    }
    return proposal;
  }

 private:
  std::vector<Demand> demands_;
};

Demand On(std::uint32_t node, std::uint64_t gpus, int count) {
  return {.gpus = count, .slices = {{.node = NodeAt(node), .gpus = gpus}}};
}

TestRun RunOf(const Policy& policy) {
  return {.jobs = {MakeJob(0, 2, 10), MakeJob(5, 1, 100)},
          .cluster = MakeCluster(2, 4),
          .own_policy = &policy,
          .placement = "gandiva"};
}

std::string ErrorOfRun(const TestRun& run) {
  const TestResult result = RunTest(run);
  const std::string begin = "policy 'naming': job job: ";
  const std::string message = result.status.ok() ? "no error" : result.status.error().message;
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

std::string ErrorOf(std::vector<Demand> demands) {
  return ErrorOfRun(RunOf(Naming(std::move(demands))));
}

TEST(NamedGpusTest, JobsRunOnThem) {
  const Naming policy({On(1, 0b0110, 2), On(1, 0b1000, 1)});
  const TestResult result = RunTest(RunOf(policy));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.end(0), 10);
  EXPECT_EQ(result.start(1), 5);
  EXPECT_EQ(result.end(1), 105);
}

// Whose search ends at its bound as long as there are two jobs.
class Bounded final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "bounded"; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal{.bounded = snapshot.jobs->live().size() == 2};
    for (const JobId job : snapshot.jobs->live()) {
      proposal.demands.push_back({.job = job, .gpus = snapshot.jobs->spec(job).gpus});
    }
    return proposal;
  }
};

TEST(BoundedSearchTest, DecisionsAreCountedWhoseSearchABoundHasEnded) {
  const Bounded policy;
  TestRun run = RunOf(policy);
  run.placement = "consolidated";
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.decisions, 4);
  EXPECT_EQ(result.bounded_decisions, 1) << "the second job came at 5 s, the first one ended at 10";
}

TEST(NamedGpusTest, ANodeInTwoSlicesIsRefused) {
  Demand twice = On(1, 0b0001, 2);
  twice.slices.push_back({.node = NodeAt(1), .gpus = 0b0001});
  EXPECT_EQ(ErrorOf({twice, On(0, 0b0001, 1)}), "is given GPUs of one node in two slices");
}

TEST(NamedGpusTest, ThoseOfOthersAreRefused) {
  EXPECT_EQ(ErrorOf({On(1, 0b0110, 2), On(1, 0b0100, 1)}), "GPUs of node n1 are granted twice");
}

TEST(NamedGpusTest, ThoseThatThereAreNotAreRefused) {
  EXPECT_EQ(ErrorOf({On(2, 0b0011, 2), {}}), "is given GPUs of a node that there is not");
  EXPECT_EQ(ErrorOf({On(1, 0b11000, 2), {}}), "is given GPUs that node n1 does not have");
  EXPECT_EQ(ErrorOf({On(1, 0, 2), {}}), "is given GPUs that node n1 does not have");
}

TEST(NamedGpusTest, AsManyAsDemandedAreNamed) {
  EXPECT_EQ(ErrorOf({On(1, 0b0111, 2), {}}), "its gang is not complete");
  EXPECT_EQ(ErrorOf({{.gpus = 2}, {}}), "is given GPUs, but none are named");
  EXPECT_EQ(ErrorOf({On(1, 0b0111, 0), {}}), "is given no GPUs, but some are named");
}

TEST(NamedGpusTest, ThoseOfNodesThatAreDownAreRefused) {
  const Naming policy({On(1, 0b0110, 2), On(0, 0b1000, 1)});
  TestRun run = RunOf(policy);
  run.cluster.changes = {{.at = AtSeconds(3), .node = NodeAt(1), .up = false}};
  EXPECT_EQ(ErrorOfRun(run), "is given GPUs of node n1, which is down");
}

// Names the GPUs of job 1 only as long as it has none, and moves job 0 when job 1 arrives.
class Moving final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "moving"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal{.walk = {.keep_running = true}};
    const bool both = snapshot.jobs->live().size() == 2;
    for (const JobId job : snapshot.jobs->live()) {
      Demand demand = Index(job) == 1 ? On(0, 0b0001, 1) : On(0, both ? 0b0110 : 0b0011, 2);
      demand.job = job;
      if (Index(job) == 1 && snapshot.jobs->grant(job).gpus > 0) {
        demand.slices.clear();
      }
      proposal.demands.push_back(std::move(demand));
    }
    return proposal;
  }
};

TEST(NamedGpusTest, OneTakesWhatAnotherLeavesAtTheSameInstant) {
  const Moving policy;
  const TestResult result = RunTest(RunOf(policy));
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(1), 5);
  EXPECT_EQ(result.end(0), 10);
  EXPECT_EQ(result.records[0].migrations, 1);
  EXPECT_EQ(result.end(1), 105);
  EXPECT_EQ(result.records[1].migrations, 0);
}

}  // namespace
}  // namespace trainyard
