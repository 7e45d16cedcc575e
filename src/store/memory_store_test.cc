// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.h"

#include <gtest/gtest.h>

namespace trainyard::store {
namespace {

TEST(MemoryStoreTest, SaysWhichHolderMayWriteNoMore) {
  const auto disk = std::make_shared<MemoryDisk>();
  MemoryStore first(disk);
  const MemoryStore second(disk);
  EXPECT_EQ(first.Append("late").error().message,
            "the store has been opened again, as number 2; this holder, number 1, may not write");
  EXPECT_TRUE(disk->blocks.empty());
}

TEST(MemoryStoreTest, ACopyIsAnotherStore) {
  MemoryStore original;
  ASSERT_TRUE(original.Append("both").ok());
  MemoryStore copy = original;
  ASSERT_TRUE(copy.Append("copy").ok());
  EXPECT_EQ(original.disk().blocks.size(), 1U);
  EXPECT_EQ(copy.disk().blocks.size(), 2U);
  EXPECT_TRUE(original.Append("original").ok());
}

}  // namespace
}  // namespace trainyard::store
