// SPDX-License-Identifier: Apache-2.0
// The clients' commands against a controller that gives prepared answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <vector>

#include "cli/commands.h"
#include "rpc/server.h"
#include "service/call_error.h"
#include "support/open_door.h"
#include "support/scratch_folder.h"

namespace trainyard::cli {
namespace {

const int kNotFound = service::NumberOf(ErrorCode::kNotFound);

class FakeController final : public rpc::Inbox {
 public:
  using Answer = std::function<v1::ClientReply(const v1::ClientRequest&)>;

  explicit FakeController(Answer answer) : answer_(std::move(answer)) {
    auto server = rpc::StartServer({}, *this);
    EXPECT_TRUE(server.ok());
    const std::lock_guard lock(mutex_);
    server_ = std::move(server).value();
    door_ = OpenDoorOf(server_->port());
  }

  void OnCall(std::uint64_t call, v1::ClientRequest request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    server_->Reply(call, answer_(request));
  }
  void OnCallGone(std::uint64_t /*call*/) override {}
  void OnAgent(std::uint64_t /*connection*/, v1::AgentMessage /*message*/) override {}
  void OnAgentGone(std::uint64_t /*connection*/) override {}

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }
  [[nodiscard]] std::vector<v1::ClientRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  std::mutex mutex_;
  std::vector<v1::ClientRequest> requests_;
  Answer answer_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<identity::Door> door_;
};

struct Outcome {
  Status status;
  std::string out;
};

Outcome Invoke(std::vector<std::string> words, const std::vector<std::string>& rest = {}) {
  CLI::App app;
  app.require_subcommand(1);
  Command chosen{.rest = rest};
  for (const CommandMaker& maker : ClientCommands()) {
    maker.add(app, chosen);
  }
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  Status status;
  try {
    app.parse(words);
    status = chosen.run();
  } catch (const CLI::ParseError& error) {
    status = InvalidArgument(error.what());
  }
  std::fflush(stdout);
  return {status, testing::internal::GetCapturedStdout()};
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

v1::JobStatus JobWith(v1::JobState state) {
  v1::JobStatus job;
  job.set_job(12);
  job.set_state(state);
  job.set_attempt(1);
  job.mutable_request()->set_name("bert\x1b[2J");
  job.mutable_request()->set_user("ann");
  job.mutable_request()->set_gpus(4);
  job.set_submitted(1000);
  if (state == v1::RUNNING) {
    job.set_started(1060);
    job.set_run_s(45);  // it has waited for 15 s since
    v1::NodeGrant& grant = *job.add_grants();
    grant.set_node("n0");
    for (const int gpu : {0, 1, 2, 6}) {
      grant.add_gpus(gpu);
    }
  }
  return job;
}

v1::ClientReply SubmitReplyWith(v1::JobState state, const std::string& reason = "") {
  v1::ClientReply reply;
  reply.mutable_submit()->set_job(12);
  *reply.mutable_submit()->mutable_status() = JobWith(state);
  reply.mutable_submit()->mutable_status()->set_reason(reason);
  return reply;
}

v1::ClientReply JobsReplyWith(v1::JobState state) {
  v1::ClientReply reply;
  *reply.mutable_jobs()->add_jobs() = JobWith(state);
  reply.mutable_jobs()->set_now(1120);
  return reply;
}

v1::ClientReply NotFound(const std::string& message) {
  v1::ClientReply reply;
  reply.mutable_error()->set_code(kNotFound);
  reply.mutable_error()->set_message(message);
  return reply;
}

TEST(SubmitTest, SendsWhatWasAskedFor) {
  FakeController controller([](const auto&) { return SubmitReplyWith(v1::SUBMITTED); });
  const Outcome outcome =
      Invoke({"submit", "--controller", controller.address(), "--gpus", "2:4", "--env", "A=1",
              "--env", "B=2", "--duration", "15m", "--user", "ann"},
             {"python3", "x.py", "--lr", "1"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_EQ(outcome.out, "job 12 submitted\n");
  const v1::SubmitRequest submit = controller.requests().at(0).submit();
  EXPECT_EQ(submit.client_token().size(), 32U);
  EXPECT_FALSE(submit.wait_for_verdict());
  EXPECT_EQ(submit.job().max_gpus(), 4);
  EXPECT_EQ(submit.job().duration_s(), 900);
  EXPECT_EQ(submit.job().user(), "ann");
  EXPECT_EQ(submit.job().launch().command_size(), 4);
  EXPECT_EQ(submit.job().launch().environment_size(), 2);
  EXPECT_EQ(submit.job().launch().working_directory().front(), '/');
}

TEST(SubmitTest, OptionsOverrideTheFile) {
  const ScratchFolder folder;
  const std::string file = folder.Write("job.toml", "gpus = 1\nname = \"a\"\ncommand = [\"x\"]\n");
  FakeController controller([](const auto&) { return SubmitReplyWith(v1::SUBMITTED); });
  const Outcome outcome = Invoke({"submit", "--controller", controller.address(), "--gpus", "2",
                                  "--file", file, "--token", "once"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  const v1::SubmitRequest submit = controller.requests().at(0).submit();
  EXPECT_EQ(submit.job().gpus(), 2);
  EXPECT_EQ(submit.job().name(), "a");
  EXPECT_EQ(submit.job().launch().command(0), "x");
  EXPECT_EQ(submit.client_token(), "once");
}

TEST(SubmitTest, WaitsForTheVerdict) {
  FakeController yes([](const auto&) {
    v1::ClientReply reply = SubmitReplyWith(v1::WAITING);
    reply.mutable_submit()->mutable_status()->set_expected_end(1e9);
    return reply;
  });
  const Outcome accepted =
      Invoke({"submit", "--controller", yes.address(), "--gpus", "2", "--wait"}, {"x"});
  EXPECT_TRUE(accepted.status.ok());
  EXPECT_TRUE(accepted.out.starts_with("job 12 submitted\njob 12 accepted; expected end 2001-09-0"))
      << accepted.out;
  EXPECT_TRUE(yes.requests().at(0).submit().wait_for_verdict());
  FakeController no([](const auto&) { return SubmitReplyWith(v1::REJECTED, "too late"); });
  const Outcome declined =
      Invoke({"submit", "--controller", no.address(), "--gpus", "2", "--wait"}, {"x"});
  ASSERT_FALSE(declined.status.ok());
  EXPECT_EQ(declined.status.error().message, "job 12 declined: too late");
  EXPECT_EQ(declined.status.error().code, ErrorCode::kFailed);
  // What the answer says already needs no waiting.
  const Outcome at_once = Invoke({"submit", "--controller", no.address(), "--gpus", "2"}, {"x"});
  ASSERT_FALSE(at_once.status.ok());
  EXPECT_EQ(at_once.status.error().message, "job 12 declined: too late");
}

TEST(SubmitTest, OnlyAPromiseOfThePolicyIsOne) {
  v1::ClientReply reply = SubmitReplyWith(v1::WAITING, "not enough free GPUs");
  v1::JobStatus& status = *reply.mutable_submit()->mutable_status();
  status.set_deadline(1e9);
  FakeController controller([&reply](const auto&) { return reply; });
  const auto said = [&controller] {
    const std::string out =
        Invoke({"submit", "--controller", controller.address(), "--gpus", "2", "--wait"}, {"x"})
            .out;
    return out.substr(std::min(out.size(), out.find('\n') + 1));
  };
  EXPECT_TRUE(said().starts_with(
      "job 12 accepted; it is waiting: not enough free GPUs; the policy promises nothing for its "
      "deadline 2001-09-0"))
      << said();
  status.set_promised(true);
  EXPECT_TRUE(said().starts_with("job 12 accepted, will finish by 2001-09-0")) << said();
  status.set_promised(false);
  status.set_expected_end(1.1e9);
  EXPECT_TRUE(said().starts_with("job 12 accepted; expected end 2004-11-0")) << said();
  EXPECT_TRUE(Contains(said(), ", after its deadline 2001-09-0")) << said();
  status.clear_deadline();
  status.clear_expected_end();
  status.clear_reason();
  EXPECT_EQ(said(), "job 12 accepted\n");
}

TEST(SubmitTest, WhatIsStatedInVainIsTold) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply = SubmitReplyWith(v1::WAITING);
    reply.mutable_submit()->add_ignored("priority 3 has no effect");
    return reply;
  });
  testing::internal::CaptureStderr();
  const Outcome outcome =
      Invoke({"submit", "--controller", controller.address(), "--gpus", "2"}, {"x"});
  EXPECT_EQ(outcome.out, "job 12 submitted\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "trainyard: priority 3 has no effect\n");
}

TEST(SubmitTest, WhatIsMissingIsWrongUsage) {
  for (const auto& [words, rest, what] :
       {std::tuple<std::vector<std::string>, std::vector<std::string>, std::string>{
            {"submit", "--gpus", "1"}, {}, "no command"},
        {{"submit"}, {"x"}, "--gpus is missing"},
        {{"submit", "--gpus", "1", "--workers", "emulated"},
         {"x"},
         "--workers emulated runs no command; expected no command, or --workers per-gpu"},
        {{"submit", "--gpu", "1"}, {"x"}, "--gpu"},
        {{"submit", "--gpus", "1", "x"}, {}, "x"}}) {
    const Outcome outcome = Invoke(words, rest);
    ASSERT_FALSE(outcome.status.ok());
    EXPECT_EQ(outcome.status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(Contains(outcome.status.error().message, what)) << outcome.status.error().message;
  }
}

// A cluster with node d1; each submission is the next job.
v1::ClientReply NextJob(const v1::ClientRequest& request, int& jobs) {
  if (request.has_submit()) {
    v1::ClientReply reply = SubmitReplyWith(v1::WAITING);
    reply.mutable_submit()->set_job(static_cast<std::uint64_t>(++jobs));
    reply.mutable_submit()->add_ignored("the choice of devices has no effect");
    return reply;
  }
  v1::ClientReply reply;
  v1::NodeStatus& node = *reply.mutable_nodes()->add_nodes();
  node.set_node("d1");
  node.set_gpus(4);
  reply.mutable_nodes()->set_time_scale(1000);
  return reply;
}

// Two apps; the first line is the later one.
constexpr std::string_view kWorkload =
    "arch,depth,batch,workers,port,arrival_time,cuda_device,end_iter,end_epoch\n"
    "vgg,13,256,12,10000,200,{'d1':[0 1]},500,2\n"
    "resnet,18,64,4,10001,100,{'d1':[3]},500,1\n";

TEST(SubmitTest, AppsOfAWorkloadAreSubmittedInTheOrderOfTheirArrival) {
  const ScratchFolder folder;
  const std::string file = folder.Write("w.csv", kWorkload);
  int jobs = 0;
  FakeController controller([&jobs](const auto& request) { return NextJob(request, jobs); });
  testing::internal::CaptureStderr();
  const Outcome outcome =
      Invoke({"submit", "--controller", controller.address(), "--workload", file, "--user", "ann",
              "--env", "BATCH={batch}", "--max-restarts", "2", "--token", "mine"},
             {"train", "--arch={arch}{depth}"});
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_EQ(outcome.out,
            "job 1 submitted: resnet18-line3, 1 GPU (1 of 2)\n"
            "job 2 submitted: vgg13-line2, 2 GPUs (2 of 2)\n");
  EXPECT_TRUE(Contains(said, "app 1 of 2, resnet18-line3, arrives in ")) << said;
  EXPECT_TRUE(Contains(said, "Trainyard sets MASTER_ADDR and MASTER_PORT")) << said;
  EXPECT_EQ(said.find("no effect"), said.rfind("no effect")) << said;  // once for all
  const v1::SubmitRequest second = controller.requests().at(2).submit();
  EXPECT_EQ(second.client_token(), "mine-line2");
  EXPECT_EQ(second.job().user(), "ann");
  EXPECT_EQ(second.job().devices(0).node(), "d1");
  EXPECT_EQ(second.job().launch().command(1), "--arch=vgg13");
  EXPECT_EQ(second.job().launch().environment(0).value(), "256");
  EXPECT_EQ(second.job().launch().max_restarts(), 2);
  EXPECT_EQ(second.job().launch().workers(), v1::LaunchSpec::PER_GPU);
}

TEST(SubmitTest, AppsOfAWorkloadCanBeSubmittedAtOnceAndShownAsJson) {
  const ScratchFolder folder;
  int jobs = 0;
  FakeController controller([&jobs](const auto& request) { return NextJob(request, jobs); });
  testing::internal::CaptureStderr();
  const Outcome outcome =
      Invoke({"submit", "--controller", controller.address(), "--workload",
              folder.Write("w.csv", kWorkload), "--at-once", "--workers", "emulated", "--json"});
  EXPECT_FALSE(Contains(testing::internal::GetCapturedStderr(), "arrives in"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_TRUE(outcome.out.starts_with("[\n  {\n    \"job\": 1,")) << outcome.out;
  EXPECT_TRUE(Contains(outcome.out, "\"job\": 2,")) << outcome.out;
  EXPECT_EQ(controller.requests().at(1).submit().job().launch().workers(),
            v1::LaunchSpec::EMULATED);
}

TEST(SubmitTest, AWorkloadIsCheckedBeforeItsFirstAppIsSubmitted) {
  const ScratchFolder folder;
  const std::string file = folder.Write("w.csv", kWorkload);
  int jobs = 0;
  FakeController controller([&jobs](const auto& request) { return NextJob(request, jobs); });
  const auto message = [&](const std::string& workload, const std::vector<std::string>& rest) {
    const Outcome outcome =
        Invoke({"submit", "--controller", controller.address(), "--workload", workload}, rest);
    return outcome.status.ok() ? "no error" : outcome.status.error().message;
  };
  EXPECT_TRUE(Contains(message(file, {"x", "{lr}"}), "unknown placeholder 'lr'"));
  EXPECT_TRUE(Contains(message(file, {}), "no command"));
  std::string elsewhere(kWorkload);
  elsewhere.replace(elsewhere.rfind("d1"), 2, "d9");
  EXPECT_TRUE(Contains(message(folder.Write("v.csv", elsewhere), {"x"}),
                       "v.csv:3: node 'd9' is not in cluster"));
  EXPECT_EQ(jobs, 0);
  EXPECT_FALSE(Invoke({"submit", "--at-once", "--gpus", "1"}, {"x"}).status.ok());
  EXPECT_FALSE(Invoke({"submit", "--workload", file, "--wait"}, {"x"}).status.ok());
}

TEST(SubmitTest, AnAppThatTheControllerRefusesEndsTheWorkload) {
  const ScratchFolder folder;
  const std::string file = folder.Write("w.csv", kWorkload);
  int jobs = 0;
  FakeController controller([&jobs](const v1::ClientRequest& request) {
    return request.has_submit() && jobs == 1 ? NotFound("trainyard: it cannot run here")
                                             : NextJob(request, jobs);
  });
  testing::internal::CaptureStderr();
  const Outcome outcome = Invoke(
      {"submit", "--controller", controller.address(), "--workload", file, "--at-once"}, {"x"});
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "1 of 2 apps are submitted\n"));
  EXPECT_EQ(outcome.out, "job 1 submitted: resnet18-line3, 1 GPU (1 of 2)\n");
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().message, file + ":2: trainyard: it cannot run here");
}

TEST(StatusTest, ListsLiveJobs) {
  FakeController controller([](const auto&) { return JobsReplyWith(v1::RUNNING); });
  const Outcome outcome = Invoke({"status", "--controller", controller.address()});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.out,
            "job  name      user  state    gpus  attempt  where     submitted  run time  deadline  "
            "reason\n"
            "12   bert?[2J  ann   running  4     1        n0:0-2,6  2m00s ago  45.0s     -         "
            "-\n")
      << outcome.out;
  EXPECT_TRUE(controller.requests().at(0).jobs().live_only());
  EXPECT_TRUE(Invoke({"status", "--all", "--controller", controller.address()}).status.ok());
  EXPECT_FALSE(controller.requests().at(1).jobs().live_only());
}

TEST(StatusTest, ListsTheJobsOfAllPages) {
  FakeController controller([](const v1::ClientRequest& request) {
    v1::ClientReply reply = JobsReplyWith(v1::RUNNING);
    reply.mutable_jobs()->mutable_jobs(0)->set_job(request.jobs().after() + 12);
    reply.mutable_jobs()->set_next(request.jobs().after() < 24 ? request.jobs().after() + 12 : 0);
    return reply;
  });
  const Outcome outcome = Invoke({"status", "--controller", controller.address()});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4) << outcome.out;
  EXPECT_TRUE(Contains(outcome.out, "\n12 ") && Contains(outcome.out, "\n24 ") &&
              Contains(outcome.out, "\n36 "))
      << outcome.out;
  EXPECT_EQ(controller.requests().at(2).jobs().after(), 24U);
  EXPECT_TRUE(controller.requests().at(2).jobs().live_only());
}

TEST(StatusTest, DescribesJobs) {
  FakeController controller([](const auto&) { return JobsReplyWith(v1::COMPLETED); });
  const Outcome outcome = Invoke({"status", "12", "--controller", controller.address()});
  EXPECT_TRUE(Contains(outcome.out, "state:        completed\n")) << outcome.out;
  EXPECT_EQ(controller.requests().at(0).jobs().jobs(0), 12U);
  EXPECT_FALSE(controller.requests().at(0).jobs().live_only());
}

TEST(StatusTest, JsonHasNumbersAndNulls) {
  FakeController controller([](const auto&) { return JobsReplyWith(v1::RUNNING); });
  const Outcome outcome = Invoke({"status", "--json", "--controller", controller.address()});
  EXPECT_TRUE(Contains(outcome.out, "\"job\": 12,")) << outcome.out;
  EXPECT_TRUE(Contains(outcome.out, "\"state\": \"running\""));
  EXPECT_TRUE(Contains(outcome.out, "\"deadline\": null"));
  EXPECT_FALSE(Contains(outcome.out, "\"version\"") || Contains(outcome.out, "\"next\""));
  EXPECT_TRUE(Contains(outcome.out, "\"now\": 1120.0"));
}

// Controllers keep them to themselves; empty lists would say that there are none.
TEST(StatusTest, JsonLeavesCommandAndEnvironmentOut) {
  v1::ClientReply reply = JobsReplyWith(v1::RUNNING);
  reply.mutable_jobs()->mutable_jobs(0)->mutable_request()->mutable_launch()->set_working_directory(
      "/data/ann");
  FakeController controller([&reply](const auto&) { return reply; });
  const Outcome outcome = Invoke({"status", "12", "--json", "--controller", controller.address()});
  EXPECT_TRUE(Contains(outcome.out, "\"working_directory\": \"/data/ann\"")) << outcome.out;
  EXPECT_FALSE(Contains(outcome.out, "\"command\"")) << outcome.out;
  EXPECT_FALSE(Contains(outcome.out, "\"environment\"")) << outcome.out;
}

TEST(StatusTest, AnExitCodeIsShownWhereItIsKnown) {
  v1::ClientReply reply = JobsReplyWith(v1::CANCELLED);
  FakeController controller([&reply](const auto&) { return reply; });
  const auto shown = [&controller] {
    return Invoke({"status", "12", "--controller", controller.address()}).out;
  };
  EXPECT_FALSE(Contains(shown(), "exit code")) << shown();
  reply.mutable_jobs()->mutable_jobs(0)->set_exit_code(143);
  EXPECT_TRUE(Contains(shown(), "exit code:    143\n")) << shown();
}

TEST(StatusTest, AJobThatThereIsNotHidesNoOthers) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply = JobsReplyWith(v1::RUNNING);
    reply.mutable_jobs()->add_unknown(98);
    reply.mutable_jobs()->add_unknown(99);
    return reply;
  });
  const Outcome outcome =
      Invoke({"status", "12", "98", "99", "--controller", controller.address()});
  EXPECT_TRUE(Contains(outcome.out, "job:          12\n")) << outcome.out;
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().message, "there are no jobs 98, 99");
}

