// SPDX-License-Identifier: Apache-2.0
// trainyard loader: predict, allocate.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/reading.h"
#include "io/json.h"
#include "loader/division.h"
#include "loader/loader_execution.h"
#include "loader/loader_profiles.h"
#include "model/slices.h"
#include "results/write/table.h"
#include "scenario/scenario.h"

namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::vector<std::string>>;

std::string PredictionText(double value) { return fmt::format("{:.5g}", value); }

void PrintPredictions(const Lines& table, std::size_t to_the_left) {
  for (const std::string& line : results::AlignedLines(table, to_the_left)) {
    fmt::print("{}\n", line);
  }
}

// What a job does with so many workers, images per second.
struct Prediction {
  double gpus = 0;     // what they can consume
  double loaders = 0;  // what the workers deliver

  [[nodiscard]] double rate() const { return std::min(gpus, loaders); }
};

Prediction PredictionOf(const loader::ThroughputModel& model, const loader::ModelSize& size,
                        const loader::TrainingShape& shape, double workers) {
  return {.gpus = shape.batch / model.IterationSeconds(size, shape),
          .loaders = model.LoaderRate(workers)};
}

// ----------------------------------------------------------------------------------------- predict

struct PredictCommand {
  std::string profiles;
  std::string model;
  std::int64_t batch = 0;
  int devices = 1;
  std::vector<int> workers;
  bool json = false;
};

Status Predict(const PredictCommand& command) {
  ASSIGN_OR_RETURN(const loader::LoaderProfiles profiles,
                   loader::LoaderProfiles::Read(command.profiles));
  ASSIGN_OR_RETURN(const loader::ModelSize* const size, profiles.catalog().Find(command.model));
  const loader::TrainingShape shape{.batch = static_cast<double>(command.batch),
                                    .devices = command.devices};
  Lines table{{"workers", "GPUs take", "workers load", "images/s", "s/iteration", "limit"}};
  Json json = Json::array();
  for (const int workers : command.workers) {
    const Prediction one = PredictionOf(profiles.model(), *size, shape, workers);
    const char* limit = one.loaders < one.gpus ? "loading" : "GPUs";
    table.push_back({std::to_string(workers), PredictionText(one.gpus), PredictionText(one.loaders),
                     PredictionText(one.rate()), PredictionText(shape.batch / one.rate()), limit});
    json.push_back({{"workers", workers},
                    {"gpus_images_per_second", one.gpus},
                    {"loader_images_per_second", one.loaders},
                    {"images_per_second", one.rate()},
                    {"iteration_s", shape.batch / one.rate()},
                    {"limit", limit}});
  }
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    PrintPredictions(table, 0);
  }
  return {};
}

void AddPredict(CLI::App& loader, Command& chosen) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* predict =
      loader.add_subcommand("predict", "images per second of a model with so many workers");
  predict
      ->add_option("--profiles", command->profiles,
                   "model catalogue, or a folder with models.csv and loader_model.csv")
      ->required();
  predict->add_option("--model", command->model, "in the catalogue")->required();
  predict->add_option("-b,--batch", command->batch, "samples of an iteration of the whole job")
      ->transform(WholeNumber())
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000}))
      ->required();
  predict->add_option("--devices", command->devices, "GPUs of the job")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  predict->add_option("--workers", command->workers, "of all devices together, as 1,2,4")
      ->delimiter(',')
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 1'000'000))
      ->required();
  predict->add_flag("--json", command->json, "print JSON");
  predict->callback([command, &chosen] { chosen.run = [command] { return Predict(*command); }; });
}

// ---------------------------------------------------------------------------------------- allocate

struct AllocateCommand {
  scenario::InputPaths inputs;
  std::string rule = "exact";
  bool json = false;
};

