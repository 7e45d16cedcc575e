// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/loader_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "io/json.h"
#include "loader/allocation.h"
#include "loader/model_catalog.h"

namespace trainyard::experiments {
namespace {

struct ScenarioJob {
  std::string model;
  loader::TrainingShape shape;
  std::map<std::string, std::vector<int>> devices;  // by node
};

struct Scenario {
  int cores = 0;
  std::vector<ScenarioJob> jobs;
};

constexpr std::array<std::string_view, 6> kRules{"even", "v2",      "multi_node",
                                                 "cp",   "optimum", "exact"};

Result<Scenario> ReadScenario(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  try {
    Scenario scenario{.cores = json.at("cpu_cores").get<int>(), .jobs = {}};
    for (const nlohmann::json& app : json.at("apps")) {
      ScenarioJob job{.model = fmt::format("{}{}", app.at("arch").get<std::string>(),
                                           app.at("depth").get<int>()),
                      .shape = {.batch = app.at("batch").get<double>(), .devices = 0},
                      .devices = {}};
      app.at("devices").get_to(job.devices);
      for (const auto& [node, devices] : job.devices) {
        job.shape.devices += static_cast<int>(devices.size());
      }
      scenario.jobs.push_back(std::move(job));
    }
    return scenario;
  } catch (const nlohmann::json::exception& error) {
    return BadInput(fmt::format("{}: {}; expected cpu_cores and apps", path, error.what()));
  }
}

// The most jobs on one device of `job`.
int SharingOf(const ScenarioJob& job, const std::vector<ScenarioJob>& jobs) {
  std::ptrdiff_t most = 0;
  for (const auto& [node, devices] : job.devices) {
    for (const int device : devices) {
      const auto names = [&, n = node](const ScenarioJob& other) {
        const auto found = other.devices.find(n);
        return found != other.devices.end() &&
               std::count(found->second.begin(), found->second.end(), device) > 0;
      };
      most = std::max(most, std::count_if(jobs.begin(), jobs.end(), names));
    }
  }
  return static_cast<int>(most);
}

Result<std::vector<loader::LoaderNeed>> NeedsOf(loader::AllocationRule rule,
                                                const loader::ThroughputModel& model,
                                                const loader::ModelCatalog& catalog,
                                                const Scenario& scenario) {
  std::vector<loader::LoaderNeed> needs;
  for (const ScenarioJob& job : scenario.jobs) {
    ASSIGN_OR_RETURN(const loader::ModelSize* size, catalog.Find(job.model));
    needs.push_back(
        loader::PredictNeed(rule, model, *size, job.shape, SharingOf(job, scenario.jobs)));
  }
  return needs;
}

// All devices on one node that has all cores, as the published rules see the cluster.
std::vector<loader::LoaderDemand> DemandsOf(const std::vector<loader::LoaderNeed>& needs,
                                            int cores) {
  std::vector<loader::LoaderDemand> demands;
  for (const loader::LoaderNeed& need : needs) {
    loader::LoaderDemand demand{.parts = {{.node = 0, .devices = need.devices}}, .rates = {}};
    for (int workers = 0; workers <= cores; ++workers) {
      demand.rates.push_back(need.devices * std::min(need.gpu_rate, workers * need.worker_rate));
    }
    demands.push_back(std::move(demand));
  }
  return demands;
}

// Workers for each device of each job.
std::vector<int> Divide(std::string_view rule, const std::vector<loader::LoaderNeed>& needs,
                        const std::vector<loader::LoaderDemand>& demands, int cores) {
  if (rule == "optimum" || rule == "exact") {
    return loader::ExactAllocation(demands, std::array{cores});
  }
  if (rule != "even") {
    return loader::PublishedAllocation(loader::AllocationRuleOf(rule), needs, cores);
  }
  std::vector<int> workers;
  for (const loader::LoaderNeed& need : needs) {
    const int share = cores / static_cast<int>(needs.size());
    workers.push_back(std::max(1, share / need.devices));
  }
  return workers;
}

}  // namespace

Result<CellData> RunLoaderScenario(const Cell& cell) {
  const std::string& rule = cell.names.policy;
  if (std::find(kRules.begin(), kRules.end(), rule) == kRules.end()) {
    return InvalidArgument(base::UnknownName("rule", rule, kRules));
  }
  ASSIGN_OR_RETURN(const Scenario scenario, ReadScenario(cell.trace.path));
  ASSIGN_OR_RETURN(
      const loader::ModelCatalog catalog,
      loader::ModelCatalog::Read(cell.profiles, loader::ModelCatalog::Twins::kRefusedInUse));
  const loader::ThroughputModel model =
      rule == "exact" ? loader::ThroughputModel::Shipped() : loader::ThroughputModel::Published();
  ASSIGN_OR_RETURN(const std::vector<loader::LoaderNeed> needs,
                   NeedsOf(loader::AllocationRule::kV2, model, catalog, scenario));
  const int cores = scenario.cores;
  const std::vector<loader::LoaderDemand> demands = DemandsOf(needs, cores);
  const bool own_needs = rule == "multi_node" || rule == "cp";
  ASSIGN_OR_RETURN(const std::vector<loader::LoaderNeed> wanted,
                   own_needs ? NeedsOf(loader::AllocationRuleOf(rule), model, catalog, scenario)
                             : Result<std::vector<loader::LoaderNeed>>(needs));
  const std::vector<int> workers = Divide(rule, wanted, demands, cores);
  CellData data;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    data.numbers["throughput"] += demands[i].RateWith(workers[i]);
  }
  return data;
}

std::optional<CellOutcome> OutcomeOfScenario(const Cell& cell) {
  if (!IsLoaderScenario(cell)) {
    return std::nullopt;
  }
  const Result<CellData> data = RunLoaderScenario(cell);
  if (!data.ok()) {
    return CellOutcome{
        .status = CellStatus::kFailed, .reason = data.error().message, .metrics = {}, .extra = {}};
  }
  CellOutcome outcome{
      .status = CellStatus::kOk, .reason = {}, .metrics = {}, .extra = WriteData(data.value())};
  for (const auto& [name, number] : data.value().numbers) {
    outcome.metrics.push_back({.name = name, .text = fmt::format("{}", number)});
  }
  return outcome;
}

}  // namespace trainyard::experiments
