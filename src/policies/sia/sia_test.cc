// SPDX-License-Identifier: Apache-2.0
// Sia on hand-made jobs: configurations, what they are worth, who gets which, and where.
#include "policies/sia/sia.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "policies/policies.h"
#include "policies/sia/assignment.h"
#include "policies/sia/job_choices.h"
#include "policies/sia/node_places.h"
#include "profile/goodput/goodput_report.h"
#include "support/equal_costs.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

// Of a training that scales well. `speed`: of the type of GPU.
profile::GoodputReport SiaReport(int tried, const std::string& type, double speed = 1) {
  return {.model = {.times = {.alpha_compute = 0.02 / speed,
                              .beta_compute = 0.002 / speed,
                              .alpha_network = 0.02,
                              .beta_network = 0.0001,
                              .alpha_node = 0.01,
                              .beta_node = 0.0001,
                              .gamma = 2},
                    .noise = {.square = 1, .variance = 100},
                    .limits = {.initial = 64, .most = 4096, .least_part = 16, .most_part = 256}},
          .tried_gpus = tried,
          .gpu_type = profile::NumberOfType(type)};
}

class SiaTest : public testing::Test {
 protected:
  SiaTest() {
    profiles_.Set("linear", {{1, 1}, {2, 2}, {4, 4}, {8, 8}});
    profiles_.Set("poor", {{1, 1}, {2, 1.1}, {4, 1.15}});
    profiles_.Set("bent", {{1, 1}, {2, 2}, {4, 4}, {8, 6}});
    profiles_.Set("odd", {{3, 3}});
    Use("", {{"old", 2}, {"new", 2}});
    cluster_.gpu_types = {{.name = "new", .speed = 3}};
  }
  void Use(const std::string& options, const std::vector<std::pair<std::string, int>>& types) {
    Result<Components> made = TryPolicy("sia" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
    jobs_ = ChangingJobs();
    cluster_ = {};
    for (const auto& [type, nodes] : types) {
      for (int i = 0; i < nodes; ++i) {
        cluster_.nodes.push_back({.name = type + std::to_string(i), .gpus = 4, .gpu_type = type});
      }
    }
  }
  JobId Add(const std::string& model) { return jobs_.Add({.name = "job", .model = model}).id; }
  void Report(JobId job, const profile::GoodputReport& report) {
    reported_[job] = MetricsOf(report);
    jobs_.view(job).reported = reported_[job];
  }
  [[nodiscard]] Snapshot At(double now) const {
    return {.now = AtSeconds(now),
            .cluster = &cluster_,
            .gpus_up = cluster_.total_gpus(),
            .nodes_up = up_.empty() ? nullptr : &up_,
            .node_changes = node_changes_,
            .jobs = &jobs_,
            .rates = &profiles_,
            .costs = &costs_};
  }
  // GPUs by job, and the type where they are.
  std::map<JobId, std::pair<int, std::string>> Decide(double now) {
    const Proposal proposal = policy_->Decide(At(now), memory_.get());
    wake_ = proposal.wake_at ? Seconds(*proposal.wake_at) : -1;
    jobs_.Hold(proposal.demands);
    std::map<JobId, std::pair<int, std::string>> held;
    std::map<NodeId, std::uint64_t> used;
    std::map<NodeId, int> distributed;
    for (const Demand& demand : proposal.demands) {
      int gpus = 0;
      std::string type;
      for (const Slice& slice : demand.slices) {
        EXPECT_EQ(used[slice.node] & slice.gpus, 0U) << "two jobs on one GPU";
        used[slice.node] |= slice.gpus;
        distributed[slice.node] += demand.slices.size() > 1 ? 1 : 0;
        EXPECT_LE(distributed[slice.node], 1) << "two distributed jobs on one node";
        const std::string& here = cluster_.nodes[Index(slice.node)].gpu_type;
        EXPECT_TRUE(type.empty() || type == here) << "GPUs of two types";
        type = here;
        gpus += std::popcount(slice.gpus);
      }
      EXPECT_EQ(gpus, demand.gpus);
      EXPECT_TRUE(demand.slices.size() == 1 || demand.gpus == 4 * std::ssize(demand.slices))
          << "a part of a node beside others";
      held[demand.job] = {gpus, type};
    }
    return held;
  }

  Cluster cluster_;
  ChangingJobs jobs_;
  Profiles profiles_;
  EqualCosts costs_{FromSeconds(30)};
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  std::map<JobId, std::vector<Metric>> reported_;
  std::vector<bool> up_;
  std::uint64_t node_changes_ = 0;
  double wake_ = -1;
};

using Held = std::map<JobId, std::pair<int, std::string>>;

TEST_F(SiaTest, ConfigurationsArePowersOfTwoAndWholeNodes) {
  cluster_.nodes[3].gpus = 6;
  const SiaNodes nodes(At(0));
  ASSERT_EQ(nodes.kinds.size(), 3U);
  std::string text;
  for (const Configuration& one : nodes.configurations) {
    text += std::to_string(one.kind) + ":" + std::to_string(one.nodes) + "x" +
            std::to_string(one.gpus) + " ";
  }
  EXPECT_EQ(text, "0:1x1 0:1x2 0:1x4 0:2x8 1:1x1 1:1x2 1:1x4 2:1x1 2:1x2 2:1x4 2:1x6 ");
}

TEST_F(SiaTest, AJobAloneHasTheConfigurationWhereItIsFastest) {
  const JobId job = Add("linear");
  EXPECT_EQ(Decide(0), (Held{{job, {8, "new"}}}));
  EXPECT_EQ(wake_, 60);
}

TEST_F(SiaTest, TheJobThatGainsMoreHasMoreGpus) {
  const JobId linear = Add("linear");
  const JobId poor = Add("poor");
  Held held = Decide(0);
  EXPECT_GE(held[linear].first, 4);
  EXPECT_GE(held[poor].first, 1);
  EXPECT_EQ(held[linear].second, "new");
}

TEST_F(SiaTest, JobsThatGainLittleByMoreGpusAreAllServed) {
  for (int i = 0; i < 16; ++i) {
    (void)Add("poor");
  }
  EXPECT_EQ(Decide(0).size(), 16U);
}

// Two GPUs of the slow type for one job, .71, and another that waits, 1.1, cost less than one for
// each, 2.
TEST_F(SiaTest, JobsThatScaleMayLeaveOthersWaiting) {
  for (int i = 0; i < 16; ++i) {
    (void)Add("linear");
  }
  const Held held = Decide(0);
  EXPECT_EQ(held.size(), 12U);
  for (const auto& [job, has] : held) {
    EXPECT_EQ(has.first, has.second == "old" ? 2 : 1);
  }
}

TEST_F(SiaTest, AJobWithItsOwnNumberOfGpusHasThat) {
  const JobId job = Add("odd");
  EXPECT_EQ(Decide(0)[job].first, 3);
}

TEST_F(SiaTest, ATrainingIsGivenAtMostTwiceWhatItHasTried) {
  const JobId job = Add("linear");
  jobs_.Hold({{.job = job, .gpus = 1, .slices = {{.node = NodeAt(2), .gpus = 1}}}});
  Report(job, SiaReport(1, "new"));
  EXPECT_EQ(Decide(600)[job], (std::pair<int, std::string>{2, "new"}));
  Report(job, SiaReport(2, "new"));
  EXPECT_EQ(Decide(700)[job], (std::pair<int, std::string>{4, "new"}));
}

// On another type as on the known one, by what one GPU of both does.
TEST_F(SiaTest, WhatIsNotKnownOfATypeFollowsFromAnother) {
  const JobId job = Add("linear");
  KnownTraining known;
  known.Note(MetricsOf(SiaReport(4, "old")), 0);
  const SiaNodes nodes(At(0));
  const JobSpec& spec = jobs_.at(job).spec[0];
  const Configuration old{.kind = 0, .nodes = 1, .gpus = 4};
  const Configuration other{.kind = 1, .nodes = 1, .gpus = 4};
  const double there = EstimateOn(old, spec, known, nodes, profiles_);
  EXPECT_GT(there, 0);
  EXPECT_NEAR(EstimateOn(other, spec, known, nodes, profiles_), 3 * there, 1e-9);
  // One GPU of it has been measured since, and is as fast as the old one: so are four.
  known.Note(MetricsOf(SiaReport(1, "new")), 0);
  EXPECT_NEAR(EstimateOn(other, spec, known, nodes, profiles_), there, 1e-9);
  known.Note(MetricsOf(SiaReport(4, "new", 2)), 0);
  EXPECT_GT(EstimateOn(other, spec, known, nodes, profiles_), 1.2 * there);
  EXPECT_EQ(known.types.size(), 2U);
}

TEST_F(SiaTest, AReportWithoutATypeIsOfTheGpusThatAreHeld) {
  KnownTraining known;
  profile::GoodputReport report = SiaReport(2, "");
  ASSERT_EQ(report.gpu_type, 0);
  known.Note(MetricsOf(report), profile::NumberOfType("old"));
  ASSERT_EQ(known.types.size(), 1U);
  EXPECT_EQ(known.types[0].number, profile::NumberOfType("old"));
  EXPECT_NE(known.On(profile::NumberOfType("old")), nullptr);
  EXPECT_EQ(known.On(profile::NumberOfType("new")), nullptr);
}

TEST_F(SiaTest, WhoIsStillStartingKeepsWhatItHas) {
  const JobId job = Add("linear");
  jobs_.Hold({{.job = job, .gpus = 1, .slices = {{.node = NodeAt(0), .gpus = 2}}}});
  jobs_.view(job).debt = FromSeconds(5);
  EXPECT_EQ(Decide(6000)[job], (std::pair<int, std::string>{1, "old"}));
  EXPECT_EQ(jobs_.at(job).grant->slices[0].gpus, 2U);
  jobs_.view(job).debt = Duration{0};
  EXPECT_EQ(Decide(6060)[job], (std::pair<int, std::string>{8, "new"}));
}

TEST_F(SiaTest, AJobThatHasOftenBeenMovedStays) {
  const JobId job = Add("bent");
  const auto hold = [&](std::uint64_t gpus) {
    jobs_.Hold(
        {{.job = job, .gpus = std::popcount(gpus), .slices = {{.node = NodeAt(2), .gpus = gpus}}}});
  };
  // Moved by others at each round: each time it could have had eight GPUs.
  double now = 0;
  for (int i = 0; i < 12; ++i, now += 60) {
    hold(i % 2 == 0 ? 1 : 3);
    (void)Decide(now);
  }
  hold(15);
  EXPECT_EQ(Decide(now)[job].first, 4) << "it gains less than the restarts would cost";
}

TEST_F(SiaTest, JobsThatAreAsTheyWereStayWhereTheyAre) {
  const JobId first = Add("poor");
  const JobId second = Add("poor");
  (void)Decide(0);
  const Slices of_first = jobs_.at(first).grant->slices;
  const Slices of_second = jobs_.at(second).grant->slices;
  for (int now = 60; now < 36000; now += 600) {
    (void)Decide(now);
    EXPECT_EQ(jobs_.at(first).grant->slices, of_first);
    EXPECT_EQ(jobs_.at(second).grant->slices, of_second);
  }
}

TEST_F(SiaTest, NodesThatAreDownAreLeft) {
  const JobId job = Add("linear");
  (void)Decide(0);
  up_ = {true, true, true, false};
  ++node_changes_;
  EXPECT_EQ(Decide(6000)[job], (std::pair<int, std::string>{4, "new"}));
  EXPECT_EQ(jobs_.at(job).grant->slices[0].node, NodeAt(2));
  up_ = {false, false, false, false};
  ++node_changes_;
  EXPECT_TRUE(Decide(6100).empty());
  EXPECT_EQ(wake_, 6160);
  EXPECT_TRUE(Decide(6200).empty());
  EXPECT_EQ(wake_, -1) << "time alone changes nothing";
}

TEST_F(SiaTest, BetweenAllocationsJobsKeepWhatTheyHold) {
  const JobId first = Add("linear");
  (void)Decide(0);
  (void)Add("linear");
  EXPECT_EQ(Decide(30), (Held{{first, {8, "new"}}}));
  EXPECT_EQ(wake_, 60);
  EXPECT_EQ(Decide(60).size(), 2U);
}

TEST_F(SiaTest, TheTypesThatAJobAcceptsCount) {
  const auto traits = std::make_shared<const JobTraits>(JobTraits{.gpu_types = {"old"}});
  const JobId job = jobs_.Add({.name = "job", .model = "linear", .traits = traits}).id;
  EXPECT_EQ(Decide(0)[job], (std::pair<int, std::string>{8, "old"}));
}

TEST_F(SiaTest, TheRangeOfAJobCounts) {
  const auto traits =
      std::make_shared<const JobTraits>(JobTraits{.range = {.least = 2, .most = 4}});
  const JobId job = jobs_.Add({.name = "job", .model = "linear", .traits = traits}).id;
  EXPECT_EQ(Decide(0)[job].first, 4);
}

TEST_F(SiaTest, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(PolicyError("sia:interval=0"),
            "policy 'sia': interval must lie between 1 and 1e9 seconds");
  EXPECT_EQ(PolicyError("sia:p=0"),
            "policy 'sia': p must lie between -10 and -0.01, or 0.01 and 10");
  EXPECT_EQ(PolicyError("sia:p=0.5"),
            "policy 'sia': lambda must be above 0 for p < 0, below 0 for p > 0, and within 1e6");
  EXPECT_EQ(PolicyError("sia:p=0.5,lambda=-1.1"), "no error");
}

TEST_F(SiaTest, APositivePowerServesAllJobsToo) {
  Use(":p=0.5,lambda=-1.1", {{"old", 2}});
  (void)Add("linear");
  (void)Add("poor");
  EXPECT_EQ(Decide(0).size(), 2U);
}

// ------------------------------------------------------------------------------ the program alone

AssignmentJob Costs(std::vector<double> costs) {
  AssignmentJob job;
  int takes = 1;
  for (const double cost : costs) {
    job.choices.push_back({.kind = 0, .takes = takes, .cost = cost});
    takes *= 2;
  }
  return job;
}

TEST(SiaAssignmentTest, TheCheapestAssignmentWithinCapacityIsFound) {
  AssignmentProblem problem{
      .capacity = {3}, .unserved = 1.1, .jobs = {Costs({1, .7}), Costs({1, .6}), Costs({1, .9})}};
  const std::optional<Assignment> found = SolveAssignment(problem, 1000);
  ASSERT_TRUE(found);
  // Two GPUs for the second, one for one of the others.
  EXPECT_NEAR(found->objective, .6 + 1 + 1.1, 1e-9);
  EXPECT_EQ(found->chosen[1], 1U);
  EXPECT_TRUE(Fits(problem, found->chosen));
  problem.jobs[2].pinned = 1;
  const std::optional<Assignment> pinned = SolveAssignment(problem, 1000);
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned->chosen[2], 1U);
  EXPECT_NEAR(pinned->objective, .9 + 1 + 1.1, 1e-9);
  problem.capacity = {1};
  EXPECT_FALSE(SolveAssignment(problem, 1000)) << "the pinned job does not fit";
}

