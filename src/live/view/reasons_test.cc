// SPDX-License-Identifier: Apache-2.0
// Why jobs wait, who is ahead of them, what is still leaving, and what has overrun: as of the call.
#include "live/view/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "live/controller.h"
#include "live/notices/notices.h"
#include "profile/execution_model.h"
#include "support/opened_controller.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// The shortest rest first; a job that waits takes the GPUs of longer ones.
class ShortestRest final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "shortest"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAlways, .needs = {.work_left = true}, .walk = {.preempt = true}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {Seconds(job.time_left.value_or(Duration{0}))}};
  }
};

// The lowest free GPUs of one node whose type the job accepts.
class OneNode final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "one-node"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    for (std::size_t i = 0; i < free.cluster().nodes.size(); ++i) {
      int gpus = demand.gpus;
      Slice slice{.node = NodeAt(i)};
      for (std::uint64_t bit = 1; bit != 0 && gpus > 0; bit <<= 1U) {
        if ((free.gpus(slice.node) & bit) != 0) {
          slice.gpus |= bit;
          --gpus;
        }
      }
      if (gpus == 0) {
        return Slices{slice};
      }
    }
    return std::nullopt;
  }
};

constexpr std::uint32_t kAnn = 1001;
constexpr std::uint32_t kBob = 1002;

// Node "a" with 4 A100, node "v" with 4 V100.
class ReasonsTest : public OpenedController {
 protected:
  ReasonsTest() {
    Open();
    Hear(1, HelloOf("a", {}, 4));
    Hear(2, HelloOf("v", {}, 4));
  }
  ~ReasonsTest() override { controller_.reset(); }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    Cluster cluster;
    cluster.nodes = {{.name = "a",
                      .gpus = 4,
                      .gpu_type = "A100",
                      .capacity = {.milli_cpus = 64'000, .memory_mib = 524'288}},
                     {.name = "v", .gpus = 4, .gpu_type = "V100"}};
    cluster.gpu_types = {{.name = "A100"}, {.name = "V100"}};
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return {.engine = {.configuration = engine::Share({.rules = rules,
                                                       .cluster = cluster,
                                                       .bundle = {.ordering = &shortest_,
                                                                  .placement = &one_node_,
                                                                  .admission = &everyone_},
                                                       .rates = rates_.get(),
                                                       .policy = "shortest"})},
            .live = {.lease = std::chrono::hours(100),
                     .grace = seconds(10),
                     .epoch = 1,
                     .notice =
                         [this](const Notice& notice) {
                           notices_.push_back(notice.event + " " + std::to_string(notice.job) +
                                              " " + notice.state);
                         },
                     .takes_notices = true},
            .snapshots = snapshots_};
  }
  v1::ClientRequest Job(int gpus, double duration_s, const std::string& type = "") {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(gpus);
    job.set_duration_s(duration_s);
    job.mutable_launch()->add_command("train");
    for (const char* event : {"begin", "end", "preempt"}) {
      job.mutable_launch()->add_notify(event);
    }
    if (!type.empty()) {
      job.add_gpu_types(type);
    }
    return request;
  }
  std::uint64_t Submit(const v1::ClientRequest& request) {
    const v1::ClientReply reply = Call(request);
    EXPECT_TRUE(reply.has_submit()) << reply.error().message();
    return reply.submit().job();
  }
  v1::JobStatus StatusOf(std::uint64_t job, std::uint32_t asker = 0) {
    v1::ClientRequest request;
    request.mutable_jobs()->add_jobs(job);
    request.mutable_jobs()->set_history(true);
    return Call(asker == 0 ? request : As(request, asker)).jobs().jobs(0);
  }
  v1::NodeStatus Node(int place, std::uint32_t asker = 0) {
    v1::ClientRequest request;
    request.mutable_nodes();
    return Call(asker == 0 ? request : As(request, asker)).nodes().nodes(place);
  }
  void Run(std::uint64_t connection, std::uint64_t job, std::uint32_t attempt = 1) {
    v1::AttemptReport report = Report(job, attempt, v1::AttemptReport::RUNNING);
    Tell(connection, report);
  }
  void Drain(const std::string& node) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node(node);
    request.mutable_drain()->set_drain(true);
    Call(request);
  }
  void Cancel(std::uint64_t job) {
    v1::ClientRequest request;
    request.mutable_cancel()->set_job(job);
    Call(request);
  }

  ShortestRest shortest_;
  OneNode one_node_;
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  std::vector<std::string> notices_;
};