TEST(StatusTest, AJobIsNamedByItsNumber) {
  for (const char* const word : {"x", "-5", "0", "1.5"}) {
    EXPECT_EQ(Invoke({"status", "--", word}).status.error().message,
              "'" + std::string(word) +
                  "' is no job; expected its number, or ARRAY_INDEX for a task of an array");
  }
}

TEST(StatusTest, WithoutAControllerItSaysSo) {
  const Outcome outcome = Invoke({"status", "--controller", "127.0.0.1:1"});
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_TRUE(outcome.status.error().message.starts_with("no controller answers at 127.0.0.1:1;"));
}

// A log in two parts; the job has a second attempt.
v1::ClientReply TwoAttempts(const v1::ClientRequest& request) {
  v1::ClientReply reply;
  if (request.has_jobs()) {
    v1::JobStatus& job = *reply.mutable_jobs()->add_jobs();
    job.set_attempt(2);
    job.set_state(v1::COMPLETED);
    return reply;
  }
  const std::uint32_t attempt = request.logs().attempt() == 0 ? 1 : request.logs().attempt();
  const std::string text = attempt == 1 ? std::string("one\0\xff", 5) : "two";
  const std::uint64_t offset = request.logs().offset();
  v1::LogsReply& logs = *reply.mutable_logs();
  logs.set_attempt(attempt);
  logs.set_data(text.substr(offset, 2));
  logs.set_next_offset(offset + logs.data().size());
  logs.set_finished(logs.next_offset() == text.size());
  return reply;
}

