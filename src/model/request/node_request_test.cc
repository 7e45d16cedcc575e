// SPDX-License-Identifier: Apache-2.0
#include "model/request/node_request.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace trainyard::model {
namespace {

template <typename T>
std::string Again(std::string_view text) {
  T value;
  return ReadText(text, value) ? TextOf(value) : "none";
}

TEST(NodeRequestTest, AmountsSayWhatTheyAreFor) {
  EXPECT_EQ(Again<CpuRequest>("8"), "8");
  EXPECT_EQ(Again<CpuRequest>("0.5/gpu"), "0.5/gpu");
  EXPECT_EQ(Again<CpuRequest>("16/node"), "16/node");
  EXPECT_EQ(Again<MemoryRequest>("64G"), "64G");
  EXPECT_EQ(Again<MemoryRequest>("64GB"), "64G");
  EXPECT_EQ(Again<MemoryRequest>("64GiB/node"), "64G/node");
  EXPECT_EQ(Again<MemoryRequest>("1.5g/gpu"), "1536M/gpu");
  EXPECT_EQ(Again<MemoryRequest>("2T"), "2048G");
  EXPECT_EQ(Again<MemoryRequest>("100"), "100M");
  EXPECT_EQ(Again<MemoryRequest>("1K"), "1M");  // never less than was asked for
  EXPECT_EQ(Again<NodeCount>("2"), "2");
  EXPECT_EQ(Again<NodeCount>("2-4"), "2-4");
  EXPECT_EQ(Again<NodeCount>("3-3"), "3");
  EXPECT_EQ(Again<TmpRequest>("10G"), "10G");
}

TEST(NodeRequestTest, WhatIsNoAmountIsRefused) {
  for (const char* text : {"", "0", "-1", "8/task", "8/", "/gpu", "x", "1e10", "nan", "inf"}) {
    EXPECT_EQ(Again<CpuRequest>(text), "none") << text;
    EXPECT_EQ(Again<MemoryRequest>(text), "none") << text;
  }
  for (const char* text : {"", "0", "4-2", "1-", "-3", "a", "1-2-3", "1.5"}) {
    EXPECT_EQ(Again<NodeCount>(text), "none") << text;
  }
}

bool Admits(const std::string& text, const std::vector<std::string>& labels) {
  const Result<Constraint> constraint = Constraint::Parse(text);
  EXPECT_TRUE(constraint.ok()) << text;
  return constraint.value().Admits(labels);
}

TEST(ConstraintTest, SignsCombineLabels) {
  EXPECT_TRUE(Admits("nvlink", {"nvlink", "x"}));
  EXPECT_FALSE(Admits("nvlink", {"x"}));
  EXPECT_TRUE(Admits("nvlink&x", {"nvlink", "x"}));
  EXPECT_TRUE(Admits("nvlink,x", {"nvlink", "x"}));
  EXPECT_TRUE(Admits(" nvlink & x ", {"nvlink", "x"}));
  EXPECT_FALSE(Admits("nvlink&x", {"nvlink"}));
  EXPECT_TRUE(Admits("a|b", {"b"}));
  EXPECT_TRUE(Admits("a&b|c", {"c"}));  // '&' binds closer
  EXPECT_TRUE(Admits("c|a&b", {"c"}));
  EXPECT_FALSE(Admits("(c|a)&b", {"c"}));
  EXPECT_TRUE(Admits("!a", {}));
  EXPECT_FALSE(Admits("!(a|b)", {"b"}));
  EXPECT_TRUE(Admits("!a&!b", {"c"}));
  EXPECT_TRUE(Admits("rack=1&cuda:12.2", {"rack=1", "cuda:12.2"}));
}

TEST(ConstraintTest, CountsAreOfNodesAndNotOfOne) {
  const Constraint constraint = Constraint::Parse("ib*2&fast&(a|b)*1").value();
  ASSERT_EQ(constraint.counted(), 2U);
  EXPECT_EQ(constraint.CountOf(0), 2);
  EXPECT_TRUE(constraint.Meets(0, {"ib"}));
  EXPECT_EQ(constraint.CountOf(1), 1);
  EXPECT_TRUE(constraint.Meets(1, {"b"}));
  EXPECT_FALSE(constraint.Meets(1, {"ib"}));
  EXPECT_TRUE(constraint.Admits({"fast"}));
  EXPECT_FALSE(constraint.Admits({"ib"}));
}

TEST(ConstraintTest, WhatIsNoConstraintIsRefused) {
  for (const char* text : {"", "&", "a&", "a|", "(a", "a)", "a*0", "a*", "a*2|b", "!*2",
                           "a*1&b*1&c*1&d*1", "a**2", "(a*2)", "[a|b]"}) {
    EXPECT_FALSE(Constraint::Parse(text).ok()) << text;
  }
  EXPECT_FALSE(Constraint::Parse(std::string(100'000, '(')).ok());
  EXPECT_FALSE(Constraint::Parse(std::string(100'000, '!')).ok());
}

TEST(NodeRequestTest, LicensesAreNamesWithNumbers) {
  const std::vector<License> licenses = ParseLicenses("matlab:2,simulink").value();
  EXPECT_EQ(licenses, (std::vector<License>{{.name = "matlab", .count = 2},
                                            {.name = "simulink", .count = 1}}));
  for (const char* text : {"", ",", "a,", "a:0", "a:x", ":2", "a,a:2"}) {
    EXPECT_FALSE(ParseLicenses(text).ok()) << text;
  }
}

TEST(NodeRequestTest, ItsWholeTextIsForPeople) {
  EXPECT_EQ(TextOf(NodeRequest{}), "");
  EXPECT_EQ(TextOf(NodeRequest{.cpus = {.milli = 4000, .per = Per::kGpu},
                               .memory = {.mib = 65536},
                               .nodes = {.least = 2, .most = 2},
                               .exclusive = true,
                               .node_list = "n[0-1]"}),
            "4 CPUs/gpu, 64G memory, 2 nodes, nodes for itself, on n[0-1]");
}

}  // namespace
}  // namespace trainyard::model
