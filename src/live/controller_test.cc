// SPDX-License-Identifier: Apache-2.0
#include "live/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/live_world.h"
#include "trainyard/version.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

TEST_F(LiveWorldTest, QuestionsNeedNoJournal) {
  Submit(1);
  const std::size_t blocks = store_.size();
  v1::ClientRequest request;
  request.mutable_jobs();
  EXPECT_EQ(Call(request).jobs().jobs_size(), 1);
  request.mutable_nodes();
  EXPECT_EQ(Call(request).nodes().nodes_size(), 2);
  EXPECT_EQ(Call(request).nodes().time_scale(), 1);
  EXPECT_EQ(store_.size(), blocks);
}

TEST_F(LiveWorldTest, NothingIsSaidThatIsNotOnDisk) {
  Hello(10, "a");
  Heard(10);
  store_.fails = true;
  controller_->world().OnCall(50, Submission(1));
  const Status status = controller_->Step(now_);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(controller_->journal_error(), "the disk is full");
  EXPECT_EQ(said_.replies.count(50), 0U);
  EXPECT_EQ(KindsHeard(10), "");
  store_.fails = false;
  Step(seconds(1));
  EXPECT_EQ(controller_->journal_error(), "");
  EXPECT_EQ(said_.replies[50].submit().job(), 1U);
  EXPECT_EQ(KindsHeard(10), "start ");
}

TEST_F(LiveWorldTest, OnAFullDiskLeasesGoOnAndNothingElse) {
  Hello(10, "a");
  Submit(1);
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  const std::size_t blocks = store_.size();
  store_.fails = true;
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "");
  for (int minute = 0; minute < 5; ++minute) {
    v1::AgentMessage beat;
    beat.mutable_heartbeat()->set_number(1);
    controller_->world().OnAgent(10, beat);
    Step(seconds(59));
    Tell(10, Report(2, 1, v1::AttemptReport::EXITED));
    EXPECT_EQ(KindsHeard(10), "heartbeat ");
  }
  EXPECT_EQ(ErrorOf(Submission(1)),
            "the controller cannot write its journal (the disk is full); it takes nothing and "
            "starts nothing until it can");
  v1::ClientRequest ask;
  ask.mutable_jobs();
  EXPECT_EQ(Call(ask).jobs().jobs(0).state(), v1::RUNNING) << "its end is not on disk";
  controller_->world().OnAgent(11, HelloOf("b"));
  Step();
  EXPECT_EQ(KindsHeard(11), "welcome ");
  EXPECT_EQ(store_.size(), blocks);
  store_.fails = false;
  Step(seconds(1));  // what was decided before
  Step();
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(StateOf(2), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(10), "forget forget ");
  Open();
  EXPECT_EQ(StateOf(2), v1::COMPLETED);
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).ended(), 0);
}

TEST_F(LiveWorldTest, WhatADyingControllerCouldNotWriteNobodyHasHeard) {
  Hello(10, "a");
  store_.fails = true;
  controller_->world().OnCall(50, Submission(1));
  Step();
  EXPECT_FALSE(controller_->Close());  // nothing is set aside here
  store_.fails = false;
  Open();
  EXPECT_EQ(controller_->world().jobs(), 0U);
  EXPECT_EQ(said_.replies.count(50), 0U);
}

