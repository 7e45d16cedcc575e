// SPDX-License-Identifier: Apache-2.0
// What every store promises.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/memory_store.h"
#include "store/store.h"
#include "support/scratch_folder.h"

namespace trainyard::store {
namespace {

using Blocks = std::vector<std::string>;
using Opener = std::function<Result<std::unique_ptr<Store>>()>;

// A kind of store; makes an empty one, and returns what opens it.
struct Kind {
  std::string name;
  Opener (*make)(const std::string& folder);
};

Opener InSqlite(const std::string& folder) {
  return [folder] { return OpenStore(folder); };
}

Opener InMemory(const std::string& /*folder*/) {
  return [disk = std::make_shared<MemoryDisk>()] {
    return Result<std::unique_ptr<Store>>(std::make_unique<MemoryStore>(disk));
  };
}

std::string WhatIsWrong(const Status& status) {
  return status.ok() ? "no error" : status.error().message;
}

Blocks BlocksFrom(const Log& log, std::uint64_t first) {
  Blocks blocks;
  EXPECT_EQ(WhatIsWrong(log.Read(first,
                                 [&](std::string_view block) {
                                   blocks.emplace_back(block);
                                   return Status();
                                 })),
            "no error");
  return blocks;
}

std::vector<std::uint64_t> BlocksOfSnapshots(const Log& log) {
  const Result<std::vector<std::uint64_t>> blocks = log.Snapshots();
  EXPECT_TRUE(blocks.ok());
  return blocks.ok() ? blocks.value() : std::vector<std::uint64_t>();
}

// The notices that are saved: "NUMBER TEXT".
Blocks SavedNotices(Store& store, std::string_view destination) {
  Blocks all;
  const auto rows = store.notices().Of(destination);
  EXPECT_TRUE(rows.ok());
  for (const StoredNotice& row : rows.value()) {
    all.push_back(std::to_string(row.number) + " " + row.text);
  }
  return all;
}

class StoreContract : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Store> Open() {
    Result<std::unique_ptr<Store>> store = open_();
    EXPECT_TRUE(store.ok()) << store.error().message;
    return store.ok() ? std::move(store).value() : nullptr;
  }
  void Fill(const Blocks& blocks) {
    const std::unique_ptr<Store> store = Open();
    for (const std::string& block : blocks) {
      ASSERT_EQ(WhatIsWrong(store->Append(block)), "no error");
    }
  }

