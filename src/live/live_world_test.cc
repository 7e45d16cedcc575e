// SPDX-License-Identifier: Apache-2.0
#include "live/live_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "support/opened_controller.h"
#include "trainyard/version.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

// First come, first served.
class Fifo final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "fifo"; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {Seconds(job.spec->submit)}};
  }
};
// The lowest free GPUs of the first nodes that have any.
class Lowest final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "lowest"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    int gpus = demand.gpus;
    Slices slices;
    for (std::size_t i = 0; i < free.cluster().nodes.size() && gpus > 0; ++i) {
      Slice slice{.node = NodeAt(i)};
      for (std::uint64_t bit = 1; bit != 0 && gpus > 0; bit <<= 1U) {
        if ((free.gpus(slice.node) & bit) != 0) {
          slice.gpus |= bit;
          --gpus;
        }
      }
      if (slice.gpus != 0) {
        slices.push_back(slice);
      }
    }
    return gpus == 0 ? std::optional(slices) : std::nullopt;
  }
};

class Nobody final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "nobody"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& /*snapshot*/,
                                           Memory* /*memory*/) const override {
    return {};
  }
};

// By the names of jobs. The first two of "pair" are interleaved on node a, unless "alone" has it;
// all of "crowd" are on GPU 0 of node b, with four loader workers; "holder" has node b, or, as long
// as there is a crowd, holds GPU 1 there.
class ByName final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "by-name"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.may = {.share = true, .name_gpus = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    std::map<std::string, std::vector<JobId>> jobs;
    for (const JobId job : snapshot.jobs->live()) {
      jobs[snapshot.jobs->spec(job).name].push_back(job);
    }
    Proposal proposal;
    if (snapshot.up(NodeAt(0))) {
      AddToA(jobs, proposal);
    }
    if (snapshot.up(NodeAt(1))) {
      AddToB(jobs, proposal);
    }
    return proposal;
  }

 private:
  static void AddToA(std::map<std::string, std::vector<JobId>>& jobs, Proposal& proposal) {
    if (!jobs["alone"].empty()) {
      proposal.demands.push_back(
          {.job = jobs["alone"].front(), .gpus = 2, .slices = {{.node = NodeAt(0), .gpus = 3}}});
    } else if (const std::vector<JobId>& pair = jobs["pair"]; !pair.empty()) {
      proposal.demands.push_back({.job = pair.front(),
                                  .gpus = 2,
                                  .slices = {{.node = NodeAt(0), .gpus = 3}},
                                  .sharing = Sharing::kInterleaved});
      if (pair.size() > 1) {
        proposal.demands.back().partners = {pair[1]};
      }
    }
  }
  static void AddToB(std::map<std::string, std::vector<JobId>>& jobs, Proposal& proposal) {
    const std::vector<JobId>& crowd = jobs["crowd"];
    for (const JobId job : crowd) {
      const int workers = 4 / static_cast<int>(crowd.size());
      proposal.demands.push_back(
          {.job = job,
           .gpus = 1,
           .slices = {{.node = NodeAt(1), .gpus = 1, .loader_workers = workers}},
           .sharing = Sharing::kCollocated});
    }
    for (const JobId job : jobs["holder"]) {
      const bool all = crowd.empty();
      proposal.demands.push_back({.job = job,
                                  .gpus = all ? 2 : 1,
                                  .slices = {{.node = NodeAt(1), .gpus = all ? 3U : 2U}},
                                  .running = all});
    }
  }
};

// A controller of two nodes with two GPUs each, and what it says.
class LiveWorldTest : public OpenedController {
 protected:
  LiveWorldTest() { Open(); }

  [[nodiscard]] ControllerSetup SetUpOf() override {
    Cluster cluster;
    cluster.nodes = {{.name = "a", .gpus = 2}, {.name = "b", .gpus = 2}};
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return {.engine = {.configuration = engine::Share({.rules = rules,
                                                       .cluster = cluster,
                                                       .bundle = bundle_,
                                                       .rates = rates_.get(),
                                                       .profiles = profiles_,
                                                       .policy = "fifo",
                                                       .traits = policy_traits_,
                                                       .promises = promises_}),
                       .measured = profile::MeasuredBook()},
            .live = {.heartbeat = seconds(5),
                     .lease = seconds(60),
                     .grace = seconds(10),
                     .margin = seconds(5),
                     .max_live_jobs = most_jobs_,
                     .epoch = 7},
            .snapshots = snapshots_};
  }
  void Hello(std::uint64_t connection, const std::string& node,
             const std::vector<v1::AttemptReport>& attempts = {}, int gpus = 2) {
    Hear(connection, HelloOf(node, attempts, gpus));
  }
  static v1::ClientRequest Submission(int gpus, const std::string& token = "") {
    v1::ClientRequest request;
    v1::SubmitRequest& submit = *request.mutable_submit();
    submit.set_client_token(token);
    submit.mutable_job()->set_gpus(gpus);
    submit.mutable_job()->mutable_launch()->add_command("train");
    return request;
  }
  std::uint64_t Submit(int gpus) {
    const v1::ClientReply reply = Call(Submission(gpus));
    EXPECT_TRUE(reply.has_submit()) << reply.error().message();
    return reply.submit().job();
  }
  v1::JobStatus StatusOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1));
  }
  v1::JobState StateOf(std::uint64_t job) { return StatusOf(job).state(); }
  // The kinds of what a connection has been told since the last call.
  std::vector<v1::ControllerMessage> Heard(std::uint64_t connection) {
    return std::exchange(said_.messages[connection], {});
  }
  std::string KindsHeard(std::uint64_t connection) {
    std::string kinds;
    for (const v1::ControllerMessage& message : Heard(connection)) {
      kinds += message.has_welcome()     ? "welcome "
               : message.has_fetch()     ? "fetch "
               : message.has_start()     ? "start "
               : message.has_stop()      ? "stop "
               : message.has_tune()      ? "tune "
               : message.has_forget()    ? "forget "
               : message.has_heartbeat() ? "heartbeat "
               : message.has_refusal()   ? "refusal "
                                         : "? ";
    }
    return kinds;
  }
  std::string ErrorOf(const v1::ClientRequest& request) { return Call(request).error().message(); }

  Fifo fifo_;
  Lowest lowest_;
  scheduler::Bundle bundle_{.ordering = &fifo_, .placement = &lowest_, .admission = &everyone_};
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  PolicyTraits policy_traits_{};
  const profile::ThroughputTable* profiles_ = nullptr;
  bool promises_ = false;
  std::size_t most_jobs_ = 100'000;
};

TEST_F(LiveWorldTest, AJobWaitsForANodeAndRunsToItsEnd) {
  const std::uint64_t job = Submit(2);
  EXPECT_EQ(job, 1U);
  EXPECT_EQ(StateOf(job), v1::WAITING);
  Hello(10, "a");
  EXPECT_EQ(KindsHeard(10), "welcome start ");
  EXPECT_EQ(StateOf(job), v1::STARTING);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(job), v1::RUNNING);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(job), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

// Nothing lies between the two, so that it can never start, whenever the controller dies.
TEST_F(LiveWorldTest, AJobThatIsSubmittedHeldIsOneEntryOfTheJournal) {
  const auto entries = [this] {
    int count = 0;
    EXPECT_TRUE(store_
                    .Read(1,
                          [&count](std::string_view /*block*/) {
                            ++count;
                            return Status();
                          })
                    .ok());
    return count;
  };
  Hello(10, "a");
  const int before = entries();
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_hold(true);
  EXPECT_TRUE(Call(request).submit().status().held());
  EXPECT_EQ(entries(), before + 1);
  request.mutable_submit()->mutable_job()->set_array("0-1");
  EXPECT_EQ(Call(request).submit().job(), 2U);
  EXPECT_EQ(entries(), before + 2);
  EXPECT_EQ(KindsHeard(10), "welcome ");
  Open();
  Hello(11, "a");
  EXPECT_EQ(KindsHeard(11), "welcome ");
  EXPECT_TRUE(StatusOf(1).held() && StatusOf(2).held() && StatusOf(3).held());
  v1::ClientRequest release;
  release.mutable_hold()->set_job(3);
  EXPECT_FALSE(Call(release).hold().status().held());
  EXPECT_EQ(KindsHeard(11), "start ");
  EXPECT_EQ(StateOf(1), v1::WAITING);
}

TEST_F(LiveWorldTest, AStartSaysWhatAWorkerNeeds) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(3);
  Heard(10);
  const std::vector<v1::ControllerMessage> heard = Heard(11);
  ASSERT_EQ(heard.size(), 2U);
  const v1::StartAttempt& start = heard[1].start();
  EXPECT_EQ(heard[1].epoch(), 7U);
  EXPECT_EQ(start.world_size(), 3);
  EXPECT_EQ(start.first_rank(), 2);
  EXPECT_EQ(start.node_rank(), 1);
  EXPECT_EQ(start.nodes(), 2);
  ASSERT_EQ(start.node_workers_size(), 2);
  EXPECT_EQ(start.node_workers(0), 2);
  EXPECT_EQ(start.node_workers(1), 1);
  EXPECT_EQ(start.master_address(), "a.example");
  EXPECT_EQ(start.gpus_size(), 1);
  EXPECT_EQ(start.job_name(), "job-1");
  EXPECT_EQ(start.launch().command(0), "train");
}

// The next job must not wait for the time at which the first was expected to end.
TEST_F(LiveWorldTest, AnEndThatComesSoonerThanExpectedIsAnEnd) {
  Hello(10, "a");
  Submit(2);
  Submit(2);
  Heard(10);
  Step(seconds(3));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "start forget ");
}

TEST_F(LiveWorldTest, TheSameTokenIsTheSameJob) {
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);
  EXPECT_EQ(Call(Submission(1, "yours")).submit().job(), 2U);
  controller_->world().OnCall(100, Submission(1, "twice at once"));
  controller_->world().OnCall(101, Submission(1, "twice at once"));
  Step();
  EXPECT_EQ(said_.replies[100].submit().job(), said_.replies[101].submit().job());
  Open();
  EXPECT_EQ(Call(Submission(1, "yours")).submit().job(), 2U);
}

