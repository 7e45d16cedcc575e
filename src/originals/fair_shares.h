// SPDX-License-Identifier: Apache-2.0
// The shares of a Themis auction that minimise the largest rho (finish-time fairness), where the
// jobs ask for more GPUs than there are.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard::originals {

// A job in an auction. With a share x of its request its rho is elapsed + ahead / x.
struct Bid {
  double gpus = 0;
  double elapsed = 0;
  double ahead = 0;
  double least = 1;  // share at which it reaches the largest rho that cannot be avoided
  double share = 1;
};

// Both give the same shares, to the last bit.
enum class Halving : std::uint8_t {
  kAll,      // every middle of a bisection is computed: the plain form
  kInDoubt,  // only those that lie too near to the root for their side to be known
};

// Sets `least` and the shares in [0, 1]. The expressions are those of ElasticFlow's
// simulator (its Themis baseline) to the last bit: equal jobs often differ in nothing else. Sums
// run in the order of the bids.
void SetFairShares(std::vector<Bid>& bids, int gpus, Halving halving = Halving::kInDoubt);

}  // namespace trainyard::originals
