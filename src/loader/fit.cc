// SPDX-License-Identifier: Apache-2.0
#include "loader/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::loader {
namespace {

constexpr std::int64_t kMostCount = 1 << 20;  // of devices, workers

// ------------------------------------------------------------------------------- measured runs

Status CheckRunColumns(const io::CsvTable& table, bool own_sizes) {
  for (const std::string_view name :
       {"model", "batch_size", "num_worker", "num_device", "ave_iteration"}) {
    RETURN_IF_ERROR(table.Require({name}));
  }
  if (own_sizes) {
    RETURN_IF_ERROR(table.Require({"params"}));
    RETURN_IF_ERROR(table.Require({"flops"}));
  }
  return {};
}

Status ReadSize(const io::CsvRow& row, const ModelCatalog* catalog, MeasuredRun& run) {
  const std::string_view name = row.Text(row.Column("model"));
  if (catalog != nullptr) {
    const Result<const ModelSize*> size = catalog->Find(name);
    if (!size.ok()) {
      return row.BadRow(size.error().message);
    }
    run.size = *size.value();
    return {};
  }
  run.size = {.name = std::string(name), .kinds_known = false, .line = row.line()};
  ASSIGN_OR_RETURN(run.size.params, row.Number(row.Column("params"), 0));
  ASSIGN_OR_RETURN(run.size.flops, row.Number(row.Column("flops"), 0));
  return {};
}

Result<MeasuredRun> ReadRun(const io::CsvRow& row, const ModelCatalog* catalog) {
  MeasuredRun run;
  RETURN_IF_ERROR(ReadSize(row, catalog, run));
  const auto count = [&row](std::string_view name) {
    return row.Integer(row.Column(name), 1, kMostCount);
  };
  ASSIGN_OR_RETURN(const std::int64_t batch, count("batch_size"));
  ASSIGN_OR_RETURN(const std::int64_t workers, count("num_worker"));
  ASSIGN_OR_RETURN(const std::int64_t devices, count("num_device"));
  run.shape = {.batch = static_cast<double>(batch), .devices = static_cast<int>(devices)};
  run.workers = static_cast<int>(workers);
  ASSIGN_OR_RETURN(run.iteration_seconds, row.Positive(row.Column("ave_iteration")));
  if (const int loading = row.Column("ave_dataloading"); loading >= 0) {
    const Result<double> seconds = row.Number(loading, 0);
    if (!seconds.ok() || seconds.value() > run.iteration_seconds) {
      return row.Bad(loading, "seconds from 0 to those of the iteration");
    }
    run.loading_seconds = seconds.value();
  }
  return run;
}

// ----------------------------------------------------------------------------------- regression

// Seconds to be explained: per iteration or per image.
struct Problem {
  DesignMatrix design;
  std::vector<double> seconds;
  DesignMatrix features;          // without the constant; for the nearest runs
  std::vector<std::size_t> fold;  // by row
};

DesignMatrix Rows(const DesignMatrix& design, std::span<const std::size_t> rows) {
  DesignMatrix chosen{.columns = design.columns};
  for (const std::size_t row : rows) {
    const auto first = design.cells.begin() + static_cast<std::ptrdiff_t>(row * design.columns);
    chosen.cells.insert(chosen.cells.end(), first,
                        first + static_cast<std::ptrdiff_t>(design.columns));
  }
  return chosen;
}

std::vector<double> ChosenRows(std::span<const double> values, std::span<const std::size_t> rows) {
  std::vector<double> chosen;
  for (const std::size_t row : rows) {
    chosen.push_back(values[row]);
  }
  return chosen;
}

std::vector<double> FitNonNegative(DesignMatrix design, std::span<const double> seconds) {
  for (std::size_t i = 0; i < design.cells.size(); ++i) {
    design.cells[i] /= seconds[i / design.columns];  // relative residuals
  }
  return NonNegativeLeastSquares(design, std::vector<double>(seconds.size(), 1));
}

// The mean of the two nearest, in the order of the rows where distances are equal.
double Nearest(const DesignMatrix& known, std::span<const double> seconds,
               std::span<const double> wanted) {
  std::vector<std::pair<double, std::size_t>> distances;
  for (std::size_t row = 0; row < known.rows(); ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < known.columns; ++column) {
      const double difference = known.at(row, column) - wanted[column];
      sum += difference * difference;
    }
    distances.emplace_back(sum, row);
  }
  std::sort(distances.begin(), distances.end());
  const std::size_t count = std::min<std::size_t>(2, distances.size());
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += seconds[distances[i].second];
  }
  return sum / static_cast<double>(count);
}

