// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_book.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "model/slices.h"

namespace trainyard::model {
namespace {

JobId GroupOf(JobId job, const Grant& grant) {
  return grant.group.empty() ? job : grant.group.front();
}

}  // namespace

GpuBook::GpuBook(const Cluster& cluster, bool shared)
    : cluster_(&cluster), shared_(shared), taken_(cluster.nodes.size(), 0) {
  std::size_t before = 0;
  for (const NodeSpec& node : cluster.nodes) {
    first_.push_back(before);
    before += static_cast<std::size_t>(node.gpus);
  }
  if (shared_) {
    holders_.resize(before);
  }
}

void GpuBook::Own(JobId job, const Grant& grant) {
  if (!shared_ || grant.slices.empty()) {
    used_ += grant.gpus;
    for (const Slice& slice : grant.slices) {
      CHECK((taken_[Index(slice.node)] & slice.gpus) == 0);
      taken_[Index(slice.node)] |= slice.gpus;
    }
    return;
  }
  ForEachGpu(grant.slices, [&](NodeId node, int gpu) {
    auto& holders = holders_[first_[Index(node)] + static_cast<std::size_t>(gpu)];
    used_ += holders.empty() ? 1 : 0;
    holders.push_back({job, grant.sharing, GroupOf(job, grant)});
    taken_[Index(node)] |= std::uint64_t{1} << gpu;
  });
}

void GpuBook::Disown(JobId job, const Grant& grant) {
  if (!shared_ || grant.slices.empty()) {
    used_ -= grant.gpus;
    for (const Slice& slice : grant.slices) {
      CHECK((taken_[Index(slice.node)] & slice.gpus) == slice.gpus);
      taken_[Index(slice.node)] &= ~slice.gpus;
    }
    return;
  }
  ForEachGpu(grant.slices, [&](NodeId node, int gpu) {
    auto& holders = holders_[first_[Index(node)] + static_cast<std::size_t>(gpu)];
    const auto own = std::find_if(holders.begin(), holders.end(),
                                  [job](const Holder& holder) { return holder.job == job; });
    CHECK(own != holders.end());
    holders.erase(own);
    if (holders.empty()) {
      --used_;
      taken_[Index(node)] &= ~(std::uint64_t{1} << gpu);
    }
  });
}

std::string GpuBook::Conflict(JobId job, const Grant& grant) const {
  int sum = 0;
  for (const Slice& slice : grant.slices) {
    sum += std::popcount(slice.gpus);
    if ((taken_[Index(slice.node)] & slice.gpus) == 0) {
      continue;
    }
    if (std::string conflict = ConflictWithHolders(job, grant, slice); !conflict.empty()) {
      return conflict;
    }
  }
  return sum == grant.gpus ? std::string() : "its gang is not complete";
}

// Some of the slice's GPUs are held by others.
std::string GpuBook::ConflictWithHolders(JobId job, const Grant& grant, const Slice& slice) const {
  std::string twice =
      "GPUs of node " + cluster_->nodes[Index(slice.node)].name + " are granted twice";
  if (!shared_ || grant.sharing == Sharing::kExclusive) {
    return twice;
  }
  bool legal = true;
  ForEachGpu({slice}, [&](NodeId node, int gpu) {
    for (const Holder& holder : At(node, gpu)) {
      legal = legal && holder.sharing == grant.sharing &&
              (grant.sharing == Sharing::kCollocated || holder.group == GroupOf(job, grant));
    }
  });
  return legal ? std::string() : twice;
}

Slices GpuBook::WithoutOthers(JobId job, const Grant& grant) const {
  Slices alone = grant.slices;
  if (!shared_) {
    return alone;
  }
  for (Slice& slice : alone) {
    ForEachGpu({slice}, [&](NodeId node, int gpu) {
      const std::vector<Holder>& holders = At(node, gpu);
      if (std::any_of(holders.begin(), holders.end(),
                      [job](const Holder& holder) { return holder.job != job; })) {
        slice.gpus &= ~(std::uint64_t{1} << gpu);
      }
    });
  }
  std::erase_if(alone, [](const Slice& slice) { return slice.gpus == 0; });
  return alone;
}

std::vector<JobId> GpuBook::Neighbours(JobId job, const Grant& grant) const {
  std::vector<JobId> others;
  ForEachGpu(grant.slices, [&](NodeId node, int gpu) {
    for (const Holder& holder : At(node, gpu)) {
      if (holder.job != job) {
        others.push_back(holder.job);
      }
    }
  });
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return others;
}

}  // namespace trainyard::model
