// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/allocation_recorder.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "model/slices.h"

namespace trainyard::results {
AllocationRecorder::AllocationRecorder(const Cluster& cluster, std::span<const JobSpec> jobs,
                                       std::size_t holdings_max)
    : holdings_max_(holdings_max),
      jobs_above_(static_cast<std::size_t>(cluster.largest_node()) + 1, 0),
      jobs_(static_cast<std::int64_t>(jobs.size())) {
  for (const NodeSpec& node : cluster.nodes) {
    allocations_.nodes.push_back({.name = node.name, .gpus = node.gpus});
    nodes_.push_back({.holders = std::vector<std::uint16_t>(static_cast<std::size_t>(node.gpus)),
                      .free = node.gpus});
  }
  for (const JobSpec& job : jobs) {
    const int most = std::min(job.gpus, cluster.largest_node() + 1);
    for (int gpus = 0; gpus < most; ++gpus) {
      ++jobs_above_[static_cast<std::size_t>(gpus)];
    }
  }
}

void AllocationRecorder::Take(TimePoint now, std::span<const model::Action> actions) {
  for (const model::Action& action : actions) {
    switch (action.kind) {
      case model::ActionKind::kLaunch:
      case model::ActionKind::kResize:
      case model::ActionKind::kMigrate:
        Begin(action.job, now, action.grant.slices);
        break;
      case model::ActionKind::kPreempt:
      case model::ActionKind::kRelease:
        End(action.job, now);
        break;
      case model::ActionKind::kAdmit:
      case model::ActionKind::kReject:
      case model::ActionKind::kTune:
      case model::ActionKind::kPace:
        break;
    }
  }
}

double AllocationRecorder::gpus_fragmented() const {
  return jobs_ == 0 ? 0 : static_cast<double>(fragmented_) / static_cast<double>(jobs_);
}

Allocations AllocationRecorder::Finish(TimePoint now) {
  while (!open_.empty()) {
    End(open_.begin()->first, now);
  }
  std::sort(allocations_.holdings.begin(), allocations_.holdings.end(),
            [](const Holding& a, const Holding& b) {
              return std::tie(a.start, a.node, a.job) < std::tie(b.start, b.node, b.job);
            });
  return std::move(allocations_);
}

void AllocationRecorder::Begin(JobId job, TimePoint now, const Slices& slices) {
  if (const auto held = open_.find(job); held != open_.end()) {
    if (model::SameGpus(held->second.slices, slices)) {
      return;  // started anew where it is
    }
    End(job, now);
  }
  if (!slices.empty()) {
    Count(slices, 1);
    open_.emplace(job, Open{.since = now, .slices = slices});
  }
}

void AllocationRecorder::End(JobId job, TimePoint now) {
  const auto held = open_.find(job);
  if (held == open_.end()) {
    return;  // a job that holds nothing, or nothing that is named
  }
  for (const Slice& slice : held->second.slices) {
    Record(job, slice, held->second.since, now);
  }
  Count(held->second.slices, -1);
  open_.erase(held);
}

void AllocationRecorder::Count(const Slices& slices, int change) {
  for (const Slice& slice : slices) {
    Node& node = nodes_[Index(slice.node)];
    fragmented_ -= Fragmented(node);
    for (std::uint64_t rest = slice.gpus; rest != 0; rest &= rest - 1) {
      std::uint16_t& holders = node.holders[static_cast<std::size_t>(std::countr_zero(rest))];
      const bool was_free = holders == 0;
      holders = static_cast<std::uint16_t>(holders + change);
      node.free += static_cast<int>(holders == 0) - static_cast<int>(was_free);
    }
    fragmented_ += Fragmented(node);
  }
}

std::int64_t AllocationRecorder::Fragmented(const Node& node) const {
  const bool whole = node.free == static_cast<int>(node.holders.size());
  return whole ? 0 : node.free * jobs_above_[static_cast<std::size_t>(node.free)];
}

void AllocationRecorder::Record(JobId job, const Slice& slice, TimePoint start, TimePoint end) {
  if (start == end) {
    return;
  }
  if (allocations_.holdings.size() >= holdings_max_) {
    allocations_.complete = false;
    return;
  }
  allocations_.holdings.push_back({.job = static_cast<std::uint32_t>(Index(job)),
                                   .node = static_cast<std::uint32_t>(Index(slice.node)),
                                   .gpus = slice.gpus,
                                   .start = start,
                                   .end = end});
}

}  // namespace trainyard::results
