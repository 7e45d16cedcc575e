// SPDX-License-Identifier: Apache-2.0
#include "live/failures/failure_book.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace trainyard::live {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Cause = v1::AttemptReport;

TEST(FailureOwnerTest, EveryCauseHasAnOwner) {
  const std::map<v1::AttemptReport::Cause, FailureOwner> owners{
      {Cause::CAUSE_UNSPECIFIED, FailureOwner::kJob},
      {Cause::DISK, FailureOwner::kNode},
      {Cause::FOLDER, FailureOwner::kNode},
      {Cause::SPAWN, FailureOwner::kNode},
      {Cause::DEVICE, FailureOwner::kNode},
      {Cause::SUPERVISOR_LOST, FailureOwner::kNode},
      {Cause::NO_PROGRAM, FailureOwner::kDoubtful},
      {Cause::NO_FOLDER, FailureOwner::kDoubtful},
      {Cause::DATA, FailureOwner::kNode},
      {Cause::NO_DATA, FailureOwner::kDoubtful}};
  ASSERT_EQ(owners.size(), static_cast<std::size_t>(v1::AttemptReport::Cause_ARRAYSIZE));
  for (const auto& [cause, owner] : owners) {
    EXPECT_EQ(OwnerOf({.cause = cause, .exit_code = 1}), owner)
        << v1::AttemptReport::Cause_Name(cause);
  }
}

TEST(FailureOwnerTest, WhoHasHadNoticeHasNotFailed) {
  EXPECT_EQ(OwnerOf({.exit_code = 143, .lost = true}), FailureOwner::kNobody);
  EXPECT_EQ(OwnerOf({}), FailureOwner::kNobody);
  EXPECT_EQ(OwnerOf({.exit_code = 137}), FailureOwner::kJob);  // a signal of somebody else's
}

TEST(FailureOwnerTest, AGangIsBlamedOnThePartThatFailedFirst) {
  std::vector<PartFailure> parts{{}, {.exit_code = 1, .failed_at = 20}, {.exit_code = 9}, {}};
  parts[2].failed_at = 19;
  EXPECT_EQ(FirstFailed(parts), 2U);
  parts[3] = {.cause = Cause::SUPERVISOR_LOST, .lost = true};  // knows no time
  EXPECT_EQ(FirstFailed(parts), 3U);
}

TEST(FailureOwnerTest, WorkersThatFailForAnotherNodeAreNotBlamedByTheClock) {
  const std::vector<PartFailure> parts{{.exit_code = 1, .failed_at = 20},
                                       {.cause = Cause::DEVICE, .exit_code = 1, .failed_at = 900}};
  EXPECT_EQ(FirstFailed(parts), 1U);
}

TEST(FailureOwnerTest, TheReasonIsTheSameWhateverTheFile) {
  const PartFailure one{.cause = Cause::DISK, .message = "/a/1-1: cannot be made: No space left"};
  const PartFailure other{.cause = Cause::DISK, .message = "/b/7-2: cannot be made: No space left"};
  EXPECT_EQ(ReasonKey(one), ReasonKey(other));
  EXPECT_NE(ReasonKey(one),
            ReasonKey({.cause = Cause::DISK, .message = "x: Read-only file system"}));
  EXPECT_NE(ReasonKey(one), ReasonKey({.cause = Cause::FOLDER, .message = one.message}));
}

// A book with everything around it: all facts go through the journal's form of them.
class BookTest : public testing::Test {
 protected:
  explicit BookTest(int nodes = 6) {
    for (int i = 0; i < nodes; ++i) {
      cluster_.nodes.push_back({.name = "n" + std::to_string(i), .gpus = 8});
    }
    book_ = std::make_unique<FailureBook>(cluster_, FailureRules{});
  }

