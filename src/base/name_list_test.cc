// SPDX-License-Identifier: Apache-2.0
#include "base/name_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::base {
namespace {

using Names = std::vector<std::string>;

TEST(NameListTest, RangesAreExpandedInTheirOrder) {
  EXPECT_EQ(ExpandNames("n[0-2,7],v0").value(), (Names{"n0", "n1", "n2", "n7", "v0"}));
  EXPECT_EQ(ExpandNames("n[08-11]-ib").value(), (Names{"n08-ib", "n09-ib", "n10-ib", "n11-ib"}));
  EXPECT_EQ(ExpandNames("12_[3-5,9],13").value(), (Names{"12_3", "12_4", "12_5", "12_9", "13"}));
  EXPECT_EQ(ExpandNames("1,2").value(), (Names{"1", "2"}));
}

TEST(NameListTest, WhatIsNoListIsRefused) {
  for (const char* const list :
       {"", "a,", ",a", "n[", "n[0", "n]", "n[]", "n[1-]", "n[3-1]", "n[a]", "n[[0]]", "n[0]m[1]",
        "n[0-99999999]", "n[-1]", "n[1-2-3]"}) {
    EXPECT_FALSE(ExpandNames(list).ok()) << list;
  }
}

TEST(NameListTest, NamesAreInTheOrderOfTheirNumbers) {
  Names names{"n10", "v0", "n2", "a", "n02", "n1", "3", "12"};
  std::sort(names.begin(), names.end(), ComesBefore);
  EXPECT_EQ(names, (Names{"3", "12", "a", "n1", "n02", "n2", "n10", "v0"}));
}

TEST(NameListTest, FoldedNamesExpandToThemselves) {
  EXPECT_EQ(FoldNames(Names{"n0", "n1"}), "n[0-1]");
  EXPECT_EQ(FoldNames(Names{"n0", "n2", "n3", "v0"}), "n[0,2-3],v0");
  EXPECT_EQ(FoldNames(Names{"n09", "n10", "n11"}), "n[09-11]");
  EXPECT_EQ(FoldNames(Names{"n9", "n10"}), "n[9-10]");
  EXPECT_EQ(FoldNames(Names{"head"}), "head");
  EXPECT_EQ(FoldNames(Names{"7"}), "7");
  EXPECT_EQ(FoldNames(Names{}), "");
  for (const Names& names : {Names{"a", "b"}, Names{"n2", "n1", "n1"}, Names{"n1", "n01", "n001"},
                             Names{"x1y", "x2y", "x3"}, Names{"1", "2", "a1", "a2", "3"}}) {
    EXPECT_EQ(ExpandNames(FoldNames(names)).value(), names) << FoldNames(names);
  }
}

}  // namespace
}  // namespace trainyard::base