TEST(LogsTest, CopiesTheBytesOfOneAttempt) {
  FakeController controller(TwoAttempts);
  const Outcome outcome = Invoke({"logs", "12", "--controller", controller.address()});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.out, std::string("one\0\xff", 5));
}

TEST(LogsTest, FollowingGoesOnToTheLastAttempt) {
  int attempt = 0;
  FakeController controller([&attempt](const v1::ClientRequest& request) {
    v1::ClientReply reply = TwoAttempts(request);
    if (request.has_jobs()) {  // waits, runs, runs again, has ended
      v1::JobStatus& job = *reply.mutable_jobs()->mutable_jobs(0);
      job.set_attempt(static_cast<unsigned>(std::min(attempt, 2)));
      job.set_state(attempt < 3 ? v1::RUNNING : v1::COMPLETED);
      ++attempt;
    }
    return reply;
  });
  testing::internal::CaptureStderr();
  const Outcome outcome = Invoke({"logs", "-f", "12", "--controller", controller.address()});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.out, std::string("one\0\xff", 5) + "two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "trainyard: attempt 2\n");
}

TEST(LogsTest, FollowingAJobThatFailsFails) {
  FakeController controller([](const v1::ClientRequest& request) {
    v1::ClientReply reply = TwoAttempts(request);
    if (request.has_jobs()) {
      v1::JobStatus& job = *reply.mutable_jobs()->mutable_jobs(0);
      job.set_job(12);
      job.set_attempt(1);
      job.set_state(v1::FAILED);
      job.set_reason("a worker ended with exit code 3");
    }
    return reply;
  });
  const Outcome outcome = Invoke({"logs", "-f", "12", "--controller", controller.address()});
  EXPECT_EQ(outcome.out, std::string("one\0\xff", 5));
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().message, "job 12 has failed: a worker ended with exit code 3");
}

