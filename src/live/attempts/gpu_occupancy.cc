// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/gpu_occupancy.h"

namespace trainyard::live {

std::vector<supervisor::AttemptKey> GpuOccupancy::On(NodeId node, std::uint64_t gpus) const {
  std::vector<supervisor::AttemptKey> keys;
  for (const auto& [key, held] : holders_[Index(node)]) {
    if ((held & gpus) != 0) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace trainyard::live
