// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/antman_jobs.h"

namespace trainyard::originals {
namespace {

class PublishedAntmanTest : public AntManTest {
 protected:
  // A guaranteed job of two GPUs goes, one of one GPU stays. Where another one of three GPUs runs
  // that uses what is left.
  std::vector<std::uint64_t> AfterOneHasGone() {
    const JobId gone = Add(2, kGuaranteed);
    const JobId stays = Add(1, kGuaranteed);
    Decide();
    Leave(gone);
    const JobId opportunistic = Add(3, kOpportunistic);
    Decide();
    EXPECT_TRUE(Runs(stays) && Runs(opportunistic));
    return GpusOf(opportunistic);
  }
};

// 0.1 as 0.09 and 0.01 more, and 0.1 less, is not always 0 in floating point.
TEST_F(PublishedAntmanTest, ALoadForgetsJobsThatAreGoneButForRounding) {
  Use(base::MakeFrom(Originals(), ComponentKind::kPolicy,
                     ParseNamedOptions("antman-published").value()));
  EXPECT_EQ(AfterOneHasGone(), Masks({0b11, 0b10}));
}

}  // namespace
}  // namespace trainyard::originals
