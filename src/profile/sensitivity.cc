// SPDX-License-Identifier: Apache-2.0
#include "profile/sensitivity.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"
#include "model/resource_amounts.h"

namespace trainyard::profile {
namespace {

constexpr double kMibPerGb = 1024;

// One resource of a demand that is being cut to what a node has.
struct Cut {
  std::int64_t wanted = 0;
  std::int64_t capacity = 0;  // 0: not stated
  std::int64_t share = 0;     // proportional, of the whole gang
};

// The published simulator's walk over the resources, in its order. One mark for all: a resource
// that is cut later sets it again.
class Clipper {
 public:
  explicit Clipper(bool larger_than_node) : larger_than_node_(larger_than_node) {}

  std::int64_t Clip(const Cut& cut) {
    if (cut.capacity == 0 || cut.wanted <= cut.capacity) {
      return cut.capacity == 0 ? 0 : cut.wanted;
    }
    if (larger_than_node_) {
      flat_ = true;
      cut_ = false;
      return cut.share;
    }
    cut_ = true;
    return cut.capacity;
  }

  [[nodiscard]] double Speedup(double speedup, double ideal_cpus, double fair_cpus,
                               double cpus) const {
    const double from = flat_ ? 1 : speedup;
    if (!cut_ || ideal_cpus == fair_cpus) {
      return from;
    }
    return 1 + (from - 1) / (ideal_cpus - fair_cpus) * (cpus - fair_cpus);
  }

 private:
  const bool larger_than_node_;
  bool cut_ = false;
  bool flat_ = false;
};

// The profile of the model for the smallest ratio with a grid, or null.
const SensitivityProfile* GridOf(const SensitivityTable& table, std::string_view model) {
  for (const double ratio : table.ratios()) {
    const SensitivityProfile* profile = table.Find(model, ratio);
    if (profile != nullptr && !profile->grid.empty()) {
      return profile;
    }
  }
  return nullptr;
}

// CPUs per GPU; 0 where they are not stated.
double RatioOf(const Cluster& cluster) {
  const NodeSpec& node = model::TypicalNode(cluster);
  return static_cast<double>(node.capacity.milli_cpus) / 1000 / node.gpus;
}

class SensitivityModel final : public ExecutionModel {
 public:
  SensitivityModel(const SensitivityTable& table, const Cluster& cluster,
                   const SensitivityRules& rules)
      : node_(model::TypicalNode(cluster)), rules_(rules) {
    for (const SensitivityProfile& profile : table.profiles()) {
      profiles_.push_back(rules.speed == SensitivityRules::Speed::kMatrix
                              ? GridOf(table, profile.model)
                              : &profile);
      for (int gpus = 1; gpus <= kUsualGpus; ++gpus) {
        usual_.push_back(profiles_.back() != nullptr ? Compute(*profiles_.back(), gpus)
                                                     : SensitiveDemand());
      }
    }
  }

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.iterations.has_value());
    return *job.iterations;
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    if (gpus != job.gpus) {
      return 0;
    }
    const SensitivityProfile& profile = ProfileOf(job);
    return Speed(job, profile, Demand(job).best) / profile.iteration_seconds;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
  // The published arithmetic: floor(round / (t / speedup)) decides how many iterations are done.
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& /*co_runners*/) const override {
    const SensitivityProfile& profile = ProfileOf(job);
    const double speed = Speed(job, profile, Given(job, grant));
    return {.rate = grant.gpus == job.gpus ? speed / profile.iteration_seconds : 0,
            .seconds_per_unit = profile.iteration_seconds / speed};
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override { return Demand(job).best; }

 private:
  [[nodiscard]] const SensitivityProfile& ProfileOf(const JobSpec& job) const {
    CHECK(job.profile_row >= 0 && static_cast<std::size_t>(job.profile_row) < profiles_.size());
    return *profiles_[static_cast<std::size_t>(job.profile_row)];
  }
  [[nodiscard]] SensitiveDemand Demand(const JobSpec& job) const {
    if (job.gpus > kUsualGpus) {
      return Compute(ProfileOf(job), job.gpus);
    }
    CHECK(job.profile_row >= 0 && static_cast<std::size_t>(job.profile_row) < profiles_.size());
    return usual_[static_cast<std::size_t>(job.profile_row * kUsualGpus + job.gpus - 1)];
  }
  [[nodiscard]] SensitiveDemand Compute(const SensitivityProfile& profile, int gpus) const {
    return DemandOf(profile, gpus, node_, rules_.storage_mbps_per_gpu);
  }

  // A placement that only counts GPUs, or knows no soft resources, gives everyone his share; and so
  // does a request, of what the job does not ask for.
  [[nodiscard]] Resources Given(const JobSpec& job, const Grant& grant) const {
    Resources given;
    for (const Slice& slice : grant.slices) {
      given += slice.soft;
    }
    if (given != Resources{} && (!job.traits || !job.traits->request)) {
      return given;
    }
    return model::ForEachResource(
        [](std::int64_t amount, std::int64_t share) { return amount == 0 ? share : amount; }, given,
        model::ProportionalShare(node_, job.gpus));
  }

  [[nodiscard]] double Speed(const JobSpec& job, const SensitivityProfile& profile,
                             const Resources& given) const {
    switch (rules_.speed) {
      case SensitivityRules::Speed::kProportional:
        return 1;
      case SensitivityRules::Speed::kScalar: {
        const SensitiveDemand demand = Demand(job);
        return given.Covers(demand.best) ? demand.speedup : 1;
      }
      case SensitivityRules::Speed::kMatrix:
        return OnGrid(job, profile, given);
    }
    return 1;
  }

  [[nodiscard]] double OnGrid(const JobSpec& job, const SensitivityProfile& profile,
                              const Resources& given) const {
    const double cpus = node_.capacity.milli_cpus == 0
                            ? profile.best_cpus
                            : static_cast<double>(given.milli_cpus) / 1000 / job.gpus;
    const double memory_gb = node_.capacity.memory_mib == 0
                                 ? profile.best_memory_gb
                                 : static_cast<double>(given.memory_mib) / kMibPerGb / job.gpus;
    return profile.grid.At(cpus, memory_gb);
  }

  static constexpr int kUsualGpus = 16;
  std::vector<const SensitivityProfile*> profiles_;  // by row of the table
  std::vector<SensitiveDemand> usual_;               // by row, then GPU count less one
  const NodeSpec& node_;
  const SensitivityRules rules_;
};

}  // namespace

