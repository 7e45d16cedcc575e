// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/gavel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/python_random.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "profile/gavel_table.h"
#include "trace/csv_format.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kReferenceType = "v100";
constexpr std::array<int, 4> kSizes{1, 2, 4, 8};
constexpr std::array<std::int64_t, 5> kImages{16, 32, 64, 128, 256};
constexpr std::array<std::int64_t, 4> kLargeImages{16, 32, 64, 128};
constexpr std::array<std::int64_t, 5> kWords{5, 10, 20, 40, 80};
constexpr std::array<std::int64_t, 5> kUsers{512, 1024, 2048, 4096, 8192};
constexpr std::array<std::int64_t, 1> kNone{0};

struct Model {
  std::string_view name;
  std::span<const std::int64_t> batch_sizes;
};
// As the generators list them, of which a job draws one.
constexpr std::array kModels{Model{"ResNet-18", kImages},     Model{"ResNet-50", kLargeImages},
                             Model{"Transformer", kImages},   Model{"LM", kWords},
                             Model{"Recommendation", kUsers}, Model{"A3C", kNone},
                             Model{"CycleGAN", kNone}};

std::size_t PlaceOf(int gpus) {
  return static_cast<std::size_t>(std::find(kSizes.begin(), kSizes.end(), gpus) - kSizes.begin());
}

bool IsDistributed(const GavelKind& kind) { return kind.rates[PlaceOf(2)] > 0; }

// u: of the size.
int SizeOf(double u, bool up_to_eight) {
  const int most = up_to_eight && u >= 0.95 ? 8 : 4;
  return u < 0.7 ? 1 : u < 0.8 ? 2 : most;
}

struct Draw {
  const GavelKind* kind = nullptr;
  int gpus = 1;
  double seconds = 0;
  int priority = 0;
};

// `simulate_scheduler_with_generated_jobs`: one stream for all that a job is.
class OwnStream {
 public:
  OwnStream(const GavelOptions& options, const std::vector<GavelKind>& kinds)
      : options_(options), kinds_(kinds), job_(options.seed + 2), gap_(options.seed + 3) {}

  double Gap() { return gap_.Random(); }
  Draw Next() {
    Draw draw;
    const int gpus = SizeOf(job_.Random(), true);
    draw.gpus = options_.multi_gpu ? gpus : 1;
    const bool is_long = job_.Random() >= 0.8;
    const double exponent = is_long ? job_.Uniform(3, 4) : job_.Uniform(1.5, 3);
    draw.seconds = 60 * std::pow(10.0, exponent);
    do {
      draw.kind = &kinds_[job_.Below(static_cast<std::uint32_t>(kinds_.size()))];
    } while (draw.gpus > 1 && !IsDistributed(*draw.kind));
    if (options_.priorities && job_.Random() <= 0.2) {
      draw.priority = 5;
    }
    return draw;
  }

 private:
  const GavelOptions& options_;
  const std::vector<GavelKind>& kinds_;
  base::PythonRandom job_;
  base::PythonRandom gap_;
};

// `generate_trace.py`: a stream for each.
class ScriptStream {
 public:
  ScriptStream(const GavelOptions& options, const std::vector<GavelKind>& kinds)
      : options_(options),
        kinds_(kinds),
        kind_(options.seed),
        gap_(options.seed + 1),
        length_(options.seed + 2),
        size_(options.seed + 3) {}

  double Gap() { return gap_.Random(); }
  Draw Next() {
    Draw draw;
    draw.kind = &kinds_[kind_.Below(static_cast<std::uint32_t>(kinds_.size()))];
    const GavelOptions::EvenHours& hours = *options_.even_hours;
    const std::uint32_t step = length_.Below(static_cast<std::uint32_t>(hours.count));
    const double between = hours.count > 1 ? (hours.most - hours.least) / (hours.count - 1) : 0;
    draw.seconds = 3600 * (hours.least + step * between);
    if (options_.multi_gpu && IsDistributed(*draw.kind)) {
      draw.gpus = SizeOf(size_.Random(), false);
    }
    return draw;
  }

 private:
  const GavelOptions& options_;
  const std::vector<GavelKind>& kinds_;
  base::PythonRandom kind_;
  base::PythonRandom gap_;
  base::PythonRandom length_;
  base::PythonRandom size_;
};

template <typename Stream>
Result<std::vector<JobSpec>> Generate(const GavelOptions& options, Stream stream) {
  const bool cuts = options.even_hours.has_value();
  std::vector<JobSpec> jobs;
  jobs.reserve(static_cast<std::size_t>(options.jobs));
  double submit = 0;
  for (int i = 0; i < options.jobs; ++i) {
    if (i > 0 && options.jobs_per_hour > 0) {
      submit += -std::log(1 - stream.Gap()) * 3600 / options.jobs_per_hour;
    }
    if (submit > model::kMostTraceSeconds) {
      return InvalidArgument(fmt::format(
          "a job is submitted at {:.0f} s; expected at most {:.0f}: fewer jobs, or more per hour",
          submit, model::kMostTraceSeconds));
    }
    const Draw draw = stream.Next();
    const double steps = draw.seconds * draw.kind->rates[PlaceOf(draw.gpus)];
    jobs.push_back({.name = std::to_string(i),
                    .model = draw.kind->model,
                    .gpus = draw.gpus,
                    .batch_size = draw.kind->batch_size,
                    .submit = AtSeconds(cuts ? std::trunc(submit) : submit),
                    .iterations = cuts ? std::trunc(steps) : steps,
                    .priority = draw.priority});
  }
  return jobs;
}

}  // namespace

Result<std::vector<GavelKind>> ReadGavelKinds(const std::string& path) {
  std::vector<GavelKind> kinds;
  for (const Model& model : kModels) {
    for (const std::int64_t batch_size : model.batch_sizes) {
      kinds.push_back({std::string(model.name), batch_size, std::vector<double>(kSizes.size())});
    }
  }
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  if (!profile::IsGavelTable(table)) {
    return table.BadHeader("no table of Gavel; expected its simulation_throughputs.csv");
  }
  RETURN_IF_ERROR(profile::ReadGavelTable(
      table, [&kinds](const io::CsvRow&, const profile::GavelRow& row) -> Status {
        const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const GavelKind& one) {
          return one.model == row.job.model && one.batch_size == row.job.batch_size;
        });
        const std::size_t place = PlaceOf(row.gpus);
        if (row.gpu_type == kReferenceType && !row.other && kind != kinds.end() &&
            place < kSizes.size()) {
          kind->rates[place] = row.rate;
        }
        return {};
      }));
  for (const GavelKind& kind : kinds) {
    if (kind.rates.front() <= 0) {
      return BadInput(
          fmt::format("{}: no '{}' with batch size {} on one {}; expected all jobs of "
                      "Gavel's simulation_throughputs.csv",
                      path, kind.model, kind.batch_size, kReferenceType));
    }
  }
  return kinds;
}

Result<std::vector<JobSpec>> GenerateGavelTrace(const GavelOptions& options,
                                                const std::vector<GavelKind>& kinds) {
  CHECK(options.jobs >= 0 && options.jobs_per_hour >= 0 && !kinds.empty());
  return options.even_hours ? Generate(options, ScriptStream(options, kinds))
                            : Generate(options, OwnStream(options, kinds));
}

}  // namespace trainyard::trace
