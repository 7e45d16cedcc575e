// SPDX-License-Identifier: Apache-2.0
// Sia as it was published (reference/sia.md): applications by GPU type, goodput, utilities, integer
// programs, placements and fits, case by case (golden/sia/README.md has the tolerances).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "originals/sia/placement_published.h"
#include "originals/sia/utilities_published.h"
#include "policies/sia/assignment.h"
#include "policies/sia/configurations.h"
#include "profile/goodput/application.h"
#include "profile/goodput/batch_choice.h"
#include "profile/goodput/step_times_fit.h"
#include "support/golden_rows.h"
#include "support/reference.h"
#include "support/sia_reference.h"

namespace trainyard {
namespace {

using Row = GoldenRow;

int ForEachRow(const std::string& table, const std::function<void(const Row&)>& visit) {
  return ForEachGoldenRow("sia/" + table, visit);
}

std::vector<std::string> Split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, between);) {
    parts.push_back(part);
  }
  return parts;
}

// `prefix`: of a type, where a row has those of several.
profile::StepTimes TimesOf(const Row& row, const std::string& prefix = {}) {
  return {.alpha_compute = row.Number(prefix + "alpha_c"),
          .beta_compute = row.Number(prefix + "beta_c"),
          .alpha_network = row.Number(prefix + "alpha_n"),
          .beta_network = row.Number(prefix + "beta_n"),
          .alpha_node = row.Number(prefix + "alpha_r"),
          .beta_node = row.Number(prefix + "beta_r"),
          .gamma = row.Number(prefix + "gamma")};
}

profile::GradientNoise NoiseOf(const Row& row) {
  return {.square = row.Number("grad_sqr"), .variance = row.Number("grad_var")};
}

profile::Application::Placement PlacementOf(const std::string& digits) {
  profile::Application::Placement placement;
  for (const char digit : digits) {
    placement.push_back(digit - '0');
  }
  return placement;
}

TEST(SiaTest, TheBestBatchAndItsGoodputAreAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  int same_in_single = 0;
  const int rows = ForEachRow("goodput_points.csv", [&](const Row& row) {
    const profile::GoodputModel model{.times = TimesOf(row),
                                      .noise = NoiseOf(row),
                                      .limits = {.initial = row.Integer("init_batch"),
                                                 .most = row.Integer("batch_limit"),
                                                 .least_part = row.Integer("min_local"),
                                                 .most_part = row.Integer("max_local")}};
    const int nodes = row.Integer("num_nodes");
    const int gpus = row.Integer("num_replicas");
    const std::string what = "point " + row.Text("point");
    const bool tunes = row.Integer("tune_batch") == 1;
    const profile::Batch batch =
        tunes ? model.Best(nodes, gpus).batch
              : profile::BatchFor(row.Number("batch_limit"), gpus, model.limits);
    EXPECT_EQ(batch.part, row.Integer("atomic_bsz")) << what;
    EXPECT_EQ(batch.accumulated, row.Integer("accum_steps")) << what;
    const double throughput = model.Throughput(nodes, gpus, batch);
    const double efficiency = model.Efficiency(batch, gpus);
    ExpectNear(throughput, row.Number("throughput"), 1e-9, what);
    ExpectNear(efficiency, row.Number("efficiency"), 1e-9, what);
    ExpectNear(throughput * efficiency, row.Number("goodput_double"), 1e-9, what);
    const double single =
        tunes ? originals::PublishedGoodput(model, nodes, gpus) : throughput * efficiency;
    const double published = row.Number("goodput_as_policy_calls_it");
    same_in_single += std::abs(single - published) <= 1e-6 * published ? 1 : 0;
  });
  EXPECT_EQ(rows, 200);
  EXPECT_EQ(same_in_single, 200) << "with a search in single precision";
}

TEST(SiaTest, ApplicationsHaveTheirLimitsOnEachType) {
  TRAINYARD_NEEDS_REFERENCE();
  const profile::Applications& applications = SiaApplications();
  const profile::TrainingRules rules = SiaRules();
  const int rows = ForEachRow("application_types.csv", [&](const Row& row) {
    const std::string type = row.Text("gpu_type");
    const std::string what = row.Text("application") + " on " + type;
    const int found = applications.Find(row.Text("application"));
    ASSERT_GE(found, 0) << what;
    const profile::Application& application = applications.all()[static_cast<std::size_t>(found)];
    EXPECT_EQ(LimitsUnder(rules, application, type),
              (profile::BatchLimits{.initial = row.Integer("init_batch"),
                                    .most = row.Integer("max_batch"),
                                    .least_part = row.Integer("min_local"),
                                    .most_part = row.Integer("max_local")}))
        << what;
    EXPECT_EQ(application.epochs(), row.Integer("max_epochs")) << what;
    ExpectNear(1 / rules.Of(application.name()).slower, row.Number("speed_factor"), 1e-9, what);
    ExpectNear(application.On(type).OneGpuThroughput(), row.Number("one_gpu_xput_samples_per_s"),
               1e-9, what);
  });
  EXPECT_EQ(rows, 36);
}