// Where the jobs run that are there at once: on the GPUs that they name, the others on the first
// that are free, each for itself. Errors: there is no room for one.
Result<std::vector<Slices>> PlacesOf(const Cluster& cluster, const std::vector<JobSpec>& jobs) {
  std::vector<std::uint64_t> free;
  for (const NodeSpec& node : cluster.nodes) {
    free.push_back(model::AllGpus(node.gpus));
  }
  std::vector<Slices> places(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    places[i] = loader::DevicesOf(jobs[i]);
    for (const Slice& slice : places[i]) {
      free[Index(slice.node)] &= ~slice.gpus;
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    int left = places[i].empty() ? jobs[i].gpus : 0;
    for (std::size_t node = 0; node < free.size() && left > 0; ++node) {
      const std::uint64_t taken = model::LowestGpus(free[node], left);
      if (taken != 0) {
        places[i].push_back({.node = NodeAt(node), .gpus = taken});
        free[node] &= ~taken;
        left = jobs[i].gpus - model::CountGpus(places[i]);
      }
    }
    if (left > 0) {
      return InvalidArgument(fmt::format(
          "job {}: no room for its {} GPUs beside the others; expected jobs that can all run at "
          "once, or a larger --cluster",
          jobs[i].name, jobs[i].gpus));
    }
  }
  return places;
}

Status CheckAll(const scenario::Inputs& inputs) {
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.loader) {
    return InvalidArgument(
        "--profiles has no model catalogue; expected models.csv (docs/formats/torchloader.md)");
  }
  for (const NodeSpec& node : inputs.cluster.nodes) {
    if (node.capacity.milli_cpus == 0) {
      return InvalidArgument(fmt::format(
          "node {} of --cluster states no CPUs; expected a cluster file with cpus", node.name));
    }
  }
  for (const JobSpec& job : *inputs.jobs) {
    if (const Status known = inputs.models.loader->Check(job); !known.ok()) {
      return InvalidArgument(fmt::format("job {}: {}", job.name, known.error().message));
    }
  }
  return {};
}

Status Allocate(const AllocateCommand& command) {
  ASSIGN_OR_RETURN(const scenario::Inputs inputs, scenario::ReadInputs(command.inputs));
  ReportReading(*inputs.trace);
  RETURN_IF_ERROR(CheckAll(inputs));
  const loader::LoaderProfiles& profiles = *inputs.models.loader;
  const std::vector<JobSpec>& jobs = *inputs.jobs;
  ASSIGN_OR_RETURN(const std::vector<Slices> places, PlacesOf(inputs.cluster, jobs));
  std::vector<loader::LoaderJob> all;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    all.push_back({.spec = &jobs[i], .slices = &places[i]});
  }
  const loader::WorkerDivision division(profiles, {.rule = loader::AllocationRuleOf(command.rule)});
  const std::vector<int> workers = division.Divide(inputs.cluster, all);

  Lines table{{"job", "model", "GPUs", "workers", "GPUs take", "workers load", "images/s"}};
  Json json{{"allocation", command.rule}};
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Prediction one = PredictionOf(profiles.model(), profiles.SizeOf(jobs[i]),
                                        loader::LoaderProfiles::ShapeOf(jobs[i]), workers[i]);
    sum += one.rate();
    table.push_back({jobs[i].name, jobs[i].model, std::to_string(jobs[i].gpus),
                     std::to_string(workers[i]), PredictionText(one.gpus),
                     PredictionText(one.loaders), PredictionText(one.rate())});
    json["jobs"].push_back({{"job", jobs[i].name},
                            {"model", jobs[i].model},
                            {"gpus", jobs[i].gpus},
                            {"workers", workers[i]},
                            {"images_per_second", one.rate()}});
  }
  json["images_per_second"] = sum;
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    PrintPredictions(table, 2);
    fmt::print("{} images/s in all, by '{}'; jobs that share a GPU are taken as if alone on it\n",
               PredictionText(sum), command.rule);
  }
  return {};
}

void AddAllocate(CLI::App& loader, Command& chosen) {
  auto command = std::make_shared<AllocateCommand>();
  CLI::App* allocate = loader.add_subcommand(
      "allocate", "loader workers of jobs that run at once, and what they do with them");
  allocate->add_option("TRACE", command->inputs.trace, "the jobs; times do not count")->required();
  allocate->add_option("--cluster", command->inputs.cluster, "cluster file with CPUs")->required();
  allocate
      ->add_option("--profiles", command->inputs.profiles,
                   "model catalogue, or a folder with models.csv and loader_model.csv")
      ->required();
  allocate->add_option("--format", command->inputs.format, "trace format (default: recognised)");
  allocate
      ->add_option("--allocation", command->rule,
                   "the optimum within each node's cores, or a published rule")
      ->check(CLI::IsMember({"exact", "v2", "multi_node", "cp"}))
      ->capture_default_str();
  AddReadingOptions(*allocate, command->inputs);
  allocate->add_flag("--json", command->json, "print JSON");
  allocate->callback([command, &chosen] { chosen.run = [command] { return Allocate(*command); }; });
}

}  // namespace

void AddLoaderPredictions(CLI::App& loader, Command& chosen) {
  AddPredict(loader, chosen);
  AddAllocate(loader, chosen);
}

}  // namespace trainyard::cli