// ------------------------------------------------------------------------------------------
// waiting

TEST_F(ReasonsTest, TheTypeIsNamedAndHowManyAreFree) {
  Submit(Job(3, 100, "A100"));
  const std::uint64_t job = Submit(Job(2, 200, "A100"));
  EXPECT_EQ(StatusOf(job).reason(),
            "not enough free A100 GPUs: 1 of 4 free, it asks for 2; it is the next in line");
}

TEST_F(ReasonsTest, WhoIsAheadIsNamed) {
  Submit(Job(4, 100, "A100"));
  const std::uint64_t next = Submit(Job(4, 200, "A100"));
  const std::uint64_t third = Submit(Job(3, 300, "A100"));
  const std::uint64_t last = Submit(Job(2, 400, "A100"));
  EXPECT_THAT(StatusOf(next).reason(), EndsWith("; it is the next in line"));
  EXPECT_THAT(StatusOf(third).reason(),
              EndsWith("; 1 job is ahead of it: job 2, which asks for 4 GPUs"));
  EXPECT_THAT(StatusOf(last).reason(),
              EndsWith("; 2 jobs are ahead of it, first job 2, which asks for 4 GPUs"));
}

TEST_F(ReasonsTest, AJobThatTheAskerMayNotSeeIsNotNamed) {
  Submit(As(Job(4, 100, "A100"), kAnn));
  Submit(As(Job(4, 200, "A100"), kAnn));
  const std::uint64_t job = Submit(As(Job(2, 300, "A100"), kBob));
  EXPECT_THAT(StatusOf(job, kBob).reason(),
              EndsWith("it asks for 2; 1 job is ahead of it: another user's job"));
  EXPECT_THAT(StatusOf(job).reason(), HasSubstr("job 2")) << "who may see all";
  EXPECT_EQ(Node(0, kBob).jobs_size(), 0);
  EXPECT_EQ(Node(0, kBob).other_jobs(), 1);
  EXPECT_EQ(Node(0, kAnn).jobs(0), 1U);
}

TEST_F(ReasonsTest, WhereGpusLieApartItIsSaid) {
  for (int i = 0; i < 2; ++i) {
    Submit(Job(3, 100));
  }
  const std::uint64_t job = Submit(Job(2, 200));
  EXPECT_THAT(StatusOf(job).reason(), HasSubstr("2 of 8 GPUs are free, at most 1 on one node"));
}

TEST_F(ReasonsTest, AJobThatAsksForCpusIsToldOfItsTypeToo) {
  v1::ClientRequest wide = Job(3, 100, "A100");
  wide.mutable_submit()->mutable_job()->set_cpus("60");
  Submit(wide);
  v1::ClientRequest request = Job(2, 200, "A100");
  request.mutable_submit()->mutable_job()->set_cpus("1");
  EXPECT_EQ(StatusOf(Submit(request)).reason(),
            "not enough free A100 GPUs: 1 of 4 free, it asks for 2 with 1 CPU; it is the next in "
            "line");
  request.mutable_submit()->mutable_job()->set_gpus(1);
  request.mutable_submit()->mutable_job()->set_cpus("8");
  request.mutable_submit()->mutable_job()->set_duration_s(150);
  EXPECT_EQ(StatusOf(Submit(request)).reason(),
            "no room for 1 A100 GPU with 8 CPUs: 1 of 4 A100 GPUs are free; it is the next in "
            "line");
}