// Seconds of the rows `wanted`, learned from the rows `known`.
std::vector<double> Learn(FitMethod method, const Problem& problem,
                          std::span<const std::size_t> known, std::span<const std::size_t> wanted) {
  const std::vector<double> seconds = ChosenRows(problem.seconds, known);
  std::vector<double> predicted;
  if (method == FitMethod::kNearest) {
    const DesignMatrix features = Rows(problem.features, known);
    const DesignMatrix asked = Rows(problem.features, wanted);
    for (std::size_t row = 0; row < wanted.size(); ++row) {
      predicted.push_back(Nearest(
          features, seconds, std::span(asked.cells).subspan(row * asked.columns, asked.columns)));
    }
    return predicted;
  }
  const DesignMatrix design = Rows(problem.design, known);
  const std::vector<double> coefficients = method == FitMethod::kLinear
                                               ? LeastSquares(design, seconds)
                                               : FitNonNegative(design, seconds);
  for (const std::size_t row : wanted) {
    predicted.push_back(Predict(problem.design, row, coefficients));
  }
  return predicted;
}

FitQuality Judge(const Problem& problem, std::span<const double> predicted) {
  double mean = 0;
  for (const double seconds : problem.seconds) {
    mean += seconds / static_cast<double>(problem.seconds.size());
  }
  double residuals = 0;
  double total = 0;
  FitQuality quality;
  for (std::size_t row = 0; row < predicted.size(); ++row) {
    const double seconds = problem.seconds[row];
    residuals += (seconds - predicted[row]) * (seconds - predicted[row]);
    total += (seconds - mean) * (seconds - mean);
    // Images per second, as images / predicted against images / seconds.
    quality.error += std::abs(seconds / predicted[row] - 1) / static_cast<double>(predicted.size());
  }
  quality.r2 = total > 0 ? 1 - residuals / total : 0;
  return quality;
}

std::vector<std::size_t> AllRows(const Problem& problem) {
  std::vector<std::size_t> rows(problem.seconds.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row] = row;
  }
  return rows;
}

FitQuality JudgeUnseen(FitMethod method, const Problem& problem) {
  const std::size_t folds = *std::max_element(problem.fold.begin(), problem.fold.end()) + 1;
  if (folds < 2) {
    return {};
  }
  std::vector<double> predicted(problem.seconds.size());
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<std::size_t> known;
    std::vector<std::size_t> wanted;
    for (const std::size_t row : AllRows(problem)) {
      (problem.fold[row] == fold ? wanted : known).push_back(row);
    }
    const std::vector<double> learned = Learn(method, problem, known, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      predicted[wanted[i]] = learned[i];
    }
  }
  return Judge(problem, predicted);
}

SideReport Report(const Problem& problem) {
  SideReport report{.runs = problem.seconds.size()};
  if (problem.seconds.empty()) {
    return report;
  }
  const std::vector<std::size_t> all = AllRows(problem);
  for (const FitMethod method :
       {FitMethod::kNonNegative, FitMethod::kLinear, FitMethod::kNearest}) {
    report.methods.push_back({.method = method,
                              .seen = Judge(problem, Learn(method, problem, all, all)),
                              .unseen = JudgeUnseen(method, problem)});
  }
  return report;
}

std::vector<std::size_t> FoldsOf(std::span<const MeasuredRun> runs, int folds) {
  std::map<std::tuple<std::string, double, int>, std::size_t> groups;
  const auto key = [](const MeasuredRun& run) {
    return std::tuple(run.size.name, run.shape.batch, run.shape.devices);
  };
  for (const MeasuredRun& run : runs) {
    groups.emplace(key(run), 0);
  }
  std::size_t next = 0;
  for (auto& [group, fold] : groups) {
    fold = next++ % static_cast<std::size_t>(folds);
  }
  std::vector<std::size_t> by_row;
  for (const MeasuredRun& run : runs) {
    by_row.push_back(groups.at(key(run)));
  }
  return by_row;
}

Problem GpuProblem(std::span<const MeasuredRun> runs, const FitOptions& options) {
  Problem problem{.design = GpuDesign(runs, options.features),
                  .features = {.columns = 3},
                  .fold = FoldsOf(runs, options.folds)};
  for (const MeasuredRun& run : runs) {
    problem.seconds.push_back(run.iteration_seconds);
    for (const double feature : {run.shape.batch / run.shape.devices * run.size.flops,
                                 (run.shape.devices - 1) * run.size.params, run.size.params}) {
      problem.features.cells.push_back(feature);
    }
  }
  return problem;
}