TEST_F(LiveWorldTest, ATokenOfAnotherRequestIsRefused) {
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);
  EXPECT_EQ(ErrorOf(Submission(2, "mine")),
            "the token 'mine' is that of job 1, which is another request (gpus: 1 -> 2); expected "
            "the same one, or another token");
  v1::ClientRequest other = Submission(1, "mine");
  other.mutable_submit()->mutable_job()->mutable_launch()->set_command(0, "test");
  EXPECT_EQ(ErrorOf(other),
            "the token 'mine' is that of job 1, which is another request (launch.command[0]: "
            "\"train\" -> \"test\"); expected the same one, or another token");
  v1::ClientRequest resize;
  resize.mutable_resize()->set_job(1);
  resize.mutable_resize()->set_gpus(2);
  Call(resize);
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);  // as it was submitted
  Open();
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);
  EXPECT_EQ(controller_->world().jobs(), 1U);
}

TEST_F(LiveWorldTest, ADeadlineByTheClockIsTheSameWheneverItIsSaid) {
  v1::ClientRequest request = Submission(1, "mine");
  request.mutable_submit()->mutable_job()->set_deadline_s(3600);
  EXPECT_EQ(Call(request).submit().job(), 1U);
  Step(seconds(600));
  EXPECT_EQ(Call(request).submit().job(), 1U);  // in an hour, as before
  request.mutable_submit()->mutable_job()->set_deadline_s(3000.5);
  EXPECT_EQ(Call(request).submit().job(), 1U);  // at the same time of day
  request.mutable_submit()->mutable_job()->set_deadline_s(1800);
  EXPECT_TRUE(ErrorOf(request).starts_with("the token 'mine' is that of job 1, which is another"));
}

TEST_F(LiveWorldTest, AModelWithoutAProfileIsTold) {
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->set_model("resnet");
  EXPECT_EQ(Call(request).submit().ignored_size(), 0);  // a label, where nothing is profiled
  const profile::ThroughputTable nothing{};
  profiles_ = &nothing;
  Open();
  const v1::SubmitReply reply = Call(request).submit();
  ASSERT_EQ(reply.ignored_size(), 1);
  EXPECT_EQ(reply.ignored(0),
            "model 'resnet' is not in the controller's profiles: its throughput is not known");
}

TEST_F(LiveWorldTest, WhatThePolicyDoesNotHeedIsTold) {
  v1::ClientRequest request = Submission(1);
  EXPECT_EQ(Call(request).submit().ignored_size(), 0);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_priority(3);
  request.mutable_submit()->mutable_job()->set_queue("night");
  const v1::SubmitReply reply = Call(request).submit();
  ASSERT_EQ(reply.ignored_size(), 2);
  EXPECT_EQ(reply.ignored(0), "priority 3 has no effect: policy 'fifo' does not heed priorities");
  EXPECT_EQ(reply.ignored(1), "queue 'night' has no effect: policy 'fifo' does not heed queues");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->add_gpu_types("A100");
  request.mutable_submit()->mutable_job()->add_gpu_types("V100");
  const v1::SubmitReply typed = Call(request).submit();
  ASSERT_EQ(typed.ignored_size(), 1);
  EXPECT_EQ(typed.ignored(0),
            "GPU types 'A100|V100' have no effect: no node of the cluster states its type");
}

TEST_F(LiveWorldTest, AVariableThatTrainyardSetsIsRefused) {
  for (const char* const name : {"RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", "TRAINYARD_CPUS",
                                 "TRAINYARD_ATTEMPT_FOLDER", "job_id"}) {
    v1::ClientRequest request = Submission(1);
    v1::EnvironmentVariable& variable =
        *request.mutable_submit()->mutable_job()->mutable_launch()->add_environment();
    variable.set_name(name);
    variable.set_value("0");
    EXPECT_EQ(ErrorOf(request), "the environment variable " + std::string(name) +
                                    " is set by Trainyard itself; expected another name");
    variable.set_name("TRAINYARD_CONTROLLER");
    EXPECT_EQ(ErrorOf(request), "");
    request.mutable_submit()->mutable_job()->mutable_launch()->mutable_environment(0)->set_name(
        "PATH");
    EXPECT_EQ(ErrorOf(request), "");
  }
}

TEST_F(LiveWorldTest, UnknownJobsHideNoOthers) {
  Submit(1);
  v1::ClientRequest request;
  for (const std::uint64_t job : {7U, 1U, 0U}) {
    request.mutable_jobs()->add_jobs(job);
  }
  const v1::JobsReply reply = Call(request).jobs();
  ASSERT_EQ(reply.jobs_size(), 1);
  EXPECT_EQ(reply.jobs(0).job(), 1U);
  EXPECT_EQ(reply.unknown_size(), 2);
}

TEST_F(LiveWorldTest, StagesDoNotGoWithPoliciesThatChooseTheNumberOfGpus) {
  policy_traits_.may.resize = true;
  Open();
  v1::ClientRequest request = Submission(1);
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_iterations(100);
  for (const double time : {0.1, 0.3, 0.05}) {
    job.mutable_stages()->add_stages_s(time);
  }
  job.mutable_stages()->set_iteration_s(0.3);
  EXPECT_EQ(ErrorOf(request),
            "policy 'fifo' chooses the number of GPUs by the model's profile, and stages say how "
            "fast the job is on one number only; expected it without stages");
  policy_traits_.may.resize = false;
  Open();
  EXPECT_EQ(ErrorOf(request), "");
}

TEST_F(LiveWorldTest, WithoutIterationsAndDeadlineAJobKeepsTheGpusThatItAsksFor) {
  policy_traits_.may.resize = true;
  Open();
  v1::ClientRequest request = Submission(1);
  EXPECT_EQ(ErrorOf(request), "");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->set_deadline_s(3600);
  EXPECT_TRUE(ErrorOf(request).starts_with("policy 'fifo' needs a job's iterations"))
      << ErrorOf(request);
  request.mutable_submit()->mutable_job()->set_best_effort(true);
  EXPECT_EQ(ErrorOf(request), "");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->set_iterations(100);
  EXPECT_TRUE(ErrorOf(request).starts_with("policy 'fifo' needs a job's iterations"));
}

TEST_F(LiveWorldTest, ADeadlineIsPromisedOnlyByAPolicyThatJudges) {
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->set_deadline_s(3600);
  EXPECT_FALSE(Call(request).submit().status().promised());
  promises_ = true;
  Open();
  EXPECT_TRUE(Call(request).submit().status().promised());
  EXPECT_FALSE(Call(Submission(1)).submit().status().promised());  // it has none
}

TEST_F(LiveWorldTest, AVerdictThatWillNotComeIsAnsweredByTheEnd) {
  Nobody nobody;
  bundle_.admission = &nobody;
  store_ = FailingStore();
  Open();
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->set_wait_for_verdict(true);
  controller_->world().OnCall(50, request);
  Step();
  EXPECT_EQ(said_.replies.count(50), 0U);
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "not yet admitted");
  request.mutable_cancel()->set_job(1);
  Call(request);
  ASSERT_EQ(said_.replies.count(50), 1U);
  EXPECT_EQ(said_.replies[50].submit().status().state(), v1::CANCELLED);
  controller_.reset();
}

TEST_F(LiveWorldTest, WorkersThatDoNotLeaveAreNamed) {
  Hello(10, "a");
  Submit(2);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  report.add_gpus(1);
  Tell(10, report);
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Step(seconds(14));
  report.set_state(v1::AttemptReport::STOPPING);
  Tell(10, report);
  Step(seconds(2));
  EXPECT_EQ(StatusOf(1).reason(),
            "had notice 16.0s ago and has not left a within 10.0s; the agent's output there says "
            "why");
  Step(seconds(20));
  EXPECT_EQ(StatusOf(1).reason(), "had notice 36.0s ago; no word from a");
  Tell(10, report);
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  drain.mutable_drain()->set_drain(false);
  Call(drain);
  Submit(1);
  EXPECT_EQ(StateOf(2), v1::STARTING);
  EXPECT_EQ(StatusOf(2).reason(), "job 1 has not left a yet");
  report.set_state(v1::AttemptReport::EXITED);
  Tell(10, report);
  EXPECT_EQ(StatusOf(2).reason(), "");
}

TEST_F(LiveWorldTest, RunTimeIsTimeWithGpus) {
  const auto run_time = [this] { return controller_->world().StatusOf(JobAt(0)).run_s(); };
  Submit(1);
  Step(seconds(100));
  EXPECT_EQ(run_time(), 0);
  Hello(10, "a");
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(30));
  EXPECT_EQ(run_time(), 30);
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Step(seconds(2));
  EXPECT_EQ(StateOf(1), v1::STOPPING);
  EXPECT_EQ(StatusOf(1).reason(),
            "had notice 2.0s ago: it saves itself and leaves, or is killed after 10.0s");
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  Step(seconds(50));
  EXPECT_EQ(run_time(), 30);
  drain.mutable_drain()->set_drain(false);
  Call(drain);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  Step(seconds(5));
  Tell(10, Report(1, 2, v1::AttemptReport::EXITED));
  Step(seconds(50));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(run_time(), 35);
}

TEST_F(LiveWorldTest, ASilentNodeIsShownSo) {
  const auto silent = [this] {
    v1::ClientRequest request;
    request.mutable_nodes();
    return Call(request).nodes().nodes(0).silent();
  };
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  EXPECT_EQ(Call(nodes).nodes().nodes(0).last_heard(), 0);
  EXPECT_FALSE(silent());  // it is down
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(10));
  EXPECT_FALSE(silent());
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "");
  Step(seconds(1));  // more than two heartbeats
  EXPECT_TRUE(silent());
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).up());
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "no word from a");
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(10, beat);
  EXPECT_FALSE(silent());
  controller_->world().OnAgentGone(10);
  EXPECT_TRUE(silent());  // at once
}

// --------------------------------------------------------------------------------- why jobs wait