TEST(SiaAssignmentTest, ItSaysWhetherTheBoundOfTheSearchCameFirst) {
  AssignmentProblem problem{.capacity = {37, 23}, .unserved = 1.1, .jobs = {}};
  for (int i = 0; i < 24; ++i) {
    AssignmentJob& job = problem.jobs.emplace_back();
    for (const int takes : {1, 3, 5, 7}) {
      const double worth = takes + 0.37 * std::sin(11.0 * i + takes);
      job.choices.push_back({.kind = static_cast<std::size_t>((i + takes / 2) % 2),
                             .takes = takes,
                             .cost = 1 / std::sqrt(worth)});
    }
  }
  const std::optional<Assignment> within = SolveAssignment(problem, 1'000'000);
  ASSERT_TRUE(within);
  EXPECT_TRUE(within->optimal);
  const std::optional<Assignment> bounded = SolveAssignment(problem, 0);
  if (bounded && bounded->objective > within->objective + 1e-9) {
    EXPECT_FALSE(bounded->optimal);
  }
  EXPECT_TRUE(!bounded || bounded->objective >= within->objective - 1e-9);
}

TEST(SiaAssignmentTest, MoreGpusNeverMakeItDearer) {
  AssignmentProblem problem{.capacity = {0}, .unserved = 1.1, .jobs = {}};
  for (int i = 0; i < 8; ++i) {
    problem.jobs.push_back(Costs({1, std::pow(1.7 + 0.03 * i, -.5), std::pow(2.9 - .1 * i, -.5)}));
  }
  double before = 1e9;
  for (int gpus = 0; gpus <= 32; gpus += 4) {
    problem.capacity = {gpus};
    const std::optional<Assignment> found = SolveAssignment(problem, 1000);
    ASSERT_TRUE(found);
    EXPECT_TRUE(Fits(problem, found->chosen));
    EXPECT_LE(found->objective, before + 1e-9);
    before = found->objective;
  }
  EXPECT_LT(before, 8) << "with enough for all";
}

