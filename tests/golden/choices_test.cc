// SPDX-License-Identifier: Apache-2.0
// The published choices of policies (rows 'policy switching scores' of golden/unit_manifest.csv):
// the score of every combination in every round, and which one was taken.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden/golden_case.h"
#include "golden/reference.h"
#include "io/csv_reader.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;  // the order of the candidates counts

struct ScoreCase {
  std::string golden;    // the run of the manifest
  std::string expected;  // path
};

// "run NAME: ..." in the column `compare` names the run.
std::vector<ScoreCase> ScoreCases() {
  const Result<CsvTable> table = CsvTable::Open(Reference() + "/golden/unit_manifest.csv");
  EXPECT_TRUE(table.ok());
  std::vector<ScoreCase> cases;
  const Status status = table.value().ForEach([&](const CsvRow& row) -> Status {
    const auto text = [&](const char* column) {
      return std::string(row.Text(table.value().Column({column})));
    };
    if (text("what") == "policy switching scores") {
      const std::string compare = text("compare");
      const std::size_t colon = compare.find(':');
      cases.push_back({.golden = compare.substr(4, colon - 4),
                       .expected = Reference() + "/" + text("expected")});
    }
    return {};
  });
  EXPECT_TRUE(status.ok());
  return cases;
}

RunResult RunOf(const std::string& name) {
  const auto manifest = ReadManifest(Reference() + "/golden/manifest.csv", {{"ref", Reference()}});
  EXPECT_TRUE(manifest.ok());
  for (const GoldenCase& golden : manifest.value()) {
    if (golden.name == name) {
      const Result<Inputs> inputs = ReadInputs(golden.inputs);
      EXPECT_TRUE(inputs.ok());
      Result<RunResult> run = RunScenario(inputs.value(), {.names = golden.names});
      EXPECT_TRUE(run.ok());
      return std::move(run).value();
    }
  }
  ADD_FAILURE() << name << " is not in the manifest";
  return {};
}

void ExpectRound(const ChoiceSample& sample, const Json& scores) {
  ASSERT_EQ(sample.scores.size(), scores.size());
  std::size_t candidate = 0;
  std::size_t lowest = 0;
  for (const auto& [name, score] : scores.items()) {
    const double expected = score.get<double>();
    EXPECT_NEAR(sample.scores[candidate], expected, 1e-9 * expected) << name;
    lowest =
        expected < std::next(scores.begin(), static_cast<std::ptrdiff_t>(lowest))->get<double>()
            ? candidate
            : lowest;
    ++candidate;
  }
  EXPECT_EQ(sample.candidate, lowest);
}

TEST(PublishedChoicesTest, AreMadeHereToo) {
  if (!std::filesystem::exists(Reference() + "/golden/unit_manifest.csv")) {
    GTEST_SKIP() << "no published results at " << Reference() << " (set TRAINYARD_REFERENCE)";
  }
  const std::vector<ScoreCase> cases = ScoreCases();
  ASSERT_FALSE(cases.empty());
  for (const ScoreCase& one : cases) {
    const RunResult run = RunOf(one.golden);
    std::map<double, const ChoiceSample*> by_time;
    for (const ChoiceSample& sample : run.choices) {
      by_time[Seconds(sample.time)] = &sample;
    }
    std::ifstream file(one.expected);
    std::size_t compared = 0;
    for (std::string line; std::getline(file, line);) {
      const Json round = Json::parse(line);
      const double time = std::stod(round.begin().key());
      SCOPED_TRACE(one.golden + " at " + round.begin().key());
      if (const auto found = by_time.find(time); found != by_time.end()) {
        ExpectRound(*found->second, round.begin().value());
        ++compared;
        continue;
      }
      for (const auto& [name, score] : round.begin().value().items()) {
        EXPECT_EQ(score.get<double>(), 0) << name << ": nothing is decided in an idle round";
      }
    }
    EXPECT_GT(compared, 10U) << one.golden;
  }
}

}  // namespace
}  // namespace trainyard