class WhyItWaitsTest : public LiveWorldTest {
 protected:
  // Nobody overtakes.
  class Strict final : public Ordering {
   public:
    [[nodiscard]] std::string_view name() const override { return "strict"; }
    [[nodiscard]] OrderingTraits traits() const override {
      return {.walk = {.misfit = Misfit::kStop, .preempt = false}};
    }
    [[nodiscard]] Standing StandingOf(const JobView& /*job*/, TimePoint /*now*/,
                                      const Memory* /*memory*/) const override {
      return {};
    }
  };
  WhyItWaitsTest() {
    bundle_.ordering = &strict_;
    store_ = FailingStore();
    Open();
    Hello(10, "a");
    Hello(11, "b");
  }
  ~WhyItWaitsTest() override { controller_.reset(); }
  [[nodiscard]] std::string ReasonOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1)).reason();
  }

  Strict strict_;
};

TEST_F(WhyItWaitsTest, BehindABlockedHead) {
  Submit(3);
  Submit(4);
  Submit(1);
  Submit(2);
  EXPECT_EQ(ReasonOf(1), "");
  const std::string behind =
      "behind job 2, which asks for 4 GPUs: not enough free GPUs: 1 of 4 free, it asks for 4";
  EXPECT_EQ(ReasonOf(2),
            "not enough free GPUs: 1 of 4 free, it asks for 4; it is the next in line");
  EXPECT_EQ(ReasonOf(3), behind);
  EXPECT_EQ(ReasonOf(4), behind);
  Open();  // and after a restart
  EXPECT_EQ(ReasonOf(3), behind);
}

TEST_F(WhyItWaitsTest, NodesThatAreAwayAreNamed) {
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Submit(4);
  EXPECT_EQ(ReasonOf(1),
            "not enough free GPUs: 2 of 2 free, it asks for 4; it is the next in line; drained: a");
  controller_->world().OnAgentGone(11);
  Step(seconds(75));
  EXPECT_EQ(ReasonOf(1),
            "not enough free GPUs: 0 of 0 free, it asks for 4; it is the next in line; drained: a; "
            "down: b");
}

TEST_F(WhyItWaitsTest, BehindAHeadThatAvoidsNodes) {
  Submit(2);
  Submit(2);
  v1::AttemptReport failed = Report(1, 1, v1::AttemptReport::EXITED, 126);
  failed.set_cause(v1::AttemptReport::DEVICE);
  failed.set_message("GPU 0: is lost");
  Tell(10, failed);
  Submit(1);
  EXPECT_TRUE(ReasonOf(1).ends_with("; avoids a: GPU 0: is lost")) << ReasonOf(1);
  const std::string why = base::ReplaceAll(ReasonOf(1), "it is the next in line; ", "");
  EXPECT_EQ(ReasonOf(3), "behind job 1, which asks for 2 GPUs: " + why);
}

TEST_F(WhyItWaitsTest, OneGpuIsOne) {
  Submit(4);
  Submit(1);
  Submit(2);
  EXPECT_EQ(ReasonOf(3),
            "behind job 2, which asks for 1 GPU: not enough free GPUs: 0 of 4 free, it asks for 1");
}

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

class NodeFaultTest : public LiveWorldTest {
 protected:
  NodeFaultTest() {
    Hello(10, "a");
    Hello(11, "b");
  }
  // Could not be started, or ended so.
  void Fail(std::uint64_t connection, std::uint64_t job, std::uint32_t attempt,
            v1::AttemptReport::Cause cause, const std::string& why, double failed_at = 0) {
    v1::AttemptReport report = Report(job, attempt, v1::AttemptReport::EXITED, 126);
    report.set_cause(cause);
    report.set_message(why);
    report.set_failed_at(failed_at);
    Tell(connection, report);
  }
  std::string WhereIs(std::uint64_t job) {
    std::string nodes;
    const v1::JobStatus status = StatusOf(job);
    for (const v1::NodeGrant& grant : status.grants()) {
      nodes += grant.node();
    }
    return nodes;
  }
  void Beat(std::uint64_t connection) {
    v1::AgentMessage beat;
    beat.mutable_heartbeat()->set_number(1);
    controller_->world().OnAgent(connection, beat);
    Step(seconds(1));
  }
};

constexpr const char* kFull = "/s/attempts/1-1: cannot be made: No space left on device";

TEST_F(NodeFaultTest, AJobGoesOnElsewhereIfItsNodeCannotRunIt) {
  Submit(2);
  EXPECT_EQ(WhereIs(1), "a");
  Fail(10, 1, 1, v1::AttemptReport::DISK, kFull);
  EXPECT_EQ(WhereIs(1), "b");
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  EXPECT_EQ(StatusOf(1).attempt(), 2U);
}

TEST_F(NodeFaultTest, OneBadNodeFailsNoneOfManyJobs) {
  for (int job = 1; job <= 6; ++job) {
    Submit(2);
  }
  EXPECT_EQ(WhereIs(1) + WhereIs(2), "ab");
  for (const std::uint64_t job : {1U, 3U, 4U}) {
    Fail(10, job, 1, v1::AttemptReport::DISK, kFull);
  }
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  const v1::NodeStatus bad = Call(nodes).nodes().nodes(0);
  EXPECT_TRUE(bad.drained());
  EXPECT_EQ(bad.reason(), std::string("3 failures in a row, the last: ") + kFull);
  EXPECT_EQ(bad.changed_by(), "drained by the controller at 1970-01-01T00:00:00Z");
  EXPECT_EQ(StatusOf(1).reason(),
            std::string("not enough free GPUs: 0 of 2 free, it asks for 2; it is the next in "
                        "line; drained: a; avoids a: ") +
                kFull);
  Open();
  Hello(11, "b", {Report(2, 1, v1::AttemptReport::RUNNING)});
  Hello(10, "a");
  const v1::NodeStatus still = Call(nodes).nodes().nodes(0);
  EXPECT_TRUE(still.drained());
  EXPECT_EQ(still.reason(), bad.reason());
  EXPECT_EQ(still.changed_by(), bad.changed_by());
  std::uint64_t running = 2;
  for (const std::uint64_t next : {1U, 3U, 4U, 5U, 6U}) {
    Tell(11, Report(running, StatusOf(running).attempt(), v1::AttemptReport::EXITED));
    EXPECT_EQ(StateOf(running), v1::COMPLETED);
    EXPECT_EQ(WhereIs(next), "b");
    running = next;
  }
}

TEST_F(NodeFaultTest, ANodeThatCannotEndAnAttemptGetsNoFurtherJobs) {
  Submit(2);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  v1::AttemptReport stuck = Report(1, 1, v1::AttemptReport::STOPPING);
  stuck.set_unended("trainyard-launcher has not ended attempt 1 of job 1: no control groups");
  Tell(10, stuck);
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).drained());
  EXPECT_EQ(Call(nodes).nodes().nodes(0).reason(), stuck.unended());
  EXPECT_EQ(Call(nodes).nodes().nodes(0).changed_by(),
            "drained by the controller at 1970-01-01T00:00:00Z");
  Submit(2);
  Submit(2);
  EXPECT_EQ(WhereIs(2), "b");
  EXPECT_EQ(StatusOf(3).reason(),
            "not enough free GPUs: 0 of 2 free, it asks for 2; it is the next in line; drained: a");
  // A fault of all nodes does not clear the cluster.
  v1::AttemptReport other = Report(2, 1, v1::AttemptReport::STOPPING);
  other.set_unended(stuck.unended());
  Tell(11, other);
  EXPECT_FALSE(Call(nodes).nodes().nodes(1).drained());
  Open();
  Hello(11, "b", {Report(2, 1, v1::AttemptReport::RUNNING)});
  Hello(10, "a", {stuck});
  EXPECT_EQ(Call(nodes).nodes().nodes(0).reason(), stuck.unended());
  v1::ClientRequest undrain;
  undrain.mutable_drain()->set_node("a");
  Call(undrain);
  Tell(10, stuck);
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).drained()) << "it is not better";
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  Call(undrain);
  EXPECT_EQ(WhereIs(3), "a");
}

TEST_F(NodeFaultTest, AnUndrainedNodeIsTriedAgain) {
  Submit(2);
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::SPAWN, "no process");
  EXPECT_EQ(StateOf(1), v1::WAITING);
  v1::ClientRequest undrain;
  undrain.mutable_drain()->set_node("a");
  Call(undrain);
  EXPECT_EQ(WhereIs(1), "a");
}

TEST_F(NodeFaultTest, ANodeWithAnotherAgentIsTriedAgainAlsoAfterARestartOfTheController) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "has had notice");
  EXPECT_EQ(StateOf(1), v1::WAITING);
  const std::string reason =
      "no node is left for it; it avoids a: GPU 0: is lost. It may try a "
      "node again after 'undrain NODE' or a restart of its agent";
  EXPECT_EQ(StatusOf(1).reason(), reason);
  Open();
  Hello(12, "a");
  Hello(13, "b");
  EXPECT_EQ(StatusOf(1).reason(), reason);
  controller_->world().OnAgentGone(12);
  v1::AgentMessage renewed = HelloOf("a");
  renewed.mutable_hello()->set_start("second");
  controller_->world().OnAgent(14, renewed);
  Step();
  EXPECT_EQ(WhereIs(1), "ab");
}

TEST_F(NodeFaultTest, NodesThatAreAwayAreNamedBesideThoseThatAJobAvoids) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "has had notice");
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("b");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  EXPECT_EQ(StatusOf(1).reason(),
            "no node is left for it; it avoids a: GPU 0: is lost. It may try a node again after "
            "'undrain NODE' or a restart of its agent; drained: b");
}

TEST_F(NodeFaultTest, AJobThatWaitsForANodeStandsInNobodysWay) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Submit(2);
  EXPECT_EQ(WhereIs(2), "a");  // though first come is first served
}

TEST_F(NodeFaultTest, ATypoFailsOnTheSecondNode) {
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::NO_PROGRAM, "command 'pyton': No such file or directory");
  EXPECT_EQ(WhereIs(1), "b");
  Fail(11, 1, 2, v1::AttemptReport::NO_PROGRAM, "command 'pyton': No such file or directory");
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).exit_code(), 126);
}

TEST_F(NodeFaultTest, AGangIsBlamedOnTheNodeThatFailedFirst) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);  // its peers are gone
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Fail(10, 1, 1, v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone");
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  Step(seconds(1));
  EXPECT_NE(StateOf(1), v1::FAILED);
}

TEST_F(NodeFaultTest, AGangsFailureIsItsOwnOnceAllItsNodesHaveBeenHeardOf) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  Beat(11);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Beat(10);  // it may have been on its way
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Step(seconds(5));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Beat(10);
  EXPECT_EQ(StateOf(1), v1::FAILED);
}