TEST_F(LiveWorldTest, AControllerThatStartsAgainKnowsEverything) {
  Hello(10, "a");
  Submit(1);
  Submit(2);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  const std::string digest = controller_->digest();
  Open();
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Heard(12);
  Hello(12, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(KindsHeard(12), "welcome ");  // it runs on and is not told anything
  Tell(12, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(12), "start forget ");  // the second has the GPUs now
  EXPECT_EQ(Submit(1), 3U);
}

class SnapshotTest : public LiveWorldTest {
 protected:
  // Jobs one after the other, most of which have ended.
  void RunJobs(int count) {
    Hello(10, "a");
    for (int i = 0; i < count; ++i) {
      const std::uint64_t job = Submit(2);
      Tell(10, Report(job, 1, v1::AttemptReport::RUNNING));
      Step(seconds(1));
      if (i + 1 < count) {
        Tell(10, Report(job, 1, v1::AttemptReport::EXITED));
      }
    }
  }
  [[nodiscard]] std::string Statuses() {
    std::string all;
    for (std::size_t i = 0; i < controller_->world().jobs(); ++i) {
      v1::JobStatus status = controller_->world().StatusOf(JobAt(i));
      status.clear_start_took_s();  // no journal knows them
      status.clear_stop_took_s();
      if (status.state() == v1::RUNNING) {
        status.clear_reason();  // no agent has come back yet
      }
      all += status.ShortDebugString() + "\n";
    }
    return all;
  }
  [[nodiscard]] const RestartReport& restart() { return controller_->restart(); }
  [[nodiscard]] std::vector<std::uint64_t> Blocks() const { return store_.Snapshots().value(); }
};

TEST_F(SnapshotTest, ARestartGoesThroughTheEntriesAfterIt) {
  snapshots_ = {.entries = 5};
  Open();
  RunJobs(9);
  const std::string before = Statuses();
  const std::size_t entries = store_.size();
  Open();
  EXPECT_EQ(restart().snapshot, entries / 5 * 5);
  EXPECT_EQ(restart().replayed, entries % 5);
  EXPECT_TRUE(restart().remarks.empty());
  EXPECT_EQ(Statuses(), before);
}

TEST_F(SnapshotTest, JobsThatHaveEndedAreWrittenOnce) {
  snapshots_ = {.entries = 4};
  Open();
  RunJobs(40);
  const std::uint64_t last = store_.Snapshots().value().front();
  const store::StoredSnapshot snapshot = store_.Snapshot(last).value();
  EXPECT_GT(snapshot.pages.size(), 10U);
  // With the history of all 40, which no page has.
  EXPECT_LT(snapshot.state.size(), 2500U);
  const std::string before = Statuses();
  Open();
  EXPECT_EQ(restart().snapshot, last);
  EXPECT_EQ(Statuses(), before);
}

TEST_F(SnapshotTest, OneThatIsDamagedIsNotUsed) {
  snapshots_ = {.entries = 5};
  Open();
  RunJobs(9);
  const std::vector<std::uint64_t> blocks = store_.Snapshots().value();
  ASSERT_EQ(blocks.size(), 2U);
  store_.StateAt(blocks[0]).pop_back();
  Open();
  EXPECT_EQ(restart().snapshot, blocks[1]);
  ASSERT_EQ(restart().remarks.size(), 1U);
  EXPECT_EQ(restart().remarks[0], "the snapshot at entry " + std::to_string(blocks[0]) +
                                      " is not used: it cannot be understood");
  for (const std::uint64_t block : Blocks()) {
    store_.StateAt(block).pop_back();
  }
  Open();
  EXPECT_EQ(restart().snapshot, 0U);
  EXPECT_EQ(restart().replayed, store_.size());
  EXPECT_GE(restart().remarks.size(), 1U);
  RunJobs(4);  // the next ones stand on what has been read
  Open();
  EXPECT_GT(restart().snapshot, blocks[0]);
  EXPECT_TRUE(restart().remarks.empty());
}

TEST_F(SnapshotTest, ThoseOfAnotherVersionAreNotUsed) {
  snapshots_ = {.entries = 5};
  Open();
  RunJobs(9);
  for (const std::uint64_t block : Blocks()) {
    std::string& state = store_.StateAt(block);
    const std::size_t at = state.find(TRAINYARD_VERSION);
    ASSERT_LT(at, 5U);
    state[at] = '9';
  }
  Open();
  EXPECT_EQ(restart().snapshot, 0U);
  ASSERT_EQ(restart().remarks.size(), 2U);
  EXPECT_TRUE(restart().remarks[0].ends_with("; expected " TRAINYARD_VERSION))
      << restart().remarks[0];
}

// What a snapshot begins with, read apart from the code that writes it, and its sections.
struct Taken {
  int format = 0;
  int job_fields = 0;
  std::string program, configuration;
  std::size_t jobs = 0;
  std::vector<std::string> names;
  std::vector<std::string> sections;
  void Serialize(StateStream& state) {
    state(format, job_fields, program, configuration, jobs, names);
    sections.resize(names.size());
    for (std::string& section : sections) {
      state(section);
    }
  }
  static Taken Of(const std::string& bytes) {
    StateStream state{bytes};
    Taken taken;
    state(taken);
    EXPECT_TRUE(state.complete());
    return taken;
  }
  std::string Bytes() {
    StateStream state;
    state(*this);
    return state.TakeBytes();
  }
};

class SectionsTest : public SnapshotTest {
 protected:
  // A restart whose snapshots have been changed in this way.
  void OpenWith(const std::function<void(Taken& taken)>& change) {
    snapshots_ = {.entries = 5};
    Open();
    RunJobs(9);
    ASSERT_EQ(Blocks().size(), 2U);
    for (const std::uint64_t block : Blocks()) {
      Taken taken = Taken::Of(store_.StateAt(block));
      EXPECT_EQ(taken.format, 12);
      change(taken);
      store_.StateAt(block) = taken.Bytes();
    }
    last_ = Blocks().front();
    Open();
  }
  // None of them is used, as the first remark says.
  void ExpectUnused(const std::string& why) {
    EXPECT_EQ(restart().snapshot, 0U);
    EXPECT_EQ(restart().replayed, store_.size());
    ASSERT_EQ(restart().remarks.size(), 2U);
    EXPECT_EQ(restart().remarks[0],
              "the snapshot at entry " + std::to_string(last_) + " is not used: " + why);
  }
  static void Drop(Taken& taken, std::string_view name) {
    const auto at = std::find(taken.names.begin(), taken.names.end(), name);
    ASSERT_NE(at, taken.names.end());
    taken.sections.erase(taken.sections.begin() + (at - taken.names.begin()));
    taken.names.erase(at);
  }

  std::uint64_t last_ = 0;  // snapshot
};

TEST_F(SectionsTest, OneThatLacksASectionIsReadWithoutIt) {
  OpenWith([](Taken& taken) { Drop(taken, "history"); });
  EXPECT_EQ(restart().snapshot, last_);
  EXPECT_TRUE(restart().remarks.empty());
  EXPECT_EQ(StateOf(9), v1::RUNNING);
}

TEST_F(SectionsTest, OneWithAnUnknownSectionIsNotUsed) {
  OpenWith([](Taken& taken) {
    taken.names.emplace_back("quotas");
    taken.sections.emplace_back("x");
  });
  ExpectUnused("it has a part 'quotas', which this version does not know");
}

TEST_F(SectionsTest, OneWithoutTheEngineIsNotUsed) {
  OpenWith([](Taken& taken) { Drop(taken, "engine"); });
  ExpectUnused("it lacks the part 'engine'");
}

TEST_F(SectionsTest, OneThatHasASectionTwiceIsNotUsed) {
  std::string twice;
  OpenWith([&twice](Taken& taken) {
    twice = taken.names.back();
    taken.names.push_back(twice);
    taken.sections.push_back(taken.sections.back());
  });
  ExpectUnused("it has the part '" + twice + "' twice");
}

TEST_F(SnapshotTest, ThoseOfOtherPluginsAreNotUsed) {
  snapshots_ = {.entries = 5, .program = TRAINYARD_VERSION " with a.so (1)"};
  Open();
  RunJobs(9);
  Open();
  EXPECT_NE(restart().snapshot, 0U);
  snapshots_.program = TRAINYARD_VERSION " with a.so (2)";
  Open();
  EXPECT_EQ(restart().snapshot, 0U);
  ASSERT_FALSE(restart().remarks.empty());
  EXPECT_TRUE(restart().remarks[0].ends_with("it was written by Trainyard " TRAINYARD_VERSION
                                             " with a.so (1); expected " TRAINYARD_VERSION
                                             " with a.so (2)"))
      << restart().remarks[0];
}

// What was decided by another program, here one under which jobs wait for those before them.
class UpgradeTest : public SnapshotTest {
 protected:
  // Two jobs that the former program lets wait behind a third, which does not fit.
  void RunFormer() {
    snapshots_ = {.entries = 0, .program = "1"};
    bundle_.walk = Walk{.misfit = Misfit::kStop, .preempt = false};
    Open();
    Hello(10, "a");
    Submit(1);
    Submit(2);
    Submit(1);
    Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
    ASSERT_EQ(StateOf(1), v1::RUNNING);
    ASSERT_EQ(StateOf(3), v1::WAITING);
  }
  // A program that lets small jobs go first.
  void Upgrade() {
    bundle_.walk = Walk{.misfit = Misfit::kSkip, .preempt = false};
    snapshots_.program = "2";
    former_program_ = "1";
  }
};

TEST_F(UpgradeTest, WhatIsRecordedStaysAndTheNewProgramDecidesFromThenOn) {
  RunFormer();
  Upgrade();
  Open();
  EXPECT_THAT(restart().difference,
              testing::HasSubstr("recorded is 'nothing', and this program would have decided "
                                 "'launch job 3 on a (1 GPU)'"));
  EXPECT_TRUE(restart().displaced.empty());
  EXPECT_EQ(restart().started, std::vector<JobId>{JobAt(2)});
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_NE(StateOf(3), v1::WAITING) << "by the new program";
  const std::string digest = controller_->digest();
  former_program_.clear();
  Open();  // what comes before the upgrade is not decided again
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(restart().difference, "");
}

TEST_F(UpgradeTest, TheSameProgramMayNotDecideOtherwise) {
  RunFormer();
  Upgrade();
  former_program_.clear();
  const Result<std::unique_ptr<Controller>> none = TryToOpen(store_, said_);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, testing::StartsWith("the replay differs from the journal at "));
}

