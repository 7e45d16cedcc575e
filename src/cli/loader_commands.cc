// SPDX-License-Identifier: Apache-2.0
// trainyard loader: fit.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/output_paths.h"
#include "io/json.h"
#include "loader/fit.h"
#include "results/write/output_file.h"

namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FitCommand {
  std::vector<std::string> runs;
  std::string catalog;
  std::string features = "flops";
  std::string out;
  loader::FitOptions options;
  bool json = false;
};

Result<std::vector<loader::MeasuredRun>> ReadAll(const FitCommand& command) {
  loader::ModelCatalog catalog;
  if (!command.catalog.empty()) {
    ASSIGN_OR_RETURN(
        loader::ModelCatalog read,
        loader::ModelCatalog::Read(command.catalog, loader::ModelCatalog::Twins::kRefusedInUse));
    catalog = std::move(read);
  }
  std::vector<loader::MeasuredRun> runs;
  for (const std::string& path : command.runs) {
    ASSIGN_OR_RETURN(const std::vector<loader::MeasuredRun> read,
                     loader::ReadMeasuredRuns(path, command.catalog.empty() ? nullptr : &catalog));
    runs.insert(runs.end(), read.begin(), read.end());
  }
  if (command.options.features == loader::GpuFeatures::kKinds) {
    for (const loader::MeasuredRun& run : runs) {
      if (!run.size.kinds_known) {
        return InvalidArgument(
            "--features kinds needs the kinds of layers of model '" + run.size.name +
            "'; expected --catalog FILE with C_flops, PC_flops, DC_flops and O_flops");
      }
    }
  }
  return runs;
}

Json QualityJson(const loader::FitQuality& quality) {
  return {{"r2", quality.r2}, {"mape", quality.error}};
}

Json SideJson(const loader::SideReport& side) {
  Json json{{"runs", side.runs}};
  for (const loader::MethodQuality& method : side.methods) {
    json["methods"][std::string(loader::NameOf(method.method))] = {
        {"fitted", QualityJson(method.seen)}, {"cross_validated", QualityJson(method.unseen)}};
  }
  return json;
}

void PrintFitJson(const loader::LoaderFit& fit, const loader::FitOptions& options) {
  Json json{{"folds", options.folds}};
  loader::ThroughputModel model = fit.model;
  for (const loader::CoefficientName& coefficient : loader::CoefficientNames()) {
    json["coefficients"][std::string(coefficient.name)] = coefficient.of(model);
  }
  json["gpu"] = SideJson(fit.gpu);
  json["loader"] = SideJson(fit.loader);
  fmt::print("{}\n", json.dump(2));
}

void PrintSide(std::string_view name, const loader::SideReport& side) {
  if (side.methods.empty()) {
    fmt::print("{}: no runs; its coefficients are as shipped\n", name);
    return;
  }
  fmt::print("{}: {} runs\n", name, side.runs);
  fmt::print("  {:<12} {:>8} {:>8} {:>12} {:>12}\n", "method", "R2", "MAPE", "R2 unseen",
             "MAPE unseen");
  for (const loader::MethodQuality& method : side.methods) {
    fmt::print("  {:<12} {:>8.3f} {:>7.1f}% {:>12.3f} {:>11.1f}%\n", loader::NameOf(method.method),
               method.seen.r2, 100 * method.seen.error, method.unseen.r2,
               100 * method.unseen.error);
  }
}

void PrintFit(const loader::LoaderFit& fit) {
  PrintSide("GPUs", fit.gpu);
  PrintSide("loader", fit.loader);
  fmt::print("coefficients (nonnegative)\n");
  loader::ThroughputModel model = fit.model;
  for (const loader::CoefficientName& coefficient : loader::CoefficientNames()) {
    fmt::print("  {:<18} {:<24} {}\n", coefficient.name, coefficient.of(model), coefficient.unit);
  }
}

Status Fit(FitCommand& command) {
  std::vector<NamedPath> inputs{{.name = "--catalog", .path = command.catalog}};
  AddPaths("FILE", command.runs, inputs);
  RETURN_IF_ERROR(CheckOutputs(inputs, {{.name = "--out", .path = command.out}}));
  command.options.features =
      command.features == "kinds" ? loader::GpuFeatures::kKinds : loader::GpuFeatures::kFlops;
  ASSIGN_OR_RETURN(const std::vector<loader::MeasuredRun> runs, ReadAll(command));
  const loader::LoaderFit fit = loader::FitThroughputModel(runs, command.options);
  if (!command.out.empty()) {
    RETURN_IF_ERROR(results::WriteTextFile(command.out, fit.model.Write()));
  }
  if (command.json) {
    PrintFitJson(fit, command.options);
  } else {
    PrintFit(fit);
  }
  return {};
}

}  // namespace

void AddLoader(CLI::App& app, Command& chosen) {
  CLI::App* loader = app.add_subcommand("loader", "models of what GPUs and loader workers deliver");
  loader->require_subcommand(1);
  auto command = std::make_shared<FitCommand>();
  CLI::App* fit = loader->add_subcommand("fit", "fit the model to measured runs");
  fit->add_option("FILE", command->runs,
                  "measured runs: model, batch_size, num_worker, num_device, ave_iteration, "
                  "ave_dataloading")
      ->required();
  fit->add_option("--catalog", command->catalog,
                  "model catalogue (default: columns params and flops of the runs)");
  fit->add_option("--features", command->features,
                  "flops of all layers together, or of each kind of layer")
      ->check(CLI::IsMember({"flops", "kinds"}))
      ->capture_default_str();
  fit->add_option("--folds", command->options.folds, "parts of the cross-validation")
      ->transform(WholeNumber())
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  fit->add_option("--out", command->out,
                  "file for the coefficients; as loader_model.csv beside models.csv it counts");
  fit->add_flag("--json", command->json, "print JSON");
  fit->callback([command, &chosen] { chosen.run = [command] { return Fit(*command); }; });
  AddLoaderPredictions(*loader, chosen);
}

}  // namespace trainyard::cli
