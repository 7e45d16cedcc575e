// SPDX-License-Identifier: Apache-2.0
#include "policies/torchloader/open_gpus.h"

#include <gtest/gtest.h>

namespace trainyard::policies {
namespace {

class OpenGpusTest : public testing::Test {
 protected:
  OpenGpusTest() { cluster_.nodes = {{.gpus = 2}, {.gpus = 4}, {.gpus = kMaxGpusPerNode}}; }
  [[nodiscard]] OpenGpus Open() const { return OpenGpus({.cluster = &cluster_, .nodes_up = &up_}); }

  Cluster cluster_;
  std::vector<bool> up_{true, true, true};
};

TEST_F(OpenGpusTest, TheFirstAreTakenOverNodes) {
  const Slices three{{.node = NodeAt(0), .gpus = 3}, {.node = NodeAt(1), .gpus = 1}};
  EXPECT_EQ(Open().First(3), three);
  OpenGpus rest = Open();
  rest.Take(three);
  rest.Take({{.node = NodeAt(1), .gpus = 4}});
  EXPECT_EQ(rest.First(2), (Slices{{.node = NodeAt(1), .gpus = 2 + 8}}));
}

TEST_F(OpenGpusTest, AllOrNone) {
  EXPECT_EQ(Open().First(6 + kMaxGpusPerNode).size(), 3U);
  EXPECT_TRUE(Open().First(7 + kMaxGpusPerNode).empty());
}

TEST_F(OpenGpusTest, LostNodesHaveNone) {
  up_[0] = false;
  EXPECT_EQ(Open().First(1), (Slices{{.node = NodeAt(1), .gpus = 1}}));
  EXPECT_FALSE(Open().AreOpen({{.node = NodeAt(0), .gpus = 1}}));
}

TEST_F(OpenGpusTest, WhatIsTakenIsNotOpen) {
  OpenGpus open = Open();
  EXPECT_TRUE(open.AreOpen({{.node = NodeAt(1), .gpus = 6}}));
  open.Take({{.node = NodeAt(1), .gpus = 2}});
  EXPECT_FALSE(open.AreOpen({{.node = NodeAt(1), .gpus = 6}}));
  EXPECT_TRUE(open.AreOpen({{.node = NodeAt(1), .gpus = 4}}));
}

}  // namespace
}  // namespace trainyard::policies
