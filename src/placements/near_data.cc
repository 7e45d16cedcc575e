// SPDX-License-Identifier: Apache-2.0
#include "placements/near_data.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/slices.h"

namespace trainyard::placements {
namespace {

Duration LongestWait(const DataLocality& locality, const DataSet& data, const Slices& slices) {
  Duration longest{0};
  for (const Slice& slice : slices) {
    longest = std::max(longest, locality.WaitOn(data, slice.node));
  }
  return longest;
}

// Whole nodes that the gang would break up or fill: larger gangs wait for them.
std::ptrdiff_t IdleNodes(const FreeGpus& free, const Slices& slices) {
  return std::count_if(slices.begin(), slices.end(), [&free](const Slice& slice) {
    return free.count(slice.node) == free.cluster().nodes[Index(slice.node)].gpus;
  });
}

// Some nodes of a cluster, in their order, with what is free on them, as if there were no others.
class Part {
 public:
  Part(const FreeGpus& whole, std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {
    cluster_.nodes.reserve(nodes_.size());
    for (const NodeId node : nodes_) {
      const NodeSpec& spec = whole.cluster().nodes[Index(node)];
      cluster_.nodes.push_back({.name = {},
                                .gpus = spec.gpus,
                                .gpu_type = {},
                                .capacity = spec.capacity,
                                .switch_index = spec.switch_index});
    }
    free_ = FreeGpus(cluster_);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      TakeWhatIsTaken(whole, i);
    }
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] const FreeGpus& free() const { return free_; }
  [[nodiscard]] Slices InWhole(Slices slices) const {
    for (Slice& slice : slices) {
      slice.node = nodes_[Index(slice.node)];
    }
    return slices;
  }

 private:
  void TakeWhatIsTaken(const FreeGpus& whole, std::size_t node) {
    const NodeSpec& spec = cluster_.nodes[node];
    Resources taken = spec.capacity;
    taken -= whole.resources(nodes_[node]);
    free_.Take({{.node = NodeAt(node),
                 .gpus = model::AllGpus(spec.gpus) & ~whole.gpus(nodes_[node]),
                 .soft = taken}});
  }

  std::vector<NodeId> nodes_;  // ascending
  Cluster cluster_;
  FreeGpus free_;
};

class NearDataPlacement final : public Placement {
 public:
  NearDataPlacement(std::unique_ptr<Placement> plain, Duration least_saving)
      : plain_(std::move(plain)), least_saving_(least_saving) {}
  [[nodiscard]] std::string_view name() const override { return plain_->name(); }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                             const Demand& demand) const override {
    std::optional<Slices> chosen = plain_->Choose(free, job, demand);
    if (!chosen || free.data() == nullptr || !job.traits || !job.traits->data_set) {
      return chosen;
    }
    const DataSet& data = *job.traits->data_set;
    const Duration wait = LongestWait(*free.data(), data, *chosen);
    if (wait < least_saving_) {
      return chosen;
    }
    std::optional<Slices> nearer = OnHolders(free, job, demand, wait - least_saving_);
    const bool better = nearer && nearer->size() <= chosen->size() &&
                        IdleNodes(free, *nearer) <= IdleNodes(free, *chosen);
    return better ? std::move(nearer) : std::move(chosen);
  }

 private:
  // On the nodes that keep the data set, so that the gang waits `most` for it at most.
  [[nodiscard]] std::optional<Slices> OnHolders(const FreeGpus& free, const JobSpec& job,
                                                const Demand& demand, Duration most) const {
    const DataSet& data = *job.traits->data_set;
    std::vector<NodeId> nodes = free.data()->Holders(data);
    std::erase_if(nodes, [&](NodeId node) {
      return free.count(node) == 0 || free.data()->WaitOn(data, node) > most;
    });
    if (nodes.empty()) {
      return std::nullopt;
    }
    const Part part(free, std::move(nodes));
    if (part.free().total() < demand.gpus) {
      return std::nullopt;
    }
    std::optional<Slices> chosen = plain_->Choose(part.free(), job, demand);
    return chosen ? std::optional(part.InWhole(*std::move(chosen))) : std::nullopt;
  }

  const std::unique_ptr<Placement> plain_;
  const Duration least_saving_;
};

}  // namespace

std::unique_ptr<Placement> NearData(const Options& options, std::unique_ptr<Placement> plain) {
  const Duration least_saving = FromSeconds(options.Number(kLocalityOption.key));
  if (least_saving <= Duration{0}) {
    return plain;
  }
  return std::make_unique<NearDataPlacement>(std::move(plain), least_saving);
}

}  // namespace trainyard::placements