// ------------------------------------------------------------------------------ the places alone

std::vector<NodeKind> FourNodesOfFour() {
  return {{.node_gpus = 4, .nodes = {NodeAt(0), NodeAt(1), NodeAt(2), NodeAt(3)}}};
}

ConfiguredJob Wanted(int nodes, int gpus, Slices held = {}) {
  return {.configuration = {.kind = 0, .nodes = nodes, .gpus = gpus}, .held = std::move(held)};
}

TEST(SiaPlacesTest, WholeNodesAreEmptiedAndPartsMoveTogether) {
  const std::vector<NodeKind> kinds = FourNodesOfFour();
  // One GPU on each of three nodes; a job wants three whole ones.
  const std::vector<ConfiguredJob> jobs{Wanted(1, 1, {{.node = NodeAt(0), .gpus = 1}}),
                                        Wanted(1, 1, {{.node = NodeAt(1), .gpus = 1}}),
                                        Wanted(1, 1, {{.node = NodeAt(2), .gpus = 1}}),
                                        Wanted(3, 12)};
  const NodePlaces places(4, kinds, jobs);
  EXPECT_EQ(places.of(3).size(), 3U);
  int moved = 0;
  for (std::size_t job = 0; job < 3; ++job) {
    ASSERT_EQ(places.of(job).size(), 1U);
    EXPECT_EQ(places.of(job)[0].node, places.of(0)[0].node) << "all on the node that is left";
    moved += places.of(job) == jobs[job].held ? 0 : 1;
  }
  EXPECT_EQ(moved, 2) << "no more than must";
}

