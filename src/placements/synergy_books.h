// SPDX-License-Identifier: Apache-2.0
// The gangs placed during one decision of Synergy's mechanisms, and the search for a place.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "placements/soft_index.h"
#include "trainyard/free_gpus.h"
#include "trainyard/resources.h"

namespace trainyard::placements {

// A gang that is placed or about to be.
struct Gang {
  int gpus = 0;
  Resources wants{};  // for each GPU
  Slices slices{};    // empty: not placed
};

class SynergyBooks {
 public:
  SynergyBooks(const FreeGpus& free, bool consolidate);
  SynergyBooks(const SynergyBooks&) = delete;
  SynergyBooks& operator=(const SynergyBooks&) = delete;

  [[nodiscard]] const FreeGpus& free() const { return free_; }
  // `gangs`: how many there may be; they are known by their number. REQUIRES: no other is placed.
  void SetGangs(std::size_t gangs) { gangs_.resize(gangs); }
  [[nodiscard]] Gang& gang(std::size_t number) { return gangs_[number]; }
  // Gangs with GPUs on the node, in the order in which they came there.
  [[nodiscard]] const std::vector<std::size_t>& On(NodeId node) const { return on_[Index(node)]; }
  // What is left on the node; without limit what it does not state.
  [[nodiscard]] Resources Left(NodeId node) const { return index_.Left(node); }

  // What each GPU brings along: the node that brings the least decides, so that a share fits
  // wherever GPUs are free. Resources that no node states are 0.
  [[nodiscard]] const Resources& share() const { return share_; }
  // Without the resources that no node states.
  [[nodiscard]] Resources Stated(const Resources& amounts) const;

  // Places the gang if there is room for all it wants.
  bool Place(std::size_t number);
  // On exactly these GPUs, whatever they have left beside them.
  void PlaceOn(std::size_t number, Slices gpus);
  // Returns where it was.
  Slices Remove(std::size_t number);
  // Puts the gangs on a node into another order. REQUIRES: they are the same.
  void Reorder(NodeId node, std::vector<std::size_t> gangs) { on_[Index(node)] = std::move(gangs); }

 private:
  [[nodiscard]] std::optional<Slices> Find(const Gang& gang) const;
  [[nodiscard]] std::optional<Slices> FirstFit(const Gang& gang) const;
  [[nodiscard]] std::optional<Slices> InOneNode(const Gang& gang) const;
  [[nodiscard]] std::optional<Slices> Spread(const Gang& gang) const;
  // How many GPUs of the gang find room on the node, up to `most`.
  [[nodiscard]] int RoomFor(const Gang& gang, NodeId node, int most) const;
  // Gives each slice what its GPUs want.
  void Divide(Gang& gang) const;
  [[nodiscard]] Resources ShareOfAll() const;

  FreeGpus free_;
  SoftIndex index_;
  const bool consolidate_;
  std::vector<Gang> gangs_;
  std::vector<std::vector<std::size_t>> on_;
  std::vector<const NodeSpec*> shapes_;  // nodes that differ in what they have
  Resources share_{};
};

}  // namespace trainyard::placements
