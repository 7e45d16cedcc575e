// SPDX-License-Identifier: Apache-2.0
#include "profiler/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/try.h"
#include "profiler/profile_file.h"

namespace trainyard::profiler {
namespace {

// Between two points, linear in 1 / CPUs.
double Between(int cpus, int low, double at_low, int high, double at_high) {
  if (low == high) {
    return at_low;
  }
  const double share = (1.0 / cpus - 1.0 / high) / (1.0 / low - 1.0 / high);
  return at_high + share * (at_low - at_high);
}

class CpuSearch {
 public:
  CpuSearch(const Subject& subject, const SensitivityOptions& options, Measurer& measurer)
      : subject_(subject), options_(options), measurer_(measurer) {}

  Result<CpuCurve> Run() {
    RETURN_IF_ERROR(Measure(options_.most_cpus));
    const int least = options_.gpus;
    if (least < options_.most_cpus) {
      RETURN_IF_ERROR(Measure(least));
      RETURN_IF_ERROR(Halve(least, options_.most_cpus));
    }
    for (int cpus = 1; cpus <= options_.most_cpus; ++cpus) {
      curve_.seconds[cpus] = Interpolated(cpus);
    }
    return std::move(curve_);
  }

 private:
  [[nodiscard]] double At(int cpus) const { return curve_.measured.at(cpus).mean; }

  [[nodiscard]] double Interpolated(int cpus) const {
    const auto high = curve_.measured.lower_bound(cpus);
    if (high == curve_.measured.begin()) {
      return high->second.mean;
    }
    const auto low = std::prev(high);
    return high == curve_.measured.end()
               ? low->second.mean
               : Between(cpus, low->first, low->second.mean, high->first, high->second.mean);
  }

  Status Halve(int low, int high) {
    if (high - low < 2 || std::abs(At(low) - At(high)) <= options_.tolerance * At(high)) {
      return {};
    }
    // Half-way in ratio: most changes among the few.
    const int middle =
        std::clamp(static_cast<int>(std::lround(std::sqrt(static_cast<double>(low) * high))),
                   low + 1, high - 1);
    const double expected = Between(middle, low, At(low), high, At(high));
    RETURN_IF_ERROR(Measure(middle));
    if (std::abs(At(middle) - expected) <= options_.tolerance * At(middle)) {
      return {};
    }
    RETURN_IF_ERROR(Halve(low, middle));
    return Halve(middle, high);
  }

  Status Measure(int cpus) {
    ASSIGN_OR_RETURN(const Trial trial,
                     TrialOf(subject_, {.gpus = options_.gpus,
                                        .loader_workers = cpus,
                                        .cores = options_.bind_cores ? cpus : 0}));
    ASSIGN_OR_RETURN(const Measured measured, measurer_.Measure(trial));
    curve_.measured[cpus] = measured.iteration_s;
    return {};
  }

  const Subject& subject_;
  const SensitivityOptions& options_;
  Measurer& measurer_;
  CpuCurve curve_;
};

constexpr double kMbInGb = 1024;

}  // namespace

Result<CpuCurve> MeasureCpus(const Subject& subject, const SensitivityOptions& options,
                             Measurer& measurer) {
  if (!options.bind_cores && options.most_cpus > options.gpus) {
    RETURN_IF_ERROR(NeedsPlaceholder(subject, "workers"));
  }
  return CpuSearch(subject, options, measurer).Run();
}

WithMemory IterationWith(const MemoryModel& model, double seconds, double cached_gb, double batch) {
  if (model.data_gb <= 0 || cached_gb >= model.data_gb) {
    return {.seconds = seconds};
  }
  const double iterations = model.samples / batch;  // of an epoch
  const double from_disk_mb = (model.data_gb - cached_gb) * kMbInGb;
  const double from_cache_s = model.cache_gbps > 0 ? cached_gb / model.cache_gbps : 0;
  const double epoch = seconds * iterations;
  const double reading = from_cache_s + from_disk_mb / model.disk_mbps;
  return reading > epoch
             ? WithMemory{.seconds = reading / iterations, .disk_mbps = model.disk_mbps}
             : WithMemory{.seconds = seconds, .disk_mbps = from_disk_mb / (epoch - from_cache_s)};
}

Status WriteSensitivity(const std::string& folder, const Subject& subject,
                        const SensitivityOptions& options, const CpuCurve& curve,
                        const MemoryModel& memory) {
  const ProfiledNode& node = options.node;
  const double gpus = options.gpus;
  const auto seconds_with = [&](double cpus, double memory_gb) {
    const int most = curve.seconds.rbegin()->first;
    const int at = std::clamp(static_cast<int>(std::lround(cpus)), 1, most);
    return IterationWith(memory, curve.seconds.at(at), memory_gb,
                         static_cast<double>(subject.batch));
  };
  const double fair_cpus = node.cpus_per_gpu * gpus;
  const double fair_gb = node.memory_gb_per_gpu * gpus;
  const double fair = seconds_with(fair_cpus, fair_gb).seconds;

  // With more it gains less than one percent.
  constexpr double kEnough = 1.01;
  const double fastest = curve.seconds.rbegin()->second;
  int best_cpus = curve.seconds.rbegin()->first;
  while (best_cpus > options.gpus && curve.seconds.at(best_cpus - 1) <= fastest * kEnough) {
    --best_cpus;
  }
  const double best_gb = memory.data_gb > 0 ? memory.data_gb / gpus : node.memory_gb_per_gpu;
  const double storage = seconds_with(best_cpus, fair_gb).disk_mbps / gpus;

  const std::string ratio = ProfileNumber(node.cpus_per_gpu);
  const std::string count = std::to_string(options.gpus);
  RETURN_IF_ERROR(AddRows(
      folder + "/model_profiles.csv",
      {"cpu_per_gpu_ratio", "model", "gpus", "best_cpus_per_gpu", "best_mem_gb_per_gpu",
       "best_sspeed_per_gpu", "batch_size", "speedup", "iter_time_s"},
      3,
      {{ratio, subject.model, count, ProfileNumber(best_cpus / gpus), ProfileNumber(best_gb),
        ProfileNumber(storage), std::to_string(subject.batch / options.gpus),
        ProfileNumber(std::max(1.0, fair / fastest)), ProfileNumber(fair)}}));

  // The columns are those of the published tables, by the proportional share.
  constexpr std::array kShares{1.0 / 3, 1.0, 2.0, 3.0, 4.0};
  std::vector<std::string> heading{"cpu_per_gpu_ratio", "model", "gpus", "cpus_per_gpu"};
  for (const double share : kShares) {
    heading.push_back("mem_" + ProfileNumber(share * node.memory_gb_per_gpu) + "_gb");
  }
  Rows rows;
  for (const auto& [cpus, seconds] : curve.seconds) {
    if (cpus % options.gpus != 0) {
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back(
        Rows::value_type{ratio, subject.model, count, std::to_string(cpus / options.gpus)});
    for (const double share : kShares) {
      row.push_back(ProfileNumber(fair / seconds_with(cpus, share * fair_gb).seconds));
    }
  }
  return AddRows(folder + "/throughput_matrix.csv", heading, 3, rows);
}

}  // namespace trainyard::profiler