  void Note(FailureNote note) { Take(FactOf(std::move(note), now_)); }
  void Take(const model::Event& event) {
    book_->Take(event);
    facts_.push_back(event);
  }
  void NodeFails(int job, int node, const std::string& text = "No space left",
                 v1::AttemptReport::Cause cause = Cause::DISK) {
    const PartFailure failure{.cause = cause, .message = "x: " + text};
    Note({.kind = FailureNote::Kind::kNodeFailed,
          .job = JobAt(static_cast<std::size_t>(job)),
          .node = NodeAt(static_cast<std::size_t>(node)),
          .cause = cause,
          .key = ReasonKey(failure),
          .text = text,
          .agent = "first"});
  }
  void Vanishes(int job, int node) {
    const JobId id = JobAt(static_cast<std::size_t>(job));
    Note({.kind = FailureNote::Kind::kNodeFailed,
          .job = id,
          .node = NodeAt(static_cast<std::size_t>(node)),
          .cause = Cause::SUPERVISOR_LOST,
          .key = VanishedKey(user_of_(id)),
          .text = "its supervisor is gone",
          .agent = "first"});
  }
  // Job 0, now.
  [[nodiscard]] int VanishesTooOften(std::size_t node, int eligible = 6) const {
    return book_->VanishesTooOften({.job = JobAt(0), .node = NodeAt(node), .at = now_}, eligible,
                                   user_of_);
  }
  void JobFails(int job, int node, bool soon = true) {
    Note({.kind = FailureNote::Kind::kJobFailed,
          .job = JobAt(static_cast<std::size_t>(job)),
          .node = NodeAt(static_cast<std::size_t>(node)),
          .text = "exit code 1",
          .soon = soon});
  }
  void RunsWell(int job, int node) {
    Note({.kind = FailureNote::Kind::kRanWell,
          .job = JobAt(static_cast<std::size_t>(job)),
          .nodes = {NodeAt(static_cast<std::size_t>(node))}});
  }
  void Conclude() {
    const FailureBook::Surroundings around{
        .available =
            [this](NodeId node) { return !drained_.contains(node) && !down_.contains(node); },
        .drained = [this](NodeId node) { return drained_.contains(node); },
        .accepts = [](JobId, NodeId) { return true; },
        .least_gpus = [this](JobId) { return gpus_; },
        .runs = [this](JobId job) { return running_.contains(job); }};
    std::vector<model::Event> events;
    do {
      events = book_->Conclude(now_, around);
      for (const model::Event& event : events) {
        facts_.push_back(event);
        if (event.kind() == model::EventKind::kNodeDrained) {
          drained_.insert(event.node());
        } else if (event.kind() == model::EventKind::kBarred) {
          barred_[event.job()] = event.As<model::fact::Barred>();
        }
      }
    } while (!events.empty());
  }
  [[nodiscard]] std::vector<NodeId> Barred(int job) {
    return barred_[JobAt(static_cast<std::size_t>(job))].nodes;
  }
  [[nodiscard]] bool Held(int job) { return barred_[JobAt(static_cast<std::size_t>(job))].held; }

  Cluster cluster_;
  std::unique_ptr<FailureBook> book_;
  TimePoint now_ = AtSeconds(1000);
  int gpus_ = 8;
  std::set<NodeId> drained_;
  std::set<NodeId> down_;
  std::set<JobId> running_;
  std::map<JobId, model::fact::Barred> barred_;
  std::vector<model::Event> facts_;
  std::map<JobId, std::string> users_;  // of the others nothing is known
  FailureBook::UserOf user_of_ = [this](JobId job) { return users_[job]; };
};

TEST_F(BookTest, AJobAvoidsTheNodeThatCouldNotRunIt) {
  NodeFails(0, 2);
  Conclude();
  EXPECT_EQ(Barred(0), std::vector<NodeId>{NodeAt(2)});
  EXPECT_FALSE(Held(0));
  EXPECT_EQ(book_->WhyAvoids(JobAt(0)), "avoids n2: No space left");
  EXPECT_TRUE(drained_.empty());
}

TEST_F(BookTest, TheNodeIsTriedAgainAfterItsUndrainOrWithAnotherAgent) {
  NodeFails(0, 2);
  NodeFails(1, 3);
  Conclude();
  EXPECT_FALSE(book_->IsAvoidedSince(NodeAt(2), "first"));
  EXPECT_TRUE(book_->IsAvoidedSince(NodeAt(2), "second"));
  Note({.kind = FailureNote::Kind::kRenewed, .node = NodeAt(2)});
  Take({.at = now_, .fact = model::fact::NodeUndrained{.node = NodeAt(3)}});
  Conclude();
  EXPECT_TRUE(Barred(0).empty());
  EXPECT_TRUE(Barred(1).empty());
}