TEST_F(UpgradeTest, AProgramThatCannotWriteThatItDecidesDoesNotBegin) {
  RunFormer();
  Upgrade();
  store_.fails = true;
  const Result<std::unique_ptr<Controller>> none = TryToOpen(store_, said_);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, testing::HasSubstr("the disk is full"));
  store_.fails = false;
  Open();
  EXPECT_NE(StateOf(3), v1::WAITING);
}

TEST_F(UpgradeTest, ASnapshotIsTakenAtOnce) {
  RunFormer();
  Upgrade();
  snapshots_.entries = 1000;
  Open();
  EXPECT_EQ(store_.Snapshots().value(), std::vector<std::uint64_t>{store_.size()});
  Open();
  EXPECT_EQ(restart().snapshot, store_.size());
}

TEST_F(SnapshotTest, ACompactJournalHasWhatTheLastTwoNeed) {
  snapshots_ = {.entries = 5, .compact = true};
  Open();
  RunJobs(20);
  const std::string before = Statuses();
  EXPECT_LT(store_.size(), 15U);
  Open();
  EXPECT_GT(restart().snapshot, 10U);
  EXPECT_EQ(Statuses(), before);
  const std::vector<std::uint64_t> blocks = store_.Snapshots().value();
  store_.StateAt(blocks[0]).pop_back();
  Open();
  EXPECT_EQ(restart().snapshot, blocks[1]);
  EXPECT_EQ(Statuses(), before);
  for (const std::uint64_t block : Blocks()) {
    std::string& state = store_.StateAt(block);
    state[state.find(TRAINYARD_VERSION)] ^= 16;  // of another version, but there is nothing else
  }
  Open();
  EXPECT_GE(restart().snapshot, blocks[1]);
  EXPECT_EQ(restart().remarks.back(), "the snapshot at entry " +
                                          std::to_string(restart().snapshot) +
                                          " is used, as the journal before it is gone");
  EXPECT_EQ(Statuses(), before);
  for (const std::uint64_t block : Blocks()) {
    store_.StateAt(block).pop_back();
  }
  const Result<std::unique_ptr<Controller>> none = TryToOpen(store_, said_);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, testing::StartsWith("block 1 is missing; the next is "));
  EXPECT_THAT(none.error().message, testing::HasSubstr("; the snapshot at entry "));
}

