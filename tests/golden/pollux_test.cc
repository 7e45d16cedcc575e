// SPDX-License-Identifier: Apache-2.0
// Pollux as it was published (reference/pollux.md): goodput and fits, case by case (golden/pollux/README.md has the tolerances).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "profile/goodput/goodput_model.h"
#include "profile/goodput/step_times_fit.h"
#include "support/reference.h"

namespace trainyard {
namespace {

// A row of a golden table by the names of its columns.
class Row {
 public:
  explicit Row(const io::CsvRow& row) : row_(row) {}
  [[nodiscard]] std::string Text(const char* column) const {
    return std::string(row_.Text(row_.Column(column)));
  }
  [[nodiscard]] double Number(const char* column) const { return std::stod(Text(column)); }
  [[nodiscard]] int Integer(const char* column) const { return std::stoi(Text(column)); }

 private:
  const io::CsvRow& row_;
};

// The number of rows that were read.
int ForEachRow(const std::string& table, const std::function<void(const Row&)>& visit) {
  const Result<io::CsvTable> read = io::CsvTable::Open(Reference() + "/golden/pollux/" + table);
  EXPECT_TRUE(read.ok()) << table;
  int rows = 0;
  if (read.ok()) {
    const Status all = read.value().ForEach([&](const io::CsvRow& row) -> Status {
      ++rows;
      visit(Row(row));
      return {};
    });
    EXPECT_TRUE(all.ok()) << all.error().message;
  }
  return rows;
}

void ExpectNear(double is, double expected, double relative, const std::string& what) {
  EXPECT_NEAR(is, expected, std::abs(expected) * relative) << what;
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

}  // namespace
}  // namespace trainyard
