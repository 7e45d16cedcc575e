// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/known_training.h"

#include <algorithm>

#include "base/check.h"
#include "policies/sia/configurations.h"

namespace trainyard::policies {

const KnownType* KnownTraining::On(std::int64_t number) const {
  const auto found = std::find_if(types.begin(), types.end(), [number](const KnownType& type) {
    return type.number == number;
  });
  return found == types.end() ? nullptr : &*found;
}

void KnownTraining::Note(std::span<const Metric> reported, std::int64_t held) {
  const auto report = profile::GoodputReportIn(reported);
  if (!report) {
    return;
  }
  const KnownType now{.number = report->gpu_type != 0 ? report->gpu_type : held,
                      .times = report->model.times,
                      .limits = report->model.limits,
                      .tried_gpus = report->tried_gpus,
                      .most_gpus = report->most_gpus};
  noise = report->model.noise;
  const auto known = std::find_if(types.begin(), types.end(), [&now](const KnownType& type) {
    return type.number == now.number;
  });
  if (known == types.end()) {
    types.push_back(now);
  } else {
    *known = now;
  }
}

int KnownTraining::MostGpus() const {
  CHECK(!types.empty());
  int most = 1;
  for (const KnownType& type : types) {
    std::int64_t here =
        std::min({std::int64_t{2} * type.tried_gpus, std::int64_t{kMostConfiguredGpus},
                  type.limits.most / type.limits.least_part});
    here = type.most_gpus > 0 ? std::min<std::int64_t>(here, type.most_gpus) : here;
    most = std::max(most, static_cast<int>(here));
  }
  return most;
}

}  // namespace trainyard::policies
