// SPDX-License-Identifier: Apache-2.0
// The published choices of policies (rows 'policy switching scores' of golden/unit_manifest.csv):
// the score of every combination in every round, and which one was taken. And a choice of Muri's
// that is open: where its groups first differ from the published ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "golden/golden_case.h"
#include "io/csv_reader.h"
#include "profile/interleave.h"
#include "solver/matching.h"
#include "support/reference.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;  // the order of the candidates counts

struct ScoreCase {
  std::string golden;    // the run of the manifest
  std::string expected;  // path
};

// "run NAME: ..." in the column `compare` names the run.
std::vector<ScoreCase> ScoreCases() {
  const Result<io::CsvTable> table = io::CsvTable::Open(Reference() + "/golden/unit_manifest.csv");
  EXPECT_TRUE(table.ok());
  std::vector<ScoreCase> cases;
  const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
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

results::RunResult RunOf(const std::string& name) {
  const auto manifest = ReadManifest(Reference() + "/golden/manifest.csv", {{"ref", Reference()}});
  EXPECT_TRUE(manifest.ok());
  for (const GoldenCase& golden : manifest.value()) {
    if (golden.name == name) {
      const Result<scenario::Inputs> inputs = scenario::ReadInputs(golden.inputs);
      EXPECT_TRUE(inputs.ok());
      Result<results::RunResult> run =
          scenario::RunScenario(inputs.value(), {.names = golden.names});
      EXPECT_TRUE(run.ok());
      return std::move(run).value();
    }
  }
  ADD_FAILURE() << name << " is not in the manifest";
  return {};
}

void ExpectRound(const results::ChoiceSample& sample, const Json& scores) {
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
  TRAINYARD_NEEDS_REFERENCE();
  const std::vector<ScoreCase> cases = ScoreCases();
  ASSERT_FALSE(cases.empty());
  for (const ScoreCase& one : cases) {
    const results::RunResult run = RunOf(one.golden);
    std::map<double, const results::ChoiceSample*> by_time;
    for (const results::ChoiceSample& sample : run.choices) {
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

// Muri with groups of three on cluster_trace. Job 11 arrives at 7371 s: ten jobs of 8 GPUs, and 64
// GPUs. Two pairs of the matching are merged, those first whose older job came last.
class FirstOpenMatching {
 public:
  using Pairs = std::vector<std::pair<int, int>>;  // each the newer job, the older one

  explicit FirstOpenMatching(const results::RunResult& run) {
    for (const results::JobResult& job : run.jobs) {
      jobs_[job.spec->name] = &job;
    }
  }
  [[nodiscard]] const results::JobResult& job(const std::string& name) const {
    return *jobs_.at(name);
  }
  // Seconds of one iteration of jobs on the same GPUs.
  [[nodiscard]] double Time(const std::vector<int>& group) {
    std::vector<const StageTimes*> stages;
    for (const int job : group) {
      stages.push_back(&StagesOf(job));
    }
    return times_.Of(stages);
  }
  [[nodiscard]] double Weight(int a, int b) {
    double sum = 0;
    for (const int job : {a, b}) {
      for (const double stage : StagesOf(job).stages) {
        sum += stage;
      }
    }
    return sum / (4 * Time({a, b}));
  }
  [[nodiscard]] double Weight(const Pairs& pairs) {
    double sum = 0;
    for (const auto& [newer, older] : pairs) {
      sum += Weight(newer, older);
    }
    return sum;
  }
  [[nodiscard]] double Optimum() {
    constexpr int kNewest = 11;
    const std::vector<std::int64_t> ones(10, 1);
    std::vector<std::vector<double>> weights(10, std::vector<double>(10, 0));
    for (int a = 0; a < 10; ++a) {
      for (int b = 0; b < 10; ++b) {
        weights[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] =
            a == b ? 0 : Weight(kNewest - a, kNewest - b);
      }
    }
    double sum = 0;
    for (const solver::TypePairs& pairs : solver::MatchByType(ones, weights)) {
      sum += weights[pairs.a][pairs.b] * static_cast<double>(pairs.pairs);
    }
    return sum;
  }
  static Pairs Merged(Pairs pairs) {
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    pairs.resize(2);
    return pairs;
  }

 private:
  [[nodiscard]] const StageTimes& StagesOf(int job) const {
    return *jobs_.at(std::to_string(job))->spec->traits->stages;
  }

  std::map<std::string, const results::JobResult*> jobs_;
  profile::GroupTimes times_{{.order = profile::StageOrder::kBest,
                              .slowdown = {1.015, 1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015}}};
};

TEST(PublishedChoicesTest, MurisFirstGroupsThatDifferWeighAsMuch) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string name = "muri/cluster_trace/muri-l-pack3";
  const std::string expected = Reference() + "/golden/" + name + "/jobs.csv.gz";
  const results::RunResult run = RunOf(name);
  FirstOpenMatching matching(run);
  // Up to then everything is equal.
  constexpr double kDecision = 7371;
  const Result<io::CsvTable> table = io::CsvTable::Open(expected);
  ASSERT_TRUE(table.ok());
  double published_length = 0;  // of job 11
  int compared = 0;
  const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const auto number = [&](const char* column) {
      return row.Number(table.value().Column({column}), 0).value();
    };
    const std::string job(row.Text(table.value().Column({"job_id"})));
    const results::JobResult& ours = matching.job(job);
    const std::array<std::pair<double, double>, 2> times{
        {{number("start_s"), Seconds(ours.start.value())},
         {number("end_s"), Seconds(ours.end.value())}}};
    for (const auto& [there, here] : times) {
      if (std::min(there, here) <= kDecision) {
        EXPECT_NEAR(here, there, 1e-5) << job;
        ++compared;
      }
    }
    if (job == "11") {
      published_length = times[1].first - times[0].first;
    }
    return {};
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(compared, 14);  // twelve starts, two ends
  // There job 11 stays alone, here it runs with job 10.
  const double iterations = *matching.job("11").spec->iterations;
  EXPECT_NEAR(published_length, iterations * matching.Time({11}), 1e-5);
  EXPECT_NEAR(Seconds(*matching.job("11").end - *matching.job("11").start),
              iterations * matching.Time({11, 10}), 1e-5);
  // Both matchings have the largest weight that there is.
  using Pairs = FirstOpenMatching::Pairs;
  const Pairs there{{8, 7}, {10, 6}, {9, 5}, {4, 3}, {11, 2}};
  const Pairs here{{11, 10}, {8, 7}, {9, 5}, {4, 3}, {6, 2}};
  EXPECT_EQ(FirstOpenMatching::Merged(there), (Pairs{{8, 7}, {10, 6}}));
  EXPECT_EQ(FirstOpenMatching::Merged(here), (Pairs{{11, 10}, {8, 7}}));
  const double optimum = matching.Optimum();
  EXPECT_NEAR(matching.Weight(there), optimum, 1e-12 * optimum);
  EXPECT_NEAR(matching.Weight(here), optimum, 1e-12 * optimum);
}

}  // namespace
}  // namespace trainyard
