// SPDX-License-Identifier: Apache-2.0
#include "profile/overhead_model.h"

#include <cmath>

namespace trainyard::profile {
namespace {

Duration Of(const ChangeCosts& costs, Change change) {
  switch (change) {
    case Change::kStart:
      return costs.start;
    case Change::kRestart:
      return costs.restart;
    case Change::kResize:
      return costs.resize;
    case Change::kMigrate:
      return costs.migrate;
  }
  return Duration{0};
}

bool IsLarge(const OverheadFormula& formula, int cluster_gpus) {
  return formula.large_cluster > 0 && cluster_gpus >= formula.large_cluster;
}

Duration Of(const OverheadFormula& formula, int gpus, int cluster_gpus, bool all_restart) {
  const bool large = IsLarge(formula, cluster_gpus);
  double seconds = large ? formula.large_base : formula.base;
  if (all_restart) {
    seconds += large ? formula.large_full_restart : formula.full_restart;
  }
  return FromSeconds(seconds + formula.per_doubling * (std::log2(gpus) + 1));
}

}  // namespace

Duration OverheadModel::WarmCost(int cluster_gpus) const {
  const auto* formula = std::get_if<OverheadFormula>(&model_);
  if (formula == nullptr) {
    return Duration{0};
  }
  return FromSeconds(IsLarge(*formula, cluster_gpus) ? formula->large_base : formula->base);
}

Duration OverheadModel::Cost(Change change, const JobSpec& job, int gpus, int cluster_gpus,
                             bool all_restart) const {
  if (const auto* formula = std::get_if<OverheadFormula>(&model_)) {
    return Of(*formula, gpus, cluster_gpus, all_restart);
  }
  const auto& table = std::get<OverheadTable>(model_);
  if (const auto sizes = table.by_gpus.find(job.model);
      sizes != table.by_gpus.end() && !sizes->second.empty()) {
    const auto at_least = sizes->second.lower_bound(gpus);
    return at_least == sizes->second.end() ? sizes->second.rbegin()->second : at_least->second;
  }
  const auto found = table.models.find(job.model);
  return Of(found == table.models.end() ? table.fallback : found->second, change);
}

}  // namespace trainyard::profile
