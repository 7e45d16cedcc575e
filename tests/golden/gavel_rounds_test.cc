// SPDX-License-Identifier: Apache-2.0
// Gavel's published mechanism (OSDI'20) fed with recorded allocations, so that no solver has a say:
// every round and every end. golden/gavel/*.allocations.csv.gz.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/csv_reader.h"
#include "originals/gavel/gavel_mechanism.h"
#include "originals/gavel/gavel_policies.h"
#include "profile/throughput_table.h"
#include "support/reference.h"
#include "trace/trace.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using originals::GavelJob;
using originals::GavelUnitId;

const std::vector<std::string> kTypes{"k80", "p100", "v100"};

// "7" or "(3, 7)".
GavelUnitId UnitOf(std::string_view text) {
  std::vector<int> numbers;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    int number = 0;
    const auto [end, code] = std::from_chars(at, text.data() + text.size(), number);
    if (code == std::errc{}) {
      numbers.push_back(number);
    }
    at = code == std::errc{} ? end : at + 1;
  }
  return {numbers.front(), numbers.back()};
}

// A line of a recorded table, whose pairs "(3, 7)" are not quoted.
class RecordedRow {
 public:
  RecordedRow(const std::vector<std::string>& columns, std::string_view line) : columns_(columns) {
    std::size_t begin = 0;
    bool in_pair = false;
    for (std::size_t i = 0; i <= line.size(); ++i) {
      in_pair = i < line.size() && (line[i] == '(' || (in_pair && line[i] != ')'));
      if (i == line.size() || (line[i] == ',' && !in_pair)) {
        fields_.emplace_back(line.substr(begin, i - begin));
        begin = i + 1;
      }
    }
  }
  [[nodiscard]] std::string_view Text(std::string_view column) const {
    const auto at = std::find(columns_.begin(), columns_.end(), column);
    return fields_.at(static_cast<std::size_t>(at - columns_.begin()));
  }
  [[nodiscard]] double Number(std::string_view column) const {
    return base::ToNumber(Text(column)).value_or(std::nan(""));
  }

 private:
  const std::vector<std::string>& columns_;
  std::vector<std::string> fields_;
};