class ThreeNodesTest : public NodeFaultTest {
 protected:
  ThreeNodesTest() {
    Open();
    Hello(10, "a");
    Hello(11, "b");
    Hello(12, "c");
  }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = NodeFaultTest::SetUpOf();
    engine::Configuration configuration = *setup.engine.configuration;
    configuration.cluster.nodes.push_back({.name = "c", .gpus = 2});
    setup.engine.configuration = engine::Share(std::move(configuration));
    return setup;
  }
};

// Messages may be many when a pause of the controller is over.
TEST_F(ThreeNodesTest, AGangIsJudgedWhenAllThatHasArrivedIsTaken) {
  Submit(6);
  for (const std::uint64_t connection : {10U, 11U, 12U}) {
    Tell(connection, Report(1, 1, v1::AttemptReport::RUNNING));
  }
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  Step(seconds(6));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(10, beat);
  for (const std::uint64_t connection : {12U, 10U}) {
    v1::AgentMessage message;
    v1::AttemptReport& report = *message.mutable_attempt();
    report = Report(1, 1, v1::AttemptReport::EXITED, 1);
    report.set_cause(connection == 10 ? v1::AttemptReport::DEVICE
                                      : v1::AttemptReport::CAUSE_UNSPECIFIED);
    controller_->world().OnAgent(connection, message);
  }
  Step();
  EXPECT_NE(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
}

TEST_F(NodeFaultTest, AGangWhoseNodeDiesIsNotBlamed) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  controller_->world().OnAgentGone(10);
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  for (int beat = 0; beat < 120; ++beat) {
    Beat(11);
  }
  EXPECT_EQ(StateOf(1), v1::WAITING);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
}

TEST_F(NodeFaultTest, AttemptsThatVanishHaveABound) {
  Submit(2);
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_EQ(StatusOf(1).attempt(), attempt);
    const std::uint64_t connection = WhereIs(1) == "a" ? 10 : 11;
    Tell(connection, Report(1, attempt, v1::AttemptReport::RUNNING));
    Fail(connection, 1, attempt, v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone");
    Step(seconds(1 << (attempt - 1)));
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).reason(),
            "its supervisor has vanished in 4 attempts in a row; a job must leave the process that "
            "starts it alone");
}

TEST_F(NodeFaultTest, AReasonOnAllNodesMakesStartsWait) {
  Submit(2);
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::DISK, kFull);
  Heard(10);
  Heard(11);
  Fail(11, 2, 1, v1::AttemptReport::DISK, kFull);
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "forget ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
  EXPECT_EQ(StatusOf(1).reason(),
            std::string("all starts wait: the same fault on several nodes: ") + kFull);
  Step(seconds(1));
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "start start ");
}

v1::ClientRequest As(v1::ClientRequest request, std::uint32_t uid, v1::Caller::Role role) {
  v1::Caller& caller = *request.mutable_caller();
  caller.set_uid(uid);
  caller.set_user("user" + std::to_string(uid));
  caller.set_role(role);
  return request;
}

TEST_F(LiveWorldTest, AJobWaitsForNoneThatItsUserMayNotSee) {
  ASSERT_EQ(Call(As(Submission(1), 1001, v1::Caller::USER)).submit().job(), 1U);
  ASSERT_EQ(Call(As(Submission(1), 1002, v1::Caller::USER)).submit().job(), 2U);
  const auto waiting_for = [](const std::string& jobs) {
    v1::ClientRequest request = Submission(1);
    request.mutable_submit()->mutable_job()->set_dependency("afterok:" + jobs);
    return request;
  };
  const auto told = [&](const std::string& job) {  // for it, and its number
    std::string message = ErrorOf(As(waiting_for(job), 1002, v1::Caller::USER));
    for (std::size_t at = message.find(job); at != std::string::npos; at = message.find(job)) {
      message.replace(at, job.size(), "N");
    }
    return message;
  };
  EXPECT_EQ(told("1"), "there is no earlier job N, for which dependency 'afterok:N' waits");
  EXPECT_EQ(told("1"), told("9"));
  EXPECT_TRUE(Call(As(waiting_for("2"), 1002, v1::Caller::USER)).has_submit());
  EXPECT_TRUE(Call(As(waiting_for("1"), 1003, v1::Caller::OPERATOR)).has_submit());
  // Nor by an update: it is the owner's right that counts.
  v1::ClientRequest update;
  update.mutable_update()->set_job(3);
  update.mutable_update()->add_fields("dependency");
  update.mutable_update()->mutable_values()->set_dependency("afterok:1");
  EXPECT_TRUE(ErrorOf(As(update, 1002, v1::Caller::USER)).starts_with("there is no earlier job 1"));
}

TEST_F(LiveWorldTest, ADrainedNodeSaysWhoDrainedItWhenAndWhy) {
  Hello(10, "a");
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  drain.mutable_drain()->set_reason("new disk");
  EXPECT_EQ(Call(As(drain, 1003, v1::Caller::OPERATOR)).drain().status().changed_by(),
            "drained by user1003 (uid 1003, operator) at 1970-01-01T00:00:00Z: new disk");
  Step(std::chrono::hours(30));
  drain.mutable_drain()->set_drain(false);
  drain.mutable_drain()->clear_reason();
  EXPECT_EQ(Call(As(drain, 0, v1::Caller::ADMIN)).drain().status().changed_by(),
            "undrained by user0 (uid 0, admin) at 1970-01-02T06:00:00Z");
  drain.mutable_drain()->set_reason(std::string(201, 'x'));
  EXPECT_EQ(ErrorOf(drain), "the reason has 201 bytes; expected at most 200");
}

TEST_F(LiveWorldTest, AContainerThatNoNodeCanRunIsRefused) {
  v1::ClientRequest contained = Submission(1);
  contained.mutable_submit()->mutable_job()->mutable_launch()->mutable_container()->set_image("i");
  const auto hello = [this](std::uint64_t connection, const std::string& node, bool isolates) {
    v1::AgentMessage message = HelloOf(node);
    message.mutable_hello()->set_isolates(isolates);
    controller_->world().OnAgent(connection, message);
    Step();
  };
  EXPECT_TRUE(Call(contained).has_submit());  // nobody knows yet
  hello(10, "a", true);
  EXPECT_EQ(ErrorOf(contained),
            "it names the container image 'i', and all nodes that it may run on start jobs by "
            "trainyard-launcher, which gives them no further rights (no_new_privs), without which "
            "podman starts nothing; expected no --container-image");
  EXPECT_TRUE(Call(Submission(1)).has_submit());
  hello(11, "b", false);
  EXPECT_TRUE(Call(contained).has_submit());
}

TEST_F(LiveWorldTest, AFailureEndsAJobThatMayNotTryAgain) {
  Hello(10, "a");
  const std::uint64_t job = Submit(1);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 3);
  report.set_message("worker 0 exited with 3");
  Tell(10, report);
  EXPECT_EQ(StateOf(job), v1::FAILED);
  const v1::JobStatus status = controller_->world().StatusOf(JobAt(0));
  EXPECT_EQ(status.exit_code(), 3);
  EXPECT_EQ(status.reason(), "worker 0 exited with 3");
  store_.DropSnapshots();  // the journal alone says so, too
  Open();
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "worker 0 exited with 3");
}

TEST_F(LiveWorldTest, ATimeLimitIsTheReasonWhateverTheAttemptSaysAtItsEnd) {
  Hello(10, "a");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->set_time_s(60);
  Call(request);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(61));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 137);
  report.set_message("killed after its grace");
  Tell(10, report);
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(),
            "it has reached its time limit of 1m00s");
}

TEST_F(LiveWorldTest, AJobThatAdvancesNoMoreSaysSo) {
  Hello(10, "a");
  Call(Submission(1));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  const auto advance = [&](double iterations) {
    report.set_iterations(iterations);
    Tell(10, report);
  };
  const auto wait = [&](std::uint64_t connection, int time) {  // the agent lives on
    for (int i = 0; i < time; ++i) {
      now_ += seconds(1);
      Tell(connection, report);
    }
  };
  advance(0);
  wait(10, 1200);
  EXPECT_EQ(StatusOf(1).reason(), "");  // it has never said anything: it may not be able to
  EXPECT_FALSE(StatusOf(1).has_progressed());
  advance(118);  // 20 minutes after its start
  wait(10, 1);
  advance(119);
  EXPECT_DOUBLE_EQ(StatusOf(1).progressed(), Seconds(now_));
  wait(10, 3599);
  EXPECT_EQ(StatusOf(1).reason(), "");
  wait(10, 1);
  EXPECT_EQ(StatusOf(1).reason(), "no progress for 1h00m (iteration 119)");
  advance(120);
  EXPECT_EQ(StatusOf(1).reason(), "");

  Open();  // how long its steps take is forgotten, and what it said
  Hello(12, "a", {report});
  wait(12, 59);
  EXPECT_EQ(StatusOf(1).reason(), "");
  wait(12, 1);
  EXPECT_EQ(StatusOf(1).reason(), "no progress for 1m00s (iteration 120)");
}

TEST_F(LiveWorldTest, AJobThatKeepsOthersWaitingSaysSoForAsLongAsItDoes) {
  Hello(10, "a");
  Call(Submission(1));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  report.set_late("stage load goes on for too long");
  Tell(10, report);
  EXPECT_EQ(StatusOf(1).reason(), "stage load goes on for too long");
  report.clear_late();
  Tell(10, report);
  EXPECT_EQ(StatusOf(1).reason(), "");
}

TEST_F(LiveWorldTest, AFailureIsTriedAgainAsOftenAsTheJobSays) {
  Hello(10, "a");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_max_restarts(1);
  Call(request);
  Heard(10);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 3));
  EXPECT_EQ(KindsHeard(10), "forget ");
  EXPECT_EQ(StatusOf(1).reason(),
            "waits 1 s after failure 1 in a row: a worker failed with exit code 3");
  EXPECT_DOUBLE_EQ(StatusOf(1).next_try(), Seconds(now_ + seconds(1)));
  Step(seconds(1));
  EXPECT_EQ(KindsHeard(10), "start ");
  EXPECT_FALSE(StatusOf(1).has_next_try());
  EXPECT_EQ(StatusOf(1).last_failure(), 3);
  Open();  // the count survives
  Hello(12, "a", {Report(1, 2, v1::AttemptReport::RUNNING)});
  Tell(12, Report(1, 2, v1::AttemptReport::EXITED, 3));
  EXPECT_EQ(StateOf(1), v1::FAILED);
}

