// SPDX-License-Identifier: Apache-2.0
// Which batch a measured training uses on its GPUs.
#pragma once

#include <string_view>

#include "profile/goodput/application.h"
#include "profile/goodput/goodput_model.h"

namespace trainyard::profile {

// What it goes by beside its application.
struct BatchBasis {
  BatchLimits limits;                // on the type of its GPUs
  const StepTimes* times = nullptr;  // that it knows there; null: none
  GradientNoise noise{};
  int fixed_batch = 0;  // 0: it adapts its batch
};

// The best batch by the known times; without any the least, or the fixed one. Where types of GPU
// were measured, parts are as large as they were on such a placement, and with so many GPUs.
// REQUIRES: a node has GPUs; the application runs on the type.
[[nodiscard]] Batch ChooseBatch(const Application& application, std::string_view gpu_type,
                                const Application::Placement& placement, const BatchBasis& basis);

}  // namespace trainyard::profile
