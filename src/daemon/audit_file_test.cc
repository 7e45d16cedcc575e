// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

using testing::ElementsAre;

class AuditFileTest : public testing::Test {
 protected:
  AuditFileTest() { Open(); }

  void Open() {
    file_.reset();
    Result<std::unique_ptr<AuditFile>> opened = AuditFile::Open(path_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    file_ = std::move(opened).value();
    file_->Begin(0);
  }
  void Put(std::uint64_t entry, const std::string& what,
           const std::string& by = "ann (uid 1, user)", const std::vector<std::string>& jobs = {},
           const std::vector<std::string>& nodes = {}) {
    v1::AuditEntry one;
    one.set_entry(entry);
    one.set_time("2026-11-28T09:00:0" + std::to_string(entry % 10) + "Z");
    one.set_by(by);
    one.set_what(what);
    one.mutable_jobs()->Assign(jobs.begin(), jobs.end());
    one.mutable_nodes()->Assign(nodes.begin(), nodes.end());
    file_->Put(one);
  }
  [[nodiscard]] std::vector<std::string> Found(const v1::AuditRequest& request = {}) const {
    std::vector<std::string> found;
    const Result<v1::AuditReply> reply = file_->Read(request);
    EXPECT_TRUE(reply.ok());
    for (const v1::AuditEntry& entry : reply.value().entries()) {
      found.push_back(entry.what());
    }
    return found;
  }
  [[nodiscard]] std::string Content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path() + "/audit.jsonl";
  std::unique_ptr<AuditFile> file_;
};

TEST_F(AuditFileTest, ALineForEachChange) {
  Put(3, "cancelled", "ann (uid 1, user)", {"1", "5-10004"});
  Put(4, "drained: a \"new\" fan\n", "", {}, {"g0"});
  EXPECT_EQ(Content(),
            "{\"entry\":3,\"time\":\"2026-11-28T09:00:03Z\",\"by\":\"ann (uid 1, user)\","
            "\"what\":\"cancelled\",\"jobs\":[\"1\",\"5-10004\"]}\n"
            "{\"entry\":4,\"time\":\"2026-11-28T09:00:04Z\",\"by\":\"\","
            "\"what\":\"drained: a \\\"new\\\" fan\\n\",\"nodes\":[\"g0\"]}\n");
  const Result<v1::AuditReply> all = file_->Read({});
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(all.value().entries(0).jobs(), ElementsAre("1", "5-10004"));
  EXPECT_THAT(all.value().entries(1).nodes(), ElementsAre("g0"));
  EXPECT_EQ(all.value().next(), 0U);
}

TEST_F(AuditFileTest, WhatIsThereIsNotPutAgain) {
  Put(3, "a");
  Put(3, "b");
  Put(5, "c");
  Open();
  Put(3, "a");
  Put(3, "b");
  Put(5, "c");
  Put(5, "d");
  Put(6, "e");
  EXPECT_THAT(Found(), ElementsAre("a", "b", "c", "d", "e"));
  file_->Begin(5);  // another try, from a snapshot
  Put(6, "e");
  Put(7, "f");
  EXPECT_THAT(Found(), ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST_F(AuditFileTest, ALineThatIsNotWholeIsTakenBackAndWrittenAgain) {
  Put(3, "a");
  Put(4, "b");
  const std::string whole = Content();
  std::ofstream(path_, std::ios::trunc) << whole.substr(0, whole.size() - 5);
  EXPECT_THAT(Found(), ElementsAre("a")) << "also while it is not";
  Open();
  Put(3, "a");
  Put(4, "b");
  EXPECT_EQ(Content(), whole);
}

TEST_F(AuditFileTest, ForeignLinesArePassedOver) {
  std::ofstream(path_) << "not JSON\n[]\n{\"entry\":-1}\n{\"entry\":2,\"jobs\":7,\"what\":\"a\"}\n";
  Open();
  Put(2, "a");
  Put(3, "b");
  EXPECT_THAT(Found(), ElementsAre("a", "b"));
}

// A copy of the journal has taken the place of one that had gone further.
TEST_F(AuditFileTest, EntriesOfAJournalThatIsGoneStay) {
  Put(3, "a");
  Put(9, "gone");
  Open();
  Put(3, "a");
  file_->End(4);
  Put(5, "b");
  Put(9, "c");
  EXPECT_THAT(Found(), ElementsAre("a", "gone", "b", "c"));
}

TEST_F(AuditFileTest, IsAskedByUserJobNodeAndTime) {
  Put(1, "a", "ann (uid 1, user)", {"7"});
  Put(2, "b", "anna (uid 2, admin)", {"3-8", "12"});
  Put(3, "c", "the controller", {}, {"g0", "g1"});
  const auto found = [this](auto set) {
    v1::AuditRequest request;
    set(request);
    return Found(request);
  };
  EXPECT_THAT(found([](auto& request) { request.set_user("ann"); }), ElementsAre("a"));
  EXPECT_THAT(found([](auto& request) { request.set_user("the controller"); }), ElementsAre("c"));
  EXPECT_THAT(found([](auto& request) { request.set_job(7); }), ElementsAre("a", "b"));
  EXPECT_THAT(found([](auto& request) { request.set_job(12); }), ElementsAre("b"));
  EXPECT_THAT(found([](auto& request) { request.set_job(9); }), ElementsAre());
  EXPECT_THAT(found([](auto& request) { request.set_node("g1"); }), ElementsAre("c"));
  EXPECT_THAT(found([](auto& request) { request.set_from("2026-11-28T09:00:02"); }),
              ElementsAre("b", "c"));
  EXPECT_THAT(found([](auto& request) { request.set_to("2026-11-28T09:00:02"); }),
              ElementsAre("a", "b"));
  EXPECT_THAT(found([](auto& request) { request.set_to("2026-11-28"); }),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(found([](auto& request) { request.set_to("2026-11-27"); }), ElementsAre());
}

TEST_F(AuditFileTest, LongAnswersGoOn) {
  constexpr std::uint64_t kCount = 2500;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    Put(i, std::to_string(i), i % 2 == 0 ? "bob (uid 2, user)" : "ann (uid 1, user)");
  }
  v1::AuditRequest request;
  request.set_user("bob");
  std::vector<std::string> all;
  int answers = 0;
  do {
    const Result<v1::AuditReply> reply = file_->Read(request);
    ASSERT_TRUE(reply.ok());
    for (const v1::AuditEntry& entry : reply.value().entries()) {
      all.push_back(entry.what());
    }
    request.set_after(reply.value().next());
    ++answers;
  } while (request.after() != 0);
  EXPECT_EQ(answers, 2);
  ASSERT_EQ(all.size(), kCount / 2);
  EXPECT_EQ(all.front(), "2");
  EXPECT_EQ(all.back(), std::to_string(kCount));
}

TEST_F(AuditFileTest, AFileThatIsMovedAwayIsFollowedByAnother) {
  Put(1, "a");
  ASSERT_EQ(rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  Put(2, "b");
  EXPECT_THAT(Found(), ElementsAre("b"));
  Open();
  Put(1, "a");  // it is in the other one
  Put(2, "b");
  EXPECT_THAT(Found(), ElementsAre("b"));
}

TEST_F(AuditFileTest, AFileThatCannotBeOpenedSaysWhatToDo) {
  const auto opened = AuditFile::Open(folder_.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message,
            folder_.path() +
                ": Is a directory; expected a file that the controller's user may write: correct "
                "its owner and mode, or move it away: it is written again from the journal");
}

TEST_F(AuditFileTest, WhatCannotBeWrittenIsKept) {
  Put(1, "a");
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = Content().size() + 10, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  Put(2, "b");
  const Status saved = file_->Save();
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, testing::StartsWith(path_ + ": "));
  EXPECT_THAT(Found(), ElementsAre("a"));
  Put(3, "c");
  EXPECT_TRUE(file_->Save().ok());
  EXPECT_THAT(Found(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace trainyard::daemon