TEST_F(ReasonsTest, FreeGpusAreThoseOfTheNodesThatItNames) {
  v1::ClientRequest wide = Job(4, 100, "A100");
  Submit(wide);
  v1::ClientRequest request = Job(1, 200);
  request.mutable_submit()->mutable_job()->set_node_list("a");
  EXPECT_THAT(StatusOf(Submit(request)).reason(), StartsWith("not enough free GPUs: 0 of 4 free"));
  request.mutable_submit()->mutable_job()->set_gpus(4);
  EXPECT_THAT(StatusOf(Submit(request)).reason(), StartsWith("not enough free GPUs: 0 of 4 free"));
}

// ---------------------------------------------------------------------------------------- progress

TEST_F(ReasonsTest, ServiceIsThatOfTheTimeOfTheCall) {
  const std::uint64_t job = Submit(Job(2, 100));
  Run(1, job);
  Step(seconds(20));  // nothing happens
  EXPECT_DOUBLE_EQ(StatusOf(job).attained_service(), 40);
  EXPECT_DOUBLE_EQ(StatusOf(job).useful_service(), 40);
  EXPECT_DOUBLE_EQ(StatusOf(job).productive_s(), 20);
  EXPECT_DOUBLE_EQ(StatusOf(job).run_s(), 20);
  Submit(Job(4, 1000, "A100"));
  Step(seconds(7));
  EXPECT_DOUBLE_EQ(StatusOf(2).waited_s(), 7);
  Tell(1, Report(job, 1, v1::AttemptReport::EXITED));
  Step(seconds(30));
  EXPECT_DOUBLE_EQ(StatusOf(job).attained_service(), 54) << "and stays once it has ended";
}

