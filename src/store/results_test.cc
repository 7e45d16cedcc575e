// SPDX-License-Identifier: Apache-2.0
#include "store/results.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <utility>

#include "support/scratch_folder.h"

namespace trainyard::store {
namespace {

class ResultStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ResultStore> Open() {
    Result<std::unique_ptr<ResultStore>> store = OpenResults(path_);
    EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().message);
    return store.ok() ? std::move(store).value() : nullptr;
  }

  // The first column of the first row.
  [[nodiscard]] std::string Ask(const std::string& sql) const {
    sqlite3* database = nullptr;
    sqlite3_open(path_.c_str(), &database);
    std::string answer = "no row";
    const auto take = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0] == nullptr ? "null" : values[0];
      return 0;
    };
    char* message = nullptr;
    sqlite3_exec(database, sql.c_str(), take, &answer, &message);
    EXPECT_EQ(message, nullptr) << message;
    sqlite3_close(database);
    return answer;
  }

  ScratchFolder folder_;
  std::string path_ = folder_.path() + "/results.sqlite";
};

TEST_F(ResultStoreTest, RunsAreThereAfterReopening) {
  const std::vector<StoredRun> runs{{.digest = "b", .status = "ok", .metrics = "{\"x\":1}"},
                                    {.digest = "a", .status = "failed", .reason = "it's \"so\""}};
  ASSERT_TRUE(Open()->Put(runs).ok());
  const Result<std::vector<StoredRun>> read = Open()->Runs();
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().size(), 2U);
  EXPECT_EQ(read.value()[0].digest, "a");
  EXPECT_EQ(read.value()[0].reason, "it's \"so\"");
  EXPECT_EQ(read.value()[1].metrics, "{\"x\":1}");
}

TEST_F(ResultStoreTest, ALaterRunOfTheSameDigestReplacesIt) {
  auto store = Open();
  const std::vector<StoredRun> failed{{.digest = "a", .status = "failed", .metrics = "{}"}};
  const std::vector<StoredRun> good{{.digest = "a", .status = "ok", .metrics = "{}"}};
  ASSERT_TRUE(store->Put(failed).ok());
  ASSERT_TRUE(store->Put(good).ok());
  EXPECT_EQ(store->Runs().value().size(), 1U);
  EXPECT_EQ(store->Runs().value()[0].status, "ok");
  ASSERT_TRUE(store->Clear().ok());
  EXPECT_TRUE(store->Runs().value().empty());
}

TEST_F(ResultStoreTest, TheViewShowsOneRowForEachCell) {
  {
    auto store = Open();
    const std::vector<StoredRun> runs{{.digest = "a", .status = "ok", .metrics = "{\"jct\":2.5}"}};
    const std::vector<StoredCell> cells{
        {.id = "r/1", .digest = "a", .axes = "{\"run\":\"r\",\"load\":\"1\"}"},
        {.id = "r/2", .status = "not run", .reason = "no file", .axes = "{\"run\":\"r\"}"}};
    const std::vector<std::string> axes{"run", "load"};
    const std::vector<std::string> metrics{"jct"};
    ASSERT_TRUE(store->Put(runs).ok());
    ASSERT_TRUE(store->SetCells(cells, axes, metrics).ok());
    ASSERT_TRUE(store->SetCells(cells, axes, metrics).ok());
  }
  EXPECT_EQ(Ask("SELECT jct FROM results WHERE run = 'r' AND load = '1'"), "2.5");
  EXPECT_EQ(Ask("SELECT status FROM results WHERE id = 'r/1'"), "ok");
  EXPECT_EQ(Ask("SELECT reason FROM results WHERE status = 'not run'"), "no file");
  EXPECT_EQ(Ask("SELECT count(*) FROM results"), "2");
}

TEST_F(ResultStoreTest, AFileOfAnotherKindIsRefused) {
  const std::string path = folder_.Write("results.sqlite", std::string(4096, 'x'));
  const Result<std::unique_ptr<ResultStore>> store = OpenResults(path);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().message, path + ": is not a database; expected results of an experiment");
  EXPECT_EQ(store.error().code, ErrorCode::kBadInput);
}

TEST_F(ResultStoreTest, AFolderThatIsNotThereIsAnError) {
  const Result<std::unique_ptr<ResultStore>> store = OpenResults(folder_.path() + "/no/r.sqlite");
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find("cannot be written: No such file"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::store
