// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/goodput_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::profile {
namespace {

GoodputReport AReport() {
  return {.model = {.times = {.alpha_compute = 0.1,
                              .beta_compute = 0.01,
                              .alpha_network = 0.4,
                              .beta_network = 0.05,
                              .alpha_node = 0.2,
                              .beta_node = 0.02,
                              .gamma = 2},
                    .noise = {.square = 1, .variance = 3},
                    .limits = {.initial = 32, .most = 1024, .least_part = 8, .most_part = 64}},
          .tried_gpus = 4,
          .most_gpus = 16};
}

TEST(GoodputReportTest, IsReadAsItWasWrittenAmongOtherMetrics) {
  std::vector<Metric> metrics = MetricsOf(AReport());
  EXPECT_LE(metrics.size(), kMaxMetrics);
  EXPECT_TRUE(std::is_sorted(metrics.begin(), metrics.end(),
                             [](const Metric& a, const Metric& b) { return a.name < b.name; }));
  metrics.insert(metrics.begin() + 3, {.name = "loss", .value = 2.3});
  EXPECT_EQ(GoodputReportIn(metrics), AReport());
}

TEST(GoodputReportTest, TheTypeOfGpuMayBeStated) {
  GoodputReport report = AReport();
  const std::size_t without = MetricsOf(report).size();
  report.gpu_type = NumberOfType("a100");
  const std::vector<Metric> metrics = MetricsOf(report);
  EXPECT_EQ(metrics.size(), without + 1);
  EXPECT_LE(metrics.size(), kMaxMetrics);
  EXPECT_TRUE(std::is_sorted(metrics.begin(), metrics.end(),
                             [](const Metric& a, const Metric& b) { return a.name < b.name; }));
  EXPECT_EQ(GoodputReportIn(metrics), report);
  EXPECT_NE(NumberOfType("a100"), NumberOfType("v100"));
  EXPECT_LT(NumberOfType("a100"), std::int64_t{1} << 48);
  EXPECT_EQ(NumberOfType(""), 0);
}

TEST(GoodputReportTest, WhereAMetricIsMissingOrCannotBeNothingIsKnown) {
  for (std::size_t i = 0; i < MetricsOf(AReport()).size(); ++i) {
    std::vector<Metric> metrics = MetricsOf(AReport());
    metrics[i].value = -1;
    EXPECT_EQ(GoodputReportIn(metrics), std::nullopt) << metrics[i].name;
    metrics.erase(metrics.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(GoodputReportIn(metrics), std::nullopt);
  }
  GoodputReport report = AReport();
  report.model.limits.most = 16;  // below the initial batch
  EXPECT_EQ(GoodputReportIn(MetricsOf(report)), std::nullopt);
  report = AReport();
  report.model.limits.least_part = 65;  // above the largest
  EXPECT_EQ(GoodputReportIn(MetricsOf(report)), std::nullopt);
}

}  // namespace
}  // namespace trainyard::profile