TEST_F(LiveWorldTest, LostWorkersAreNobodysFault) {
  Hello(10, "a");
  Submit(1);
  Heard(10);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 137);
  report.set_lost(true);
  Tell(10, report);
  EXPECT_EQ(KindsHeard(10), "start forget ");
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).failures(), 0U);
}

TEST_F(LiveWorldTest, AResizedJobStopsBeforeItStartsAgain) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  EXPECT_EQ(Call(request).resize().status().request().gpus(), 2);
  EXPECT_EQ(KindsHeard(10), "stop ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
  now_ += seconds(4);
  v1::AttemptReport left = Report(1, 1, v1::AttemptReport::EXITED);
  left.set_finished(false);  // it has had notice
  left.set_lost(true);
  Tell(10, left);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].start().gpus_size(), 2);
  EXPECT_EQ(heard[0].start().id().attempt(), 2U);
  EXPECT_EQ(heard[1].forget().id().attempt(), 1U);
  now_ += seconds(2);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  const v1::JobStatus status = controller_->world().StatusOf(JobAt(0));
  EXPECT_DOUBLE_EQ(status.stop_took_s(), 4);
  EXPECT_DOUBLE_EQ(status.start_took_s(), 6);  // from the grant: it had to wait for the old attempt
  EXPECT_EQ(status.resizes(), 1U);
  EXPECT_EQ(status.preemptions(), 0U);
}

TEST_F(LiveWorldTest, AFullControllerTakesNoJobAndStillResizes) {
  most_jobs_ = 1;
  Open();
  Submit(1);
  EXPECT_EQ(ErrorOf(Submission(1)), "there are 1 jobs already, as many as the controller takes");
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  EXPECT_EQ(Call(request).resize().status().request().gpus(), 2);
}

TEST_F(LiveWorldTest, AJobThatFinishesAfterItsNoticeIsDone) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  Call(request);
  Heard(10);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED);
  Tell(10, report);
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

TEST_F(LiveWorldTest, ACancelledJobIsStoppedAndStaysSo) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  EXPECT_EQ(Call(request).cancel().status().state(), v1::CANCELLED);
  EXPECT_EQ(KindsHeard(10), "stop ");
  EXPECT_EQ(ErrorOf(request), "") << "the same call once more";
  EXPECT_FALSE(StatusOf(1).has_exit_code());  // nobody knows yet
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(StateOf(1), v1::CANCELLED);
  EXPECT_EQ(StatusOf(1).exit_code(), 143);
  Open();
  EXPECT_FALSE(StatusOf(1).has_exit_code());  // no journal has it
}

TEST_F(LiveWorldTest, ACancelledGangHasTheFirstExitCodeThatIsNotZero) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(request);
  v1::AttemptReport saved = Report(1, 1, v1::AttemptReport::EXITED);
  saved.set_finished(false);
  Tell(10, saved);
  EXPECT_TRUE(StatusOf(1).has_exit_code());
  EXPECT_EQ(StatusOf(1).exit_code(), 0);
  Tell(11, Report(1, 1, v1::AttemptReport::EXITED, 137));
  EXPECT_EQ(StatusOf(1).exit_code(), 137);
}

TEST_F(LiveWorldTest, AJobThatIsCancelledBeforeItHasRunHasNoExitCode) {
  Submit(1);
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  EXPECT_FALSE(Call(request).cancel().status().has_exit_code());
}

TEST_F(LiveWorldTest, ACancelIsNoPreemption) {
  Hello(10, "a");
  const auto drain = [this](bool on) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node("a");
    request.mutable_drain()->set_drain(on);
    Call(request);
    Step(seconds(1));
  };
  const auto cancel = [this](std::uint64_t job) {
    v1::ClientRequest request;
    request.mutable_cancel()->set_job(job);
    Call(request);
    Step(seconds(1));
  };
  v1::AttemptReport left = Report(1, 1, v1::AttemptReport::EXITED, 143);
  left.set_lost(true);
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  drain(true);
  Tell(10, left);
  cancel(1);  // as it waits
  drain(false);
  Submit(1);
  Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));
  Step(seconds(1));
  cancel(2);  // as it runs
  EXPECT_EQ(StatusOf(1).preemptions(), 1U);
  EXPECT_EQ(StatusOf(2).preemptions(), 0U);
  Open();
  EXPECT_EQ(StatusOf(1).preemptions(), 1U);
  EXPECT_EQ(StatusOf(2).preemptions(), 0U);
}

TEST_F(LiveWorldTest, HowLongAStartOrStopTookIsSaidOnlyIfItWasSeen) {
  Hello(10, "a");
  Submit(1);
  Step(seconds(2));
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_DOUBLE_EQ(StatusOf(1).start_took_s(), 2);
  Open();
  Step(seconds(9));  // without a controller, say
  Hello(12, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_FALSE(StatusOf(1).has_start_took_s());
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(request);
  controller_->world().OnAgentGone(12);
  Step(seconds(20));
  Hello(13, "a", {Report(1, 1, v1::AttemptReport::EXITED, 137)});
  EXPECT_EQ(StatusOf(1).exit_code(), 137);
  EXPECT_FALSE(StatusOf(1).has_stop_took_s());
}

TEST_F(LiveWorldTest, AnEndWithoutNoticeIsNoStop) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(StatusOf(1).exit_code(), 0);
  EXPECT_FALSE(StatusOf(1).has_stop_took_s());
}

TEST_F(LiveWorldTest, ANodeWithoutContactLosesItsJobsWhenItsLeaseIsOver) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Hello(11, "b");
  Step(seconds(74));
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(11, beat);
  Step();
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Heard(11);
  Step(seconds(1));  // lease, grace and margin
  EXPECT_EQ(said_.closed, std::vector<std::uint64_t>{10});
  EXPECT_EQ(KindsHeard(11), "start ");
  Hello(13, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});  // a partition has ended
  EXPECT_EQ(KindsHeard(13), "welcome stop ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
}

TEST_F(LiveWorldTest, AStrayAttemptKeepsItsGpusFromOthers) {
  Hello(10, "a", {Report(5, 1, v1::AttemptReport::RUNNING)});  // of which nobody knows here
  EXPECT_EQ(KindsHeard(10), "welcome stop ");
  Submit(1);
  EXPECT_EQ(KindsHeard(10), "");
  Tell(10, Report(5, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "start forget ");
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

// ---------------------------------------------------------------------------------------- metrics

class LiveMetricsTest : public LiveWorldTest {
 protected:
  using Metrics = std::vector<std::pair<std::string, double>>;
  static v1::AttemptReport With(v1::AttemptReport report, const Metrics& metrics) {
    for (const auto& [name, value] : metrics) {
      v1::Metric& metric = *report.add_metrics();
      metric.set_name(name);
      metric.set_value(value);
    }
    return report;
  }
  void Say(const Metrics& metrics) {
    Tell(10, With(Report(1, 1, v1::AttemptReport::RUNNING), metrics));
  }
  // As the engine knows them: what policies see.
  std::vector<Metric> Known() { return controller_->engine().records()[0].reported; }
  void Run() {
    Hello(10, "a");
    Submit(1);
    Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  }
};

TEST_F(LiveMetricsTest, WhatAJobSaysReachesTheEngineAndTheJournal) {
  Run();
  const std::size_t blocks = store_.size();
  Say({{"loss", 2}, {"val/acc", 0.5}});
  EXPECT_EQ(Known(), (std::vector<Metric>{{"loss", 2}, {"val/acc", 0.5}}));
  EXPECT_EQ(store_.size(), blocks + 1);
  const std::string digest = controller_->digest();
  Open();
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(Known(), (std::vector<Metric>{{"loss", 2}, {"val/acc", 0.5}}));
}

TEST_F(LiveMetricsTest, TheJournalHoldsThemOnceInTenSecondsAndOnlyChanges) {
  Run();
  Say({{"loss", 9}});
  const std::size_t blocks = store_.size();
  for (int i = 0; i < 9; ++i) {
    Step(seconds(1));
    Say({{"loss", 8 - i}, {"steps", 1}});
  }
  EXPECT_EQ(store_.size(), blocks);
  EXPECT_EQ(Known(), (std::vector<Metric>{{"loss", 9}}));
  ASSERT_TRUE(controller_->next_wakeup().has_value());
  EXPECT_EQ(*controller_->next_wakeup(), now_ + seconds(1));
  Step(seconds(1));
  EXPECT_EQ(store_.size(), blocks + 1);
  EXPECT_EQ(Known(), (std::vector<Metric>{{"loss", 0}, {"steps", 1}}));
  Step(seconds(20));
  Say({{"loss", 0}, {"steps", 1}});
  EXPECT_EQ(store_.size(), blocks + 1);
}

TEST_F(LiveMetricsTest, ALastWordIsHeardAtOnceUnlessTheJobIsDone) {
  Run();
  Say({{"loss", 9}});
  v1::AttemptReport lost = Report(1, 1, v1::AttemptReport::EXITED, 1);
  lost.set_lost(true);
  Tell(10, With(lost, {{"loss", 3}}));
  EXPECT_EQ(Known(), (std::vector<Metric>{{"loss", 3}}));
  EXPECT_EQ(StateOf(1), v1::STARTING);
  Tell(10, With(Report(1, 2, v1::AttemptReport::RUNNING), {{"loss", 2}}));
  Tell(10, With(Report(1, 2, v1::AttemptReport::EXITED), {{"loss", 1}}));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  const std::size_t blocks = store_.size();
  Step(seconds(30));
  EXPECT_EQ(store_.size(), blocks);
}

TEST_F(LiveMetricsTest, WhatNoSupervisorSaysIsIgnored) {
  Run();
  const std::size_t blocks = store_.size();
  Say({{"lo ss", 1}, {"", 1}, {std::string(65, 'x'), 1}, {"loss", std::nan("")}});
  EXPECT_EQ(store_.size(), blocks);
  Metrics many;
  for (int i = 0; i < 40; ++i) {
    many.emplace_back("m" + std::to_string(100 + i), i);
  }
  Say(many);
  EXPECT_EQ(Known().size(), kMaxMetrics);
  Step(seconds(20));
  Say(many);
  EXPECT_EQ(store_.size(), blocks + 1) << "names that do not fit are not told again";
}

// The order to start may have been lost with the controller that gave it.
TEST_F(LiveWorldTest, AnAttemptThatItsAgentDoesNotKnowIsStartedAgain) {
  Hello(10, "a");
  Submit(1);
  Open();
  Hello(12, "a");
  EXPECT_EQ(KindsHeard(12), "welcome start ");
}

TEST_F(LiveWorldTest, LogsAreThoseOfTheLastAttemptThatHasStarted) {
  Hello(10, "a");
  Submit(1);
  v1::ClientRequest logs;
  logs.mutable_logs()->set_job(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest resize;
  resize.mutable_resize()->set_job(1);
  resize.mutable_resize()->set_gpus(2);
  Call(resize);  // the second attempt waits for the first to leave
  Heard(10);
  Call(logs);
  EXPECT_EQ(Heard(10).front().read_log().id().attempt(), 1U);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));  // it has finished: there will be no second
  Heard(10);
  Call(logs);
  EXPECT_EQ(Heard(10).front().read_log().id().attempt(), 1U);
  Submit(2);
  Submit(2);
  logs.mutable_logs()->set_job(3);
  EXPECT_EQ(ErrorOf(logs), "job 3 has not started: it is waiting (not enough free GPUs; down: b)");
}

TEST_F(LiveWorldTest, WhoHasNoLogLearnsHowTheJobStands) {
  Hello(10, "a");
  Submit(1);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 127);
  report.set_cause(v1::AttemptReport::NO_PROGRAM);
  report.set_message("virtual environment '/venv': it has no program bin/python here");
  Tell(10, report);
  Heard(10);
  v1::ClientRequest logs;
  logs.mutable_logs()->set_job(1);
  Call(logs);
  const auto asked = Heard(10);
  ASSERT_FALSE(asked.empty());
  v1::AgentMessage none;
  none.mutable_log()->set_call(asked.front().read_log().call());
  none.mutable_log()->mutable_error()->set_message("job 1: no log of rank 0 of attempt 1");
  controller_->world().OnAgent(10, none);
  Step();
  EXPECT_EQ(said_.replies[calls_].error().message(),
            "job 1: no log of rank 0 of attempt 1; it is " + StateText(StateOf(1)) + " (" +
                StatusOf(1).reason() + ")");
}

