// SPDX-License-Identifier: Apache-2.0
// Which GPUs nobody has taken yet, for policies that name GPUs in order of their numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "trainyard/snapshot.h"

namespace trainyard::policies {

class OpenGpus {
 public:
  // All GPUs of the nodes that are up.
  explicit OpenGpus(const Snapshot& snapshot);

  [[nodiscard]] bool AreOpen(const Slices& slices) const;
  // May be taken already: of GPUs that jobs share.
  void Take(const Slices& slices);
  // The first `gpus` of them in node order, over as many nodes as it takes; empty: there are fewer.
  [[nodiscard]] Slices First(int gpus) const;

 private:
  std::vector<std::uint64_t> open_;  // by node
};

}  // namespace trainyard::policies
