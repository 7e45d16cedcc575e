// SPDX-License-Identifier: Apache-2.0
// What steps of one attempt hold of its CPUs and GPUs while they run side by side. Claims are locks
// on places of a file on the node of the script: they end with the process that has them, however
// that ends.
#pragma once

#include <string>
#include <vector>

#include "io/descriptor.h"

namespace trainyard::supervisor {

enum class Claimable : unsigned char { kCpu, kGpu };

class StepClaims {
 public:
  // Of the file, which is made if need be.
  explicit StepClaims(std::string path);

  // Until the descriptor is closed no other step looks for places: two that begin at once would
  // each see the other's half.
  [[nodiscard]] io::Descriptor Turn() const;
  // Which of the first `total` on that node no other step has, ascending.
  [[nodiscard]] std::vector<int> Free(Claimable kind, int node, int total) const;
  // Claims them until this object ends or ReleaseAll(). False: another step has one of them.
  [[nodiscard]] bool Claim(Claimable kind, int node, const std::vector<int>& places);
  void ReleaseAll();

 private:
  std::string path_;
  io::Descriptor file_;
};

}  // namespace trainyard::supervisor
