// SPDX-License-Identifier: Apache-2.0
#include "loader/throughput_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::loader {
namespace {

constexpr std::array kNames{
    CoefficientName{"gpu_base", "s", [](ThroughputModel& m) -> double& { return m.gpu.base; }},
    CoefficientName{"gpu_network", "s per weight and further device",
                    [](ThroughputModel& m) -> double& { return m.gpu.network; }},
    CoefficientName{"gpu_params", "s per weight",
                    [](ThroughputModel& m) -> double& { return m.gpu.params; }},
    CoefficientName{"gpu_batch_params", "s per image and weight",
                    [](ThroughputModel& m) -> double& { return m.gpu.batch_params; }},
    CoefficientName{"gpu_batch_dense", "s per image and multiply-accumulate",
                    [](ThroughputModel& m) -> double& { return m.gpu.batch_dense; }},
    CoefficientName{"gpu_batch_point", "s per image and multiply-accumulate",
                    [](ThroughputModel& m) -> double& { return m.gpu.batch_point; }},
    CoefficientName{"gpu_batch_depth", "s per image and multiply-accumulate",
                    [](ThroughputModel& m) -> double& { return m.gpu.batch_depth; }},
    CoefficientName{"gpu_batch_linear", "s per image and multiply-accumulate",
                    [](ThroughputModel& m) -> double& { return m.gpu.batch_linear; }},
    CoefficientName{"gpu_least", "s",
                    [](ThroughputModel& m) -> double& { return m.least_seconds; }},
    CoefficientName{"loader_per_worker", "worker-s per image",
                    [](ThroughputModel& m) -> double& { return m.loader.per_worker; }},
    CoefficientName{"loader_shared", "s per image",
                    [](ThroughputModel& m) -> double& { return m.loader.shared; }},
};

std::string Known() {
  std::vector<std::string_view> names;
  names.reserve(kNames.size());
  for (const CoefficientName& known : kNames) {
    names.push_back(known.name);
  }
  return base::Join(names, ", ");
}

// What an iteration takes for its weights and operations, of which those published are below zero:
// gpu_least bounds their sum. The times that it takes for itself, and those of the loader, are
// none.
bool MayBeNegative(std::string_view name) {
  return name.starts_with("gpu_") && name != "gpu_base" && name != "gpu_least";
}

Status ReadCoefficient(const io::CsvRow& row, int name, int value,
                       std::array<bool, kNames.size()>& seen, ThroughputModel& model) {
  const auto known = std::find_if(kNames.begin(), kNames.end(), [&](const CoefficientName& one) {
    return one.name == row.Text(name);
  });
  if (known == kNames.end()) {
    return row.Bad(name, "one of " + Known());
  }
  const double least = MayBeNegative(known->name) ? std::numeric_limits<double>::lowest() : 0;
  ASSIGN_OR_RETURN(const double number, row.Number(value, least));
  bool& there = seen[static_cast<std::size_t>(known - kNames.begin())];
  if (there) {
    return row.BadRow(fmt::format("coefficient '{}' is there twice", known->name));
  }
  there = true;
  known->of(model) = number;
  return {};
}

}  // namespace

std::span<const CoefficientName> CoefficientNames() { return kNames; }

double ThroughputModel::IterationSeconds(const ModelSize& size, TrainingShape shape) const {
  const double share = shape.batch / shape.devices;
  const double dense = size.kinds_known ? size.dense_flops : size.flops;
  const double seconds =
      gpu.base + gpu.network * (shape.devices - 1) * size.params + gpu.params * size.params +
      gpu.batch_params * share * size.params + gpu.batch_dense * share * dense +
      gpu.batch_point * share * size.point_flops + gpu.batch_depth * share * size.depth_flops +
      gpu.batch_linear * share * size.linear_flops;
  return least_seconds > 0 ? std::max(seconds, least_seconds) : seconds;
}

double ThroughputModel::DeviceRate(const ModelSize& size, TrainingShape shape) const {
  return shape.batch / shape.devices / IterationSeconds(size, shape);
}

ThroughputModel ThroughputModel::Published() {
  // As they stand in the published program.
  return {.gpu = {.base = 0.03919002676386965,
                  .network = 0,
                  .params = -3.012267917851231e-09,
                  .batch_params = -6.968465577099004e-13,
                  .batch_dense = 3.0330743058070974e-13,
                  .batch_point = 9.784835333356002e-14,
                  .batch_depth = 4.5320656417907254e-11,
                  .batch_linear = 6.516301291904076e-10},
          .loader = {.per_worker = 0.007807040084325026, .shared = 7.073599776914112e-05}};
}

ThroughputModel ThroughputModel::Shipped() {
  ThroughputModel model = Published();
  model.least_seconds = model.gpu.base;
  return model;
}

Result<ThroughputModel> ThroughputModel::Read(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int name, table.Require({"coefficient"}));
  ASSIGN_OR_RETURN(const int value, table.Require({"value"}));
  ThroughputModel model;
  std::array<bool, kNames.size()> seen{};
  RETURN_IF_ERROR(table.ForEach(
      [&](const io::CsvRow& row) { return ReadCoefficient(row, name, value, seen, model); }));
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (!seen[i]) {
      return BadInput(fmt::format("{}: no coefficient '{}'; expected one row for each of {}", path,
                                  kNames[i].name, Known()));
    }
    if (kNames[i].of(model) < 0 && model.least_seconds <= 0) {
      return BadInput(
          fmt::format("{}: coefficient '{}' is below zero; expected a number >= 0, or "
                      "a gpu_least above zero, which an iteration takes at the least",
                      path, kNames[i].name));
    }
  }
  return model;
}

std::string ThroughputModel::Write() const {
  std::string text = "coefficient,value\n";
  ThroughputModel copy = *this;
  for (const CoefficientName& known : kNames) {
    text += fmt::format("{},{}\n", known.name, known.of(copy));
  }
  return text;
}

}  // namespace trainyard::loader
