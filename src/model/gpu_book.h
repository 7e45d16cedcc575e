// SPDX-License-Identifier: Apache-2.0
// The holders of each GPU: the engine's own book, apart from the packing's, against which every
// grant is verified.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/ids.h"
#include "trainyard/plan.h"

namespace trainyard::model {

class GpuBook {
 public:
  // `shared`: GPUs may have several holders (May::share); costs O(GPUs) per grant then.
  GpuBook(const Cluster& cluster, bool shared);

  void Own(JobId job, const Grant& grant);
  void Disown(JobId job, const Grant& grant);

  // Why the job may not hold this grant besides what is held; empty: it may. REQUIRES: the grant
  // has slices.
  [[nodiscard]] std::string Conflict(JobId job, const Grant& grant) const;

  // GPUs with a holder. GPUs that are counted and not named have one each.
  [[nodiscard]] int used() const { return used_; }
  // The GPUs of the grant on which nobody else is.
  [[nodiscard]] Slices WithoutOthers(JobId job, const Grant& grant) const;
  // The others on the job's GPUs, by JobId. REQUIRES: shared.
  [[nodiscard]] std::vector<JobId> Neighbours(JobId job, const Grant& grant) const;

 private:
  struct Holder {
    JobId job{};
    Sharing sharing{};
    JobId group{};  // the first of its group
  };
  [[nodiscard]] const std::vector<Holder>& At(NodeId node, int gpu) const {
    return holders_[first_[Index(node)] + static_cast<std::size_t>(gpu)];
  }
  [[nodiscard]] std::string ConflictWithHolders(JobId job, const Grant& grant,
                                                const Slice& slice) const;

  const Cluster* cluster_;
  bool shared_;
  std::vector<std::uint64_t> taken_;          // by node
  std::vector<std::size_t> first_;            // by node: GPUs of all nodes before it
  std::vector<std::vector<Holder>> holders_;  // by GPU; empty unless shared
  int used_ = 0;
};

}  // namespace trainyard::model
