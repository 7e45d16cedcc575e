// SPDX-License-Identifier: Apache-2.0
// The published allocations, events and predictions of the worker scheduler, one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/text.h"
#include "io/csv_reader.h"
#include "loader/allocation.h"
#include "loader/model_catalog.h"
#include "loader/reallocation.h"
#include "loader/throughput_model.h"
#include "support/reference.h"

namespace trainyard {
namespace {

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

// One job of a scenario.
struct GoldenJob {
  std::string model;
  loader::TrainingShape shape;
  int workers = 0;
  std::map<std::string, std::vector<int>> devices;
};

struct GoldenScenario {
  int cores = 0;
  int mode = 3;
  std::vector<GoldenJob> jobs;
  nlohmann::json events;
};

GoldenScenario ReadScenario(const std::string& folder) {
  const nlohmann::json json = ReadJson(folder + "/scenario.json");
  GoldenScenario scenario{.cores = json["cpu_cores"], .mode = json.value("mode", 3)};
  for (const nlohmann::json& app : json["apps"]) {
    GoldenJob job{.model = app["arch"].get<std::string>() + std::to_string(app["depth"].get<int>()),
                  .workers = app["workers"]};
    app["devices"].get_to(job.devices);
    for (const auto& [node, devices] : job.devices) {
      job.shape.devices += static_cast<int>(devices.size());
    }
    job.shape.batch = app["batch"];
    scenario.jobs.push_back(std::move(job));
  }
  if (json.contains("events")) {
    scenario.events = json["events"];
  }
  return scenario;
}

// The most jobs on one device of `job`.
int SharingOf(const GoldenJob& job, const std::vector<const GoldenJob*>& jobs) {
  int most = 0;
  for (const auto& [node, devices] : job.devices) {
    for (const int device : devices) {
      const auto names = [&, n = node](const GoldenJob* other) {
        const auto found = other->devices.find(n);
        return found != other->devices.end() &&
               std::count(found->second.begin(), found->second.end(), device) > 0;
      };
      most = std::max(most, static_cast<int>(std::count_if(jobs.begin(), jobs.end(), names)));
    }
  }
  return most;
}

class LoaderGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    TRAINYARD_NEEDS_REFERENCE();
    auto catalog = loader::ModelCatalog::Read(Reference() + "/data/torchloader/models.csv",
                                              loader::ModelCatalog::Twins::kRefusedInUse);
    ASSERT_TRUE(catalog.ok()) << catalog.error().message;
    catalog_ = std::move(catalog).value();
  }

  // The folders of cases whose names begin so, in order.
  static std::vector<std::string> Cases(const std::string& prefix) {
    std::set<std::string> cases;
    for (const auto& entry :
         std::filesystem::directory_iterator(Reference() + "/golden/torchloader")) {
      if (entry.is_directory() && entry.path().filename().string().starts_with(prefix)) {
        cases.insert(entry.path().string());
      }
    }
    return {cases.begin(), cases.end()};
  }

  // cp was run with a model of three features: b x flops, (d - 1) x params, params.
  static loader::ThroughputModel ModelOf(loader::AllocationRule rule) {
    loader::ThroughputModel model = loader::ThroughputModel::Published();
    if (rule == loader::AllocationRule::kCp) {
      const nlohmann::json linear = ReadJson(
          Reference() + "/golden/torchloader/tpm_gpu_regressors/summary.json")["results"]["linear"];
      const double flops = linear["coef"][0];
      model.gpu = {.base = linear["intercept"],
                   .network = linear["coef"][1],
                   .params = linear["coef"][2],
                   .batch_dense = flops,
                   .batch_point = flops,
                   .batch_depth = flops,
                   .batch_linear = flops};
    }
    return model;
  }

