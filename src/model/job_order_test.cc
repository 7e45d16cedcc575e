// SPDX-License-Identifier: Apache-2.0
#include "model/job_order.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

using Jobs = std::vector<JobId>;

TEST(JobOrderTest, KeptJobsComeFirstInTheirOrderAndNewOnesLast) {
  EXPECT_EQ(
      InKeptOrder(Jobs{JobAt(3), JobAt(1), JobAt(2)}, Jobs{JobAt(0), JobAt(1), JobAt(3), JobAt(4)}),
      (Jobs{JobAt(3), JobAt(1), JobAt(0), JobAt(4)}));
  EXPECT_EQ(InKeptOrder({}, Jobs{JobAt(5), JobAt(4)}), (Jobs{JobAt(5), JobAt(4)}));
}

}  // namespace
}  // namespace trainyard::model
