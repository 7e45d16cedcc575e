// SPDX-License-Identifier: Apache-2.0
#include "live/calls/submissions.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/request/request_fit.h"
#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

class Nobody final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "nobody"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& /*snapshot*/,
                                           Memory* /*memory*/) const override {
    return {};
  }
};

// Nothing lies between the two, so that it can never start, whenever the controller dies.
TEST_F(LiveWorldTest, AJobThatIsSubmittedHeldIsOneEntryOfTheJournal) {
  Hello(10, "a");
  const std::size_t before = store_.size();
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_hold(true);
  EXPECT_TRUE(Call(request).submit().status().held());
  EXPECT_EQ(store_.size(), before + 1);
  request.mutable_submit()->mutable_job()->set_array("0-1");
  EXPECT_EQ(Call(request).submit().job(), 2U);
  EXPECT_EQ(store_.size(), before + 2);
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

TEST_F(LiveWorldTest, WhatCannotBeIsRefusedAndChangesNothing) {
  const std::size_t blocks = store_.size();
  EXPECT_EQ(ErrorOf(Submission(5)), "it asks for 5 GPUs; the cluster has 4");
  EXPECT_EQ(ErrorOf(Submission(-1)), "gpus is -1; expected an integer from 0 to 6400000");
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
      std::string(std::size_t{260} << 10, 'x'));
  EXPECT_EQ(ErrorOf(request), "command and environment have more than 256 KiB");
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

// A cluster that binds its jobs, as all real ones do.
class BoundWorldTest : public LiveWorldTest {
 protected:
  BoundWorldTest() { Open(); }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = LiveWorldTest::SetUpOf();
    engine::Configuration bound = *setup.engine.configuration;
    for (NodeSpec& node : bound.cluster.nodes) {
      node.capacity = {.milli_cpus = 64'000, .memory_mib = 524'288};
    }
    bound.bind = [cluster = bound.cluster](JobSpec& job) {
      return model::CanBeMet(cluster, job, std::vector<bool>(cluster.nodes.size(), true));
    };
    setup.engine.configuration = engine::Share(std::move(bound));
    return setup;
  }
};

TEST_F(BoundWorldTest, AllThatCannotBeOfAJobIsToldAtOnce) {
  v1::ClientRequest request = Submission(100);
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_cpus("640");
  job.set_dependency("afterok:99999");
  job.set_node_list("nosuch");
  EXPECT_EQ(ErrorOf(request),
            "it asks for 100 GPUs; the cluster has 4\n"
            "there is no earlier job 99999, for which dependency 'afterok:99999' waits\n"
            "it names node 'nosuch', which the cluster has not; expected one of its nodes\n"
            "it asks for 640 CPUs; the nodes that it may have have 128 in all");
  job.set_gpus(4);
  EXPECT_EQ(ErrorOf(request),
            "there is no earlier job 99999, for which dependency 'afterok:99999' waits\n"
            "it names node 'nosuch', which the cluster has not; expected one of its nodes\n"
            "it asks for 640 CPUs; the nodes that it may have have 128 in all");
  job.clear_dependency();
  job.clear_node_list();
  EXPECT_EQ(ErrorOf(request),
            "it asks for 640 CPUs beside 4 GPUs; the most that one of its nodes has, a, is 64 CPUs "
            "and 2 GPUs")
      << "where nothing else is wrong it is told more closely";
  job.set_licenses("matlab:2");
  job.set_exclude("nor_this");
  EXPECT_EQ(ErrorOf(request),
            "it excludes node 'nor_this', which the cluster has not; expected one of its nodes\n"
            "it asks for licences 'matlab', which the cluster has not; its configuration has no "
            "[[licenses]]\n"
            "it asks for 640 CPUs; the nodes that it may have have 128 in all");
}

TEST_F(LiveWorldTest, ATestOfASubmissionSaysWhereItWouldStartAndSubmitsNothing) {
  Hello(10, "a");
  EXPECT_EQ(Submit(1), 1U);
  Heard(10);
  const std::string digest = controller_->digest();
  v1::ClientRequest test = Submission(1);
  test.mutable_submit()->set_test_only(true);
  test.mutable_submit()->mutable_job()->set_name("next");
  const v1::SubmitReply said = Call(test).submit();
  EXPECT_EQ(said.job(), 2U);
  EXPECT_EQ(said.status().request().name(), "next");
  EXPECT_TRUE(said.has_starts());
  ASSERT_EQ(said.places_size(), 1);
  EXPECT_EQ(said.places(0).node(), "a");
  EXPECT_EQ(said.places(0).gpus(0), 1) << "the other one is taken";
  test.mutable_submit()->mutable_job()->mutable_launch()->set_hold(true);
  EXPECT_FALSE(Call(test).submit().has_starts());
  test.mutable_submit()->mutable_job()->set_gpus(9);
  EXPECT_NE(ErrorOf(test), "") << "it is refused as a submission is";
  EXPECT_EQ(controller_->digest(), digest) << "there is no fact in it";
  EXPECT_EQ(KindsHeard(10), "");
  EXPECT_EQ(Submit(1), 2U);
}

}  // namespace
}  // namespace trainyard::live
