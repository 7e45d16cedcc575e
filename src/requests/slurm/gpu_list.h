// SPDX-License-Identifier: Apache-2.0
// The lists of --gres, --gpus and their like: GPUs, and beside them what is not shared out here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::requests {

struct GpuList {
  std::int64_t count = 0;
  std::string type;                 // empty: any
  std::vector<std::string> others;  // as written: "lscratch:3", "(S:0-1)"
};

// "gpu", "gpu:2", "gpu:a100:2", "gpu:v100:2(S:0-1),lscratch:3". The error says what is wrong and
// what was expected: no GPUs, several types, a count that is none.
[[nodiscard]] Result<GpuList> ReadGres(std::string_view text);

// "2", "a100:2", "v100:2,mps:50": of --gpus, --gpus-per-node and --gpus-per-task. Errors as above.
[[nodiscard]] Result<GpuList> ReadGpus(std::string_view text);

}  // namespace trainyard::requests
