// SPDX-License-Identifier: Apache-2.0
#include "live/view/shared_list.h"

#include <gtest/gtest.h>

#include <memory>

namespace trainyard::live {
namespace {

TEST(SharedListTest, ACopyStaysAsItWas) {
  SharedList<int> list;
  for (std::size_t i = 0; i < 1000; ++i) {
    list.Set(i, std::make_shared<const int>(static_cast<int>(i)), 1);
  }
  const SharedList<int> copy = list;
  list.Seal();
  list.Set(300, std::make_shared<const int>(-1), 2);
  list.Set(1000, std::make_shared<const int>(1000), 2);
  EXPECT_EQ(copy[300], 300);
  EXPECT_EQ(copy.size(), 1000U);
  EXPECT_EQ(copy.Find(1000), nullptr);
  EXPECT_EQ(list[300], -1);
  EXPECT_EQ(list[1000], 1000);
  EXPECT_EQ(&copy[299], &list[299]) << "what did not change is shared";
  const SharedList<int> second = list;
  list.Seal();
  list.Set(301, std::make_shared<const int>(-2), 3);
  EXPECT_EQ(second[301], 301);
}

TEST(SharedListTest, FindsWhatIsNewer) {
  SharedList<int> list;
  for (std::size_t i = 0; i < 1000; ++i) {
    list.Set(i, std::make_shared<const int>(0), 1);
  }
  EXPECT_EQ(list.NextSince(0, 0), 0U);
  EXPECT_EQ(list.NextSince(7, 0), 7U);
  EXPECT_EQ(list.NextSince(0, 1), list.size());
  list.Set(700, std::make_shared<const int>(0), 2);
  EXPECT_EQ(list.NextSince(0, 1), 512U) << "the first of its chunk";
  EXPECT_EQ(list.NextSince(701, 1), 701U);
  EXPECT_EQ(list.NextSince(800, 1), list.size());
}

}  // namespace
}  // namespace trainyard::live