TEST(LogsTest, AnEmptyLogIsExplained) {
  FakeController controller([](const v1::ClientRequest& request) {
    v1::ClientReply reply;
    if (request.has_jobs()) {
      v1::JobStatus& job = *reply.mutable_jobs()->add_jobs();
      job.set_job(12);
      job.set_state(v1::FAILED);
      job.set_reason("there is no program 'x'");
    } else {
      reply.mutable_logs()->set_attempt(1);
      reply.mutable_logs()->set_finished(true);
    }
    return reply;
  });
  testing::internal::CaptureStderr();
  const Outcome outcome = Invoke({"logs", "12", "--controller", controller.address()});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: worker 0 of job 12 has written nothing in attempt 1; the job is failed: "
            "there is no program 'x'\n");
}

TEST(CancelTest, IsOneCallAndReportsTheFirstError) {
  FakeController controller([](const v1::ClientRequest& request) {
    EXPECT_EQ(request.cancel().selection().jobs_size(), 2);
    v1::ClientReply reply;
    v1::Changed& changed = *reply.mutable_cancel()->mutable_changed();
    *changed.add_jobs() = JobWith(v1::STOPPING);
    v1::LeftOut& left = *changed.add_left_out();
    left.set_code(kNotFound);
    left.set_why("there is no job 7");
    return reply;
  });
  const Outcome outcome = Invoke({"cancel", "7", "12", "--controller", controller.address()});
  ASSERT_FALSE(outcome.status.ok());
  EXPECT_EQ(outcome.status.error().message, "there is no job 7");
  EXPECT_EQ(outcome.out, "job 12 is stopping\n");
  EXPECT_EQ(controller.requests().size(), 1U);
}