TEST_F(LiveWorldTest, ADrainedNodeGivesItsJobsAway) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Hello(11, "b");
  Heard(10);
  Heard(11);
  v1::ClientRequest request;
  request.mutable_drain()->set_node("a");
  request.mutable_drain()->set_drain(true);
  EXPECT_TRUE(Call(request).drain().status().drained());
  EXPECT_EQ(KindsHeard(10), "stop ");
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(KindsHeard(11), "start ");
  Submit(2);
  EXPECT_EQ(StateOf(2), v1::WAITING);
  request.mutable_drain()->set_drain(false);
  Call(request);
  EXPECT_EQ(StateOf(2), v1::STARTING);
}

// What is said of a node at one time holds in the order in which it was said.
TEST_F(LiveWorldTest, ANodeThatIsDrainedAsItJoinsGetsNoJobs) {
  controller_->world().OnAgent(10, HelloOf("a"));
  v1::ClientRequest request;
  request.mutable_drain()->set_node("a");
  request.mutable_drain()->set_drain(true);
  EXPECT_TRUE(Call(request).drain().status().drained());
  Submit(1);
  EXPECT_EQ(StateOf(1), v1::WAITING);
  request.mutable_drain()->set_drain(false);
  controller_->world().OnCall(100, request);
  request.mutable_drain()->set_drain(true);
  controller_->world().OnCall(101, request);
  Step();
  EXPECT_EQ(StateOf(1), v1::WAITING);
  Open();  // and so does the next controller
  Hello(12, "a");
  EXPECT_EQ(StateOf(1), v1::WAITING);
}

// ------------------------------------------------------------------------------------ shared GPUs

class SharedGpusTest : public LiveWorldTest {
 protected:
  SharedGpusTest() {
    bundle_ = {.policy = &by_name_, .admission = &everyone_};
    controller_.reset();
    store_ = FailingStore();
    Open();
    Hello(10, "a");
    Hello(11, "b");
    Heard(10);
    Heard(11);
  }
  void SubmitNamed(const std::string& name, int gpus) {
    v1::ClientRequest request = Submission(gpus);
    request.mutable_submit()->mutable_job()->set_name(name);
    EXPECT_TRUE(Call(request).has_submit());
  }
  void TellGone(std::uint64_t connection, std::uint64_t job, std::uint32_t attempt) {
    v1::AttemptReport report = Report(job, attempt, v1::AttemptReport::EXITED, 143);
    report.set_lost(true);
    Tell(connection, report);
  }
  // Two of a pair run: attempt 2 of job 1 and attempt 1 of job 2.
  void StartPair() {
    SubmitNamed("pair", 2);
    SubmitNamed("pair", 2);
    TellGone(10, 1, 1);
    Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
    Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));
    Heard(10);
  }
  static std::string Beside(const v1::StartAttempt& start) {
    std::string names;
    for (const v1::AttemptId& id : start.beside()) {
      names += std::to_string(id.job()) + "-" + std::to_string(id.attempt()) + " ";
    }
    return names;
  }

  ByName by_name_;
};

TEST_F(SharedGpusTest, AGroupStartsOnTheSameGpus) {
  SubmitNamed("pair", 2);
  EXPECT_EQ(KindsHeard(10), "start ");
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  SubmitNamed("pair", 2);
  EXPECT_EQ(KindsHeard(10), "stop ");  // other company is another attempt
  TellGone(10, 1, 1);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 3U);  // the first attempt is forgotten
  EXPECT_EQ(heard[0].start().id().job(), 1U);
  EXPECT_EQ(Beside(heard[0].start()), "");
  EXPECT_EQ(heard[1].start().id().job(), 2U);
  EXPECT_EQ(Beside(heard[1].start()), "1-2 ");
  EXPECT_EQ(heard[1].start().gpus_size(), 2);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(2), v1::RUNNING);
  v1::ClientRequest question;
  question.mutable_nodes();
  EXPECT_EQ(Call(question).nodes().nodes(0).gpus_used(), 2);
}

TEST_F(SharedGpusTest, WhoInterleavesLearnsItsPlaceAndWhatIsMeasuredCorrectsTheModel) {
  const auto submit = [this](const std::vector<double>& stages) {
    v1::ClientRequest request = Submission(2);
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_name("pair");
    job.set_model("bert");
    job.mutable_stages()->set_iteration_s(0.6);
    job.mutable_stages()->mutable_stages_s()->Assign(stages.begin(), stages.end());
    EXPECT_TRUE(Call(request).has_submit());
  };
  const auto stages = [this](std::size_t job) {
    return controller_->engine().records()[job].spec->traits->stages;
  };
  submit({0.4, 0.1, 0.1});
  submit({0.1, 0.3, 0.1});
  TellGone(10, 1, 1);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 5U);
  EXPECT_EQ(heard[2].start().turns().position(), 1);
  EXPECT_EQ(heard[3].start().turns().position(), 0);
  EXPECT_DOUBLE_EQ(heard[3].start().turns().iteration_s(), 0.6);
  EXPECT_FALSE(heard[0].start().has_turns());  // it was alone then
  v1::AttemptReport report = Report(2, 1, v1::AttemptReport::RUNNING);
  report.set_note("a note");
  report.set_group_iteration_s(0.7);
  const auto add = [&report](v1::Stage stage, double seconds) {
    report.add_stages()->set_stage(stage);
    report.mutable_stages(report.stages_size() - 1)->set_seconds(seconds);
  };
  add(v1::LOAD, 0.1);
  add(v1::PREPROCESS, 0.1004);  // loading as jobs state it
  add(v1::FORWARD, 0.6);
  Tell(10, report);
  const v1::JobStatus status = controller_->world().StatusOf(JobAt(1));
  EXPECT_EQ(status.note(), "a note");
  EXPECT_DOUBLE_EQ(status.group_iteration_predicted_s(), 0.6);
  EXPECT_DOUBLE_EQ(status.group_iteration_measured_s(), 0.7);
  EXPECT_EQ(stages(1)->stages, (std::vector{0.1, 0.3, 0.1}));  // as it was submitted
  Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));  // as of another part that has said nothing
  EXPECT_EQ(controller_->world().StatusOf(JobAt(1)).note(), "a note");
  EXPECT_DOUBLE_EQ(controller_->world().StatusOf(JobAt(1)).group_iteration_measured_s(), 0.7);
  for (const double seconds : {1, 10, 30, 80, 200}) {  // the first are a start, and warm it up
    report.set_first_progress_s(1);
    report.set_progress_s(seconds);
    report.set_iterations(seconds);
    Tell(10, report);
  }
  EXPECT_NEAR(stages(1)->stages[0], 0.2004, 1e-9);
  EXPECT_EQ(stages(1)->stages[1], 0.6);
  submit({0.1, 0.3, 0.1});
  const StageTimes corrected = *stages(2);
  EXPECT_NEAR(corrected.stages[0], 0.2004, 1e-9);
  EXPECT_EQ(corrected.stages[1], 0.6);
  EXPECT_EQ(corrected.stages[2], 0.1);  // not measured
  EXPECT_NEAR(corrected.iteration, 0.6 * 0.9004 / 0.5, 1e-9);
  const std::string digest = controller_->digest();
  Open();  // from the journal
  EXPECT_EQ(controller_->digest(), digest);
  submit({0.1, 0.3, 0.1});
  EXPECT_EQ(*stages(3), corrected);
  v1::ClientRequest update;
  update.mutable_update()->set_job(4);
  update.mutable_update()->add_fields("priority");
  update.mutable_update()->mutable_values()->mutable_launch()->set_priority(3);
  EXPECT_EQ(ErrorOf(update), "");
  EXPECT_EQ(*stages(3), corrected) << "an update takes back nothing that has been measured";
  Open();
  EXPECT_EQ(*stages(3), corrected);
}

