// SPDX-License-Identifier: Apache-2.0
// Policy elasticflow on the published traces: nobody who is admitted is late, and more deadlines
// are met than by the published program. Prints the figures (./dev prove deadlines).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "results/metrics/metrics.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

struct PublishedTrace {
  std::string trace;
  std::string cluster;
  std::string profiles;
  int original = 0;  // deadlines met by the published program (golden/manifest.csv, ef-accessctrl)
  int at_least = 0;
};

void PrintTo(const PublishedTrace& one, std::ostream* out) { *out << one.trace; }

class Deadlines : public testing::TestWithParam<PublishedTrace> {};

TEST_P(Deadlines, AreMetByEverybodyWhoIsAdmitted) {
  const std::string data = Reference() + "/data/elasticflow/";
  const PublishedTrace& published = GetParam();
  TRAINYARD_NEEDS_REFERENCE();
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = data + "traces/" + published.trace,
                            .format = "elasticflow",
                            .cluster = data + "cluster_specs/" + published.cluster,
                            .profiles = data + published.profiles});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Result<results::RunResult> run =
      scenario::RunScenario(inputs.value(), {.names = {.policy = "elasticflow"}});
  ASSERT_TRUE(run.ok()) << run.error().message;
  int late = 0;
  int rejected = 0;
  for (const results::JobResult& job : run.value().jobs) {
    const bool admitted = job.outcome != results::Outcome::kRejected;
    rejected += admitted ? 0 : 1;
    late += admitted && !results::DeadlineMet(job, run.value()).value_or(true) ? 1 : 0;
    EXPECT_TRUE(!admitted || job.outcome == results::Outcome::kCompleted) << job.spec->name;
  }
  const results::Metrics metrics = results::Measure(run.value());
  fmt::print("{:<26} {:<10} {:>5} of {:>5} deadlines met, {:>4} declined, {} late; published {}\n",
             published.trace, published.cluster, metrics.deadlines_met, metrics.deadline_jobs,
             rejected, late, published.original == 0 ? "-" : std::to_string(published.original));
  EXPECT_EQ(late, 0);
  EXPECT_GE(metrics.deadlines_met, published.at_least);
  EXPECT_GE(metrics.deadlines_met, published.original);
}

INSTANTIATE_TEST_SUITE_P(
    Published, Deadlines,
    testing::Values(
        PublishedTrace{"195job.csv", "n16g8.csv", "throughputs_A100", 146, 175},
        PublishedTrace{"elasticVpollux_e.csv", "n16g4.csv", "throughputs_T4", 142, 165},
        PublishedTrace{"first25_of_195.csv", "n4g8.csv", "throughputs_A100", 18, 22},
        PublishedTrace{"200jobs_900lam_be0.3.csv", "n8g8.csv", "throughputs_A100", 122, 131},
        PublishedTrace{"100jobs_1500lam.csv", "n16g8.csv", "throughputs_A100", 100, 100},
        PublishedTrace{"300jobs_1500lam.csv", "n8g8.csv", "throughputs_A100", 286, 286},
        PublishedTrace{"cluster10.csv", "n32g8.csv", "throughputs_A100", 250, 250},
        PublishedTrace{"philly_103959.csv", "n32g8.csv", "throughputs_A100", 797, 797},
        PublishedTrace{"resnet_cifar_trace.csv", "n1g8.csv", "throughputs_A100", 4, 4},
        PublishedTrace{"cluster01.csv.gz", "n64g8.csv", "throughputs_A100", 0, 1500},
        PublishedTrace{"cluster03.csv.gz", "n64g8.csv", "throughputs_A100", 0, 2300}),
    [](const auto& tested) {
      std::string name = tested.param.trace;
      for (char& c : name) {
        c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      }
      return name;
    });

}  // namespace
}  // namespace trainyard
