// SPDX-License-Identifier: Apache-2.0
// Pollux as it was published (reference/pollux.md): goodput, applications, fits, repairs and
// searches, case by case (golden/pollux/README.md has the tolerances).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "originals/pollux_published.h"
#include "policies/pollux/allocation_search.h"
#include "policies/pollux/speedups.h"
#include "profile/goodput/application.h"
#include "profile/goodput/goodput_model.h"
#include "profile/goodput/step_times_fit.h"
#include "support/golden_rows.h"

namespace trainyard {
namespace {

using Row = GoldenRow;

int ForEachRow(const std::string& table, const std::function<void(const Row&)>& visit) {
  return ForEachGoldenRow("pollux/" + table, visit);
}

profile::StepTimes TimesOf(const Row& row) {
  return {.alpha_compute = row.Number("alpha_c"),
          .beta_compute = row.Number("beta_c"),
          .alpha_network = row.Number("alpha_n"),
          .beta_network = row.Number("beta_n"),
          .alpha_node = row.Number("alpha_r"),
          .beta_node = row.Number("beta_r"),
          .gamma = row.Number("gamma")};
}

TEST(PolluxTest, TheBestBatchAndItsGoodputAreAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  const int rows = ForEachRow("goodput_points.csv", [](const Row& row) {
    const profile::GoodputModel model{
        .times = TimesOf(row),
        .noise = {.square = row.Number("grad_sqr"), .variance = row.Number("grad_var")},
        .limits = {.initial = row.Integer("init_batch"),
                   .most = row.Integer("max_batch"),
                   .least_part = row.Integer("min_local"),
                   .most_part = row.Integer("max_local")}};
    const int nodes = row.Integer("num_nodes");
    const int gpus = row.Integer("num_replicas");
    const std::string what = row.Text("application") + " " + row.Text("case") + " on " +
                             std::to_string(nodes) + " nodes, " + std::to_string(gpus) + " GPUs";
    const profile::Goodput best = model.Best(nodes, gpus);
    EXPECT_EQ(best.batch.part, row.Integer("atomic_bsz")) << what;
    EXPECT_EQ(best.batch.accumulated, row.Integer("accum_steps")) << what;
    ExpectNear(model.Throughput(nodes, gpus, best.batch), row.Number("throughput"), 1e-9, what);
    ExpectNear(model.Efficiency(best.batch, gpus), row.Number("efficiency"), 1e-9, what);
    ExpectNear(best.value, row.Number("goodput"), 1e-9, what);
    ExpectNear(best.value / model.Best(1, 1).value, row.Number("speedup_vs_1gpu"), 1e-9, what);
    ExpectNear(model.Best(1, gpus).value, row.Number("goodput_on_one_node"), 1e-9, what);
  });
  EXPECT_EQ(rows, 60);
}

TEST(PolluxTest, ApplicationsAreAsMeasured) {
  TRAINYARD_NEEDS_REFERENCE();
  const Result<profile::Applications> read =
      profile::Applications::Read(Reference() + "/data/pollux");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const profile::Applications& applications = read.value();
  ASSERT_EQ(applications.all().size(), 6U);
  const int rows = ForEachRow("application_lookups.csv", [&](const Row& row) {
    const std::string what = row.Text("application") + " " + row.Text("arg1");
    const profile::Application& application =
        applications.all()[static_cast<std::size_t>(applications.Find(row.Text("application")))];
    if (row.Text("kind") == "throughput") {
      profile::Application::Placement placement;
      for (const char digit : row.Text("arg1")) {
        placement.push_back(digit - '0');
      }
      const profile::PassTimes times = application.TimesOn(placement, row.Integer("arg2"));
      ExpectNear(times.step, row.Number("value1"), 1e-9, what);
      ExpectNear(times.sync, row.Number("value2"), 1e-9, what);
    } else if (row.Text("kind") == "grad_stats") {
      const profile::GradientNoise noise =
          application.NoiseAt(row.Number("arg1"), row.Integer("arg2"));
      ExpectNear(noise.square, row.Number("value1"), 1e-9, what);
      ExpectNear(noise.variance, row.Number("value2"), 1e-9, what);
    } else {
      ExpectNear(application.ProgressAfter(row.Integer("arg1")), row.Number("value1"), 1e-9, what);
    }
  });
  EXPECT_EQ(rows, 69);
}

// Parameters of a fit are not compared: the error has kinks, and another order of rounding ends at
// other parameters.
TEST(PolluxTest, FitsAreAsGoodAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  struct Profile {
    std::vector<profile::MeasuredStep> steps;
    std::vector<std::pair<double, double>> fitted;  // by the published fit: seconds, compute
  };
  std::map<std::string, Profile> profiles;
  ForEachRow("fit_profiles.csv", [&](const Row& row) {
    Profile& of = profiles[row.Text("profile")];
    of.steps.push_back({.nodes = row.Integer("num_nodes"),
                        .gpus = row.Integer("num_replicas"),
                        .part = row.Integer("local_bsz"),
                        .seconds = row.Number("step_time"),
                        .compute = row.Number("step_time") - row.Number("sync_time")});
    of.fitted.emplace_back(row.Number("fitted_step_time"), row.Number("fitted_accum_time"));
  });
  const int rows = ForEachRow("fit_results.csv", [&](const Row& row) {
    const std::string name = row.Text("profile");
    const Profile& profile = profiles.at(name);
    const double published = row.Number("objective");
    const profile::StepTimesFit fit = profile::FitStepTimes(profile.steps);
    EXPECT_LE(fit.error, published * 1.1 + 1e-4) << name;
    // The error itself is the published one.
    ExpectNear(profile::StepTimesError(TimesOf(row), profile.steps),
               row.Number("objective_after_prior"), 1e-9, name);
    if (std::abs(fit.error - published) > 1e-3) {
      return;
    }
    for (std::size_t i = 0; i < profile.steps.size(); ++i) {
      const profile::MeasuredStep& step = profile.steps[i];
      const auto part = static_cast<double>(step.part);
      ExpectNear(fit.times.Iteration(step.nodes, step.gpus, part), profile.fitted[i].first, 0.05,
                 name);
      ExpectNear(fit.times.Compute(part), profile.fitted[i].second, 0.05, name);
    }
  });
  EXPECT_EQ(rows, 24);
}

// "030012 000000 ...": a row of GPUs by node for each job.
policies::AllocationMatrix MatrixOf(const std::string& text, std::size_t nodes) {
  policies::AllocationMatrix matrix((text.size() + 1) / (nodes + 1), nodes);
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    for (std::size_t node = 0; node < nodes; ++node) {
      matrix.row(job)[node] = static_cast<std::uint8_t>(text[job * (nodes + 1) + node] - '0');
    }
  }
  return matrix;
}

TEST(PolluxTest, RepairsAreAsPublished) {
  TRAINYARD_NEEDS_REFERENCE();
  policies::SearchProblem problem{.jobs = std::vector<policies::SearchJob>(12, {.most_gpus = 64}),
                                  .capacity = std::vector<std::uint8_t>(6, 4),
                                  .separate = originals::SeparateAsPublished};
  policies::RandomStream random(1);
  const int rows = ForEachRow("repair_cases.csv", [&](const Row& row) {
    policies::AllocationMatrix matrix =
        MatrixOf(row.Text("before (job rows in order; GPUs per node)"), 6);
    problem.Repair(matrix, random);
    EXPECT_EQ(matrix, MatrixOf(row.Text("after"), 6)) << row.Text("case");
  });
  EXPECT_EQ(rows, 20);
}

// The published search problem: 12 jobs on 6 nodes of 4 GPUs.
class PublishedProblem {
 public:
  PublishedProblem() {
    std::map<std::string, profile::StepTimes> fits;
    ForEachRow("fit_results.csv",
               [&](const Row& row) { fits[row.Text("profile")] = TimesOf(row); });
    struct Job {
      std::string name;
      policies::SearchJob job;
      std::vector<std::uint8_t> held;
      std::pair<double, double> order;
    };
    std::vector<Job> jobs;
    ForEachRow("search_jobs.csv", [&](const Row& row) {
      const double age = row.Number("age");
      Job& job = jobs.emplace_back();
      job.name = row.Text("job");
      job.job = SpeedupsOf(row, fits);
      job.job.most_gpus = row.Integer("max_replicas");
      job.job.if_moved = std::max(age - 30 * row.Number("num_restarts"), 0.0) / (age + 30);
      job.held.resize(6);
      for (const char node : row.Text("base_nodes")) {
        job.held.at(static_cast<std::size_t>(node == ' ' ? 0 : node - '0')) += node == ' ' ? 0 : 1;
      }
      job.order = {row.Number("attained_service"), row.Number("submission")};
    });
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const Job& a, const Job& b) { return a.order < b.order; });
    problem = {.capacity = std::vector<std::uint8_t>(6, 4),
               .base = policies::AllocationMatrix(jobs.size(), 6),
               .weight = 6.0 / 24,
               .separate = originals::SeparateAsPublished};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      problem.jobs.push_back(jobs[i].job);
      std::copy(jobs[i].held.begin(), jobs[i].held.end(), problem.base.row(i).begin());
      rows[jobs[i].name] = i;
    }
  }

  // "job05:000001 job07:...": those that hold GPUs.
  [[nodiscard]] policies::AllocationMatrix StateOf(const std::string& text) const {
    policies::AllocationMatrix matrix(problem.jobs.size(), 6);
    for (std::size_t at = 0; at < text.size(); at += 13) {
      const policies::AllocationMatrix row = MatrixOf(text.substr(at + 6, 6), 6);
      std::copy(row.cells().begin(), row.cells().end(),
                matrix.row(rows.at(text.substr(at, 5))).begin());
    }
    return matrix;
  }

  policies::SearchProblem problem;
  std::map<std::string, std::size_t> rows;

 private:
  policies::SearchJob SpeedupsOf(const Row& row,
                                 const std::map<std::string, profile::StepTimes>& fits) {
    const policies::FairShare share{.gpus = 2, .nodes = 1};
    const std::string application = row.Text("application");
    if (row.Text("fit") == "NONE") {
      return {.most_gpus = 1, .on_one_node = {0.5}, .on_several = {0}};
    }
    profile::GoodputReport report{.tried_gpus = 64};
    report.model.times = fits.at(application + "/" + row.Text("fit"));
    report.model.limits = limits_.at(application);
    const Result<io::CsvTable> grads =
        io::CsvTable::Open(Reference() + "/data/pollux/apps/" + application + "/validation-" +
                           row.Text("grad_batch") + ".csv");
    EXPECT_TRUE(grads.ok());
    int epoch = 0;
    EXPECT_TRUE(grads.value()
                    .ForEach([&](const io::CsvRow& of_epoch) -> Status {
                      if (epoch++ == row.Integer("grad_epoch")) {
                        report.model.noise = {.square = Row(of_epoch).Number("grad_sqr"),
                                              .variance = Row(of_epoch).Number("grad_var")};
                      }
                      return {};
                    })
                    .ok());
    policies::GoodputCache cache;
    return cache.ByGoodput(JobId{}, report, {}, share);
  }

  // Reference 1.
  const std::map<std::string, profile::BatchLimits> limits_{
      {"bert", {.initial = 12, .most = 384, .least_part = 4, .most_part = 12}},
      {"cifar10", {.initial = 128, .most = 4096, .least_part = 32, .most_part = 1024}},
      {"deepspeech2", {.initial = 20, .most = 640, .least_part = 10, .most_part = 80}},
      {"imagenet", {.initial = 200, .most = 12800, .least_part = 20, .most_part = 200}},
      {"ncf", {.initial = 256, .most = 32768, .least_part = 32, .most_part = 32768}},
      {"yolov3", {.initial = 8, .most = 512, .least_part = 4, .most_part = 8}}};
};