TEST(CancelTest, AnEmptyFilterSelectsNoJobs) {
  FakeController controller([](const auto&) { return v1::ClientReply(); });
  for (const char* const command : {"cancel", "hold", "release", "requeue", "status", "wait"}) {
    for (const std::string option : {"--queue", "--user", "--name", "--state"}) {
      const Outcome outcome = Invoke({command, option, "", "--controller", controller.address()});
      EXPECT_EQ(outcome.status.error().code, ErrorCode::kInvalidArgument) << command;
      EXPECT_TRUE(outcome.status.error().message.starts_with(option + " has an empty value;"))
          << command << ": " << outcome.status.error().message;
    }
  }
  EXPECT_EQ(controller.requests().size(), 0U);
}

v1::JobStatus TaskWith(int index, v1::JobState state) {
  v1::JobStatus job = JobWith(state);
  job.set_job(12 + static_cast<std::uint64_t>(index));
  job.set_array_job(12);
  job.set_array_index(index);
  return job;
}

TEST(CancelTest, JobsAreToldInTheOrderOfTheirNumbers) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply;
    v1::Changed& changed = *reply.mutable_cancel()->mutable_changed();
    for (const int task : {1, 2, 0}) {
      *changed.add_jobs() = TaskWith(task, task == 0 ? v1::STOPPING : v1::CANCELLED);
    }
    *changed.add_jobs() = JobWith(v1::WAITING);
    changed.mutable_jobs(3)->set_job(9);
    return reply;
  });
  EXPECT_EQ(Invoke({"cancel", "9", "12", "--controller", controller.address()}).out,
            "job 9 is waiting\njob 12_0 is stopping\njob 12_[1-2] is cancelled\n");
}

