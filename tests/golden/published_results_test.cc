// SPDX-License-Identifier: Apache-2.0
// The results of the published programs, as `trainyard report` reads them: by their own definitions
// they have the metrics that the programs printed (golden/manifest.csv).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "golden/golden_case.h"
#include "report/published.h"
#include "report/results.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

class PublishedResults : public testing::Test {
 protected:
  void SetUp() override { TRAINYARD_NEEDS_REFERENCE(); }
};

// The manifest has the digits that the programs printed: whole hundredths of their unit.
void ExpectPrinted(std::optional<double> got, std::optional<double> printed, double unit,
                   const std::string& what) {
  ASSERT_EQ(got.has_value(), printed.has_value()) << what;
  if (got) {
    EXPECT_LE(std::abs(*got - *printed), 0.006 * unit) << what;
  }
}

TEST_F(PublishedResults, HaveTheMetricsThatTheProgramsPrinted) {
  const auto manifest = ReadManifest(Reference() + "/golden/manifest.csv", {{"ref", Reference()}});
  ASSERT_TRUE(manifest.ok());
  std::size_t with_deadlines = 0;
  for (const GoldenCase& golden : manifest.value()) {
    const Result<double> unit = TraceUnit(golden.names.preset);
    ASSERT_TRUE(unit.ok()) << golden.name;
    const double seconds = unit.value() > 0 ? unit.value() : 1;
    const Result<OriginalResult> result = ReadOriginalTable(golden.expected, std::nullopt, seconds);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(Name(result.value().program), golden.name.substr(0, golden.name.find('/')));
    const PublishedMetrics metrics = MeasureAsPublished(result.value());
    ExpectPrinted(metrics.jct_mean, golden.jct_mean, seconds, golden.name);
    ExpectPrinted(metrics.jct_p99, golden.jct_p99, seconds, golden.name);
    ExpectPrinted(metrics.makespan, golden.makespan, seconds, golden.name);
    if (!metrics.accepted || !golden.accepted) {
      continue;
    }
    ++with_deadlines;
    // The file holds whole slots; this policy judges its deadlines by a finer time.
    if (golden.names.policy == "ef-accessctrl") {
      EXPECT_LE(static_cast<double>(*metrics.accepted), *golden.accepted) << golden.name;
      EXPECT_EQ(static_cast<double>(*metrics.accepted + *metrics.declined),
                *golden.accepted + *golden.declined);
    } else {
      EXPECT_EQ(static_cast<double>(*metrics.accepted), *golden.accepted) << golden.name;
      EXPECT_EQ(static_cast<double>(*metrics.declined), *golden.declined) << golden.name;
    }
  }
  EXPECT_GE(with_deadlines, 60U);
}

// What the authors shipped themselves, in the columns that the programs write.
TEST_F(PublishedResults, LogsOfTheAuthorsAreRead) {
  const Result<Results> elasticflow =
      ReadResults({.paths = {Reference() + "/data/elasticflow/authors_logs_fig10"}});
  ASSERT_TRUE(elasticflow.ok()) << elasticflow.error().message;
  ASSERT_EQ(elasticflow.value().runs.size(), 5U);
  EXPECT_EQ(elasticflow.value().runs[0].label, "dlas-gpu");
  for (const RunResult& run : elasticflow.value().runs) {
    EXPECT_EQ(Measure(run).completed, 100) << run.label;
  }
  // reference/muri.md, 11.6
  const Result<Results> muri = ReadResults({.paths = {Reference() + "/data/muri/testbed_results"}});
  ASSERT_TRUE(muri.ok()) << muri.error().message;
  for (std::size_t i = 0; i < muri.value().runs.size(); ++i) {
    const PublishedMetrics metrics = MeasureAsPublished(*muri.value().originals[i]);
    if (muri.value().runs[i].label == "Muri-S") {
      EXPECT_NEAR(*metrics.jct_mean, 117634.55, 0.006);
      EXPECT_NEAR(*metrics.makespan, 2662548.29, 0.006);
      EXPECT_NEAR(*metrics.jct_p99, 822571.68, 0.006);
    }
    if (muri.value().runs[i].label == "tiresias") {
      EXPECT_NEAR(*metrics.jct_mean, 336533.17, 0.006);
    }
  }
}

}  // namespace
}  // namespace trainyard