  // Errors: a model that cannot be found.
  Result<std::vector<loader::LoaderNeed>> NeedsOf(loader::AllocationRule rule,
                                                  const std::vector<const GoldenJob*>& jobs) const {
    const loader::ThroughputModel model = ModelOf(rule);
    std::vector<loader::LoaderNeed> needs;
    for (const GoldenJob* job : jobs) {
      const auto size = catalog_.Find(job->model);
      if (!size.ok()) {
        return size.error();
      }
      needs.push_back(
          loader::PredictNeed(rule, model, *size.value(), job->shape, SharingOf(*job, jobs)));
    }
    return needs;
  }

  loader::ModelCatalog catalog_;
};

std::vector<const GoldenJob*> Pointers(const std::vector<GoldenJob>& jobs) {
  std::vector<const GoldenJob*> pointers;
  for (const GoldenJob& job : jobs) {
    pointers.push_back(&job);
  }
  return pointers;
}

loader::AllocationRule RuleOf(std::string_view variant) {
  return variant == "V2" ? loader::AllocationRule::kV2 : loader::AllocationRuleOf(variant);
}

void ExpectNear(double actual, double expected, const std::string& what) {
  EXPECT_LE(std::abs(actual - expected), 1e-9 * std::abs(expected)) << what;
}

class Row {
 public:
  Row(const io::CsvTable& table, const io::CsvRow& row) : table_(table), row_(row) {}
  [[nodiscard]] std::string Text(std::string_view name) const {
    return std::string(row_.Text(table_.Column({name})));
  }
  [[nodiscard]] double Number(std::string_view name) const {
    return row_.Number(table_.Column({name}), -1e300).value();
  }
  [[nodiscard]] int Int(std::string_view name) const { return static_cast<int>(Number(name)); }

 private:
  const io::CsvTable& table_;
  const io::CsvRow& row_;
};

void ForEachRow(const std::string& path, const std::function<void(const Row&)>& take) {
  const auto table = io::CsvTable::Open(path);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    take(Row(table.value(), row));
    return {};
  });
  ASSERT_TRUE(read.ok()) << read.error().message;
}

TEST_F(LoaderGoldenTest, PublishedAllocations) {
  int compared = 0;
  for (const std::string& folder : Cases("waa")) {
    const GoldenScenario scenario = ReadScenario(folder);
    ForEachRow(folder + "/allocation.csv", [&](const Row& row) {
      const std::string what = folder + " " + row.Text("variant") + " " + row.Text("app");
      const loader::AllocationRule rule = RuleOf(row.Text("variant"));
      const auto needs = NeedsOf(rule, Pointers(scenario.jobs));
      ++compared;
      if (!row.Text("error").empty()) {
        EXPECT_FALSE(needs.ok()) << what;
        return;
      }
      ASSERT_TRUE(needs.ok()) << needs.error().message;
      const auto job = static_cast<std::size_t>(row.Int("app"));
      const loader::LoaderNeed& need = needs.value()[job];
      const int sharing = rule == loader::AllocationRule::kCp ? 1 : row.Int("max_share");
      ExpectNear(need.gpu_rate * sharing, row.Number("gpu_tpt_unshared"), what);
      ExpectNear(need.worker_rate, row.Number("cpu_tpt_per_worker"), what);
      ExpectNear(need.Ratio(), row.Number("workers_per_device_float"), what);
      EXPECT_EQ(loader::WantedWorkers(rule, need), row.Int("wanted_workers_per_device")) << what;
      const int workers = loader::PublishedAllocation(rule, needs.value(), scenario.cores)[job];
      EXPECT_EQ(workers, row.Int("alloc_workers_per_device")) << what;
      EXPECT_EQ(workers * need.devices, row.Int("alloc_workers_total")) << what;
      EXPECT_EQ(workers * need.devices != scenario.jobs[job].workers, row.Int("changed") == 1)
          << what;
    });
  }
  EXPECT_GE(compared, 90);
}