TEST(SiaTest, PassesTakeAsLongAsMeasuredOnEachType) {
  TRAINYARD_NEEDS_REFERENCE();
  const profile::Applications& applications = SiaApplications();
  std::vector<std::string> far;  // by more than 2 %
  const int rows = ForEachRow("throughput_lookups.csv", [&](const Row& row) {
    const std::string what =
        row.Text("application") + " on " + row.Text("gpu_type") + " " + row.Text("placement");
    const profile::PassTable& table =
        applications.all()[static_cast<std::size_t>(applications.Find(row.Text("application")))].On(
            row.Text("gpu_type"));
    const profile::Application::Placement placement = PlacementOf(row.Text("placement"));
    const profile::PassTimes times = table.TimesOn(placement, row.Integer("local_bsz"));
    // What is in no table was made of a triangulation, except on all GPUs of three nodes.
    const bool whole = row.Text("placement") == "888";
    const double tolerance = row.Integer("in_placement_table") == 1 ? 1e-9 : whole ? 1e-6 : 0.03;
    if (std::abs(times.step / row.Number("step_time") - 1) > 0.02 ||
        std::abs(times.sync / row.Number("sync_time") - 1) > 0.02) {
      far.push_back(what);
    }
    ExpectNear(times.step, row.Number("step_time"), tolerance, what);
    ExpectNear(times.sync, row.Number("sync_time"), tolerance, what);
    EXPECT_EQ(table.MostPartOn(placement), row.Integer("max_local_bsz_of_placement")) << what;
  });
  EXPECT_EQ(rows, 150);
  // On 9 nodes with a part beyond the shipped table, and on a placement that no configuration has.
  EXPECT_EQ(far, (std::vector<std::string>{"cifar10 on aws 444444444", "cifar10 on rtx 353"}));
}

TEST(SiaTest, TrainingsUseTheBatchesThatTheyUsed) {
  TRAINYARD_NEEDS_REFERENCE();
  const profile::Applications& applications = SiaApplications();
  const profile::TrainingRules rules = SiaRules();
  const int rows = ForEachRow("batch_used.csv", [&](const Row& row) {
    const std::string type = row.Text("gpu_type");
    const profile::Application& application =
        applications.all()[static_cast<std::size_t>(applications.Find(row.Text("application")))];
    profile::BatchBasis basis{.limits = LimitsUnder(rules, application, type)};
    profile::StepTimes times;
    if (row.Integer("has_model") == 1) {
      times = TimesOf(row);
      basis.times = &times;
      basis.noise = NoiseOf(row);
    }
    const profile::Batch batch =
        profile::ChooseBatch(application, type, PlacementOf(row.Text("placement")), basis);
    const std::string what = application.name() + " on " + type + " " + row.Text("placement");
    EXPECT_EQ(batch.part, row.Integer("atomic_bsz")) << what;
    EXPECT_EQ(batch.accumulated, row.Integer("accum_steps")) << what;
  });
  EXPECT_EQ(rows, 120);
}

// Parameters of a fit are not compared: the error has kinks, and another order of rounding ends at
// other parameters.
TEST(SiaTest, FitsAreAsGoodAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  std::map<std::string, std::vector<profile::MeasuredStep>> profiles;
  ForEachRow("fit_profiles.csv", [&](const Row& row) {
    profiles[row.Text("fit")].push_back(
        {.nodes = row.Integer("num_nodes"),
         .gpus = row.Integer("num_replicas"),
         .part = row.Integer("local_bsz"),
         .seconds = row.Number("step_time"),
         .compute = row.Number("step_time") - row.Number("sync_time")});
  });
  const int rows = ForEachRow("fit_results.csv", [&](const Row& row) {
    const std::string fit = row.Text("fit");
    const double published = row.Number("objective_of_returned_parameters");
    // Of what a fit returns, with a network that is taken to be slower than the node.
    const profile::StepTimes times = profile::FitStepTimes(profiles.at(fit)).times;
    EXPECT_LE(profile::StepTimesError(times, profiles.at(fit)), published * 1.1 + 1e-3) << fit;
    // The error itself is the published one.
    ExpectNear(profile::StepTimesError(TimesOf(row), profiles.at(fit)), published, 1e-9, fit);
  });
  EXPECT_EQ(rows, 30);
}

