// SPDX-License-Identifier: Apache-2.0
// A controller without processes or networks: what it is told comes by calls, what it says is kept.
// For tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live/controller.h"
#include "store/memory_store.h"
#include "support/memory_trail.h"

namespace trainyard::live {

// What a controller has said: the answers by call, the messages by connection.
class Said final : public LiveOutput {
 public:
  void Reply(std::uint64_t call, v1::ClientReply reply) override {
    replies[call] = std::move(reply);
  }
  void Send(std::uint64_t connection, v1::ControllerMessage message) override {
    messages[connection].push_back(std::move(message));
  }
  void Close(std::uint64_t connection) override { closed.push_back(connection); }

  std::map<std::uint64_t, v1::ClientReply> replies;
  std::map<std::uint64_t, std::vector<v1::ControllerMessage>> messages;
  std::vector<std::uint64_t> closed;
};

// A store that can refuse.
class FailingStore final : public store::MemoryStore {
 public:
  Status Append(std::string_view block) override {
    return fails ? Status(Failed("the disk is full")) : MemoryStore::Append(block);
  }
  Status AddSnapshot(const store::StoredSnapshot& snapshot, std::uint64_t before) override {
    return refuses_snapshots ? Status(Failed("no room for it"))
                             : MemoryStore::AddSnapshot(snapshot, before);
  }

  [[nodiscard]] std::size_t size() { return disk().blocks.size(); }
  void DropSnapshots() { disk().DropSnapshots(); }
  [[nodiscard]] std::string& StateAt(std::uint64_t block) { return disk().snapshots.at(block); }

  bool fails = false;
  bool refuses_snapshots = false;
};

class Everyone final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "all"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot,
                                           Memory* /*memory*/) const override {
    std::vector<Verdict> verdicts;
    for (const JobId job : snapshot.unjudged) {
      verdicts.push_back({.job = job});
    }
    return verdicts;
  }
};

// The same request by that caller.
inline v1::ClientRequest As(v1::ClientRequest request, std::uint32_t uid,
                            v1::Caller::Role role = v1::Caller::USER) {
  v1::Caller& caller = *request.mutable_caller();
  caller.set_uid(uid);
  caller.set_user("user" + std::to_string(uid));
  caller.set_role(role);
  return request;
}

// A controller with the set-up of a derived fixture, whose constructor calls Open(). Each Open() is
// a restart, from the last snapshot, and compares with one from the whole journal.
class OpenedController : public testing::Test {
 protected:
  [[nodiscard]] virtual ControllerSetup SetUpOf() = 0;

  [[nodiscard]] Result<std::unique_ptr<Controller>> TryToOpen(store::Log& store,
                                                              LiveOutput& output) {
    return TryToOpen(store, output, trail_);
  }
  [[nodiscard]] Result<std::unique_ptr<Controller>> TryToOpen(store::Log& store, LiveOutput& output,
                                                              MemoryTrail& trail) {
    ControllerSetup setup = SetUpOf();
    setup.live.audit = &trail;
    Result<std::unique_ptr<Controller>> opened =
        Controller::Open(std::move(setup), store, output, now_);
    EXPECT_EQ(trail.wrong(), "");
    return opened;
  }
  void Open() {
    controller_.reset();
    FailingStore whole = store_;
    whole.DropSnapshots();
    MemoryTrail trail_of_whole = trail_;
    Result<std::unique_ptr<Controller>> opened = TryToOpen(store_, said_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    controller_ = std::move(opened).value();
    if (!snapshots_.compact) {
      Said nothing;
      const Result<std::unique_ptr<Controller>> replayed =
          TryToOpen(whole, nothing, trail_of_whole);
      ASSERT_TRUE(replayed.ok()) << replayed.error().message;
      EXPECT_EQ(replayed.value()->digest(), controller_->digest());
      EXPECT_EQ(replayed.value()->StateDigest(), controller_->StateDigest());
    }
    Step();
  }
  void Step(Duration later = Duration{0}) {
    now_ += later;
    const Status status = controller_->Step(now_);
    EXPECT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(controller_->WhyViewIsStale(), "");
  }
  // The same, and the agent of the connection is heard then.
  void StepHearing(std::uint64_t connection, Duration later) {
    v1::AgentMessage beat;
    beat.mutable_heartbeat()->set_number(1);
    controller_->world().OnAgent(connection, beat);
    Step(later);
  }
  // `connection` says `message`.
  void Hear(std::uint64_t connection, const v1::AgentMessage& message) {
    controller_->world().OnAgent(connection, message);
    Step();
  }
  void Tell(std::uint64_t connection, const v1::AttemptReport& report) {
    v1::AgentMessage message;
    *message.mutable_attempt() = report;
    Hear(connection, message);
  }
  v1::ClientReply Call(const v1::ClientRequest& request) {
    controller_->world().OnCall(++calls_, request);
    Step();
    return said_.replies[calls_];
  }
  // The first words of the agent of `node`.
  static v1::AgentMessage HelloOf(const std::string& node,
                                  const std::vector<v1::AttemptReport>& attempts = {},
                                  int gpus = 2) {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_node(node);
    hello.set_address(node + ".example");
    hello.set_gpus(gpus);
    hello.set_start("first");
    for (const v1::AttemptReport& report : attempts) {
      *hello.add_attempts() = report;
    }
    return message;
  }
  static v1::AttemptReport Report(std::uint64_t job, std::uint32_t attempt,
                                  v1::AttemptReport::State state, int exit_code = 0) {
    v1::AttemptReport report;
    report.mutable_id()->set_job(job);
    report.mutable_id()->set_attempt(attempt);
    report.set_state(state);
    report.set_exit_code(exit_code);
    report.set_finished(state == v1::AttemptReport::EXITED && exit_code == 0);
    report.add_gpus(0);
    return report;
  }

  Everyone everyone_;
  FailingStore store_;
  MemoryTrail trail_;
  SnapshotRules snapshots_{.entries = 2};
  Said said_;
  TimePoint now_{};
  std::unique_ptr<Controller> controller_;
  std::uint64_t calls_ = 0;
};

}  // namespace trainyard::live
