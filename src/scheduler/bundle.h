// SPDX-License-Identifier: Apache-2.0
// The components that schedule together.
#pragma once

#include <optional>

#include "trainyard/component.h"

namespace trainyard::scheduler {

// What schedules: one of ordering and policy, a placement or a packer, an admission, perhaps a
// grouping and a tuning. Not owned.
struct Bundle {
  const Ordering* ordering = nullptr;
  const Policy* policy = nullptr;
  // With both, the packer places where nothing is kept (Walk::keep_running). With neither, the
  // policy names the GPUs (May::name_gpus), or they are counted cluster-wide and never named.
  const Placement* placement = nullptr;
  const Packer* packer = nullptr;
  const Admission* admission = nullptr;
  const Grouping* grouping = nullptr;  // beside an ordering; null: none
  const Tuning* tuning = nullptr;      // null: none
  std::optional<Walk> walk;            // instead of the ordering's own
  bool plain_walk = false;             // the oracle instead of the incremental walk (tests)

  // Of the ordering with its grouping, or of the policy.
  [[nodiscard]] PolicyTraits traits() const {
    return ordering != nullptr ? PolicyTraits{.needs = ordering->traits().needs,
                                              .may = {.share = grouping != nullptr}}
                               : policy->traits();
  }
  // Whether jobs can be placed as they ask beside GPUs (NodeRequest): not where GPUs are counted
  // and not named, where the policy insists on those that it names, or where CPUs are divided
  // otherwise.
  [[nodiscard]] bool honours_requests() const {
    const May may = traits().may;
    const bool places = may.name_gpus ? may.take_others : placement != nullptr || packer != nullptr;
    return places && tuning == nullptr && !(walk && walk->count_first);
  }
  // Whether the packer places the demands of such a walk.
  [[nodiscard]] bool packs(const Walk& of) const {
    return packer != nullptr && (placement == nullptr || !of.keep_running);
  }
  [[nodiscard]] bool names_gpus() const {
    return placement != nullptr || packer != nullptr || traits().may.name_gpus;
  }
  // The walk of the ordering, unless another one is set; a policy says its own with each proposal.
  [[nodiscard]] Walk ordering_walk() const {
    return walk ? *walk : ordering != nullptr ? ordering->traits().walk : Walk{};
  }
  // Of placement or packer; empty: the policy names the GPUs, or they are counted.
  [[nodiscard]] std::string_view placement_name() const {
    return packer != nullptr ? packer->name() : placement != nullptr ? placement->name() : "";
  }
  friend bool operator==(const Bundle&, const Bundle&) = default;
  // The name of the ordering or policy.
  [[nodiscard]] std::string_view name() const {
    return ordering != nullptr ? ordering->name() : policy->name();
  }
};

}  // namespace trainyard::scheduler