// "aws:2:8;...": type, nodes and GPUs of each configuration; kinds in the order of types.
std::vector<policies::Configuration> ConfigurationsIn(const std::vector<std::string>& listed) {
  std::vector<policies::Configuration> configurations;
  std::vector<std::string> types;
  for (const std::string& one : listed) {
    const std::vector<std::string> parts = Split(one, ':');
    if (types.empty() || types.back() != parts[0]) {
      types.push_back(parts[0]);
    }
    configurations.push_back(
        {.kind = types.size() - 1, .nodes = std::stoi(parts[1]), .gpus = std::stoi(parts[2])});
  }
  return configurations;
}

TEST(SiaTest, ConfigurationsAreWorthWhatTheyWereWorth) {
  TRAINYARD_NEEDS_REFERENCE();
  const profile::Applications& applications = SiaApplications();
  const profile::TrainingRules rules = SiaRules();
  const std::vector<std::string> names{"aws", "dgx-ext", "rtx"};
  const std::vector<std::string> listed = Split(
      "aws:1:1;aws:1:2;aws:1:4;aws:2:8;aws:3:12;aws:4:16;aws:5:20;aws:6:24;dgx-ext:1:1;"
      "dgx-ext:1:2;dgx-ext:1:4;dgx-ext:1:8;dgx-ext:2:16;rtx:1:1;rtx:1:2;rtx:1:4;rtx:1:8;"
      "rtx:2:16;rtx:3:24",
      ';');
  const std::vector<policies::Configuration> configurations = ConfigurationsIn(listed);
  const int rows = ForEachRow("utility_rows.csv", [&](const Row& row) {
    const std::string what = "case " + row.Text("case");
    const std::string name = row.Text("application");
    const profile::Application& application =
        applications.all()[static_cast<std::size_t>(applications.Find(name))];
    std::vector<originals::PublishedType> types;
    for (const std::string& type : names) {
      originals::PublishedType& one = types.emplace_back();
      one.node_gpus = type == "aws" ? 4 : 8;
      one.one_gpu = application.On(type).OneGpuThroughput();
      one.limits = LimitsUnder(rules, application, type);
      one.most_batch = one.limits.most;
      one.limits.most = row.Integer("target_batch");
      if (row.Has(type + "_max_profiled")) {
        one.tried_gpus = row.Integer(type + "_max_profiled");
        one.times = TimesOf(row, type + "_");
      }
    }
    EXPECT_EQ(originals::PublishedMostGpus(types), row.Integer("max_replicas")) << what;
    const int restarts = row.Has("restarts") ? row.Integer("restarts") : 0;
    ExpectNear(originals::PublishedRestartFactor(row.Number("age_s"), restarts,
                                                 originals::PublishedPenalty(name)),
               row.Number("realloc_factor"), 1e-6, what);
    const profile::GradientNoise noise =
        row.Has("grad_sqr") ? NoiseOf(row) : profile::GradientNoise();
    const std::vector<float> utilities =
        originals::PublishedUtilities(configurations, types, noise);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      ExpectNear(utilities[i], row.Number(listed[i]), 1e-6, what + " " + listed[i]);
    }
  });
  EXPECT_EQ(rows, 120);
}

// An instance of the program: a job for each row.
struct InstanceJob {
  std::optional<std::size_t> held;
  double factor = 1;
  bool pinned = false;
  std::vector<double> worth;
};

std::map<int, std::vector<InstanceJob>> ReadInstances() {
  std::map<int, std::vector<InstanceJob>> instances;
  ForEachRow("instances.csv.gz", [&](const Row& row) {
    InstanceJob& job = instances[row.Integer("instance")].emplace_back();
    if (row.Has("prev_config")) {
      job.held = static_cast<std::size_t>(row.Integer("prev_config"));
    }
    job.factor = row.Number("realloc_factor");
    job.pinned = row.Integer("forced") == 1;
    for (int i = 0; i < 19; ++i) {
      const std::string column = "g" + std::to_string(i);
      job.worth.push_back(row.Has(column) ? row.Number(column) : originals::kUnusable);
    }
  });
  return instances;
}