TEST_F(SharedGpusTest, AStrangerWaitsUntilTheWholeGroupHasGone) {
  StartPair();
  SubmitNamed("alone", 2);
  EXPECT_EQ(KindsHeard(10), "stop stop ");
  TellGone(10, 1, 2);
  EXPECT_EQ(KindsHeard(10), "forget ");
  TellGone(10, 2, 1);
  EXPECT_EQ(KindsHeard(10), "start forget ");
  Tell(10, Report(3, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "start start forget ");
}

// Both were interleaved, but in other groups.
TEST_F(SharedGpusTest, ANewGroupWaitsForTheOldOne) {
  StartPair();
  SubmitNamed("pair", 2);
  EXPECT_EQ(StateOf(3), v1::WAITING);
  Tell(10, Report(1, 2, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "stop forget ");
  EXPECT_EQ(StateOf(3), v1::STARTING);
  TellGone(10, 2, 1);
  EXPECT_EQ(KindsHeard(10), "start start forget ");
}

TEST_F(SharedGpusTest, WhoIsCollocatedRunsOnAndIsToldOfHisNewShare) {
  SubmitNamed("crowd", 1);
  EXPECT_EQ(Heard(11).front().start().share().loader_workers(), 4);
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  SubmitNamed("crowd", 1);
  const std::vector<v1::ControllerMessage> heard = Heard(11);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(Beside(heard[0].start()), "1-1 ");
  EXPECT_EQ(heard[0].start().share().loader_workers(), 2);
  EXPECT_EQ(heard[1].tune().id().job(), 1U);
  EXPECT_EQ(heard[1].tune().share().loader_workers(), 2);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  now_ += seconds(1);
  Tell(11, Report(2, 1, v1::AttemptReport::EXITED));
  const std::vector<v1::ControllerMessage> alone = Heard(11);
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_EQ(alone[0].tune().share().loader_workers(), 4);
  EXPECT_GT(alone[0].tune().order(), heard[1].tune().order());
}

TEST_F(SharedGpusTest, WhatAnAgentHasMissedItHearsWhenItIsBack) {
  SubmitNamed("crowd", 1);
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  controller_->world().OnAgentGone(11);
  SubmitNamed("crowd", 1);
  EXPECT_EQ(StateOf(2), v1::STARTING);
  Hello(12, "b", {Report(1, 1, v1::AttemptReport::RUNNING)});
  const std::vector<v1::ControllerMessage> heard = Heard(12);
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(Beside(heard[1].start()), "1-1 ");
  EXPECT_EQ(heard[2].tune().share().loader_workers(), 2);
}

TEST_F(SharedGpusTest, WhoOnlyHoldsGpusIsNotStarted) {
  SubmitNamed("crowd", 1);
  SubmitNamed("holder", 2);
  EXPECT_EQ(KindsHeard(11), "start ");
  EXPECT_EQ(StateOf(2), v1::WAITING);
  EXPECT_EQ(controller_->world().StatusOf(JobAt(1)).reason(),
            "holds 1 of 2 GPUs until it has them all");
  v1::ClientRequest question;
  question.mutable_nodes();
  EXPECT_EQ(Call(question).nodes().nodes(1).gpus_used(), 2);
  Tell(11, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(11), "start forget ");
  EXPECT_EQ(StateOf(2), v1::STARTING);
}

TEST_F(SharedGpusTest, AControllerThatStartsAgainKnowsWhoIsBesideWhom) {
  SubmitNamed("crowd", 1);
  SubmitNamed("crowd", 1);
  SubmitNamed("holder", 2);
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  const std::string digest = controller_->digest();
  Open();
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(StateOf(3), v1::WAITING);
  Hello(12, "b", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  const std::vector<v1::ControllerMessage> heard = Heard(12);
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard[1].start().id().job(), 2U);
  EXPECT_EQ(Beside(heard[1].start()), "1-1 ");
  EXPECT_EQ(heard[2].tune().id().job(), 1U);
}

// -------------------------------------------------------------------------- what jobs say of them

TEST_F(LiveWorldTest, WhatAJobStatesReachesTheScheduler) {
  v1::ClientRequest request = Submission(2);
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.mutable_launch()->set_priority(3);
  job.mutable_stages()->set_iteration_s(0.5);
  for (const double stage : {0.1, 0.3, 0.2}) {
    job.mutable_stages()->add_stages_s(stage);
  }
  job.add_soft_deadlines()->set_after_s(60);
  job.mutable_soft_deadlines(0)->set_value(7);
  job.add_devices()->set_node("b");
  job.mutable_devices(0)->add_gpus(1);
  job.set_loader_workers(6);
  now_ += seconds(5);
  ASSERT_TRUE(Call(request).has_submit());
  const auto spec = [this]() -> const JobSpec& { return *controller_->engine().records()[0].spec; };
  EXPECT_EQ(spec().priority, 3);
  ASSERT_NE(spec().traits, nullptr);
  EXPECT_EQ(spec().traits->stages->stages, (std::vector{0.1, 0.3, 0.2}));
  EXPECT_EQ(spec().traits->deadlines.front().at, TimePoint(seconds(65)));
  EXPECT_EQ(spec().traits->deadlines.front().value, 7);
  EXPECT_EQ(spec().traits->loader_workers, 6);
  Open();
  ASSERT_NE(spec().traits, nullptr);
  EXPECT_EQ(spec().traits->devices, (Slices{{.node = NodeAt(1), .gpus = 2}}));
  job.mutable_devices(0)->add_gpus(2);
  EXPECT_EQ(ErrorOf(request), "it names GPU 2 of node 'b', which has 2");
  job.mutable_devices(0)->set_node("c");
  EXPECT_EQ(ErrorOf(request), "it names GPUs of the unknown node 'c'");
  job.add_soft_deadlines()->set_after_s(60);
  EXPECT_NE(ErrorOf(request).find("the soft deadlines are not in order"), std::string::npos);
  job.clear_soft_deadlines();
  job.mutable_stages()->clear_stages_s();
  EXPECT_NE(ErrorOf(request).find("the stages are not"), std::string::npos);
}

TEST_F(LiveWorldTest, AgentsThatDoNotBelongAreRefused) {
  Hello(10, "c");
  ASSERT_EQ(said_.messages[10].size(), 1U);
  EXPECT_EQ(said_.messages[10][0].refusal().message(),
            "node 'c' is not in the controller's cluster file");
  Hello(11, "a", {}, 8);
  EXPECT_EQ(said_.messages[11][0].refusal().message(),
            "node 'a' has 8 GPUs; expected 2 as in the cluster file");
  EXPECT_EQ(said_.closed, (std::vector<std::uint64_t>{10, 11}));
}

TEST_F(LiveWorldTest, WhatCannotBeIsRefusedAndChangesNothing) {
  const std::size_t blocks = store_.size();
  EXPECT_EQ(ErrorOf(Submission(5)), "it asks for 5 GPUs; the cluster has 4");
  EXPECT_EQ(ErrorOf(Submission(0)), "gpus is 0; expected an integer from 1 to 6400000");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->clear_command();
  EXPECT_EQ(ErrorOf(request), "there is no command; expected one after '--'");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->set_name(std::string(257, 'x'));
  EXPECT_EQ(ErrorOf(request), "the name has control characters or more than 256 bytes");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->set_duration_s(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(ErrorOf(request), "duration is nan s; expected 1e-6 to 9000000000 s");
  request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->add_command(
      std::string(std::size_t{70} << 10, 'x'));
  EXPECT_EQ(ErrorOf(request), "command and environment have more than 64 KiB");
  request = Submission(1);
  v1::LaunchSpec& launch = *request.mutable_submit()->mutable_job()->mutable_launch();
  launch.mutable_container()->set_workdir("/work");
  EXPECT_EQ(ErrorOf(request),
            "--container-workdir needs a container; expected --container-image with it");
  launch.mutable_container()->add_mounts("/data:/data");
  EXPECT_EQ(ErrorOf(request),
            "--container-mounts needs a container; expected --container-image with it");
  launch.mutable_container()->clear_mounts();
  launch.mutable_container()->set_image("--rm");
  EXPECT_EQ(ErrorOf(request), "--container-image begins with '-'; expected the name of an image");
  launch.mutable_container()->set_image("train");
  launch.mutable_container()->add_mounts("/data:relative");
  EXPECT_EQ(ErrorOf(request),
            "--container-mounts has '/data:relative'; expected SOURCE:TARGET[:FLAG+FLAG] with "
            "absolute paths");
  launch.set_venv("/opt/venv");
  EXPECT_EQ(ErrorOf(request),
            "a container has the environment of its image; expected no --venv with "
            "--container-image");
  launch.set_launcher(v1::LaunchSpec::MPI);
  EXPECT_EQ(ErrorOf(request),
            "--launcher mpi starts its workers outside of containers; expected no "
            "--container-image, or another launcher");
  launch.clear_command();
  launch.set_workers(v1::LaunchSpec::EMULATED);
  EXPECT_EQ(ErrorOf(request),
            "--workers emulated starts no process; expected no launcher, container or virtual "
            "environment");
  request.Clear();
  EXPECT_EQ(ErrorOf(request), "an empty request");
  request.mutable_cancel()->set_job(77);
  EXPECT_EQ(ErrorOf(request), "there is no job 77");
  EXPECT_EQ(store_.size(), blocks);
}

// ------------------------------------------------------------------------------------- snapshots

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

// --------------------------------------------------------------------------------------- data sets

// Both nodes have room for copies.
class DataSetsTest : public LiveWorldTest {
 protected:
  static v1::DataReport Copies(std::uint64_t number, const std::vector<std::string>& held) {
    v1::DataReport data;
    data.set_number(number);
    data.set_cache_mib(100);
    data.set_rate_kbps(1000);
    for (const std::string& name : held) {
      v1::DataSet& set = *data.add_held();
      set.set_name(name);
      set.set_mib(40);
      set.set_home("/store");
    }
    return data;
  }
  void HelloWith(std::uint64_t connection, const std::string& node, const v1::DataReport& data,
                 const std::vector<v1::AttemptReport>& attempts = {}) {
    v1::AgentMessage message = HelloOf(node, attempts);
    *message.mutable_hello()->mutable_data() = data;
    controller_->world().OnAgent(connection, message);
    Step();
  }
  void TellCopies(std::uint64_t connection, const v1::DataReport& data) {
    v1::AgentMessage message;
    *message.mutable_data() = data;
    controller_->world().OnAgent(connection, message);
    Step();
  }
  static v1::ClientRequest With(int gpus, const std::string& name, std::int64_t mib = 40,
                                const std::string& home = "/store") {
    v1::ClientRequest request = Submission(gpus);
    v1::DataSet& set = *request.mutable_submit()->mutable_job()->mutable_data_set();
    set.set_name(name);
    set.set_mib(mib);
    set.set_home(home);
    return request;
  }
  void TellFetched(std::uint64_t connection, double fetched) {
    v1::AttemptReport report = Report(1, 1, v1::AttemptReport::FETCHING);
    report.set_fetched(fetched);
    Tell(connection, report);
  }
  std::string HeldBy(int node) {
    std::string names;
    v1::ClientRequest question;
    question.mutable_nodes();
    const v1::ClientReply reply = Call(question);
    for (const v1::DataSet& set : reply.nodes().nodes(node).data_sets()) {
      names += set.name() + " ";
    }
    return names;
  }
};

TEST_F(DataSetsTest, AGangStartsWhenAllItsNodesHaveTheData) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Heard(10);
  Heard(11);
  EXPECT_EQ(Call(With(3, "pets")).submit().job(), 1U);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].fetch().id().attempt(), 1U);
  EXPECT_EQ(heard[0].fetch().data_set().home(), "/store");
  EXPECT_EQ(Heard(11).size(), 1U);
  TellFetched(10, 0.25);
  TellFetched(11, 0.5);
  EXPECT_EQ(StateOf(1), v1::STARTING);
  EXPECT_EQ(StatusOf(1).reason(), "fetches data set pets onto a, 25 %, onto b, 50 %");
  Tell(10, Report(1, 1, v1::AttemptReport::READY));
  TellFetched(10, 0.9);  // late
  EXPECT_EQ(StatusOf(1).reason(), "fetches data set pets onto b, 50 %");
  EXPECT_TRUE(Heard(10).empty());
  Tell(11, Report(1, 1, v1::AttemptReport::READY));
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "start start ");
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(10, Report(1, 1, v1::AttemptReport::READY));  // late
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
}

