// SPDX-License-Identifier: Apache-2.0
// What the published Sia does otherwise than the paper. Its parts case by case, its runs:
// tests/golden/sia_test.cc and others there.
#include "originals/sia/sia_published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "originals/originals.h"
#include "originals/sia/placement_published.h"
#include "originals/sia/utilities_published.h"
#include "profile/goodput/goodput_report.h"
#include "support/equal_costs.h"
#include "support/hand_made_jobs.h"

namespace trainyard::originals {
namespace {

TEST(SiaPublishedTest, CostsAreRoundedToTwoDecimals) {
  const PublishedProgram rounded;
  EXPECT_NEAR(PublishedCost(rounded, 21.6), .22, 1e-6);
  EXPECT_EQ(PublishedCost(rounded, 21.7), PublishedCost(rounded, 23.7));
  EXPECT_NEAR(PublishedCost(rounded, kUnusable), 100, 1e-4);
  EXPECT_EQ(PublishedCost({.power = -2}, kUnusable), 3000) << "nothing costs more";
  EXPECT_NEAR(PublishedCost({.round = false}, 21.6), 1 / std::sqrt(21.6), 1e-12);
}

TEST(SiaPublishedTest, RestartsCountForTheirPenaltyOnceTheJobIsOldEnough) {
  EXPECT_EQ(PublishedRestartFactor(249, 3, 250), 1);
  EXPECT_EQ(PublishedRestartFactor(250, 1, 250), 0);
  EXPECT_NEAR(PublishedRestartFactor(1000, 2, 250), 500.0 / 1250, 1e-12);
  EXPECT_EQ(PublishedPenalty("imagenet"), 250);
  EXPECT_EQ(PublishedPenalty("cifar10"), 30);
}

TEST(SiaPublishedTest, APointerWalksTheNodes) {
  const std::vector<int> requests{4, 1, 2, 4};
  using Places = std::vector<std::vector<int>>;
  EXPECT_EQ(PlaceAsPublished(2, 8, requests), (Places{{0, 0, 0, 0}, {1}, {0, 0}, {1, 1, 1, 1}}));
  EXPECT_EQ(PlaceAsPublished(3, 2, std::vector<int>{1, 4}), (Places{{2}, {0, 0, 1, 1}}));
  EXPECT_EQ(PlaceAsPublished(1, 2, std::vector<int>{2, 2}), (Places{{0, 0}, {}}));
  EXPECT_EQ(PlaceAsPublished(0, 2, std::vector<int>{1}), (Places{{}}));
}

PublishedType TypeOf(double one_gpu, int tried) {
  PublishedType type{.node_gpus = 2,
                     .one_gpu = one_gpu,
                     .limits = {.initial = 32, .most = 128, .least_part = 4, .most_part = 64},
                     .most_batch = 256};
  if (tried > 0) {
    type.times = {.alpha_compute = .1,
                  .beta_compute = .01,
                  .alpha_network = 1e-8,
                  .beta_network = 1e-8,
                  .alpha_node = 1e-8,
                  .beta_node = 1e-8,
                  .gamma = 1.001};
    type.tried_gpus = tried;
  }
  return type;
}

const std::vector<policies::Configuration> kConfigurations{{.kind = 0, .nodes = 1, .gpus = 1},
                                                           {.kind = 0, .nodes = 1, .gpus = 2},
                                                           {.kind = 0, .nodes = 2, .gpus = 4},
                                                           {.kind = 1, .nodes = 1, .gpus = 1},
                                                           {.kind = 1, .nodes = 1, .gpus = 2}};

TEST(SiaPublishedTest, WhoIsNotKnownMayHaveOneGpuOfAnyType) {
  const std::vector<PublishedType> types{TypeOf(1, 0), TypeOf(3, 0)};
  EXPECT_EQ(PublishedUtilities(kConfigurations, types, {}),
            (std::vector<float>{1, kUnusable, kUnusable, 1, kUnusable}));
}

TEST(SiaPublishedTest, AnotherTypeIsAsTheFirstKnownOneTimesTheRatio) {
  const std::vector<PublishedType> types{TypeOf(1, 1), TypeOf(3, 0)};
  const std::vector<float> worth =
      PublishedUtilities(kConfigurations, types, {.square = 1, .variance = 100});
  EXPECT_EQ(worth[0], 1);
  EXPECT_GT(worth[1], 1.2F);
  EXPECT_EQ(worth[2], kUnusable) << "at most twice what it has tried";
  EXPECT_NEAR(worth[3], 3 * worth[0], 1e-5);
  EXPECT_NEAR(worth[4], 3 * worth[1], 1e-5);
  EXPECT_EQ(PublishedMostGpus(types), 2);
}

TEST(SiaPublishedTest, AJobBeginsWithOneGpuAndThenMayHaveTwo) {
  Result<Components> made = base::MakeFrom(originals::Originals(), ComponentKind::kPolicy,
                                           ParseNamedOptions("sia-published").value(), {});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Policy& policy = *made.value().policy;
  const std::unique_ptr<Memory> memory = policy.NewMemory();
  Profiles profiles;
  profiles.Set("net", {{1, 1}, {4, 4}});
  const EqualCosts costs;
  Cluster cluster;
  cluster.nodes = {{.name = "0", .gpus = 4, .gpu_type = "a"},
                   {.name = "1", .gpus = 4, .gpu_type = "b"}};
  ChangingJobs jobs;
  JobView& job = jobs.Add({.name = "job", .model = "net", .gpus = 4, .submit = AtSeconds(60)});
  const auto decide = [&](double now) {
    Proposal proposal = policy.Decide({.now = AtSeconds(now),
                                       .cluster = &cluster,
                                       .gpus_up = 8,
                                       .jobs = &jobs,
                                       .rates = &profiles,
                                       .costs = &costs},
                                      memory.get());
    jobs.Hold(proposal.demands);
    return proposal;
  };
  Proposal proposal = decide(120);
  ASSERT_EQ(proposal.demands.size(), 1U);
  EXPECT_EQ(proposal.demands[0].gpus, 1);
  EXPECT_FALSE(proposal.demands[0].restart);
  const std::string first = cluster.nodes[Index(proposal.demands[0].slices[0].node)].gpu_type;
  const std::string other = first == "a" ? "b" : "a";
  profile::GoodputReport report{.tried_gpus = 1, .gpu_type = profile::NumberOfType(first)};
  const PublishedType known = TypeOf(1, 1);
  report.model = {
      .times = *known.times, .noise = {.square = 1, .variance = 100}, .limits = known.limits};
  const std::vector<Metric> metrics = MetricsOf(report);
  job.reported = metrics;
  proposal = decide(180);
  ASSERT_EQ(proposal.demands.size(), 1U);
  EXPECT_EQ(proposal.demands[0].gpus, 2);
  // As many GPUs of another type begin anew; of the same type they go on.
  jobs.Hold(
      {{.job = job.id,
        .gpus = 2,
        .slices = {{.node = NodeAt(cluster.nodes[0].gpu_type == other ? 0 : 1), .gpus = 3}}}});
  job.debt = Duration{0};
  const auto& remembered = static_cast<const policies::SiaMemory&>(*memory);
  (void)decide(240);
  EXPECT_EQ(remembered.jobs.at(job.id).type, profile::NumberOfType(other));
  EXPECT_EQ(remembered.jobs.at(job.id).restarts, 1);
}

}  // namespace
}  // namespace trainyard::originals
