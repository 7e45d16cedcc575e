// SPDX-License-Identifier: Apache-2.0
// Owns the strays: what agents report and nobody waits for, as attempts of jobs that have ended. A
// stray has to go, and keeps its GPUs busy until it has gone.
#pragma once

#include <cstdint>
#include <map>

#include "live/attempts.h"
#include "trainyard/ids.h"

namespace trainyard {

class Strays {
 public:
  // The stray may have processes on these GPUs of the node.
  void Add(NodeId node, AttemptKey key, std::uint64_t gpus) { strays_[node][key] = gpus; }
  // It has gone, or is known after all.
  void Drop(NodeId node, AttemptKey key) {
    if (const auto at = strays_.find(node); at != strays_.end()) {
      at->second.erase(key);
    }
  }
  // The node runs nothing, or its agent is about to say what it runs.
  void Clear(NodeId node) { strays_.erase(node); }
  // The GPUs of the node on which there may be processes of strays.
  [[nodiscard]] std::uint64_t GpusOn(NodeId node) const {
    std::uint64_t all = 0;
    if (const auto at = strays_.find(node); at != strays_.end()) {
      for (const auto& [key, gpus] : at->second) {
        all |= gpus;
      }
    }
    return all;
  }

 private:
  std::map<NodeId, std::map<AttemptKey, std::uint64_t>> strays_;
};

}  // namespace trainyard