template <typename Take>
void ForEachRow(const std::string& path, const Take& take) {
  const Result<io::TextFile> file = io::TextFile::Read(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::vector<std::string> columns;
  for (const std::string_view line : base::Split(file.value().text, "\r\n")) {
    if (columns.empty()) {
      for (const std::string_view name : base::Split(line, ",")) {
        columns.emplace_back(name);
      }
    } else if (!line.empty()) {
      take(RecordedRow(columns, line));
    }
  }
}

struct Solve {
  double time = 0;
  std::map<GavelUnitId, std::vector<double>> shares;
};
struct Held {
  std::string type;
  std::string gpus;
  double priority = 0;
  double deficit = 0;
};
struct Round {
  double time = 0;
  std::map<GavelUnitId, Held> held;
};

// A recorded run: "…/gen20/4-4-4/fifo.exact".
struct Recorded {
  std::string trace;
  std::vector<int> gpus;  // by type
  std::string policy;
  std::vector<Solve> solves;
  std::vector<Round> rounds;
  std::map<int, double> ends;

  explicit Recorded(const fs::path& stem)
      : trace(stem.parent_path().parent_path().filename()),
        policy(stem.filename().stem().string()) {
    const std::string cluster = stem.parent_path().filename();  // V-P-K
    for (const std::string_view count : base::Split(cluster, "-")) {
      gpus.insert(gpus.begin(), static_cast<int>(*base::ToNumber(count)));
    }
    ForEachRow(stem.string() + ".allocations.csv.gz", [this](const RecordedRow& row) {
      const double time = row.Number("time_s");
      if (solves.empty() || solves.back().time != time) {
        solves.push_back({.time = time});
      }
      std::vector<double>& shares = solves.back().shares[UnitOf(row.Text("job_id"))];
      for (const std::string& type : kTypes) {
        shares.push_back(row.Number(type));
      }
    });
    ForEachRow(stem.string() + ".rounds.csv.gz", [this](const RecordedRow& row) {
      const double time = row.Number("time_s");
      if (rounds.empty() || rounds.back().time != time) {
        rounds.push_back({.time = time});
      }
      rounds.back().held[UnitOf(row.Text("job_id"))] = {
          .type = std::string(row.Text("worker_type")),
          .gpus = std::string(row.Text("worker_ids")),
          .priority = row.Number("priority"),
          .deficit = row.Number("deficit")};
    });
    ForEachRow(stem.string() + ".csv.gz", [this](const RecordedRow& row) {
      if (!row.Text("end_s").empty()) {
        ends[static_cast<int>(row.Number("job_id"))] = row.Number("end_s");
      }
    });
  }
};

struct Inputs {
  std::vector<GavelJob> jobs;
  std::map<std::pair<int, int>, policies::PairRates> pairs;
};

Inputs ReadJobs(const std::string& trace, const profile::ThroughputTable& table) {
  const Result<trace::Trace> read =
      trace::ReadTrace(Reference() + "/data/gavel/" + trace + ".trace.gz", {.format = "gavel"});
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  Inputs inputs;
  std::map<int, std::pair<int, int>> kinds;  // row, GPUs
  for (const JobSpec& spec : read.value().jobs) {
    const int row = table.Find(spec.model, spec.batch_size);
    GavelJob job{.kind = row * 16 + spec.gpus,
                 .gpus = spec.gpus,
                 .arrival = Seconds(spec.submit),
                 .steps_left = static_cast<std::int64_t>(*spec.iterations)};
    for (const std::string& type : kTypes) {
      job.rates.push_back(table.rows()[static_cast<std::size_t>(row)].RateOn(type, spec.gpus));
    }
    kinds[job.kind] = {row, spec.gpus};
    inputs.jobs.push_back(std::move(job));
  }
  for (const auto& [kind, of] : kinds) {
    for (const auto& [other, theirs] : kinds) {
      if (of.second == theirs.second && kind <= other) {
        policies::PairRates& pair = inputs.pairs[{kind, other}];
        pair = {.first = kind, .second = other};
        for (const std::string& type : kTypes) {
          pair.first_rates.push_back(table.RateBeside(of.first, theirs.first, of.second, type));
          pair.second_rates.push_back(table.RateBeside(theirs.first, of.first, of.second, type));
        }
      }
    }
  }
  return inputs;
}

std::string Joined(const std::vector<int>& gpus) {
  std::string text;
  for (const int gpu : gpus) {
    text += (text.empty() ? "" : " ") + std::to_string(gpu);
  }
  return text;
}

bool IsNear(double value, double expected) {
  return std::abs(value - expected) <= 1e-6 + 1e-9 * std::abs(expected);
}

// What is different of the round that begins now; empty: nothing.
std::string Difference(const originals::GavelState& state, const Round& round) {
  if (!IsNear(state.now, round.time)) {
    return "begins at " + std::to_string(state.now);
  }
  if (state.tasks.size() != round.held.size()) {
    return "has " + std::to_string(state.tasks.size()) + " tasks instead of " +
           std::to_string(round.held.size());
  }
  for (const originals::GavelTask& task : state.tasks) {
    const std::string name =
        "(" + std::to_string(task.unit.first) + ", " + std::to_string(task.unit.second) + ")";
    const auto held = round.held.find(task.unit);
    if (held == round.held.end()) {
      return name + " runs";
    }
    if (kTypes[task.type] != held->second.type || Joined(task.gpus) != held->second.gpus) {
      return name + " has " + kTypes[task.type] + " " + Joined(task.gpus) + " instead of " +
             held->second.type + " " + held->second.gpus;
    }
    if (!IsNear(task.priority, held->second.priority) ||
        !IsNear(task.deficit, held->second.deficit)) {
      return name + " has priority " + std::to_string(task.priority) + " and deficit " +
             std::to_string(task.deficit);
    }
  }
  return "";
}

class GavelRounds : public testing::TestWithParam<std::string> {};

TEST_P(GavelRounds, AreThoseOfTheRecordedAllocations) {
  const Recorded recorded(GetParam());
  const Result<profile::ThroughputTable> table = profile::ThroughputTable::Read(
      Reference() + "/data/gavel/simulation_throughputs.csv.gz", kTypes);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const Inputs inputs = ReadJobs(recorded.trace, table.value());
  const std::optional<originals::GavelPolicy> policy =
      originals::FindGavelPolicy(recorded.policy, kTypes);
  ASSERT_TRUE(policy.has_value()) << recorded.policy;
  const originals::GavelPairs pairs = [&](int kind, int other) {
    const auto pair = inputs.pairs.find(std::minmax(kind, other));
    return pair == inputs.pairs.end() ? nullptr : &pair->second;
  };
  std::size_t solves = 0;
  const originals::GavelSolver solve = [&](const policies::AllocationProblem& problem,
                                           std::span<const int> numbers,
                                           originals::GavelState& state) {
    policies::Allocation allocation = policies::NoShares(problem);
    EXPECT_LT(solves, recorded.solves.size());
    if (solves >= recorded.solves.size()) {
      return allocation;
    }
    const Solve& now = recorded.solves[solves++];
    EXPECT_TRUE(IsNear(state.now, now.time)) << state.now << ", expected " << now.time;
    std::map<int, std::size_t> at;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      at[numbers[i]] = i;
    }
    for (const auto& [unit, shares] : now.shares) {
      if (unit.first == unit.second) {
        allocation.units[at.at(unit.first)].shares = shares;
      } else {
        allocation.units.push_back({at.at(unit.first), at.at(unit.second), shares});
      }
    }
    return allocation;
  };

  originals::GavelState state;
  state.orders.emplace(5);  // the seed, and 5
  originals::GavelMechanism mechanism(policy->rules, recorded.gpus, pairs, solve, state);
  std::size_t arrived = 0;
  std::map<int, double> ends;
  std::size_t rounds = 0;
  while (arrived < inputs.jobs.size() || !state.jobs.empty()) {
    for (const originals::GavelTask& task : state.tasks) {
      for (const int job : mechanism.EndingWith(task)) {
        ends[job] = task.finish;
      }
    }
    double now = state.now;
    if (const std::optional<double> end = mechanism.RoundEnd()) {
      now = *end;
    } else if (arrived < inputs.jobs.size()) {
      now = inputs.jobs[arrived].arrival;
    }
    std::vector<GavelJob> coming;
    for (; arrived < inputs.jobs.size() && inputs.jobs[arrived].arrival <= now; ++arrived) {
      coming.push_back(inputs.jobs[arrived]);
      coming.back().id = JobAt(arrived);
    }
    mechanism.Turn(now, std::move(coming));
    if (state.tasks.empty()) {
      continue;
    }
    ASSERT_LT(rounds, recorded.rounds.size());
    const std::string difference = Difference(state, recorded.rounds[rounds]);
    ASSERT_EQ(difference, "") << "round " << rounds << " at " << recorded.rounds[rounds].time;
    ++rounds;
  }
  EXPECT_EQ(rounds, recorded.rounds.size());
  EXPECT_EQ(solves, recorded.solves.size());
  ASSERT_EQ(ends.size(), recorded.ends.size());
  for (const auto& [job, end] : recorded.ends) {
    EXPECT_TRUE(ends.contains(job) && IsNear(ends[job], end)) << "job " << job;
  }
}

std::vector<std::string> RecordedRuns() {
  std::vector<std::string> stems;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(Reference() + "/golden/gavel", error)) {
    constexpr std::string_view kEnding = ".allocations.csv.gz";
    const std::string path = entry.path();
    if (path.ends_with(kEnding)) {
      stems.push_back(path.substr(0, path.size() - kEnding.size()));
    }
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  const fs::path stem(info.param);
  std::string name =
      stem.parent_path().parent_path().filename().string() + "_" + stem.filename().stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, GavelRounds, testing::ValuesIn(RecordedRuns()), NameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GavelRounds);

TEST(GavelRoundsTest, RunsAreRecorded) {
  TRAINYARD_NEEDS_REFERENCE();
  EXPECT_GE(RecordedRuns().size(), 30);
}

}  // namespace
}  // namespace trainyard