  const ScratchFolder scratch_;
  const Opener open_ = GetParam().make(scratch_.path() + "/state");
};

TEST_P(StoreContract, GivesTheBlocksBackInOrder) {
  std::string large(std::size_t{10} << 20, '\0');
  std::mt19937_64 random(1);
  for (char& byte : large) {
    byte = static_cast<char>(random());
  }
  const Blocks blocks = {"one", "", std::string("\0a\0\xff\n\0", 6), large, std::string(1, '\0'),
                         "one"};
  Fill(blocks);
  const auto store = Open();
  EXPECT_EQ(BlocksFrom(*store, 1), blocks);
  ASSERT_TRUE(store->Append({}).ok());
  EXPECT_EQ(BlocksFrom(*store, 1).size(), blocks.size() + 1);
}

TEST_P(StoreContract, IsEmptyWhenNew) {
  const auto store = Open();
  EXPECT_TRUE(BlocksFrom(*store, 1).empty());
  EXPECT_TRUE(BlocksOfSnapshots(*store).empty());
  EXPECT_EQ(store->Setting("policy").value(), "");
  EXPECT_TRUE(SavedNotices(*store, "url").empty());
}

TEST_P(StoreContract, StopsReadingAtTheFirstErrorOfTheTaker) {
  Fill({"a", "b", "c"});
  const auto store = Open();
  int taken = 0;
  EXPECT_EQ(WhatIsWrong(store->Read(1,
                                    [&](std::string_view block) {
                                      ++taken;
                                      return block == "b" ? Status(Failed("enough")) : Status();
                                    })),
            "enough");
  EXPECT_EQ(taken, 2);
  EXPECT_TRUE(store->Append("d").ok());
}

TEST_P(StoreContract, CountsItsOpenings) {
  for (std::uint64_t opened = 1; opened <= 5; ++opened) {
    EXPECT_EQ(Open()->epoch(), opened);
  }
}

// A second holder is refused, or the first one can write no more.
TEST_P(StoreContract, AtMostOneHolderCanWrite) {
  auto first = Open();
  ASSERT_TRUE(first->Append("a").ok());
  Result<std::unique_ptr<Store>> second = open_();
  EXPECT_NE(first->Append("b").ok(), second.ok());
  if (second.ok()) {
    EXPECT_GT(second.value()->epoch(), first->epoch());
    EXPECT_FALSE(first->AddSnapshot({.block = 1, .state = "s", .pages = {}}, 0).ok());
    EXPECT_FALSE(first->DropBlocks(1).ok());
    EXPECT_FALSE(first->SetSetting("policy", "fifo").ok());
    EXPECT_TRUE(second.value()->Append("b").ok());
    second.value().reset();
  }
  first.reset();
  EXPECT_EQ(BlocksFrom(*Open(), 1), (Blocks{"a", "b"}));
}

TEST_P(StoreContract, KeepsSettings) {
  const std::string odd("two\nlines\0and a NUL", 19);
  {
    const auto store = Open();
    EXPECT_EQ(store->Setting("policy").value(), "");
    EXPECT_TRUE(store->SetSetting("policy", "fifo").ok());
    EXPECT_TRUE(store->SetSetting("policy", "srtf").ok());
    EXPECT_TRUE(store->SetSetting("", odd).ok());
    EXPECT_TRUE(store->SetSetting("unset", {}).ok());
  }
  const auto store = Open();
  EXPECT_EQ(store->Setting("policy").value(), "srtf");
  EXPECT_EQ(store->Setting("").value(), odd);
  EXPECT_EQ(store->Setting("unset").value(), "");
  EXPECT_TRUE(BlocksFrom(*store, 1).empty());
}

TEST_P(StoreContract, ReadsFromABlockOn) {
  Fill({"first", "second", "third"});
  const auto store = Open();
  EXPECT_EQ(BlocksFrom(*store, 3), Blocks{"third"});
  EXPECT_TRUE(BlocksFrom(*store, 4).empty());
}

TEST_P(StoreContract, DropsBlocksAndGoesOnWithTheirNumbers) {
  Fill({"first", "second", "third"});
  {
    const auto store = Open();
    ASSERT_TRUE(store->DropBlocks(2).ok());
    ASSERT_TRUE(store->Append("fourth").ok());
  }
  const auto store = Open();
  const Status whole = store->Read(1, [](std::string_view) { return Status(); });
  ASSERT_FALSE(whole.ok());
  EXPECT_EQ(whole.error().code, ErrorCode::kBadInput);
  EXPECT_TRUE(whole.error().message.ends_with("block 1 is missing; the next is 3"))
      << whole.error().message;
  EXPECT_EQ(BlocksFrom(*store, 3), (Blocks{"third", "fourth"}));
}

TEST_P(StoreContract, KeepsTheLastTwoSnapshotsWithAllTheirPages) {
  const auto store = Open();
  const std::string odd("a\0b", 3);
  ASSERT_TRUE(store->AddSnapshot({.block = 3, .state = odd, .pages = {"p", ""}}, 0).ok());
  ASSERT_TRUE(store->AddSnapshot({.block = 5, .state = "five", .pages = {}}, 3).ok());
  EXPECT_EQ(BlocksOfSnapshots(*store), (std::vector<std::uint64_t>{5, 3}));
  EXPECT_EQ(store->Snapshot(3).value().state, odd);
  ASSERT_TRUE(store->AddSnapshot({.block = 9, .state = "nine", .pages = {"q"}}, 5).ok());
  EXPECT_EQ(BlocksOfSnapshots(*store), (std::vector<std::uint64_t>{9, 5}));
  EXPECT_EQ(store->Snapshot(9).value().pages, (Blocks{"p", "", "q"}));
  EXPECT_EQ(store->Snapshot(5).value().pages, (Blocks{"p", ""}));
  const Result<StoredSnapshot> gone = store->Snapshot(3);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ErrorCode::kBadInput);
  EXPECT_TRUE(gone.error().message.ends_with("there is no snapshot at entry 3"));
  // One that does not stand on the newest, which is damaged.
  ASSERT_TRUE(store->AddSnapshot({.block = 12, .state = "twelve", .pages = {"r"}}, 5).ok());
  EXPECT_EQ(BlocksOfSnapshots(*store), (std::vector<std::uint64_t>{12, 5}));
  EXPECT_EQ(store->Snapshot(12).value().pages, (Blocks{"p", "", "r"}));
  ASSERT_TRUE(store->AddSnapshot({.block = 14, .state = "fresh", .pages = {"s"}}, 0).ok());
  EXPECT_EQ(BlocksOfSnapshots(*store), std::vector<std::uint64_t>{14});
  EXPECT_EQ(store->Snapshot(14).value().pages, Blocks{"s"});
}

TEST_P(StoreContract, KeepsNoticesByDestinationAndNumberOnceTheyAreSaved) {
  auto store = Open();
  NoticeTable& notices = store->notices();
  notices.Put("url", {.number = 2, .text = "second"});
  notices.Put("url", {.number = 1, .text = "first"});
  notices.Put("program", {.number = 1, .text = ""});
  EXPECT_TRUE(SavedNotices(*store, "url").empty());
  ASSERT_EQ(WhatIsWrong(notices.Save()), "no error");
  notices.Put("url", {.number = 2, .text = "another"});
  notices.Drop("url", 1);
  notices.Drop("url", 7);  // there is none
  ASSERT_EQ(WhatIsWrong(notices.Save()), "no error");
  notices.Drop("url", 2);
  store = nullptr;  // not saved
  store = Open();
  EXPECT_EQ(SavedNotices(*store, "url"), Blocks{"2 another"});
  EXPECT_EQ(SavedNotices(*store, "program"), Blocks{"1 "});
}

// The journal before a snapshot tells nothing any more.
TEST_P(StoreContract, ASnapshotSavesTheNoticesOrNeither) {
  const auto store = Open();
  ASSERT_EQ(WhatIsWrong(store->Append("block")), "no error");
  store->notices().Put("url", {.number = 1, .text = "one"});
  ASSERT_EQ(WhatIsWrong(store->AddSnapshot({.block = 1, .state = "state", .pages = {}}, 0)),
            "no error");
  store->notices().Put("url", {.number = 2, .text = "two"});
  EXPECT_FALSE(store->AddSnapshot({.block = 1, .state = "again", .pages = {}}, 1).ok())
      << "there is one";
  EXPECT_EQ(store->Snapshot(1).value().state, "state");
  EXPECT_EQ(SavedNotices(*store, "url"), Blocks{"1 one"});
  ASSERT_EQ(WhatIsWrong(store->notices().Save()), "no error") << "kept for the next try";
  EXPECT_EQ(SavedNotices(*store, "url"), (Blocks{"1 one", "2 two"}));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract,
                         testing::Values(Kind{"sqlite", InSqlite}, Kind{"memory", InMemory}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace trainyard::store