SensitiveDemand DemandOf(const SensitivityProfile& profile, int gpus, const NodeSpec& node,
                         double storage_mbps_per_gpu) {
  const Resources share = model::ProportionalShare(node, gpus);
  const Resources& capacity = node.capacity;
  Clipper clipper(gpus > node.gpus);
  const Resources best{
      .milli_cpus = clipper.Clip({.wanted = std::llround(profile.best_cpus * 1000) * gpus,
                                  .capacity = capacity.milli_cpus,
                                  .share = share.milli_cpus}),
      .memory_mib = clipper.Clip({.wanted = std::llround(profile.best_memory_gb * kMibPerGb) * gpus,
                                  .capacity = capacity.memory_mib,
                                  .share = share.memory_mib}),
      .storage_kbps = clipper.Clip({.wanted = std::llround(storage_mbps_per_gpu * 1000) * gpus,
                                    .capacity = capacity.storage_kbps,
                                    .share = share.storage_kbps})};
  const auto even = [gpus](std::int64_t amount) { return amount / gpus * gpus; };
  return {.best = {.milli_cpus = even(best.milli_cpus),
                   .memory_mib = even(best.memory_mib),
                   .storage_kbps = even(best.storage_kbps)},
          .speedup = clipper.Speedup(profile.speedup, profile.best_cpus * gpus,
                                     static_cast<double>(share.milli_cpus) / 1000,
                                     static_cast<double>(best.milli_cpus) / 1000)};
}

double ProfiledRatio(const SensitivityTable& table, const Cluster& cluster) {
  const double ratio = RatioOf(cluster);
  const std::vector<double>& known = table.ratios();
  return *std::min_element(known.begin(), known.end(), [ratio](double a, double b) {
    return std::abs(a - ratio) < std::abs(b - ratio);
  });
}

Status CheckRatio(const SensitivityTable& table, const Cluster& cluster,
                  const SensitivityRules& rules) {
  if (rules.speed != SensitivityRules::Speed::kMatrix) {
    if (const double ratio = RatioOf(cluster); ProfiledRatio(table, cluster) != ratio) {
      return InvalidArgument(
          fmt::format("the cluster has {} CPUs for each GPU; expected one of the ratios that the "
                      "profiles are for: {}",
                      ratio, fmt::join(table.ratios(), ", ")));
    }
    return {};
  }
  for (const std::string_view model : table.models()) {
    if (GridOf(table, model) == nullptr) {
      return InvalidArgument(fmt::format(
          "model '{}' has no throughput matrix; expected throughput_matrix.csv with the profiles",
          model));
    }
  }
  return {};
}

std::unique_ptr<ExecutionModel> MakeSensitivityModel(const SensitivityTable& table,
                                                     const Cluster& cluster,
                                                     const SensitivityRules& rules) {
  return std::make_unique<SensitivityModel>(table, cluster, rules);
}

}  // namespace trainyard::profile