TEST(PolluxTest, StatesAreWorthWhatTheyWereWorth) {
  TRAINYARD_NEEDS_REFERENCE();
  const PublishedProblem published;
  policies::RandomStream random(1);
  const int rows = ForEachRow("search_states.csv", [&](const Row& row) {
    const policies::AllocationMatrix after = published.StateOf(row.Text("after repair"));
    if (row.Integer("repair_deterministic") == 1) {
      policies::AllocationMatrix matrix =
          published.StateOf(row.Text("rows: job:counts per node; before repair"));
      published.problem.Repair(matrix, random);
      EXPECT_EQ(matrix, after) << row.Text("state");
    }
    const policies::Objectives worth = policies::ObjectivesOf(published.problem, after);
    ExpectNear(worth.unfitness, row.Number("F0"), 1e-9, row.Text("state"));
    ExpectNear(worth.unused, row.Number("F1"), 1e-9, row.Text("state"));
  });
  EXPECT_EQ(rows, 13);
}

// Two calls with the same jobs, as published; it draws other random numbers.
TEST(PolluxTest, SearchesFindWhatThePublishedOnesFind) {
  TRAINYARD_NEEDS_REFERENCE();
  const PublishedProblem published;
  double best = 0;
  double sum = 0;
  constexpr int kSeeds = 6;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    policies::RandomStream random(static_cast<std::uint64_t>(seed));
    std::vector<policies::AllocationMatrix> initial{published.problem.base};
    for (int call = 0; call < 2; ++call) {
      policies::SearchResult found =
          policies::SearchAllocations(published.problem, std::move(initial), {}, random);
      EXPECT_GT(found.front.size(), 1U);
      best = std::min(best, found.objectives[found.best].unfitness);
      sum += found.objectives[found.best].unfitness;
      initial = std::move(found.front);
    }
  }
  EXPECT_GE(best, -0.1085);
  EXPECT_LE(best, -0.1066);
  EXPECT_LE(sum / (2 * kSeeds), -0.1068);
}

}  // namespace
}  // namespace trainyard