TEST(WaitTest, ATimeoutIsNoNegativeTime) {
  EXPECT_EQ(Invoke({"wait", "12", "--timeout", "-5"}).status.error().message,
            "--timeout: -5: expected a number of at least 0");
}

TEST(RunTest, AWorkerThatThereWillNotBeIsRefusedBeforeTheSubmission) {
  FakeController controller([](const auto&) { return v1::ClientReply(); });
  const auto run = [&controller](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--controller", controller.address()});
    return Invoke(options, {"true"}).status.error();
  };
  EXPECT_EQ(run({"--gpus", "2", "--rank", "2"}).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run({"--gpus", "2", "--rank", "5"}).message,
            "--rank is 5, and the job has 2 workers; expected 0 to 1");
  EXPECT_EQ(run({"--gpus", "2:4", "--rank", "4"}).message,
            "--rank is 4, and the job has 4 workers; expected 0 to 3");
  EXPECT_EQ(run({"--gpus", "2", "--workers", "once", "--rank", "1"}).message,
            "--rank is 1, and the job has 1 worker; expected 0");
  EXPECT_EQ(run({"--gpus", "0", "--tasks", "3", "--rank", "3"}).message,
            "--rank is 3, and the job has 3 workers; expected 0 to 2");
  EXPECT_EQ(controller.requests().size(), 0U);
}