// All devices on one node that has all cores, as the published rules see the cluster.
std::vector<loader::LoaderDemand> DemandsOf(const std::vector<loader::LoaderNeed>& needs,
                                            int cores) {
  std::vector<loader::LoaderDemand> demands;
  for (const loader::LoaderNeed& need : needs) {
    loader::LoaderDemand demand{.parts = {{.node = 0, .devices = need.devices}}};
    for (int workers = 0; workers <= cores; ++workers) {
      demand.rates.push_back(need.devices * std::min(need.gpu_rate, workers * need.worker_rate));
    }
    demands.push_back(std::move(demand));
  }
  return demands;
}

double SumOf(const std::vector<loader::LoaderDemand>& demands, const std::vector<int>& workers) {
  double sum = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    sum += demands[i].RateWith(workers[i]);
  }
  return sum;
}

TEST_F(LoaderGoldenTest, PredictedSums) {
  int compared = 0;
  ForEachRow(Reference() + "/golden/torchloader/predicted_aggregate.csv", [&](const Row& row) {
    const GoldenScenario scenario =
        ReadScenario(Reference() + "/golden/torchloader/" + row.Text("case"));
    const auto jobs = Pointers(scenario.jobs);
    const auto needs = NeedsOf(loader::AllocationRule::kV2, jobs);
    ASSERT_TRUE(needs.ok());
    const std::vector<loader::LoaderDemand> demands = DemandsOf(needs.value(), scenario.cores);
    for (const std::string name : {"V2", "cp", "multi_node"}) {
      const loader::AllocationRule rule = RuleOf(name);
      const auto workers =
          loader::PublishedAllocation(rule, NeedsOf(rule, jobs).value(), scenario.cores);
      EXPECT_NEAR(SumOf(demands, workers), row.Number(name + "_tpt"), 0.06) << row.Text("case");
    }
    const auto optimum = loader::ExactAllocation(demands, std::vector<int>{scenario.cores});
    EXPECT_NEAR(SumOf(demands, optimum), row.Number("optimum_tpt"), 0.06) << row.Text("case");
    ++compared;
  });
  EXPECT_GE(compared, 9);
}

// ---------------------------------------------------------------------------------------- events

std::string Words(const std::vector<JobId>& jobs) {
  std::string words;
  for (const JobId job : jobs) {
    words += (words.empty() ? "" : " ") + std::to_string(Index(job));
  }
  return words;
}

std::string Words(const std::vector<loader::LoaderCommand>& commands) {
  std::string words;
  for (const loader::LoaderCommand& command : commands) {
    const std::size_t job = Index(command.job);
    const std::size_t port = 10000 + 1000 * job + static_cast<std::size_t>(command.restarts);
    words += (words.empty() ? "" : "; ");
    words += command.kind == loader::LoaderCommand::Kind::kPause ? "pause" : "launch";
    words += " app" + std::to_string(job) + " workers=" + std::to_string(command.workers) +
             " port=" + std::to_string(port) +
             " from_checkpoint=" + std::to_string(command.from_checkpoint ? 1 : 0);
  }
  return words;
}

std::string WorkersOf(const loader::LoaderQueues& queues) {
  std::string words;
  for (const auto& [id, job] : queues.jobs) {
    words +=
        (words.empty() ? "" : " ") + std::to_string(Index(id)) + ":" + std::to_string(job.workers);
  }
  return words;
}

class EventGoldenTest : public LoaderGoldenTest {
 protected:
  // The steps of the case that the published scheduler did right, or all of them.
  static int SoundSteps(const std::string& name) {
    static const std::map<std::string, int> kSound{{"ev03_stuck_after_idle", 2},
                                                   {"ev05_arrival_during_pause", 3},
                                                   {"ev07_arrival_while_one_app_paused", 3},
                                                   {"ev08_finish_instead_of_pause", 2}};
    const auto found = kSound.find(name);
    return found == kSound.end() ? 1000 : found->second;
  }