policies::AssignmentProblem ProblemOf(const std::vector<InstanceJob>& jobs,
                                      const std::vector<policies::Configuration>& configurations,
                                      const std::vector<int>& capacity,
                                      const originals::PublishedProgram& program) {
  policies::AssignmentProblem problem{
      .capacity = capacity, .unserved = program.unserved, .maximise = program.power > 0};
  for (const InstanceJob& job : jobs) {
    policies::AssignmentJob& made = problem.jobs.emplace_back();
    for (std::size_t i = 0; i < configurations.size(); ++i) {
      const double factor = job.held && job.held != i ? job.factor : 1;
      made.choices.push_back({.kind = configurations[i].kind,
                              .takes = configurations[i].gpus,
                              .cost = originals::PublishedCost(program, job.worth[i] * factor)});
    }
    made.pinned = job.pinned ? job.held : std::nullopt;
  }
  return problem;
}

TEST(SiaTest, OptimaOfProgramsAreThePublishedOnes) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::map<int, std::vector<InstanceJob>> instances = ReadInstances();
  const int rows = ForEachRow("objectives.csv", [&](const Row& row) {
    const std::string what = "instance " + row.Text("instance");
    const std::vector<InstanceJob>& jobs = instances.at(row.Integer("instance"));
    EXPECT_EQ(static_cast<int>(jobs.size()), row.Integer("jobs"));
    const std::vector<policies::Configuration> configurations =
        ConfigurationsIn(Split(row.Text("config_list"), ';'));
    std::vector<int> capacity;
    std::vector<policies::NodeKind> kinds;
    for (const std::string& type : Split(row.Text("cluster_nodes"), '+')) {
      const std::vector<std::string> parts = Split(type, '=');
      const bool small = parts[0] == "aws" || parts[0] == "quad";
      policies::NodeKind& kind = kinds.emplace_back();
      kind.node_gpus = small ? 4 : 8;
      kind.nodes.resize(static_cast<std::size_t>(std::stoi(parts[1])));
      capacity.push_back(kind.gpus());
    }
    EXPECT_EQ(policies::ConfigurationsOf(kinds), configurations) << what;
    originals::PublishedProgram program{.power = row.Number("p"),
                                        .unserved = row.Number("lambda_n")};
    const std::optional<policies::Assignment> rounded =
        policies::SolveAssignment(ProblemOf(jobs, configurations, capacity, program), 100'000);
    ASSERT_TRUE(rounded) << what;
    EXPECT_NEAR(rounded->objective, row.Number("objective_highs_gap0"), 1e-4) << what;
    program.round = false;
    const policies::AssignmentProblem unrounded =
        ProblemOf(jobs, configurations, capacity, program);
    const std::optional<policies::Assignment> exact = policies::SolveAssignment(unrounded, 100'000);
    ASSERT_TRUE(exact) << what;
    EXPECT_TRUE(policies::Fits(unrounded, exact->chosen)) << what;
    EXPECT_NEAR(exact->objective, row.Number("objective_unrounded_double"), 1e-6) << what;
  });
  EXPECT_EQ(rows, 200);
}

TEST(SiaTest, JobsArePlacedWhereTheyWerePlaced) {
  TRAINYARD_NEEDS_REFERENCE();
  const int rows = ForEachRow("placement_cases.csv", [&](const Row& row) {
    std::vector<int> requests;
    for (const std::string& one : Split(row.Text("requests_in_order"), ';')) {
      requests.push_back(std::stoi(one.substr(one.find('=') + 1)));
    }
    std::vector<std::vector<int>> expected(requests.size());
    for (const std::string& one : Split(row.Text("nodes_of_each_gpu"), ';')) {
      std::vector<int>& nodes = expected[std::stoul(one.substr(1, one.find('=') - 1))];
      for (const std::string& node : Split(one.substr(one.find('=') + 1), '+')) {
        nodes.push_back(std::stoi(node));
      }
      std::sort(nodes.begin(), nodes.end());
    }
    EXPECT_EQ(
        originals::PlaceAsPublished(row.Integer("nodes"), row.Integer("gpus_per_node"), requests),
        expected)
        << "case " << row.Text("case");
  });
  EXPECT_EQ(rows, 60);
}

}  // namespace
}  // namespace trainyard