TEST_F(DataSetsTest, NodesWithoutRoomAndHomesWithoutAFolderNeedNoFetch) {
  Hello(10, "a");
  HelloWith(11, "b", Copies(0, {}));
  Heard(10);
  Heard(11);
  Call(With(2, "pets"));
  EXPECT_EQ(KindsHeard(10), "start ");
  Call(With(2, "other", 40, "n7"));
  EXPECT_EQ(KindsHeard(11), "start ");
}

TEST_F(DataSetsTest, SubmitSaysWhereNoNodeKeepsCopies) {
  const v1::ClientReply alone = Call(With(2, "pets"));
  ASSERT_EQ(alone.submit().ignored_size(), 1);
  EXPECT_EQ(alone.submit().ignored(0),
            "data set 'pets' is not copied: no agent that is there has --data-cache; the job reads "
            "it at '/store'");
  EXPECT_EQ(Call(With(2, "other", 40, "n7")).submit().ignored_size(), 0);
  HelloWith(11, "b", Copies(0, {}));
  EXPECT_EQ(Call(With(2, "pets")).submit().ignored_size(), 0);
}

TEST_F(DataSetsTest, AnOrderThatIsLostIsGivenAgain) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(10);
  TellFetched(10, 0.25);
  controller_->world().OnAgentGone(10);
  Step();
  HelloWith(11, "a", Copies(1, {}));  // another agent: it knows nothing
  EXPECT_EQ(KindsHeard(11), "welcome fetch ");
  controller_->world().OnAgentGone(11);
  Step();
  HelloWith(12, "a", Copies(2, {"pets"}), {Report(1, 1, v1::AttemptReport::READY)});
  EXPECT_EQ(KindsHeard(12), "welcome start ");
  controller_->world().OnAgentGone(12);  // and with it the order to start
  Step();
  HelloWith(13, "a", Copies(2, {"pets"}), {Report(1, 1, v1::AttemptReport::READY)});
  EXPECT_EQ(KindsHeard(13), "welcome start ");
}

TEST_F(DataSetsTest, ARestartedControllerWaitsForTheDataAgain) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  TellFetched(10, 0.25);
  Open();
  HelloWith(11, "a", Copies(0, {}), {Report(1, 1, v1::AttemptReport::FETCHING)});
  EXPECT_EQ(KindsHeard(11), "welcome ");
  Tell(11, Report(1, 1, v1::AttemptReport::READY));
  EXPECT_EQ(KindsHeard(11), "start ");
}

TEST_F(DataSetsTest, ACancelledJobTakesItsFetchBack) {
  HelloWith(10, "a", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(10);
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  EXPECT_EQ(KindsHeard(10), "stop ");
  Submit(2);
  EXPECT_EQ(KindsHeard(10), "start ") << "no process is in the way";
  v1::AttemptReport gone = Report(1, 1, v1::AttemptReport::EXITED);
  gone.set_lost(true);
  Tell(10, gone);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

TEST_F(DataSetsTest, AFetchThatFailsIsTheNodesFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  Heard(11);
  v1::AttemptReport failed = Report(1, 1, v1::AttemptReport::EXITED, 126);
  failed.set_cause(v1::AttemptReport::DATA);
  failed.set_message("data set 'pets' cannot be fetched onto a: ssh: Connection refused");
  Tell(10, failed);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  const std::vector<v1::ControllerMessage> heard = Heard(11);
  ASSERT_EQ(heard.size(), 1U) << "it goes on elsewhere";
  EXPECT_EQ(heard[0].fetch().id().attempt(), 2U);
}

TEST_F(DataSetsTest, ASetThatNoNodeSeesIsTheJobsFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::AttemptReport failed = Report(1, attempt, v1::AttemptReport::EXITED, 126);
    failed.set_cause(v1::AttemptReport::NO_DATA);
    failed.set_message("data set 'pets' cannot be fetched: No such file or directory");
    Tell(9 + attempt, failed);
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).reason(), "data set 'pets' cannot be fetched: No such file or directory");
}

TEST_F(DataSetsTest, ASetThatNoNodeCanFetchIsTheJobsFault) {
  HelloWith(10, "a", Copies(0, {}));
  HelloWith(11, "b", Copies(0, {}));
  Call(With(2, "pets"));
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    v1::AttemptReport failed = Report(1, attempt, v1::AttemptReport::EXITED, 126);
    failed.set_cause(v1::AttemptReport::DATA);
    failed.set_message("data set 'pets' cannot be fetched: Could not resolve hostname nohost");
    Tell(9 + attempt, failed);
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  Call(Submission(1));
  EXPECT_EQ(StatusOf(2).reason().find("all starts wait"), std::string::npos) << "others go on";
}

TEST_F(DataSetsTest, WhatNodesKeepIsToldToTheEngineOnceAndSurvives) {
  HelloWith(10, "a", Copies(0, {}));
  TellCopies(10, Copies(2, {"pets"}));
  EXPECT_EQ(HeldBy(0), "pets ");
  const std::string before = controller_->digest();
  TellCopies(10, Copies(1, {}));  // late
  EXPECT_EQ(HeldBy(0), "pets ");
  TellCopies(10, Copies(3, {"pets"}));
  EXPECT_EQ(controller_->digest(), before) << "nothing new";
  const std::string state = controller_->StateDigest();
  Open();  // compares with a replay
  EXPECT_EQ(controller_->StateDigest(), state);
  HelloWith(11, "a", Copies(3, {"pets", "cars"}));
  EXPECT_EQ(HeldBy(0), "pets cars ");
  EXPECT_NE(controller_->StateDigest(), state);
  Open();
}

TEST_F(DataSetsTest, ANameHasOneMeaningAtATime) {
  Call(With(2, "pets"));
  EXPECT_EQ(ErrorOf(With(2, "pets", 41)),
            "data set 'pets' has 40 MiB in '/store' for jobs that have not ended, and 41 MiB in "
            "'/store' for this one; expected the same, or another name");
  EXPECT_EQ(ErrorOf(With(2, "pets")), "");
  EXPECT_EQ(ErrorOf(With(2, "")),
            "the name of the data set is empty, or has control characters or more than 80 bytes");
  EXPECT_EQ(ErrorOf(With(2, "none", 0)),
            "data set 'none' has 0 MiB; expected an integer from 1 to 1000000000");
  v1::ClientRequest cancel;
  for (const std::uint64_t job : {1U, 2U}) {
    cancel.mutable_cancel()->set_job(job);
    Call(cancel);
  }
  EXPECT_EQ(ErrorOf(With(2, "pets", 41)), "") << "nobody uses it any more";
}

TEST_F(LiveWorldTest, BeginAndDependencyAreThoseOfAWholeArray) {
  v1::ClientRequest array = Submission(1);
  array.mutable_submit()->mutable_job()->set_array("0-2");
  array.mutable_submit()->mutable_job()->set_begin_s(60);
  Call(array);
  v1::ClientRequest request;
  v1::UpdateRequest& update = *request.mutable_update();
  update.set_job(2);
  update.add_fields("begin");
  update.mutable_values()->set_begin_s(600);
  EXPECT_EQ(ErrorOf(request), "begin and dependency are those of the whole array; expected job 1");
  for (const std::uint64_t job : {1U, 2U, 3U}) {  // the others have it from the first
    update.set_job(job);
    EXPECT_EQ(ErrorOf(request), "");
  }
  const auto waits_for_begin = [this](std::uint64_t job) {
    return StatusOf(job).reason().find("begins in") != std::string::npos;
  };
  Step(seconds(60));
  EXPECT_TRUE(waits_for_begin(1) && waits_for_begin(3)) << StatusOf(3).reason();
  Open();
  Step(seconds(541));
  EXPECT_FALSE(waits_for_begin(1) || waits_for_begin(3)) << StatusOf(3).reason();
}

}  // namespace
}  // namespace trainyard::live
