// SPDX-License-Identifier: Apache-2.0
#include "originals/fair_shares.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "support/sanitized.h"

namespace trainyard::originals {
namespace {

std::vector<std::uint64_t> Bits(const std::vector<Bid>& bids) {
  std::vector<std::uint64_t> bits;
  for (const Bid& bid : bids) {
    bits.push_back(std::bit_cast<std::uint64_t>(bid.share));
  }
  return bits;
}

// Jobs of an auction; some are equal, some new, some all but done.
class RandomBids {
 public:
  explicit RandomBids(unsigned seed) : random_(seed) {}

  std::vector<Bid> Draw(int count) {
    const double spread = std::exp2(Between(-8, 12));
    std::vector<Bid> bids;
    for (int i = 0; i < count; ++i) {
      if (!bids.empty() && Between(0, 1) < 0.2) {
        bids.push_back(bids[random_() % bids.size()]);
        continue;
      }
      const double ahead = Between(0, 1) < 0.1 ? Between(0, 1e-9) : Between(0, 1.2);
      bids.push_back({.gpus = std::exp2(static_cast<double>(random_() % 7)),
                      .elapsed = Between(0, 1) < 0.1 ? 0 : Between(0, spread),
                      .ahead = ahead});
    }
    return bids;
  }
  // Fewer than the bids ask for.
  int Gpus(const std::vector<Bid>& bids) {
    double asked = 0;
    for (const Bid& bid : bids) {
      asked += bid.gpus;
    }
    return std::max(1, static_cast<int>(Between(0.05, 1) * asked) - 1);
  }

 private:
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  std::mt19937 random_;
};

TEST(FairSharesTest, OnlyTheHalvingsInDoubtAreComputed) {
  for (unsigned seed = 0; seed < Rounds(20'000U); ++seed) {
    RandomBids random(seed);
    std::vector<Bid> plain = random.Draw(1 + static_cast<int>(seed % 60));
    const int gpus = random.Gpus(plain);
    std::vector<Bid> fast = plain;
    SetFairShares(plain, gpus, Halving::kAll);
    SetFairShares(fast, gpus, Halving::kInDoubt);
    ASSERT_EQ(Bits(fast), Bits(plain)) << "seed " << seed;
  }
}

TEST(FairSharesTest, SharesAreAtMostAllAndUseWhatThereIs) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    RandomBids random(seed);
    std::vector<Bid> bids = random.Draw(40);
    const int gpus = random.Gpus(bids);
    SetFairShares(bids, gpus);
    double used = 0;
    for (const Bid& bid : bids) {
      EXPECT_GE(bid.share, 0);
      EXPECT_LE(bid.share, 1 + 1e-9);
      used += bid.gpus * bid.share;
    }
    EXPECT_LE(used, gpus * (1 + 1e-9)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard::originals