TEST_F(ReasonsTest, AnExpectedEndIsNeverPastAndAnOverrunIsSaid) {
  const std::uint64_t job = Submit(Job(1, 10));
  Run(1, job);
  for (int second = 1; second <= 200; ++second) {
    now_ += seconds(1);
    v1::AgentMessage heartbeat;  // or its node would be silent
    heartbeat.mutable_heartbeat()->set_number(static_cast<std::uint64_t>(second));
    Hear(1, heartbeat);
    const v1::JobStatus status = StatusOf(job);
    ASSERT_GE(status.expected_end(), Seconds(now_)) << second;
    ASSERT_EQ(status.overrun(), second > 10) << second;
    ASSERT_EQ(status.reason(), second > 10 ? "has overrun its stated duration of 10.0s" : "");
  }
  EXPECT_DOUBLE_EQ(StatusOf(job).expected_end(), 320) << "10, 20, 40, 80, 160, 320";
  Open();
  EXPECT_TRUE(StatusOf(job).overrun()) << "the journal has it";
  Hear(3, HelloOf("a", {Report(job, 1, v1::AttemptReport::RUNNING)}, 4));
  Tell(3, Report(job, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StatusOf(job).state(), v1::COMPLETED);
  EXPECT_FALSE(StatusOf(job).overrun());
}

TEST_F(ReasonsTest, WhoEndsInTimeHasNotOverrun) {
  const std::uint64_t job = Submit(Job(1, 100));
  Run(1, job);
  Step(seconds(104));  // within a twentieth
  EXPECT_FALSE(StatusOf(job).overrun());
  Step(seconds(2));
  EXPECT_TRUE(StatusOf(job).overrun());
}

TEST_F(ReasonsTest, AJobThatUnderstatesItsDurationGivesWay) {
  const std::uint64_t liar = Submit(Job(4, 2, "A100"));
  Run(1, liar);
  const std::uint64_t honest = Submit(Job(4, 10, "A100"));
  Step(seconds(3));
  EXPECT_EQ(StatusOf(liar).state(), v1::RUNNING);
  for (int second = 0; second < 30; ++second) {
    StepHearing(1, seconds(1));
  }
  EXPECT_EQ(StatusOf(liar).state(), v1::STOPPING);
  EXPECT_EQ(StatusOf(honest).state(), v1::STARTING);
  EXPECT_THAT(notices_, testing::Contains("preempt 1 stopping"));
}

TEST_F(ReasonsTest, EmulatedTrainersNeverOverrun) {
  v1::ClientRequest request = Job(1, 10);
  request.mutable_submit()->mutable_job()->mutable_launch()->clear_command();
  request.mutable_submit()->mutable_job()->mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
  const std::uint64_t job = Submit(request);
  Run(1, job);
  Step(seconds(60));
  EXPECT_FALSE(StatusOf(job).overrun());
}

// ----------------------------------------------------------------------------------------- leaving

TEST_F(ReasonsTest, ADrainedNodeShowsWhoIsStillLeaving) {
  const std::uint64_t job = Submit(Job(2, 100));
  Run(1, job);
  Drain("a");
  Step(seconds(4));
  const v1::NodeStatus node = Node(0);
  ASSERT_EQ(node.leaving_size(), 1);
  EXPECT_EQ(node.leaving(0).job(), job);
  EXPECT_EQ(node.leaving(0).gpus_size(), 2);
  EXPECT_DOUBLE_EQ(node.leaving(0).left_s(), 6);
  EXPECT_EQ(node.gpus_used(), 2);
  EXPECT_EQ(StatusOf(job).reason(),
            "its earlier workers have not left a yet: had notice 4.0s ago: it saves itself and "
            "leaves, or is killed after 10.0s");
  Tell(1, Report(job, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(Node(0).leaving_size(), 0);
  EXPECT_EQ(Node(0).gpus_used(), 0);
}

TEST_F(ReasonsTest, ACancelledJobIsOnItsNodeUntilItHasLeft) {
  const std::uint64_t job = Submit(Job(2, 100));
  Run(1, job);
  Cancel(job);
  EXPECT_EQ(Node(0).leaving(0).job(), job);
  EXPECT_EQ(StatusOf(job).reason(), "") << "notices of the end and `wait` say it, too";
  Step(seconds(11));
  EXPECT_DOUBLE_EQ(Node(0).leaving(0).left_s(), 0) << "it is overdue";
  Tell(1, Report(job, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(Node(0).gpus_used(), 0);
  EXPECT_EQ(StatusOf(job).reason(), "");
}

TEST_F(ReasonsTest, NodesSayWhatIsStatedOfThem) {
  EXPECT_EQ(Node(0).stated_milli_cpus(), 64'000);
  EXPECT_EQ(Node(0).stated_memory_mib(), 524'288);
  EXPECT_EQ(Node(1).stated_milli_cpus(), 0);
}

// ----------------------------------------------------------------------------------------- notices

TEST_F(ReasonsTest, ACancelIsNoPreemption) {
  const std::uint64_t job = Submit(Job(1, 100));
  Run(1, job);
  Cancel(job);
  EXPECT_THAT(notices_, ElementsAre("begin 1 running", "end 1 cancelled"));
}

TEST_F(ReasonsTest, NorIsAResizeByItsUser) {
  const std::uint64_t job = Submit(Job(1, 100));
  Run(1, job);
  v1::ClientRequest request;
  request.mutable_resize()->set_job(job);
  request.mutable_resize()->set_gpus(2);
  Call(request);
  EXPECT_THAT(notices_, ElementsAre("begin 1 running"));
}

TEST_F(ReasonsTest, AStartThatWasRefusedIsNoBegin) {
  const std::uint64_t job = Submit(Job(1, 100));
  v1::AttemptReport refused = Report(job, 1, v1::AttemptReport::EXITED, 127);
  refused.set_cause(v1::AttemptReport::NO_PROGRAM);
  refused.set_message("command 'train': No such file or directory");
  Tell(1, refused);
  EXPECT_THAT(notices_, IsEmpty()) << "nor is the start elsewhere a preemption";
  Run(2, job, 2);
  EXPECT_THAT(notices_, ElementsAre("begin 1 running"));
  Open();
  EXPECT_THAT(StatusOf(job).history(), Not(IsEmpty()));
}

TEST_F(ReasonsTest, WhoWantsToHearOfPreemptionsAloneIsToldOfThoseOfJobsThatHaveRun) {
  v1::ClientRequest request = Job(4, 1000, "A100");
  request.mutable_submit()->mutable_job()->mutable_launch()->clear_notify();
  request.mutable_submit()->mutable_job()->mutable_launch()->add_notify("preempt");
  const std::uint64_t job = Submit(request);
  Run(1, job);
  Submit(Job(4, 10, "A100"));
  EXPECT_THAT(notices_, ElementsAre(StartsWith("preempt 1 ")));
}

// ----------------------------------------------------------------------------------------- history

std::vector<std::string> Texts(const v1::JobStatus& job) {
  std::vector<std::string> texts;
  for (const v1::JobEvent& event : job.history()) {
    texts.push_back(event.what() + "|" + event.by() + "|" + event.before() + "|" + event.after());
  }
  return texts;
}

TEST_F(ReasonsTest, EachChangeHasItsTimeItsAuthorAndBothValues) {
  const std::uint64_t job = Submit(As(Job(1, 100), kAnn));
  Step(seconds(5));
  v1::ClientRequest update;
  v1::UpdateRequest& changes = *update.mutable_update();
  changes.set_job(job);
  changes.add_fields("priority");
  changes.mutable_values()->mutable_launch()->set_priority(7);
  Call(As(update, kAnn));
  changes.mutable_values()->mutable_launch()->set_priority(9);
  Call(As(update, 0, v1::Caller::ADMIN));
  v1::ClientRequest resize;
  resize.mutable_resize()->set_job(job);
  resize.mutable_resize()->set_gpus(2);
  Call(As(resize, kAnn));
  Call(As(
      [&] {
        v1::ClientRequest cancel;
        cancel.mutable_cancel()->set_job(job);
        return cancel;
      }(),
      kAnn));
  const std::string ann = "user1001 (uid 1001, user)";
  const std::vector<std::string> expected{"granted GPUs|||a:0",
                                          "updated priority|" + ann + "|0|7",
                                          "updated priority|user0 (uid 0, admin)|7|9",
                                          "resized|" + ann + "|1 GPU|2 GPUs",
                                          "granted GPUs|||a:0-1",
                                          "cancelled|" + ann + "||"};
  EXPECT_EQ(Texts(StatusOf(job)), expected);
  EXPECT_DOUBLE_EQ(StatusOf(job).history(1).time(), 5);
  Open();
  EXPECT_EQ(Texts(StatusOf(job)), expected) << "as the journal has it";
  v1::ClientRequest list;
  list.mutable_jobs()->set_history(true);
  EXPECT_EQ(Call(list).jobs().jobs(0).history_size(), 0) << "of jobs that are named";
}

TEST_F(ReasonsTest, AChangeOfSeveralJobsIsAnEventOfEach) {
  v1::ClientRequest array = As(Job(4, 100, "A100"), kAnn);
  array.mutable_submit()->mutable_job()->set_array("0-2");
  Submit(array);
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->mutable_selection()->add_jobs("1");
  Call(As(cancel, kAnn));
  for (const std::uint64_t job : {1U, 2U, 3U}) {
    EXPECT_EQ(Texts(StatusOf(job)).back(), "cancelled|user1001 (uid 1001, user)||") << job;
  }
}

TEST_F(ReasonsTest, OfAJobTheLastEventsAreKept) {
  const std::uint64_t job = Submit(Job(1, 100));
  v1::ClientRequest update;
  v1::UpdateRequest& changes = *update.mutable_update();
  changes.set_job(job);
  changes.add_fields("priority");
  for (int i = 1; i <= 150; ++i) {
    changes.mutable_values()->mutable_launch()->set_priority(i);
    Call(update);
  }
  const v1::JobStatus status = StatusOf(job);
  ASSERT_EQ(status.history_size(), static_cast<int>(History::kMostOfJob));
  EXPECT_EQ(Texts(status).back(), "updated priority||149|150");
}

}  // namespace
}  // namespace trainyard::live