TEST(SiaPlacesTest, ALargerPartMakesSmallerOnesLeaveWhereNothingElseHelps) {
  std::vector<NodeKind> kinds = FourNodesOfFour();
  kinds[0].nodes.resize(2);
  const std::vector<ConfiguredJob> jobs{Wanted(1, 2, {{.node = NodeAt(0), .gpus = 3}}),
                                        Wanted(1, 1, {{.node = NodeAt(0), .gpus = 4}}),
                                        Wanted(1, 2, {{.node = NodeAt(1), .gpus = 3}}),
                                        Wanted(1, 1, {{.node = NodeAt(1), .gpus = 4}}),
                                        Wanted(1, 2)};
  const NodePlaces places(2, kinds, jobs);
  std::map<NodeId, int> on;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    ASSERT_EQ(places.of(job).size(), 1U) << job;
    on[places.of(job)[0].node] += std::popcount(places.of(job)[0].gpus);
  }
  EXPECT_EQ(on[NodeAt(0)], 4);
  EXPECT_EQ(on[NodeAt(1)], 4);
}

TEST(SiaPlacesTest, WhatFindsNoPlaceMayTryAnother) {
  std::vector<NodeKind> kinds{{.node_gpus = 6, .nodes = {NodeAt(0)}}};
  const std::vector<ConfiguredJob> jobs{Wanted(1, 4), Wanted(1, 4)};
  NodePlaces places(1, kinds, jobs);
  const std::size_t without = places.of(0).empty() ? 0 : 1;
  EXPECT_TRUE(places.of(without).empty());
  EXPECT_FALSE(places.of(1 - without).empty());
  EXPECT_FALSE(places.PlaceAs(without, {.kind = 0, .nodes = 1, .gpus = 6}));
  EXPECT_TRUE(places.PlaceAs(without, {.kind = 0, .nodes = 1, .gpus = 2}));
  EXPECT_EQ(places.of(without)[0].gpus & places.of(1 - without)[0].gpus, 0U);
}

}  // namespace
}  // namespace trainyard::policies
