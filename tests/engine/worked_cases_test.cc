// SPDX-License-Identifier: Apache-2.0
// docs/worked-examples.md: each block of the page is a run, and what it says must come out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

using Fields = std::map<std::string, std::string>;

// `a=1 b=2`
Fields FieldsIn(std::istringstream& line) {
  Fields fields;
  for (std::string word; line >> word;) {
    const std::size_t equals = word.find('=');
    fields[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return fields;
}

double NumberOf(const Fields& fields, const std::string& name, double otherwise = 0) {
  const auto found = fields.find(name);
  return found == fields.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
}

std::vector<double> NumbersIn(const std::string& text, char between) {
  std::vector<double> numbers;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, between);) {
    numbers.push_back(std::strtod(part.c_str(), nullptr));
  }
  return numbers;
}

// Iterations by profile, stages or declared durations, job by job; `cpus` are demands.
class CaseRates final : public profile::ModelByJob {
 public:
  void AddProfile(const std::string& model, std::map<int, double> rates) {
    profiles_.emplace(model, Scaling(std::move(rates)));
  }
  void Demand(const std::string& job, double cpus) { demands_.cpus[job] = cpus; }

 private:
  class Scaling final : public ExecutionModel {
   public:
    explicit Scaling(std::map<int, double> rates) : rates_(std::move(rates)) {
      for (const auto& [gpus, rate] : rates_) {
        levels_.push_back(gpus);
      }
    }
    [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
    [[nodiscard]] double Rate(const JobSpec& /*job*/, int gpus) const override {
      const auto found = rates_.find(gpus);
      return found == rates_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override {
      return levels_;
    }

   private:
    std::map<int, double> rates_;
    std::vector<int> levels_;
  };
  class Demands final : public ExecutionModel {
   public:
    [[nodiscard]] double TotalWork(const JobSpec& job) const override {
      return Seconds(*job.duration);
    }
    [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
      return gpus == job.gpus ? 1 : 0;
    }
    [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
      return {.milli_cpus = static_cast<std::int64_t>(1000 * cpus.at(job.name))};
    }
    [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
    std::map<std::string, double> cpus;
  };
  [[nodiscard]] const ExecutionModel& Of(const JobSpec& job) const override {
    if (const auto profile = profiles_.find(job.model); profile != profiles_.end()) {
      return profile->second;
    }
    if (demands_.cpus.contains(job.name)) {
      return demands_;
    }
    return *plain_;
  }

  std::map<std::string, Scaling> profiles_;
  Demands demands_;
  std::unique_ptr<ExecutionModel> plain_ = profile::MakeMixedModel(nullptr);
};

struct Case {
  std::string title;
  std::vector<std::string> lines;
};

// A heading, and the block under it.
std::vector<Case> CasesOfPage() {
  std::ifstream page(std::string(TRAINYARD_SOURCE_DIR) + "/docs/worked-examples.md");
  std::vector<Case> cases;
  std::string title;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) {
      title = line.substr(3);
    } else if (line == "```case") {
      inside = true;
      cases.push_back({.title = title, .lines = {}});
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      cases.back().lines.push_back(line);
    }
  }
  return cases;
}

class WorkedCase {
 public:
  void Take(const std::string& text) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "policy" || word == "placement" || word == "admission" || word == "grouping") {
      std::string& place = word == "policy"      ? run_.policy
                           : word == "placement" ? run_.placement
                           : word == "admission" ? run_.admission
                                                 : run_.grouping;
      line >> place;
    } else if (word == "cluster") {
      TakeCluster(line);
    } else if (word == "costs") {
      TakeCosts(FieldsIn(line));
    } else if (word == "profile") {
      line >> word;
      std::map<int, double> rates;
      for (const auto& [gpus, rate] : FieldsIn(line)) {
        rates[std::atoi(gpus.c_str())] = std::strtod(rate.c_str(), nullptr);
      }
      rates_.AddProfile(word, rates);
    } else if (word == "fails") {
      line >> word;
      const std::vector<double> times = NumbersIn(word, '-');
      ASSERT_EQ(times.size(), 2U) << text;
      run_.cluster.changes = {{AtSeconds(times[0]), NodeAt(0), false},
                              {AtSeconds(times[1]), NodeAt(0), true}};
      run_.cluster.checkpoint_interval = FromSeconds(NumberOf(FieldsIn(line), "checkpoint"));
    } else if (word == "job") {
      line >> word;
      TakeJob(word, FieldsIn(line));
    } else {
      expected_.emplace_back(word, FieldsIn(line));
    }
  }

  void Check() {
    run_.rates = &rates_;
    const TestResult result = RunTest(run_);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    ASSERT_FALSE(expected_.empty());
    for (const auto& [what, values] : expected_) {
      for (const auto& [job, value] : values) {
        ASSERT_TRUE(numbers_.contains(job)) << job;
        CheckOne(result, what, numbers_.at(job), job, std::strtod(value.c_str(), nullptr));
      }
    }
  }

 private:
  void TakeCluster(std::istringstream& line) {
    std::string shape;
    line >> shape;
    const std::vector<double> sides = NumbersIn(shape, 'x');
    ASSERT_EQ(sides.size(), 2U) << shape;
    run_.cluster = MakeCluster(static_cast<int>(sides[0]), static_cast<int>(sides[1]));
    const double cpus = NumberOf(FieldsIn(line), "cpus");
    for (NodeSpec& node : run_.cluster.nodes) {
      node.capacity.milli_cpus = static_cast<std::int64_t>(1000 * cpus);
    }
  }

  void TakeCosts(const Fields& fields) {
    run_.rules.debt = {};
    run_.overheads = profile::OverheadModel(
        profile::OverheadTable{.fallback = {.start = FromSeconds(NumberOf(fields, "start")),
                                            .restart = FromSeconds(NumberOf(fields, "restart")),
                                            .resize = FromSeconds(NumberOf(fields, "resize")),
                                            .migrate = FromSeconds(NumberOf(fields, "migrate"))},
                               .models = {}});
  }

  void TakeJob(const std::string& name, const Fields& fields) {
    JobSpec job{.name = name,
                .gpus = static_cast<int>(NumberOf(fields, "gpus", 1)),
                .submit = AtSeconds(NumberOf(fields, "submit"))};
    job.priority = static_cast<int>(NumberOf(fields, "priority"));
    if (fields.contains("model")) {
      job.model = fields.at("model");
    }
    if (fields.contains("duration")) {
      job.duration = FromSeconds(NumberOf(fields, "duration"));
    }
    if (fields.contains("iterations")) {
      job.iterations = NumberOf(fields, "iterations");
    }
    if (fields.contains("deadline")) {
      job.deadline = AtSeconds(NumberOf(fields, "deadline"));
    }
    if (fields.contains("cpus")) {
      rates_.Demand(name, NumberOf(fields, "cpus"));
    }
    if (fields.contains("stages")) {
      StageTimes times{.iteration = 0, .stages = NumbersIn(fields.at("stages"), '/')};
      for (const double stage : times.stages) {
        times.iteration += stage;
      }
      job.traits = std::make_shared<const JobTraits>(JobTraits{.stages = times});
    }
    numbers_[name] = run_.jobs.size();
    run_.jobs.push_back(std::move(job));
  }

  static void CheckOne(const TestResult& result, const std::string& what, std::size_t number,
                       const std::string& job, double value) {
    constexpr double kMicrosecond = 1e-6;
    const model::JobRecord& record = result.records[number];
    if (what == "ends") {
      EXPECT_EQ(record.phase.get(), model::JobPhase::kCompleted) << job;
      EXPECT_NEAR(result.end(number), value, 1.5 * kMicrosecond) << job;
    } else if (what == "starts") {
      EXPECT_NEAR(result.start(number), value, 1.5 * kMicrosecond) << job;
    } else if (what == "rejected") {
      EXPECT_EQ(record.phase.get(), model::JobPhase::kRejected) << job;
    } else if (what == "preemptions") {
      EXPECT_EQ(record.preemptions, value) << job;
    } else if (what == "migrations") {
      EXPECT_EQ(record.migrations, value) << job;
    } else if (what == "resizes") {
      EXPECT_EQ(record.resizes, value) << job;
    } else {
      ADD_FAILURE() << "the page says '" << what << "', which the test does not know";
    }
  }

  TestRun run_;
  CaseRates rates_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::pair<std::string, Fields>> expected_;
};

TEST(WorkedCasesTest, WhatThePageSaysComesOut) {
  const std::vector<Case> cases = CasesOfPage();
  ASSERT_GE(cases.size(), 30U);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.title);
    WorkedCase run;
    for (const std::string& line : one.lines) {
      run.Take(line);
    }
    run.Check();
  }
}

}  // namespace
}  // namespace trainyard
