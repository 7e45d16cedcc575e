// SPDX-License-Identifier: Apache-2.0
// A policy that sorts all live jobs by a key, and then does more with them than an ordering may.
#pragma once

#include <functional>
#include <vector>

#include "policy/former_order.h"
#include "trainyard/component.h"
#include "trainyard/state.h"

namespace trainyard {

struct KeyedJobs final : Memory {
  FormerOrder order;
  std::vector<bool> first;  // by JobId: has waited too long

  void Serialize(StateStream& state) override { state(order, first); }
};

// Demands for all live jobs: who has waited longer than `guard` first (from the next decision
// on; zero: nobody), then by key, submit and former order.
[[nodiscard]] std::vector<Demand> DemandsByKey(const Snapshot& snapshot,
                                               const std::function<double(const JobView&)>& key,
                                               Duration guard, KeyedJobs& memory);

}  // namespace trainyard
