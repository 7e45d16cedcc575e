// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/batch_choice.h"

#include <algorithm>
#include <numeric>

namespace trainyard::profile {

Batch ChooseBatch(const Application& application, std::string_view gpu_type,
                  const Application::Placement& placement, const BatchBasis& basis) {
  const PassTable& table = application.On(gpu_type);
  const int gpus = std::accumulate(placement.begin(), placement.end(), 0);
  const auto nodes = static_cast<int>(
      std::count_if(placement.begin(), placement.end(), [](int on_node) { return on_node > 0; }));
  BatchLimits limits = basis.limits;
  std::int64_t most_part = 0;  // whatever the batch; 0: any
  if (application.has_types()) {
    if (const std::int64_t most = table.MostPartOn(placement); most > 0) {
      limits.most_part = most;  // also beyond what a rule makes of the limits
    }
    most_part = table.MostPartWith(gpus);
  }
  const auto least = static_cast<double>(std::max(limits.initial, limits.least_part * gpus));
  Batch batch = BatchFor(basis.fixed_batch > 0 ? basis.fixed_batch : least, gpus, limits);
  if (basis.times != nullptr && basis.fixed_batch == 0) {
    const GoodputModel model{.times = *basis.times, .noise = basis.noise, .limits = limits};
    if (const Goodput best = model.Best(nodes, gpus); best.value > 0) {
      batch = best.batch;
    }
  }
  batch.part = most_part > 0 ? std::min(batch.part, most_part) : batch.part;
  const std::int64_t passes = batch.accumulated + 1;
  batch.part = std::clamp<std::int64_t>(batch.part, 1,
                                        std::max<std::int64_t>(limits.most / (gpus * passes), 1));
  return batch;
}

}  // namespace trainyard::profile
