// SPDX-License-Identifier: Apache-2.0
#include "live/data/data_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace trainyard::live {
namespace {

using Place = DataCache::Place;

v1::DataSet Set(const std::string& name, std::int64_t mib, const std::string& home = "/home") {
  v1::DataSet set;
  set.set_name(name);
  set.set_mib(mib);
  set.set_home(home);
  return set;
}

v1::DataCopy Copy(const v1::DataSet& set, std::int64_t mib, double at) {
  v1::DataCopy copy;
  *copy.mutable_set() = set;
  copy.set_mib(mib);
  copy.set_fetched_at(at);
  return copy;
}

class Files final : public supervisor::DataStore {
 public:
  std::vector<v1::DataCopy> Recover() override { return found; }
  void Fetch(const v1::DataSet& data) override { log += "+" + data.name(); }
  void Remove(const std::string& name) override { log += "-" + name; }
  std::string FolderOf(const std::string& name) const override { return "/copies/" + name; }
  std::vector<supervisor::FetchReport> TakeReports() override { return std::exchange(reports, {}); }
  // What was asked of it since the last call.
  std::string Log() { return std::exchange(log, {}); }

  std::vector<v1::DataCopy> found;
  std::vector<supervisor::FetchReport> reports;
  std::string log;
};

class DataCacheTest : public testing::Test {
 protected:
  // Each job has one attempt.
  Place Want(std::uint64_t job, const v1::DataSet& set) { return cache_.Want({job, 1}, set); }
  void Release(std::uint64_t job) { cache_.Release({job, 1}); }
  std::vector<DataCache::Change> End(const std::string& name, std::int64_t mib,
                                     const std::string& error = {},
                                     v1::AttemptReport::Cause cause = v1::AttemptReport::DATA) {
    files_.reports.push_back(
        {.name = name, .ended = true, .mib = mib, .error = error, .cause = cause});
    return cache_.TakeChanges();
  }
  void Bring(const std::string& name, std::int64_t mib) {
    EXPECT_EQ(Want(99, Set(name, mib)), Place::kFetching);
    EXPECT_EQ(End(name, mib).size(), 1U);
    Release(99);
    files_.log.clear();
  }
  std::string Held() {
    std::string names;
    for (const v1::DataSet& set : cache_.held()) {
      names += (names.empty() ? "" : ", ") + set.name() + " " + std::to_string(set.mib());
    }
    return names;
  }

  Files files_;
  DataCache cache_{100, &files_};
};

TEST_F(DataCacheTest, TwoAttemptsWaitForOneFetch) {
  EXPECT_EQ(Want(1, Set("a", 60)), Place::kFetching);
  EXPECT_EQ(Want(2, Set("a", 60)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "+a");
  EXPECT_EQ(cache_.FolderOf(Set("a", 60)), "");
  files_.reports.push_back({.name = "a", .fetched = 0.4});
  std::vector<DataCache::Change> changes = cache_.TakeChanges();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].attempt, supervisor::AttemptKey(2, 1));
  EXPECT_EQ(changes[1].fetched, 0.4);
  EXPECT_FALSE(changes[1].is_here);
  changes = End("a", 55);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_TRUE(changes[0].is_here && changes[1].is_here);
  EXPECT_EQ(cache_.FolderOf(Set("a", 60)), "/copies/a");
  EXPECT_EQ(Held(), "a 55");
  EXPECT_EQ(Want(3, Set("a", 60)), Place::kHere);
}

TEST_F(DataCacheTest, TheLeastRecentlyUsedGoesAndWhatIsUsedStays) {
  Bring("a", 40);
  Bring("b", 40);
  EXPECT_EQ(Want(1, Set("a", 40)), Place::kHere);  // b is older now, but nobody uses it
  EXPECT_EQ(Want(2, Set("c", 60)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "-b+c");
  EXPECT_EQ(Want(3, Set("d", 10)), Place::kHome) << "a is used, c is on its way";
  Release(1);
  EXPECT_EQ(Want(3, Set("d", 10)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "-a+d");
  EXPECT_EQ(Want(4, Set("e", 101)), Place::kHome);
}

TEST_F(DataCacheTest, AFetchThatNobodyWaitsForAnyMoreGoesOn) {
  EXPECT_EQ(Want(1, Set("a", 60)), Place::kFetching);
  Release(1);
  EXPECT_EQ(Want(2, Set("b", 60)), Place::kHome);
  EXPECT_TRUE(End("a", 60).empty());
  EXPECT_EQ(Held(), "a 60");
  EXPECT_EQ(files_.Log(), "+a");
}

TEST_F(DataCacheTest, AFailedFetchIsTriedAgainByTheNextAttempt) {
  EXPECT_EQ(Want(1, Set("a", 60)), Place::kFetching);
  const std::vector<DataCache::Change> changes = End("a", 0, "no route to host");
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].error, "no route to host");
  EXPECT_EQ(changes[0].cause, v1::AttemptReport::DATA);
  EXPECT_EQ(Want(2, Set("a", 60)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "+a+a") << "what has come is gone on with";
  (void)End("a", 0, "the disk is full", v1::AttemptReport::DISK);
  EXPECT_EQ(files_.Log(), "-a") << "no use keeping it";
}

TEST_F(DataCacheTest, ASetThatIsLargerThanStatedPushesOthersOut) {
  Bring("a", 40);
  EXPECT_EQ(Want(1, Set("b", 50)), Place::kFetching);
  (void)End("b", 80);
  EXPECT_EQ(Held(), "b 80");
  EXPECT_EQ(files_.Log(), "+b-a");
}

TEST_F(DataCacheTest, ANameWithAnotherHomeIsAnotherSet) {
  Bring("a", 40);
  EXPECT_EQ(Want(1, Set("a", 40)), Place::kHere);
  EXPECT_EQ(Want(2, Set("a", 40, "/elsewhere")), Place::kHome) << "job 1 uses the other one";
  EXPECT_EQ(cache_.FolderOf(Set("a", 40, "/elsewhere")), "");
  Release(1);
  EXPECT_EQ(Want(3, Set("a", 40, "/elsewhere")), Place::kFetching);
  EXPECT_EQ(files_.Log(), "-a+a");
}

TEST_F(DataCacheTest, ALaterAgentKnowsWhatIsThereAndWhoUsesIt) {
  files_.found = {Copy(Set("a", 40), 41, 20), Copy(Set("b", 30), 30, 10), Copy(Set("c", 20), 0, 0)};
  cache_.Begin();
  cache_.Use({1, 1}, "b");
  EXPECT_EQ(Held(), "a 41, b 30");
  EXPECT_EQ(Want(2, Set("d", 50)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "-c-a+d") << "c was only begun, and b is used";
  Release(1);
  EXPECT_EQ(Want(3, Set("c", 20)), Place::kFetching);
  EXPECT_EQ(files_.Log(), "+c");
}

TEST_F(DataCacheTest, WhatWasBegunGoesWhereThereIsLessRoomThanBefore) {
  files_.found = {Copy(Set("a", 90), 90, 20), Copy(Set("c", 20), 0, 0)};
  cache_.Begin();
  EXPECT_EQ(files_.Log(), "-c");
  EXPECT_EQ(Held(), "a 90");
}

TEST(DataCacheWithoutRoomTest, NothingIsKept) {
  DataCache cache(0, nullptr);
  cache.Begin();
  EXPECT_EQ(cache.Want({1, 1}, Set("a", 1)), Place::kHome);
  EXPECT_TRUE(cache.held().empty());
  EXPECT_TRUE(cache.TakeChanges().empty());
}

}  // namespace
}  // namespace trainyard::live