TEST_F(BookTest, ThreeFailuresInARowDrainANodeWithTheReason) {
  NodeFails(0, 2);
  NodeFails(1, 2);
  RunsWell(5, 2);
  NodeFails(2, 2);
  NodeFails(3, 2);
  Conclude();
  EXPECT_TRUE(drained_.empty());
  NodeFails(4, 2);
  Conclude();
  EXPECT_EQ(drained_, std::set<NodeId>{NodeAt(2)});
  EXPECT_EQ(book_->WhyDrained(NodeAt(2)), "3 failures in a row, the last: No space left");
  Take({.at = now_, .fact = model::fact::NodeUndrained{.node = NodeAt(2)}});
  EXPECT_EQ(book_->WhyDrained(NodeAt(2)), "");
}

TEST_F(BookTest, NoMoreThanAFifthOfTheNodesIsDrained) {
  for (int node = 1; node <= 2; ++node) {
    for (int job = 0; job < 3; ++job) {
      NodeFails(10 * node + job, node, "reason " + std::to_string(node));
    }
  }
  Conclude();
  EXPECT_EQ(drained_, std::set<NodeId>{NodeAt(1)});  // of six
}

TEST_F(BookTest, ThreeJobsThatRunElsewhereDrainTheNodeWhereTheyFailedSoon) {
  for (int job = 0; job < 4; ++job) {
    JobFails(job, 4, job != 3);
  }
  for (int job = 0; job < 2; ++job) {
    RunsWell(job, 1);
  }
  RunsWell(3, 1);  // had not failed soon
  Conclude();
  EXPECT_TRUE(drained_.empty());
  RunsWell(2, 4);  // runs there after all
  Conclude();
  EXPECT_TRUE(drained_.empty());
  JobFails(2, 4);
  RunsWell(2, 5);
  Conclude();
  EXPECT_EQ(drained_, std::set<NodeId>{NodeAt(4)});
  EXPECT_EQ(book_->WhyDrained(NodeAt(4)),
            "3 jobs failed soon after their start here and ran on other nodes");
}

TEST_F(BookTest, OneReasonOnThreeNodesIsTheClusters) {
  for (int node = 0; node < 2; ++node) {
    for (int job = 0; job < 2; ++job) {
      NodeFails(10 * node + job, node);
    }
  }
  EXPECT_FALSE(book_->starts_from(now_));
  NodeFails(20, 2);
  NodeFails(21, 2);
  NodeFails(22, 2);
  Conclude();
  EXPECT_TRUE(drained_.empty());
  EXPECT_EQ(book_->starts_from(now_), now_ + seconds(1));
  EXPECT_EQ(book_->why_starts_wait(), "No space left");
  now_ += seconds(1);
  EXPECT_FALSE(book_->starts_from(now_));
  NodeFails(30, 3);
  NodeFails(31, 3);  // started together with the one before
  EXPECT_EQ(book_->starts_from(now_), now_ + seconds(2));
  now_ += minutes(30);
  NodeFails(32, 3);
  Conclude();
  EXPECT_FALSE(book_->starts_from(now_));  // the others were long ago
  EXPECT_TRUE(drained_.empty());
}

// One job that names a data set which nobody can fetch holds no other job up.
TEST_F(BookTest, TheDataSetOfOneJobIsNotTheClusters) {
  const std::string text = "Could not resolve hostname";
  const auto note = [&text](int job, int node) {
    return FailureNote{.kind = FailureNote::Kind::kNodeFailed,
                       .job = JobAt(static_cast<std::size_t>(job)),
                       .node = NodeAt(static_cast<std::size_t>(node)),
                       .cause = Cause::DATA,
                       .key = ReasonKey({.cause = Cause::DATA, .message = "x: " + text})};
  };
  for (int node = 0; node < 5; ++node) {
    EXPECT_EQ(book_->IsOfOneJob(note(1, node), 6), node >= 2) << node;
    NodeFails(1, node, text, Cause::DATA);
  }
  EXPECT_FALSE(book_->IsOfOneJob(note(2, 0), 1)) << "another job is told so, too";
  EXPECT_FALSE(book_->starts_from(now_));
  for (int node = 0; node < 3; ++node) {
    NodeFails(2, node, text, Cause::DATA);
  }
  EXPECT_TRUE(book_->starts_from(now_)) << "two jobs say so";
  EXPECT_FALSE(book_->IsOfOneJob(note(1, 5), 6));
}