TEST(AuditTest, NothingThatFitsIsSaidOnce) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply;
    reply.mutable_audit();
    return reply;
  });
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Invoke({"audit", "--controller", controller.address()}).status.ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trainyard: nothing of that is in the audit trail\n");
}

TEST(RunTest, TheOutputOfAnArrayComesEachLineBehindItsTask) {
  int asked = 0;
  FakeController controller([&asked](const v1::ClientRequest& request) {
    if (request.has_submit()) {
      v1::ClientReply reply = SubmitReplyWith(v1::WAITING);
      reply.mutable_submit()->mutable_status()->mutable_request()->set_array("0-2");
      return reply;
    }
    if (request.has_logs()) {
      const v1::LogsRequest& logs = request.logs();
      const std::string text = logs.job() == 12      ? "one\ntwo\n"
                               : logs.attempt() == 1 ? "lost\n"
                                                     : "no line end";
      const std::size_t at = static_cast<std::size_t>(logs.offset());
      v1::ClientReply reply;
      reply.mutable_logs()->set_data(text.substr(std::min(at, text.size()), 4));
      reply.mutable_logs()->set_next_offset(std::min(at + 4, text.size()));
      reply.mutable_logs()->set_attempt(logs.attempt());
      reply.mutable_logs()->set_finished(at + 4 >= text.size() && asked > 2);
      return reply;
    }
    // The first runs, then both have ended; the third never had its turn.
    ++asked;
    v1::ClientReply reply;
    *reply.mutable_jobs()->add_jobs() = TaskWith(0, asked > 2 ? v1::COMPLETED : v1::RUNNING);
    *reply.mutable_jobs()->add_jobs() = TaskWith(1, asked > 2 ? v1::FAILED : v1::WAITING);
    *reply.mutable_jobs()->add_jobs() = TaskWith(2, asked > 2 ? v1::CANCELLED : v1::WAITING);
    reply.mutable_jobs()->mutable_jobs(1)->set_attempt(asked > 2 ? 2 : 0);
    reply.mutable_jobs()->mutable_jobs(1)->set_exit_code(asked > 2 ? 3 : 0);
    reply.mutable_jobs()->mutable_jobs(2)->set_attempt(0);
    return reply;
  });
  const Outcome outcome =
      Invoke({"run", "--controller", controller.address(), "--gpus", "1", "--array", "0-2"}, {"x"});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.error().message;
  EXPECT_EQ(outcome.out,
            "12_0: one\n12_0: two\n12_1: lost\n12_1: no line end\njob 12_0 completed\n"
            "job 12_1 failed (exit code 3)\njob 12_2 cancelled\n");
}

TEST(UpdateTest, TasksOfAnArrayThatAreAlikeShareALine) {
  FakeController controller([](const v1::ClientRequest& request) {
    EXPECT_EQ(request.update().values().time_s(), 3600);
    v1::ClientReply reply;
    v1::Changed& changed = *reply.mutable_update()->mutable_changed();
    for (int task = 0; task < 1000; ++task) {
      v1::JobStatus& job = *changed.add_jobs() = TaskWith(task, v1::WAITING);
      v1::JobEvent& event = *job.add_history();
      event.set_what("updated time");
      event.set_before(task == 7 ? "2h" : "30m");
      event.set_after("1h");
    }
    return reply;
  });
  EXPECT_EQ(Invoke({"update", "12", "--time", "1h", "--controller", controller.address()}).out,
            "job 12_[0-6,8-999] is waiting; time 30m -> 1h\n"
            "job 12_7 is waiting; time 2h -> 1h\n");
}

