// SPDX-License-Identifier: Apache-2.0
// The results of the published programs, as `trainyard report` reads them: by their own definitions
// they have the metrics that the programs printed (golden/manifest.csv). And what the repository
// keeps of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "golden/figures.h"
#include "golden/golden_case.h"
#include "io/file.h"
#include "originals/results/published.h"
#include "originals/results/results.h"
#include "scenario/scenario.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

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
    const Result<double> unit = scenario::TraceUnit(golden.names.preset);
    ASSERT_TRUE(unit.ok()) << golden.name;
    const double seconds = unit.value() > 0 ? unit.value() : 1;
    const Result<originals::OriginalResult> result =
        originals::ReadOriginalTable(golden.expected, std::nullopt, seconds);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(originals::Name(result.value().program),
              golden.name.substr(0, golden.name.find('/')));
    const originals::PublishedMetrics metrics = originals::MeasureAsPublished(result.value());
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

std::set<std::string> FilesBelow(const std::filesystem::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.insert(std::filesystem::relative(entry.path(), folder));
    }
  }
  return files;
}

TEST_F(PublishedResults, AreThoseInTheRepository) {
  const std::string kept = TRAINYARD_SOURCE_DIR "/tests/golden";
  const ScratchFolder written;
  const Status status =
      WriteFigures(Reference() + "/golden/manifest.csv", {{"ref", Reference()}}, written.path());
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (const std::string name : {"manifest.csv", "inputs.csv"}) {
    EXPECT_TRUE(io::ReadBytes(kept + "/" + name).value() ==
                io::ReadBytes(written.path() + "/" + name).value())
        << "tests/golden/" << name
        << " is out of date; write it anew with trainyard-golden --write-figures tests/golden";
  }
  EXPECT_EQ(FilesBelow(kept + "/expected"), FilesBelow(written.path() + "/expected"));
}

// Case by case, read as for a comparison.
TEST_F(PublishedResults, AreReadFromTheRepositoryAsFromTheFilesOfThePrograms) {
  const std::map<std::string, std::string> roots{{"ref", Reference()}};
  const auto originals = ReadManifest(Reference() + "/golden/manifest.csv", roots);
  const auto kept = ReadManifest(TRAINYARD_SOURCE_DIR "/tests/golden/manifest.csv", roots);
  ASSERT_TRUE(originals.ok());
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(originals.value().size(), 217U);
  ASSERT_EQ(kept.value().size(), 217U);
  for (std::size_t i = 0; i < kept.value().size(); ++i) {
    const GoldenCase& golden = kept.value()[i];
    ASSERT_EQ(golden.name, originals.value()[i].name);
    const double unit = std::max(1.0, scenario::TraceUnit(golden.names.preset).value());
    const Result<std::vector<originals::ResultRow>> rows = ReadExpected(golden, unit);
    const Result<std::vector<originals::ResultRow>> expected =
        ReadExpected(originals.value()[i], unit);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    ASSERT_EQ(rows.value().size(), expected.value().size()) << golden.name;
    for (std::size_t j = 0; j < rows.value().size(); ++j) {
      const originals::ResultRow& row = rows.value()[j];
      const originals::ResultRow& original = expected.value()[j];
      EXPECT_TRUE(row.name == original.name && row.completed == original.completed &&
                  row.start == original.start && row.end == original.end)
          << golden.expected << ", job " << original.name;
    }
  }
}

// What the authors shipped themselves, in the columns that the programs write.
TEST_F(PublishedResults, LogsOfTheAuthorsAreRead) {
  const Result<originals::Results> elasticflow =
      originals::ReadResults({.paths = {Reference() + "/data/elasticflow/authors_logs_fig10"}});
  ASSERT_TRUE(elasticflow.ok()) << elasticflow.error().message;
  ASSERT_EQ(elasticflow.value().runs.size(), 5U);
  EXPECT_EQ(elasticflow.value().runs[0].label, "dlas-gpu");
  for (const results::RunResult& run : elasticflow.value().runs) {
    EXPECT_EQ(results::Measure(run).completed, 100) << run.label;
  }
  // reference/muri.md, 11.6
  const Result<originals::Results> muri =
      originals::ReadResults({.paths = {Reference() + "/data/muri/testbed_results"}});
  ASSERT_TRUE(muri.ok()) << muri.error().message;
  for (std::size_t i = 0; i < muri.value().runs.size(); ++i) {
    const originals::PublishedMetrics metrics =
        originals::MeasureAsPublished(*muri.value().originals[i]);
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