TEST_F(BookTest, OtherReasonsAreNotTheClusters) {
  for (int node = 0; node < 5; ++node) {
    NodeFails(node, node, "reason " + std::to_string(node));
    NodeFails(10 + node, node, "its supervisor is gone", Cause::SUPERVISOR_LOST);
  }
  EXPECT_FALSE(book_->starts_from(now_));
}

TEST_F(BookTest, AJobWithoutANodeWaitsWithTheReason) {
  gpus_ = 16;
  for (int node = 0; node < 5; ++node) {
    NodeFails(0, node, "reason " + std::to_string(node));
  }
  Conclude();
  EXPECT_TRUE(Held(0));
  EXPECT_NE(book_->WhyHeld(JobAt(0)).find("no node is left for it; it avoids n0: reason 0; n1:"),
            std::string::npos)
      << book_->WhyHeld(JobAt(0));
  Note({.kind = FailureNote::Kind::kRenewed, .node = NodeAt(3)});
  Conclude();
  EXPECT_FALSE(Held(0));
  down_.insert(NodeAt(5));
  Conclude();
  EXPECT_TRUE(Held(0));
}

TEST_F(BookTest, PausesDoubleAndEnd) {
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 12; ++i) {
    JobFails(0, 1);
    Conclude();
    EXPECT_TRUE(Held(0));
    ASSERT_TRUE(book_->next_timer());
    pauses.push_back((*book_->next_timer() - now_) / seconds(1));
    now_ = *book_->next_timer();
    Conclude();
    EXPECT_FALSE(Held(0));
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}));
  EXPECT_TRUE(book_->WantsToKnow(JobAt(0), {NodeAt(2)}, now_));
  RunsWell(0, 2);
  EXPECT_FALSE(book_->WantsToKnow(JobAt(0), {NodeAt(2)}, now_));
  JobFails(0, 1);
  Conclude();
  EXPECT_EQ(book_->next_timer(), now_ + seconds(1));
}

TEST_F(BookTest, TwoNodesMustMissAProgram) {
  EXPECT_FALSE(book_->NodesAgree(JobAt(0), NodeAt(1), Cause::NO_PROGRAM, 6));
  EXPECT_TRUE(book_->NodesAgree(JobAt(0), NodeAt(1), Cause::NO_PROGRAM, 1));
  NodeFails(0, 1, "no such program", Cause::NO_PROGRAM);
  EXPECT_FALSE(book_->NodesAgree(JobAt(0), NodeAt(1), Cause::NO_PROGRAM, 6));
  EXPECT_FALSE(book_->NodesAgree(JobAt(0), NodeAt(2), Cause::NO_FOLDER, 6));
  EXPECT_TRUE(book_->NodesAgree(JobAt(0), NodeAt(2), Cause::NO_PROGRAM, 6));
}

TEST_F(BookTest, MistypedProgramsDrainNoNodeButMissingOnesDo) {
  for (int job = 0; job < 5; ++job) {
    NodeFails(job, 1, "no such program", Cause::NO_PROGRAM);
  }
  Conclude();
  EXPECT_TRUE(drained_.empty());
  for (int job = 0; job < 3; ++job) {
    now_ += seconds(1);
    RunsWell(job, 2);
  }
  Conclude();
  EXPECT_EQ(drained_, std::set<NodeId>{NodeAt(1)});
}

