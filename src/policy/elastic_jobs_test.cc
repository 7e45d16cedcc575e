// SPDX-License-Identifier: Apache-2.0
#include "policy/elastic_jobs.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

using Jobs = std::vector<JobId>;

TEST(ElasticJobsTest, TheCapIsTheBatchSizeUpTo64) {
  EXPECT_EQ(PublishedCap({.batch_size = 16}), 16);
  EXPECT_EQ(PublishedCap({.batch_size = 64}), 64);
  EXPECT_EQ(PublishedCap({.batch_size = 1'000'000'000'000}), 64);
  EXPECT_EQ(PublishedCap({.batch_size = 0}), 64) << "not known";
}

TEST(ElasticJobsTest, KeptJobsComeFirstInTheirOrderAndNewOnesLast) {
  EXPECT_EQ(
      InKeptOrder(Jobs{JobAt(3), JobAt(1), JobAt(2)}, Jobs{JobAt(0), JobAt(1), JobAt(3), JobAt(4)}),
      (Jobs{JobAt(3), JobAt(1), JobAt(0), JobAt(4)}));
  EXPECT_EQ(InKeptOrder({}, Jobs{JobAt(5), JobAt(4)}), (Jobs{JobAt(5), JobAt(4)}));
}

}  // namespace
}  // namespace trainyard
