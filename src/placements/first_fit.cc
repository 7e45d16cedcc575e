// SPDX-License-Identifier: Apache-2.0
// First fit in node order. A job that fits in one node is never split; a larger one takes idle
// nodes and, for the rest, the first other node with room. CPUs and memory can be demanded beside
// the GPUs (the `yarn` scheme of the Tiresias simulator).
#include <algorithm>
#include <array>
#include <cmath>

#include "model/slices.h"
#include "placements/near_data.h"
#include "placements/placements.h"

namespace trainyard::placements {
namespace {

constexpr std::array<OptionSpec, 7> kFirstFitOptions{{
    {"within_switch", OptionSpec::Kind::kNumber, "0", "1: a gang lies under one switch"},
    {"cpus_alone", OptionSpec::Kind::kNumber, "0", "CPUs of a 1-GPU job"},
    {"cpus_per_gpu", OptionSpec::Kind::kNumber, "0", "CPUs per GPU of a larger job"},
    {"memory_gb", OptionSpec::Kind::kNumber, "0", "memory of a job on one node"},
    {"memory_gb_per_gpu", OptionSpec::Kind::kNumber, "0",
     "memory per GPU of a job on several nodes"},
    {"memory_gb_per_gpu_and_gpu", OptionSpec::Kind::kNumber, "0",
     "and this much more per GPU for each GPU of the job"},
    kLocalityOption,
}};

Resources Ask(double cpus, double memory_gb) {
  return {.milli_cpus = std::llround(cpus * 1000), .memory_mib = std::llround(memory_gb * 1024)};
}

class FirstFit final : public Placement {
 public:
  explicit FirstFit(const Options& options)
      : within_switch_(options.Flag("within_switch")),
        cpus_alone_(options.Number("cpus_alone")),
        cpus_per_gpu_(options.Number("cpus_per_gpu")),
        memory_gb_(options.Number("memory_gb")),
        memory_gb_per_gpu_(options.Number("memory_gb_per_gpu")),
        memory_gb_per_gpu_and_gpu_(options.Number("memory_gb_per_gpu_and_gpu")) {}
  [[nodiscard]] std::string_view name() const override { return "first-fit"; }

  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    const int gpus = demand.gpus;
    if (gpus <= free.largest_node()) {
      const Resources ask = Ask(gpus == 1 ? cpus_alone_ : cpus_per_gpu_ * gpus, memory_gb_);
      const std::optional<Slice> slice = FirstWith(free, {.gpus = gpus, .ask = ask}, NodeId{0});
      return slice ? std::optional<Slices>({*slice}) : std::nullopt;
    }
    if (!within_switch_) {
      return Across(free, gpus, std::nullopt);
    }
    int last_switch = 0;
    for (const NodeSpec& node : free.cluster().nodes) {
      last_switch = std::max(last_switch, node.switch_index);
    }
    for (int under = 0; under <= last_switch; ++under) {
      if (std::optional<Slices> slices = Across(free, gpus, under)) {
        return slices;
      }
    }
    return std::nullopt;
  }

 private:
  // CPUs and memory that the node does not state are no limit.
  static Resources OnNode(const FreeGpus& free, NodeId node, Resources ask) {
    const Resources& capacity = free.cluster().nodes[Index(node)].capacity;
    return {.milli_cpus = capacity.milli_cpus == 0 ? 0 : ask.milli_cpus,
            .memory_mib = capacity.memory_mib == 0 ? 0 : ask.memory_mib};
  }

  // What one node must have, and which nodes come into question.
  struct Search {
    int gpus = 0;
    Resources ask{};
    std::optional<int> under{};    // this switch only
    const Slices* used = nullptr;  // not these nodes
  };

  static bool Suits(const FreeGpus& free, NodeId node, const Search& search) {
    return free.resources(node).Covers(OnNode(free, node, search.ask)) &&
           (search.used == nullptr || !model::LieOn(*search.used, node)) &&
           (!search.under || free.cluster().nodes[Index(node)].switch_index == *search.under);
  }

  // The first node from `from` on that suits.
  static std::optional<Slice> FirstWith(const FreeGpus& free, const Search& search, NodeId from) {
    for (std::optional<NodeId> node = FirstNodeWith(free, search.gpus, from); node;
         node = FirstNodeWith(free, search.gpus, NodeAt(Index(*node) + 1))) {
      if (Suits(free, *node, search)) {
        return Slice{.node = *node,
                     .gpus = free.Lowest(*node, search.gpus),
                     .soft = OnNode(free, *node, search.ask)};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Slices> Across(const FreeGpus& free, int gpus,
                                             std::optional<int> under) const {
    const int whole = free.largest_node();
    const double memory_per_gpu = memory_gb_per_gpu_ + memory_gb_per_gpu_and_gpu_ * gpus;
    Slices slices;
    NodeId from{0};
    for (int rest = gpus; rest > 0;) {
      const int here = std::min(rest, whole);
      const Resources ask = Ask(cpus_per_gpu_ * here, memory_per_gpu * here);
      const std::optional<Slice> slice =
          FirstWith(free, {.gpus = here, .ask = ask, .under = under, .used = &slices},
                    here == whole ? from : NodeId{0});
      if (!slice) {
        return std::nullopt;
      }
      from = NodeAt(Index(slice->node) + 1);
      slices.push_back(*slice);
      rest -= here;
    }
    model::SortByNode(slices);
    return slices;
  }

  const bool within_switch_;
  const double cpus_alone_;
  const double cpus_per_gpu_;
  const double memory_gb_;
  const double memory_gb_per_gpu_;
  const double memory_gb_per_gpu_and_gpu_;
};

}  // namespace

ComponentEntry FirstFitEntry() {
  return {ComponentKind::kPlacement, "first-fit",
          "first node with room; larger jobs take idle nodes", kFirstFitOptions,
          MakeNearData<FirstFit>};
}

}  // namespace trainyard::placements