// Where a policy does not keep it away.
TEST_F(BookTest, AJobThatRunsWellWhereItCouldNotDoesNotAvoidTheNode) {
  NodeFails(0, 1, "no such program", Cause::NO_PROGRAM);
  Conclude();
  EXPECT_TRUE(book_->WantsToKnow(JobAt(0), {NodeAt(1)}, now_));
  RunsWell(0, 1);
  EXPECT_FALSE(book_->WantsToKnow(JobAt(0), {NodeAt(1)}, now_));
  Conclude();
  EXPECT_TRUE(Barred(0).empty());
}

// Else it would lose its GPUs for nobody.
TEST_F(BookTest, AJobThatRunsWhereItWouldAvoidTheNodeGoesOnWhenTheOthersGo) {
  NodeFails(0, 1);
  Conclude();
  running_ = {JobAt(0)};
  down_ = {NodeAt(0), NodeAt(2), NodeAt(3), NodeAt(4), NodeAt(5)};
  Conclude();
  EXPECT_FALSE(Held(0));
  running_.clear();
  Conclude();
  EXPECT_TRUE(Held(0));
  EXPECT_TRUE(book_->HasNoNodeLeft(JobAt(0)));
}

TEST_F(BookTest, AJobWhoseSupervisorsVanishHasABoundAndHarmsNoNode) {
  const auto vanish = [this](int node) {
    Vanishes(0, node);
    Conclude();
    EXPECT_TRUE(Held(0));
    now_ = *book_->next_timer();
    Conclude();
  };
  vanish(2);
  EXPECT_EQ(VanishesTooOften(1), 0);
  vanish(1);
  EXPECT_EQ(VanishesTooOften(3), 3);
  EXPECT_EQ(VanishesTooOften(2), 0);     // it may be node 2
  EXPECT_EQ(VanishesTooOften(2, 1), 3);  // there is no other
  vanish(2);
  EXPECT_EQ(VanishesTooOften(1), 4);
  EXPECT_EQ(VanishesTooOften(2), 0);
  EXPECT_TRUE(drained_.empty());
}

// Nodes fall sick one after the other; a job that harms itself does so wherever it is.
TEST_F(BookTest, TwoNodesThatFallSickOneAfterTheOtherFailNoJob) {
  Vanishes(0, 1);
  Vanishes(0, 1);
  EXPECT_EQ(VanishesTooOften(1), 0);
  Vanishes(0, 2);
  EXPECT_EQ(VanishesTooOften(2), 0);
  EXPECT_EQ(VanishesTooOften(3), 4);
  Vanishes(0, 2);
  EXPECT_EQ(VanishesTooOften(2), 0);
  EXPECT_EQ(VanishesTooOften(1), 5);
}

TEST_F(BookTest, NodesThatFallSickNowAndThenFailNoJob) {
  Vanishes(0, 1);
  now_ += std::chrono::minutes(4);
  Vanishes(0, 2);
  now_ += std::chrono::minutes(6);
  EXPECT_EQ(VanishesTooOften(3), 3);
  now_ += seconds(1);
  EXPECT_EQ(VanishesTooOften(3), 0);
  Vanishes(0, 3);
  EXPECT_EQ(VanishesTooOften(4), 3);
  EXPECT_EQ(VanishesTooOften(2), 0);
  RunsWell(0, 4);
  Vanishes(0, 1);
  EXPECT_EQ(VanishesTooOften(4), 0);
}

TEST_F(BookTest, SupervisorsOfSeveralUsersThatVanishAreTheNodesFault) {
  Vanishes(0, 1);
  Vanishes(0, 2);
  EXPECT_EQ(VanishesTooOften(3), 3);
  Vanishes(1, 1);  // of an unknown user
  EXPECT_EQ(VanishesTooOften(3), 0);
  RunsWell(2, 1);  // the node is well
  EXPECT_EQ(VanishesTooOften(3), 3);
  users_[JobAt(0)] = "ann";
  users_[JobAt(5)] = "ben";
  Vanishes(5, 1);
  EXPECT_EQ(VanishesTooOften(3), 0);
  Vanishes(3, 1);
  Conclude();
  EXPECT_TRUE(drained_.empty());
  Vanishes(4, 1);
  Conclude();
  EXPECT_EQ(drained_, std::set<NodeId>{NodeAt(1)});  // three jobs of three users
}

