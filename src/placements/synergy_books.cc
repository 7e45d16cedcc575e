// SPDX-License-Identifier: Apache-2.0
#include "placements/synergy_books.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/resource_amounts.h"
#include "model/slices.h"
#include "placements/placements.h"

namespace trainyard::placements {
namespace {

std::vector<const NodeSpec*> ShapesOf(const Cluster& cluster) {
  std::vector<const NodeSpec*> shapes;
  for (const NodeSpec& node : cluster.nodes) {
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&node](const NodeSpec* shape) {
      return shape->gpus == node.gpus && shape->capacity == node.capacity;
    });
    if (!known && node.gpus > 0) {  // otherwise it has been removed
      shapes.push_back(&node);
    }
  }
  return shapes;
}

std::uint64_t HighestGpus(std::uint64_t free, int count) {
  while (std::popcount(free) > count) {
    free &= free - 1;
  }
  return free;
}

}  // namespace

SynergyBooks::SynergyBooks(const FreeGpus& free, bool consolidate)
    : free_(free),
      index_(free_, consolidate),
      consolidate_(consolidate),
      on_(free.cluster().nodes.size()),
      shapes_(ShapesOf(free.cluster())),
      share_(ShareOfAll()) {
  for (std::size_t i = 0; i < on_.size(); ++i) {
    on_[i].reserve(static_cast<std::size_t>(free.count(NodeAt(i))));  // each has a GPU there
  }
}

Resources SynergyBooks::ShareOfAll() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Resources least{.milli_cpus = kMost, .memory_mib = kMost, .storage_kbps = kMost};
  for (const NodeSpec* shape : shapes_) {
    least = model::ForEachResource(
        [](std::int64_t so_far, std::int64_t capacity, std::int64_t share) {
          return capacity == 0 ? so_far : std::min(so_far, share);
        },
        least, shape->capacity, model::ProportionalShare(*shape, 1));
  }
  return Stated(least);
}

Resources SynergyBooks::Stated(const Resources& amounts) const {
  Resources stated;
  for (const NodeSpec* shape : shapes_) {
    stated =
        model::ForEachResource([](std::int64_t so_far, std::int64_t capacity,
                                  std::int64_t amount) { return capacity == 0 ? so_far : amount; },
                               stated, shape->capacity, amounts);
  }
  return stated;
}

bool SynergyBooks::Place(std::size_t number) {
  Gang& gang = gangs_[number];
  std::optional<Slices> slices = Find(gang);
  if (!slices) {
    return false;
  }
  PlaceOn(number, std::move(*slices));
  return true;
}

void SynergyBooks::PlaceOn(std::size_t number, Slices gpus) {
  Gang& gang = gangs_[number];
  CHECK(gang.slices.empty());
  gang.slices = std::move(gpus);
  Divide(gang);
  free_.Take(gang.slices);
  for (const Slice& slice : gang.slices) {
    on_[Index(slice.node)].push_back(number);
    index_.Update(slice.node);
  }
}

Slices SynergyBooks::Remove(std::size_t number) {
  Gang& gang = gangs_[number];
  free_.Return(gang.slices);
  for (const Slice& slice : gang.slices) {
    std::erase(on_[Index(slice.node)], number);
    index_.Update(slice.node);
  }
  return std::exchange(gang.slices, {});
}

void SynergyBooks::Divide(Gang& gang) const {
  model::SortByNode(gang.slices);
  for (Slice& slice : gang.slices) {
    slice.soft = model::ForEachResource(
        [](std::int64_t capacity, std::int64_t amount) { return capacity == 0 ? 0 : amount; },
        free_.cluster().nodes[Index(slice.node)].capacity,
        model::Times(gang.wants, std::popcount(slice.gpus)));
  }
}

int SynergyBooks::RoomFor(const Gang& gang, NodeId node, int most) const {
  const Resources left = index_.Left(node);
  most = std::min(most, free_.count(node));
  return left.Covers(model::Times(gang.wants, most)) ? most
                                                     : model::TimesIn(left, gang.wants, most);
}

std::optional<Slices> SynergyBooks::Find(const Gang& gang) const {
  if (!consolidate_) {
    return FirstFit(gang);
  }
  std::optional<Slices> slices = gang.gpus > 1 ? InOneNode(gang) : std::nullopt;
  return slices ? slices : Spread(gang);
}

// The first GPUs in node order whose node has their part left.
std::optional<Slices> SynergyBooks::FirstFit(const Gang& gang) const {
  Slices slices;
  int rest = gang.gpus;
  std::size_t from = 0;
  while (rest > 0) {
    const std::optional<NodeId> node = index_.First(gang.wants, NodeAt(from));
    if (!node) {
      return std::nullopt;
    }
    const int here = RoomFor(gang, *node, rest);
    slices.push_back({.node = *node, .gpus = free_.Lowest(*node, here)});
    rest -= here;
    from = Index(*node) + 1;
  }
  return slices;
}

// The fullest node that takes the whole gang (6.2).
std::optional<Slices> SynergyBooks::InOneNode(const Gang& gang) const {
  const Resources all = model::Times(gang.wants, gang.gpus);
  for (int count = gang.gpus; count <= free_.largest_node(); ++count) {
    if (const std::optional<NodeId> node = index_.FirstWith(count, all)) {
      return Slices{{.node = *node, .gpus = free_.Lowest(*node, gang.gpus)}};
    }
  }
  return std::nullopt;
}

// From the fullest nodes on, the last GPUs of each (6.2).
std::optional<Slices> SynergyBooks::Spread(const Gang& gang) const {
  Slices slices;
  int rest = gang.gpus;
  for (int count = 1; count <= free_.largest_node() && rest > 0; ++count) {
    std::size_t from = 0;
    while (rest > 0) {
      const std::optional<NodeId> node = index_.FirstWith(count, gang.wants, NodeAt(from));
      if (!node) {
        break;
      }
      const int here = RoomFor(gang, *node, rest);
      slices.push_back({.node = *node, .gpus = HighestGpus(free_.gpus(*node), here)});
      rest -= here;
      from = Index(*node) + 1;
    }
  }
  return rest == 0 ? std::optional<Slices>(std::move(slices)) : std::nullopt;
}

}  // namespace trainyard::placements