Problem LoaderProblem(std::span<const MeasuredRun> runs, const FitOptions& options) {
  Problem problem{
      .design = {.columns = 2}, .features = {.columns = 1}, .fold = FoldsOf(runs, options.folds)};
  for (const MeasuredRun& run : runs) {
    problem.design.cells.insert(problem.design.cells.end(), {1.0 / run.workers, 1.0});
    problem.features.cells.push_back(1.0 / run.workers);
    problem.seconds.push_back(1 / run.Rate());
  }
  return problem;
}

GpuCoefficients CoefficientsOf(std::span<const double> fitted, GpuFeatures features) {
  GpuCoefficients gpu{.base = fitted[0], .network = fitted[1], .params = fitted[2]};
  if (features == GpuFeatures::kFlops) {
    gpu.batch_dense = gpu.batch_point = gpu.batch_depth = gpu.batch_linear = fitted[3];
    return gpu;
  }
  gpu.batch_params = fitted[3];
  gpu.batch_dense = fitted[4];
  gpu.batch_point = fitted[5];
  gpu.batch_depth = fitted[6];
  gpu.batch_linear = fitted[7];
  return gpu;
}

}  // namespace

Result<std::vector<MeasuredRun>> ReadMeasuredRuns(const std::string& path,
                                                  const ModelCatalog* catalog) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  RETURN_IF_ERROR(CheckRunColumns(table, catalog == nullptr));
  const int device = table.Column({"device"});
  std::vector<MeasuredRun> runs;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    if (device >= 0 && row.Text(device) != "device_0") {
      return {};
    }
    ASSIGN_OR_RETURN(MeasuredRun run, ReadRun(row, catalog));
    runs.push_back(std::move(run));
    return {};
  }));
  if (runs.empty()) {
    return BadInput(path + ": no runs; expected a row at least");
  }
  return runs;
}

DesignMatrix GpuDesign(std::span<const MeasuredRun> runs, GpuFeatures features) {
  const bool kinds = features == GpuFeatures::kKinds;
  DesignMatrix design{.columns = kinds ? 8U : 4U};
  for (const MeasuredRun& run : runs) {
    const ModelSize& size = run.size;
    const double share = run.shape.batch / run.shape.devices;
    design.cells.insert(design.cells.end(),
                        {1, (run.shape.devices - 1) * size.params, size.params});
    if (!kinds) {
      design.cells.push_back(share * size.flops);
      continue;
    }
    CHECK(size.kinds_known);
    for (const double amount :
         {size.params, size.dense_flops, size.point_flops, size.depth_flops, size.linear_flops}) {
      design.cells.push_back(share * amount);
    }
  }
  return design;
}

std::vector<double> PredictIterations(FitMethod method, GpuFeatures features,
                                      std::span<const MeasuredRun> known,
                                      std::span<const MeasuredRun> wanted) {
  CHECK(!known.empty());
  std::vector<MeasuredRun> all(known.begin(), known.end());
  all.insert(all.end(), wanted.begin(), wanted.end());
  const Problem problem = GpuProblem(all, {.features = features, .folds = 1});
  const std::vector<std::size_t> rows = AllRows(problem);
  return Learn(method, problem, std::span(rows).first(known.size()),
               std::span(rows).subspan(known.size()));
}

bool LoaderWasTheLimit(const MeasuredRun& run, double loading_share) {
  return run.loading_seconds >= loading_share * run.iteration_seconds;
}

LoaderFit FitThroughputModel(std::span<const MeasuredRun> runs, const FitOptions& options) {
  CHECK(options.folds >= 1);
  std::vector<MeasuredRun> by_gpu;
  std::vector<MeasuredRun> by_loader;
  for (const MeasuredRun& run : runs) {
    (LoaderWasTheLimit(run, options.loading_share) ? by_loader : by_gpu).push_back(run);
  }
  LoaderFit fit{.model = ThroughputModel::Shipped()};
  const Problem gpu = GpuProblem(by_gpu, options);
  fit.gpu = Report(gpu);
  if (!by_gpu.empty()) {
    fit.model.gpu = CoefficientsOf(FitNonNegative(gpu.design, gpu.seconds), options.features);
    fit.model.least_seconds = 0;  // nothing is negative
  }
  const Problem loader = LoaderProblem(by_loader, options);
  fit.loader = Report(loader);
  if (!by_loader.empty()) {
    const std::vector<double> fitted = FitNonNegative(loader.design, loader.seconds);
    fit.model.loader = {.per_worker = fitted[0], .shared = fitted[1]};
  }
  return fit;
}

std::string_view NameOf(FitMethod method) {
  switch (method) {
    case FitMethod::kNonNegative:
      return "nonnegative";
    case FitMethod::kLinear:
      return "linear";
    case FitMethod::kNearest:
      return "nearest";
  }
  return "";
}

}  // namespace trainyard::loader