// Else a user could take nodes away from all others, or keep jobs alive that harm one another.
TEST_F(BookTest, AllJobsOfOneUserAreTheUsersOwn) {
  for (int job = 0; job < 4; ++job) {
    users_[JobAt(static_cast<std::size_t>(job))] = "ann";
  }
  for (const int node : {1, 2}) {
    for (int job = 0; job < 4; ++job) {
      Vanishes(job, node);
      Conclude();
    }
  }
  EXPECT_TRUE(drained_.empty());
  EXPECT_EQ(VanishesTooOften(3), 3);
}

TEST_F(BookTest, AVanishedSupervisorBarsNoJobForGood) {
  gpus_ = 48;
  NodeFails(0, 1, "its supervisor is gone", Cause::SUPERVISOR_LOST);
  Conclude();
  now_ = *book_->next_timer();
  Conclude();
  EXPECT_FALSE(Held(0));
  EXPECT_TRUE(Barred(0).empty());
}

TEST_F(BookTest, TheFactsGiveTheSameBookAgain) {
  for (int i = 0; i < 60; ++i) {
    NodeFails(i % 7, i % 4, "reason " + std::to_string(i % 3),
              i % 5 == 0 ? Cause::NO_PROGRAM : Cause::DISK);
    JobFails(i % 5, i % 6);
    if (i % 3 == 0) {
      RunsWell(i % 5, 5 - i % 6);
    }
    now_ += seconds(7);
    Conclude();
  }
  FailureBook again(cluster_, FailureRules{});
  for (const model::Event& fact : facts_) {
    again.Take(fact);
  }
  StateStream one;
  StateStream other;
  book_->Serialize(one);
  again.Serialize(other);
  EXPECT_EQ(one.bytes(), other.bytes());
  FailureBook read(cluster_, FailureRules{});
  StateStream bytes(one.bytes());
  read.Serialize(bytes);
  EXPECT_TRUE(bytes.complete());
  StateStream third;
  read.Serialize(third);
  EXPECT_EQ(third.bytes(), one.bytes());
}

// As 0.2.0 has written it: how many attempts of a job have vanished on which node, and not when.
TEST_F(BookTest, TheFormOf020IsReadAndWritten) {
  using Fault = std::tuple<v1::AttemptReport::Cause, std::string, std::string, std::string>;
  using Job = std::tuple<std::map<NodeId, Fault>, std::set<NodeId>, int, int, std::map<NodeId, int>,
                         TimePoint, std::string, TimePoint, bool, std::vector<NodeId>, bool>;
  using Node = std::tuple<int, std::string, std::string, TimePoint, std::set<JobId>, std::string>;
  std::vector<Node> nodes(cluster_.nodes.size());
  std::get<0>(nodes[1]) = 1;
  std::map<JobId, Job> jobs;
  std::get<3>(jobs[JobAt(7)]) = 3;
  std::get<4>(jobs[JobAt(7)]) = {{NodeAt(1), 2}, {NodeAt(2), 1}};
  std::vector<std::tuple<std::string, NodeId, TimePoint>> reasons;
  std::string text = "a reason";
  int pauses = 2;
  TimePoint until = AtSeconds(5);
  StateStream written;
  written(nodes, jobs, reasons, text, pauses, until);
  StateStream bytes(written.bytes());
  book_->Serialize(bytes, true);
  EXPECT_TRUE(bytes.complete());
  StateStream again;
  book_->Serialize(again, true);
  EXPECT_EQ(again.bytes(), written.bytes());
  for (const int node : {3, 4}) {  // now; what was before says nothing of job 0
    Vanishes(0, node);
  }
  EXPECT_EQ(VanishesTooOften(5), 3);
  EXPECT_EQ(VanishesTooOften(1), 0) << "another job's have vanished there";
  std::get<3>(jobs[JobAt(7)]) = 4;
  StateStream wrong;
  wrong(nodes, jobs, reasons, text, pauses, until);
  StateStream damaged(wrong.bytes());
  FailureBook other(cluster_, FailureRules{});
  other.Serialize(damaged, true);
  EXPECT_FALSE(damaged.good()) << "three are not four";
}

}  // namespace
}  // namespace trainyard::live