  // All steps of a case.
  std::vector<loader::LoaderStep> Play(const GoldenScenario& scenario) const {
    const loader::DivideWorkers divide = [&](const loader::LoaderQueues&,
                                             std::span<const JobId> jobs) {
      std::vector<const GoldenJob*> live;
      for (const JobId job : jobs) {
        live.push_back(&scenario.jobs[Index(job)]);
      }
      const auto needs = NeedsOf(loader::AllocationRule::kMultiNode, live).value();
      std::vector<int> workers =
          loader::PublishedAllocation(loader::AllocationRule::kMultiNode, needs, scenario.cores);
      for (std::size_t i = 0; i < workers.size(); ++i) {
        workers[i] *= needs[i].devices;
      }
      return workers;
    };
    const loader::Reallocation machine(static_cast<loader::ReallocationMode>(scenario.mode),
                                       divide);
    std::vector<loader::LoaderStep> steps;
    loader::LoaderQueues queues;
    for (const nlohmann::json& event : scenario.events) {
      steps.push_back(StepOf(machine, queues, scenario, event));
      queues = steps.back().queues;
    }
    return steps;
  }

 private:
  static loader::LoaderStep StepOf(const loader::Reallocation& machine,
                                   const loader::LoaderQueues& queues,
                                   const GoldenScenario& scenario, const nlohmann::json& event) {
    std::vector<JobId> jobs;
    std::vector<loader::LoaderArrival> batch;
    for (const nlohmann::json& app : event["apps"]) {
      jobs.push_back(JobAt(app.get<std::size_t>()));
      batch.push_back({.job = jobs.back(), .workers = scenario.jobs[Index(jobs.back())].workers});
    }
    if (event["kind"] == "arrival") {
      return machine.Arrive(queues, batch);
    }
    return event["kind"] == "paused" ? machine.Paused(queues, jobs.front())
                                     : machine.Finish(queues, jobs);
  }
};

TEST_F(EventGoldenTest, PublishedEvents) {
  int compared = 0;
  for (const std::string& folder : Cases("ev")) {
    const std::vector<loader::LoaderStep> steps = Play(ReadScenario(folder));
    const int sound = SoundSteps(std::filesystem::path(folder).filename().string());
    ForEachRow(folder + "/events.csv", [&](const Row& row) {
      const std::string what = folder + " step " + row.Text("step");
      if (row.Int("step") >= sound) {
        return;
      }
      const loader::LoaderStep& step = steps.at(static_cast<std::size_t>(row.Int("step")));
      EXPECT_EQ(Words(step.commands), row.Text("commands_sent")) << what;
      EXPECT_EQ(WorkersOf(step.queues), row.Text("scheduler_view_workers")) << what;
      EXPECT_EQ(Words(step.queues.ready), row.Text("ready")) << what;
      EXPECT_EQ(Words(step.queues.running), row.Text("running")) << what;
      EXPECT_EQ(Words(step.queues.paused), row.Text("paused")) << what;
      EXPECT_EQ(Words(step.queues.finished), row.Text("finished")) << what;
      EXPECT_EQ(step.queues.pausing ? 1 : 0, row.Int("in_pausing")) << what;
      EXPECT_EQ(row.Text("error"), "") << what;
      ++compared;
    });
  }
  EXPECT_GE(compared, 40);
}

// The published scheduler hangs in these cases; here everybody runs who has not finished.
TEST_F(EventGoldenTest, WhereThePublishedSchedulerHangsAllJobsRun) {
  for (const std::string name : {"ev03", "ev05", "ev07", "ev08"}) {
    const GoldenScenario scenario = ReadScenario(Cases(name).at(0));
    const std::vector<loader::LoaderStep> steps = Play(scenario);
    loader::LoaderQueues queues = steps.back().queues;
    if (name == "ev03") {  // its last event tells a job to pause that still has to answer
      EXPECT_EQ(queues.told.size(), 1U);
      const loader::Reallocation machine(loader::ReallocationMode::kNever, {});
      queues = machine.Paused(queues, *queues.told.begin()).queues;
    }
    EXPECT_TRUE(queues.ready.empty() && queues.paused.empty() && queues.told.empty()) << name;
    EXPECT_EQ(queues.running.size() + queues.finished.size(), queues.jobs.size()) << name;
  }
}

}  // namespace
}  // namespace trainyard
