// SPDX-License-Identifier: Apache-2.0
// Copies by the real rsync, and what is read from what it says.
#include "supervisor/data/local_data_store.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "io/file.h"
#include "io/find_program.h"
#include "supervisor/data/rsync.h"
#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;
using v1::AttemptReport;

class LocalDataStoreTest : public testing::Test {
 protected:
  void Open(std::int64_t rate_kbps = 0) {
    store_.reset();
    store_ = MakeLocalDataStore(
        {.folder = Path("data"), .rsync = io::FindProgram("rsync"), .rate_kbps = rate_kbps},
        [this] {
          const std::lock_guard lock(mutex_);
          ++told_;
          wake_.notify_all();
        });
  }
  std::string Path(const std::string& name) { return scratch_.path() + "/" + name; }
  // A data set of two files, of some MiB together.
  v1::DataSet MakeSet(const std::string& name, int mib) {
    const fs::path home = Path("home/" + name);
    fs::create_directories(home / "deeper");
    std::ofstream(home / "a") << name;
    std::ofstream(home / "deeper/b") << std::string(static_cast<std::size_t>(mib) << 20, 'b');
    v1::DataSet set;
    set.set_name(name);
    set.set_mib(mib);
    set.set_home(home.string());
    return set;
  }
  FetchReport AwaitEnd() {
    while (true) {
      for (const FetchReport& report : store_->TakeReports()) {
        if (report.ended) {
          return report;
        }
        last_ = report;
      }
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return told_ > seen_; });
      seen_ = told_;
    }
  }
  FetchReport AwaitProgress() {
    while (last_.name.empty()) {
      for (const FetchReport& report : store_->TakeReports()) {
        last_ = report;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return last_;
  }

  const ScratchFolder scratch_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int told_ = 0;
  int seen_ = 0;
  FetchReport last_;
  std::unique_ptr<DataStore> store_;
};

TEST_F(LocalDataStoreTest, ACopyIsWholeAndIsFoundAgain) {
  const v1::DataSet set = MakeSet("pets & co", 2);
  Open();
  store_->Fetch(set);
  const FetchReport end = AwaitEnd();
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.name, "pets & co");
  EXPECT_EQ(end.mib, 3) << "a MiB that is begun counts";
  const fs::path files = store_->FolderOf("pets & co");
  EXPECT_EQ(io::ReadBytes((files / "a").string()).value(), "pets & co");
  EXPECT_EQ(fs::file_size(files / "deeper/b"), 2U << 20);
  Open();
  const std::vector<v1::DataCopy> found = store_->Recover();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].set().DebugString(), set.DebugString());
  EXPECT_EQ(found[0].mib(), 3);
  store_->Remove("pets & co");
  EXPECT_FALSE(fs::exists(files));
  Open();
  EXPECT_TRUE(store_->Recover().empty());
}

TEST_F(LocalDataStoreTest, AFetchThatEndsWithTheStoreIsGoneOnWith) {
  const v1::DataSet set = MakeSet("pets", 6);
  Open(200);
  store_->Fetch(set);
  EXPECT_LT(AwaitProgress().fetched, 1);
  Open();
  const std::vector<v1::DataCopy> found = store_->Recover();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].mib(), 0) << "it is not whole";
  EXPECT_FALSE(fs::exists(store_->FolderOf("pets")));
  std::ofstream(Path("data/begun/pets/files/gone")) << "not in the home any more";
  store_->Fetch(set);
  EXPECT_EQ(AwaitEnd().error, "");
  EXPECT_EQ(fs::file_size(store_->FolderOf("pets") + "/deeper/b"), 6U << 20);
  EXPECT_FALSE(fs::exists(store_->FolderOf("pets") + "/gone"));
}

TEST_F(LocalDataStoreTest, AHomeThatIsNotThereIsNamed) {
  v1::DataSet set = MakeSet("pets", 1);
  set.set_home(Path("nowhere"));
  Open();
  store_->Fetch(set);
  const FetchReport end = AwaitEnd();
  EXPECT_EQ(end.cause, AttemptReport::NO_DATA);
  EXPECT_NE(end.error.find(Path("nowhere")), std::string::npos) << end.error;
  EXPECT_NE(end.error.find("No such file or directory"), std::string::npos) << end.error;
}

TEST_F(LocalDataStoreTest, WhatIsNoCopyGoes) {
  Open();
  fs::create_directories(Path("data/whole/stray/files"));
  fs::create_directories(Path("data/begun/other"));
  std::ofstream(Path("data/begun/other/copy")) << "set { name: \"another\" }";
  EXPECT_TRUE(store_->Recover().empty());
  EXPECT_FALSE(fs::exists(Path("data/whole/stray")));
  EXPECT_FALSE(fs::exists(Path("data/begun/other")));
}

TEST(FolderNameTest, NamesAreFolders) {
  EXPECT_EQ(FolderNameOf("imagenet-1k_v2.0"), "imagenet-1k_v2.0");
  EXPECT_EQ(FolderNameOf("../x y"), "%2e.%2fx%20y");
  EXPECT_EQ(FolderNameOf("."), "%2e");
}

TEST(RsyncTest, ProgressIsRead) {
  EXPECT_EQ(ProgressIn("      1,234,567  40%    1.17MB/s    0:00:01 (xfr#1, to-chk=2/5)"), 0.4);
  EXPECT_EQ(ProgressIn("              0   0%    0.00kB/s    0:00:00"), 0);
  EXPECT_EQ(ProgressIn("  8,388,608 100%  2.00MB/s"), 1);
  EXPECT_LT(ProgressIn("rsync: 100% wrong"), 0);
  EXPECT_LT(ProgressIn(""), 0);
}

TEST(RsyncTest, TheReasonIsFoundAndWhoseItIs) {
  const auto end = [](int status, const char* lines) { return EndOfRsync(status, lines); };
  EXPECT_EQ(end(0, "").error, "");
  RsyncEnd failed =
      end(23,
          "rsync: [sender] change_dir \"/nope\" failed: No such file or directory (2)\n"
          "rsync error: some files/attrs were not transferred (see previous errors) (code 23)\n");
  EXPECT_EQ(failed.error,
            "rsync: [sender] change_dir \"/nope\" failed: No such file or directory (2)");
  EXPECT_EQ(failed.cause, AttemptReport::NO_DATA);
  failed = end(255,
               "Warning: Permanently added 'store' to the list of known hosts.\n"
               "ssh: connect to host store port 22: Connection refused\n"
               "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]\n"
               "rsync error: unexplained error (code 255) at io.c(231) [Receiver=3.2.7]\n");
  EXPECT_EQ(failed.error, "ssh: connect to host store port 22: Connection refused");
  EXPECT_EQ(failed.cause, AttemptReport::DATA);
  failed = end(255,
               "ann@store: Permission denied (publickey).\n"
               "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]\n");
  EXPECT_EQ(failed.error, "ann@store: Permission denied (publickey).");
  failed = end(11,
               "rsync: [receiver] write failed on \"/d/b\": No space left on device (28)\n"
               "rsync error: error in file IO (code 11) at receiver.c(381) [receiver=3.2.7]\n");
  EXPECT_EQ(failed.cause, AttemptReport::DISK);
  EXPECT_EQ(end(137, "").error, "rsync has ended with status 137");
  EXPECT_NE(end(127, "").error.find("cannot be started"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::supervisor
