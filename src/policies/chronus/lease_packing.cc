// SPDX-License-Identifier: Apache-2.0
#include "policies/chronus/lease_packing.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "base/check.h"

namespace trainyard::policies {
namespace {

// No deadline is farther away than this many leases.
constexpr int kMostLeases = 1 << 22;

void Extend(LeaseCapacity& capacity, int leases) {
  CHECK(!capacity.empty());
  if (capacity.size() < static_cast<std::size_t>(leases)) {
    capacity.resize(static_cast<std::size_t>(leases), capacity.back());
  }
}

int& At(LeaseCapacity& capacity, int lease) { return capacity[static_cast<std::size_t>(lease)]; }

// The positions of the demands, smallest key first.
template <typename KeyOf>
std::vector<std::size_t> OrderBy(std::span<const LeaseDemand> demands, const KeyOf& key_of) {
  std::vector<std::size_t> order(demands.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key_of(demands[a]) < key_of(demands[b]);
  });
  return order;
}

std::vector<std::size_t> LargestThenLeastSlack(std::span<const LeaseDemand> demands) {
  return OrderBy(demands, [](const LeaseDemand& demand) {
    return std::tuple(-demand.gpus, demand.window - demand.need, -demand.window);
  });
}

// One lease of PackLeastSlackFirst. False: a job that must have it does not get it.
class LeaseFromBehind {
 public:
  LeaseFromBehind(std::span<const LeaseDemand> demands, std::vector<Leases>& leases)
      : demands_(demands), leases_(leases) {}

  bool Give(int lease, int free) {
    Collect(lease);
    for (const std::size_t i : waiting_) {
      if (demands_[i].gpus <= free) {
        free -= demands_[i].gpus;
        leases_[i].push_back(lease);
      } else if (Slack(i, lease) == 0) {
        return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] int Left(std::size_t i) const {
    return demands_[i].need - static_cast<int>(leases_[i].size());
  }
  [[nodiscard]] int Slack(std::size_t i, int lease) const { return lease + 1 - Left(i); }

  void Collect(int lease) {
    waiting_.clear();
    for (std::size_t i = 0; i < demands_.size(); ++i) {
      if (demands_[i].window > lease && Left(i) > 0) {
        waiting_.push_back(i);
      }
    }
    // Jobs that must have it come first, then the large gangs, for they fit nowhere else.
    const auto key = [&](std::size_t i) {
      const int slack = Slack(i, lease);
      return std::tuple(slack > 0, slack, -demands_[i].gpus);
    };
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  }

  std::span<const LeaseDemand> demands_;
  std::vector<Leases>& leases_;
  std::vector<std::size_t> waiting_;
};

// The `need` leases with most free GPUs, the later of equals; fewer if there are not so many.
Leases MostFree(const LeaseDemand& demand, LeaseCapacity& capacity) {
  Leases leases;
  for (int lease = demand.window - 1; lease >= 0; --lease) {
    if (At(capacity, lease) >= demand.gpus) {
      leases.push_back(lease);
    }
  }
  std::stable_sort(leases.begin(), leases.end(),
                   [&](int a, int b) { return At(capacity, a) > At(capacity, b); });
  leases.resize(std::min(leases.size(), static_cast<std::size_t>(demand.need)));
  std::sort(leases.begin(), leases.end());
  return leases;
}

Leases Latest(const LeaseDemand& demand, LeaseCapacity& capacity) {
  Leases leases;
  for (int lease = demand.window - 1; lease >= 0; --lease) {
    if (static_cast<int>(leases.size()) == demand.need) {
      break;
    }
    if (At(capacity, lease) >= demand.gpus) {
      leases.push_back(lease);
    }
  }
  std::reverse(leases.begin(), leases.end());
  return leases;
}

template <typename Choose>
std::optional<std::vector<Leases>> PackInOrder(std::span<const LeaseDemand> demands,
                                               LeaseCapacity capacity, const Choose& choose) {
  Extend(capacity, Horizon(demands));
  std::vector<Leases> leases(demands.size());
  for (const std::size_t i : LargestThenLeastSlack(demands)) {
    if (demands[i].need <= demands[i].window) {
      leases[i] = choose(demands[i], capacity);
    }
    if (static_cast<int>(leases[i].size()) < demands[i].need) {
      return std::nullopt;
    }
    for (const int lease : leases[i]) {
      At(capacity, lease) -= demands[i].gpus;
    }
  }
  return leases;
}

}  // namespace

int Horizon(std::span<const LeaseDemand> demands) {
  int horizon = 0;
  for (const LeaseDemand& demand : demands) {
    horizon = std::max(horizon, demand.window);
  }
  return horizon;
}

std::optional<std::vector<Leases>> PackLatestFirst(std::span<const LeaseDemand> demands,
                                                   LeaseCapacity capacity) {
  return PackInOrder(demands, std::move(capacity), Latest);
}

std::optional<std::vector<Leases>> PackEvenly(std::span<const LeaseDemand> demands,
                                              LeaseCapacity capacity) {
  return PackInOrder(demands, std::move(capacity), MostFree);
}

std::optional<std::vector<Leases>> PackLeastSlackFirst(std::span<const LeaseDemand> demands,
                                                       LeaseCapacity capacity) {
  Extend(capacity, Horizon(demands));
  for (const LeaseDemand& demand : demands) {
    if (demand.need > demand.window) {
      return std::nullopt;
    }
  }
  std::vector<Leases> leases(demands.size());
  LeaseFromBehind giver(demands, leases);
  for (int lease = Horizon(demands) - 1; lease >= 0; --lease) {
    if (!giver.Give(lease, At(capacity, lease))) {
      return std::nullopt;
    }
  }
  for (Leases& of_one : leases) {
    std::reverse(of_one.begin(), of_one.end());
  }
  return leases;
}

std::optional<int> SmallestWindow(std::vector<LeaseDemand> demands, const LeaseCapacity& capacity) {
  CHECK(!demands.empty() && !capacity.empty());
  LeaseDemand& last = demands.back();
  const std::span<const LeaseDemand> others(demands.data(), demands.size() - 1);
  if (last.gpus > capacity.back() || !PackLatestFirst(others, capacity)) {
    return std::nullopt;
  }
  const auto fits = [&](int window) {
    last.window = window;
    return PackLatestFirst(demands, capacity).has_value();
  };
  int low = std::max(last.window, last.need);  // below: does not fit
  int high = low;
  for (int step = 1; !fits(high); step *= 2) {
    if (high > kMostLeases) {
      return std::nullopt;
    }
    low = high + 1;
    high += step;
  }
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace trainyard::policies