TEST_F(SnapshotTest, NoneAreTakenOrReadWhereNobodyWantsThem) {
  RunJobs(9);
  snapshots_ = {.entries = 0};
  Open();
  EXPECT_EQ(restart().snapshot, 0U);
  const std::vector<std::uint64_t> blocks = store_.Snapshots().value();
  RunJobs(9);
  EXPECT_EQ(store_.Snapshots().value(), blocks);
}

TEST_F(SnapshotTest, AJournalWithoutItsBeginningNeedsThem) {
  snapshots_ = {.entries = 5, .compact = true};
  Open();
  RunJobs(20);
  const std::string before = Statuses();
  snapshots_ = {.entries = 0, .compact = true};  // the beginning stays away
  Open();
  EXPECT_GT(restart().snapshot, 10U);
  EXPECT_EQ(restart().remarks.back(), "the snapshot at entry " +
                                          std::to_string(restart().snapshot) +
                                          " is used, as the journal before it is gone");
  EXPECT_EQ(Statuses(), before);
}

TEST_F(SnapshotTest, TimeAloneMakesOneIfAnythingHasHappened) {
  snapshots_ = {.entries = 1000, .interval = seconds(100)};
  Open();
  Submit(2);
  EXPECT_TRUE(store_.Snapshots().value().empty());
  Step(seconds(200));
  const std::vector<std::uint64_t> blocks = store_.Snapshots().value();
  EXPECT_EQ(blocks, std::vector<std::uint64_t>{store_.size()});
  Step(seconds(200));
  Step(seconds(200));
  EXPECT_EQ(store_.Snapshots().value(), blocks);
}

TEST_F(SnapshotTest, OneThatCannotBeWrittenIsNoReasonToStop) {
  snapshots_ = {.entries = 5};
  Open();
  store_.refuses_snapshots = true;
  RunJobs(9);
  EXPECT_EQ(controller_->snapshot_error(), "no room for it");
  store_.refuses_snapshots = false;
  const std::string before = Statuses();
  RunJobs(5);
  EXPECT_EQ(controller_->snapshot_error(), "");
  Open();
  EXPECT_GT(restart().snapshot, 0U);
  EXPECT_TRUE(Statuses().starts_with(before.substr(0, 200)));
}

}  // namespace
}  // namespace trainyard::live
