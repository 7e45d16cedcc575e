// SPDX-License-Identifier: Apache-2.0
// Against a controller that gives prepared answers.
#include "daemon/live_replay.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "rpc/server.h"
#include "support/open_door.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

// Two nodes with four GPUs, a hundred times as fast as real time. Takes no jobs.
class FakeController final : public rpc::Inbox {
 public:
  FakeController() {
    auto server = rpc::StartServer({}, *this);
    EXPECT_TRUE(server.ok());
    const std::lock_guard lock(mutex_);
    server_ = std::move(server).value();
    door_ = OpenDoorOf(server_->port());
  }

  void OnCall(std::uint64_t call, v1::ClientRequest request) override {
    v1::ClientReply reply;
    if (request.has_nodes()) {
      for (const char* const name : {"gpu0", "gpu1"}) {
        v1::NodeStatus& node = *reply.mutable_nodes()->add_nodes();
        node.set_node(name);
        node.set_gpus(4);
      }
      reply.mutable_nodes()->set_time_scale(time_scale);
    } else {
      ++submissions;
      reply.mutable_error()->set_code(refusal);
      reply.mutable_error()->set_message("no");
    }
    const std::lock_guard lock(mutex_);
    server_->Reply(call, std::move(reply));
  }
  void OnCallGone(std::uint64_t /*call*/) override {}
  void OnAgent(std::uint64_t /*connection*/, v1::AgentMessage /*message*/) override {}
  void OnAgentGone(std::uint64_t /*connection*/) override {}

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }

  std::atomic<double> time_scale = 100;
  std::atomic<int> refusal = 9;  // FAILED_PRECONDITION
  std::atomic<int> submissions = 0;

 private:
  std::mutex mutex_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<identity::Door> door_;
};

class LiveReplayTest : public testing::Test {
 protected:
  [[nodiscard]] Error ErrorOf(const std::string& cluster, const std::string& controller,
                              double time_scale = 100) const {
    const Result<scenario::Inputs> inputs = scenario::ReadInputs(
        {.trace = scratch_.Write("t.csv", "job_id,submit_time,gpus,duration\na,0,1,60\n"),
         .cluster = cluster});
    EXPECT_TRUE(inputs.ok());
    const Result<results::RunResult> run = ReplayOnCluster(
        inputs.value(), {},
        {.controller = controller, .time_scale = time_scale, .patience = Duration{0}});
    EXPECT_FALSE(run.ok());
    return run.ok() ? Error{} : run.error();
  }

  const ScratchFolder scratch_;
};

TEST_F(LiveReplayTest, AnotherTimeScaleIsRefusedBeforeAnyJobIsSubmitted) {
  FakeController controller;
  const Error error = ErrorOf("2x4", controller.address(), 200);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "--time-scale is 200, and that of the controller at " +
                               controller.address() + " is 100; expected the same");
  EXPECT_EQ(controller.submissions, 0);
}

TEST_F(LiveReplayTest, AnotherClusterIsRefusedBeforeAnyJobIsSubmitted) {
  FakeController controller;
  const Error error = ErrorOf("1x8", controller.address());
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "--cluster has 1 node with 8 GPUs, and that of the controller at " +
                               controller.address() + " 2 nodes with 4 GPUs; expected the same");
  EXPECT_EQ(controller.submissions, 0);
}

TEST_F(LiveReplayTest, AControllerThatDoesNotSayItsTimeScaleIsOfAnotherVersion) {
  FakeController controller;
  controller.time_scale = 0;
  const Error error = ErrorOf("2x4", controller.address(), 1);
  EXPECT_EQ(error.code, ErrorCode::kFailed);
  EXPECT_TRUE(error.message.ends_with("expected a controller of the same version"))
      << error.message;
}

TEST_F(LiveReplayTest, ACallThatFailsIsNoMistakeOfTheTrace) {
  EXPECT_EQ(ErrorOf("2x4", "127.0.0.1:1").code, ErrorCode::kFailed);
  FakeController controller;
  const Error refused = ErrorOf("2x4", controller.address());
  EXPECT_EQ(refused.message, "job a: no");
  EXPECT_EQ(refused.code, ErrorCode::kFailed);
  controller.refusal = 3;  // INVALID_ARGUMENT
  EXPECT_EQ(ErrorOf("2x4", controller.address()).code, ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainyard::daemon