TEST(ResizeTest, SendsTheNumber) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply;
    *reply.mutable_resize()->mutable_status() = JobWith(v1::RUNNING);
    return reply;
  });
  const Outcome outcome =
      Invoke({"resize", "12", "--gpus", "8", "--controller", controller.address()});
  EXPECT_EQ(outcome.out, "job 12 is to have 8 GPUs; it is running\n");
  EXPECT_EQ(controller.requests().at(0).resize().gpus(), 8);
  EXPECT_EQ(Invoke({"resize", "12", "--gpus", "1", "--controller", controller.address()}).out,
            "job 12 is to have 1 GPU; it is running\n");
}

TEST(NodesTest, ListsAndDrains) {
  FakeController controller([](const v1::ClientRequest& request) {
    v1::NodeStatus node;
    node.set_node("n0");
    node.set_up(true);
    node.set_gpus(8);
    node.set_gpus_used(6);
    node.set_drained(request.drain().drain());
    v1::ClientReply reply;
    if (request.has_drain()) {
      *reply.mutable_drain()->add_nodes() = node;
    } else {
      *reply.mutable_nodes()->add_nodes() = node;
      reply.mutable_nodes()->set_policy("las");
    }
    return reply;
  });
  const Outcome nodes = Invoke({"nodes", "--controller", controller.address()});
  EXPECT_TRUE(Contains(nodes.out, "n0    up     6/8")) << nodes.out;
  EXPECT_TRUE(Contains(nodes.out, "1 of 1 node up, 6 of their 8 GPUs in use; policy las\n"));
  EXPECT_FALSE(Contains(nodes.out, "silent"));
  FakeController quiet([](const v1::ClientRequest&) {
    v1::ClientReply reply;
    v1::NodeStatus& node = *reply.mutable_nodes()->add_nodes();
    node.set_node("n0");
    node.set_up(true);
    node.set_silent(true);
    node.set_gpus(8);
    return reply;
  });
  const Outcome silent = Invoke({"nodes", "--controller", quiet.address()});
  EXPECT_TRUE(Contains(silent.out, "n0    silent")) << silent.out;
  EXPECT_TRUE(Contains(silent.out, "0 of 1 node up, 0 of their 0 GPUs in use")) << silent.out;
  EXPECT_EQ(Invoke({"drain", "n0", "--controller", controller.address()}).out,
            "node n0 is up, drained\n");
  EXPECT_EQ(Invoke({"undrain", "n0", "--controller", controller.address()}).out, "node n0 is up\n");
  Invoke({"drain", "n0", "--reason", "new disk", "--controller", controller.address()});
  EXPECT_EQ(controller.requests().back().drain().reason(), "new disk");
}

TEST(NodesTest, DrainedNodesAreToldInTheOrderOfTheirNumbers) {
  FakeController controller([](const auto&) {
    v1::ClientReply reply;
    for (const char* const name : {"n2", "n10", "n1"}) {
      reply.mutable_drain()->add_nodes()->set_node(name);
    }
    return reply;
  });
  EXPECT_EQ(Invoke({"undrain", "n[1-10]", "--controller", controller.address()}).out,
            "node n1 is down\nnode n2 is down\nnode n10 is down\n");
}

TEST(NodesTest, SaysWhoHasDrainedThem) {
  FakeController controller([](const v1::ClientRequest&) {
    v1::ClientReply reply;
    const auto add = [&reply](const std::string& name, const std::string& by,
                              const std::string& reason) {
      v1::NodeStatus& node = *reply.mutable_nodes()->add_nodes();
      node.set_node(name);
      node.set_drained(name != "n3");
      node.set_changed_by(by);
      node.set_reason(reason);
    };
    add("n0", "drained by olga (uid 1003, operator) at NOON: new disk", "");
    add("n1", "drained by the controller at NOON", "3 failures in a row");
    add("n2", "", "3 failures in a row");  // by a controller of an earlier version
    add("n3", "undrained by olga (uid 1003, operator) at NOON", "");
    return reply;
  });
  const std::string out = Invoke({"nodes", "--controller", controller.address()}).out;
  EXPECT_TRUE(Contains(out,
                       "n0 is drained by olga (uid 1003, operator) at NOON: new disk; 'trainyard "
                       "undrain n0' gives it jobs again\n"
                       "n1 is drained by the controller at NOON: 3 failures in a row; 'trainyard "
                       "undrain n1' when that is put right\n"
                       "n2 is drained by the controller: 3 failures in a row; 'trainyard undrain "
                       "n2' when that is put right\n0 of 4 nodes up"))
      << out;
}

}  // namespace
}  // namespace trainyard::cli
