// SPDX-License-Identifier: Apache-2.0
// The expected numbers were printed by CPython 3.11.
#include "base/python_random.h"

#include <gtest/gtest.h>

#include <vector>

namespace trainyard::base {
namespace {

std::vector<double> Randoms(std::uint64_t seed, int count) {
  PythonRandom random(seed);
  std::vector<double> drawn;
  for (int i = 0; i < count; ++i) {
    drawn.push_back(random.Random());
  }
  return drawn;
}

std::vector<std::uint32_t> Choices(std::uint64_t seed, std::uint32_t among, int count) {
  PythonRandom random(seed);
  std::vector<std::uint32_t> drawn;
  for (int i = 0; i < count; ++i) {
    drawn.push_back(random.Below(among));
  }
  return drawn;
}

TEST(PythonRandomTest, GivesTheNumbersOfRandom) {
  EXPECT_EQ(Randoms(0, 3), (std::vector<double>{0x1.b0580f98a7dbep-1, 0x1.84129978f9c1ap-1,
                                                0x1.aeaa51052e978p-2}));
  EXPECT_EQ(Randoms(1, 3), (std::vector<double>{0x1.132d8f91b7584p-3, 0x1.b1e2d5b3584f8p-1,
                                                0x1.870d778409f13p-1}));
}

TEST(PythonRandomTest, TakesSeedsOfTwoWords) {
  EXPECT_EQ(
      Randoms((std::uint64_t{1} << 32U) + 7, 3),
      (std::vector<double>{0x1.cdd79ac3f8360p-3, 0x1.6f3517abe7aa2p-2, 0x1.99351583fc19ap-1}));
  EXPECT_EQ(Randoms(~std::uint64_t{0}, 1), std::vector<double>{0x1.659799fd7f980p-6});
}

TEST(PythonRandomTest, StaysEqualBeyondTheFirstState) {
  EXPECT_EQ(Randoms(1, 1000).back(), 0x1.699b1d0fc4300p-1);
}

TEST(PythonRandomTest, GivesTheNumbersOfUniform) {
  PythonRandom random(5);
  for (int i = 0; i < 3; ++i) {
    (void)random.Random();
  }
  EXPECT_EQ(random.Uniform(2.5, 4), 0x1.f4f350fc323e4p+1);
}

TEST(PythonRandomTest, PicksWhatChoicePicks) {
  EXPECT_EQ(Choices(0, 14, 12),
            (std::vector<std::uint32_t>{13, 6, 12, 6, 0, 4, 8, 7, 6, 12, 13, 4}));
  EXPECT_EQ(Choices(5, 14, 12),
            (std::vector<std::uint32_t>{9, 4, 11, 5, 12, 11, 13, 11, 10, 8, 0, 13}));
}

TEST(PythonRandomTest, PicksAmongOneAndAmongVeryMany) {
  PythonRandom random(3);
  for (const std::uint32_t expected : {0U, 0U, 0U}) {
    EXPECT_EQ(random.Below(1), expected);
  }
  for (const std::uint32_t expected : {2036044446U, 281444313U, 56556069U}) {
    EXPECT_EQ(random.Below((1U << 31U) + 1), expected);
  }
  for (const std::uint32_t expected : {3903345311U, 3596902313U, 2015337560U}) {
    EXPECT_EQ(random.Below(~0U), expected);
  }
  EXPECT_EQ(random.Random(), 0x1.09941946801c6p-2);
}

}  // namespace
}  // namespace trainyard::base
