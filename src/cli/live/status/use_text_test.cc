// SPDX-License-Identifier: Apache-2.0
#include "cli/live/status/use_text.h"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

TEST(UseTextTest, UsedIsToldBesideGivenWhereThatIsKnown) {
  v1::JobUse use;
  use.set_cpu_s(2880);
  EXPECT_EQ(UseText(use), "48m00s of CPU time");
  use.set_cpu_s_given(3600);
  use.set_peak_memory(3L << 30);
  use.set_peak_node("n1");
  EXPECT_EQ(UseText(use),
            "48m00s of CPU time of the 1h00m given (80 %); at most 3 GiB of memory, on n1");
  use.set_memory_given(4L << 30);
  EXPECT_EQ(UseText(use),
            "48m00s of CPU time of the 1h00m given (80 %); at most 3 of 4 GiB of memory, on n1");
}

}  // namespace
}  // namespace trainyard::cli
