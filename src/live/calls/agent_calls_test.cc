// SPDX-License-Identifier: Apache-2.0
// Who may reach into a running job, what is in the journal before anything happens, and whose
// answers count; and what is told of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "live/controller.h"
#include "live/notices/notices.h"
#include "profile/execution_model.h"
#include "support/measured_controller.h"

namespace trainyard::live {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A GPU for each job, that of its number, and none for the one called "later".
class OneEach final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "one-each"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    for (const JobId job : snapshot.jobs->live()) {
      if (snapshot.up(NodeAt(0)) && snapshot.jobs->spec(job).name != "later") {
        proposal.demands.push_back(
            {.job = job,
             .gpus = 1,
             .slices = {{.node = NodeAt(0), .gpus = std::uint64_t{1} << Index(job)}}});
      }
    }
    return proposal;
  }
};

class AttachCallsTest : public MeasuredController {
 protected:
  AttachCallsTest() {
    parts_.policy = &policy_;
    parts_.rates = rates_.get();
    Open();
    Hello();
    log_.clear();
  }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = MeasuredController::SetUpOf();
    setup.live.attach_credential = [](const v1::AttachOrder& order, const v1::Caller& owner,
                                      const std::string& node) {
      return owner.user() + " on " + node + ": " + order.request().command(0);
    };
    setup.live.notice = [this](const Notice& notice) {
      notices_.push_back(notice.event + " " + std::to_string(notice.job) + " " + notice.state);
    };
    setup.live.takes_notices = true;
    setup.live.log = [this](const std::string& line) { log_.push_back(line); };
    return setup;
  }
  // Of user 1001; it runs if the policy lets it.
  void Start(const std::string& name = "now", const std::vector<std::string>& notify = {}) {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_name(name);
    job.mutable_launch()->add_command("train");
    job.mutable_launch()->mutable_notify()->Assign(notify.begin(), notify.end());
    const std::uint64_t number = Call(As(request, 1001)).submit().job();
    if (name != "later") {
      Tell(connection_, Running(number, 1));
    }
  }
  static v1::ClientRequest Attach(std::uint64_t job, bool opens = true) {
    v1::ClientRequest request;
    v1::AttachRequest& attach = *request.mutable_attach();
    attach.set_job(job);
    attach.set_session(std::string(32, 'a'));
    attach.set_opens(opens);
    attach.add_command("secret-tool");
    attach.add_command("--password=x");
    return request;
  }
  static v1::ClientRequest Signal(std::uint64_t job, int signal = SIGUSR1) {
    v1::ClientRequest request;
    request.mutable_signal()->set_job(job);
    request.mutable_signal()->set_signal(signal);
    return request;
  }
  std::string ErrorOf(const v1::ClientRequest& request) { return Call(request).error().message(); }
  std::vector<v1::AttachOrder> AgentMessages() {
    return Told(&v1::ControllerMessage::has_attach, &v1::ControllerMessage::attach);
  }
  std::vector<v1::SignalAttempt> Signals() {
    return Told(&v1::ControllerMessage::has_signal, &v1::ControllerMessage::signal);
  }
  std::string ChangedBy(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1)).changed_by();
  }

  OneEach policy_;
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  std::vector<std::string> notices_;
  std::vector<std::string> log_;
};

TEST_F(AttachCallsTest, OwnersAndAdminsAttachAndNobodyElse) {
  Start();
  EXPECT_THAT(ErrorOf(As(Attach(1), 1002)), HasSubstr("may not attach to job 1"));
  EXPECT_THAT(ErrorOf(As(Attach(1), 1003, v1::Caller::OPERATOR)), HasSubstr("may not attach"));
  EXPECT_THAT(ErrorOf(As(Attach(1, false), 1002)), HasSubstr("may not attach")) << "each call";
  EXPECT_TRUE(AgentMessages().empty());
  Call(As(Attach(1), 1001));
  Call(As(Attach(1), 0, v1::Caller::ADMIN));
  ASSERT_EQ(AgentMessages().size(), 2U);
  EXPECT_EQ(AgentMessages()[0].id().job(), 1U);
  EXPECT_EQ(AgentMessages()[0].id().attempt(), 1U);
  EXPECT_EQ(AgentMessages()[0].epoch(), 1U);
  EXPECT_EQ(AgentMessages()[1].credential(), "user1001 on a: secret-tool") << "as the job's user";
}

TEST_F(AttachCallsTest, OpeningIsInTheJournalFirstAndWithoutArguments) {
  Start();
  store_.fails = true;
  Call(As(Attach(1), 1001));
  EXPECT_TRUE(AgentMessages().empty()) << "it could not be written";
  store_.fails = false;
  Step(std::chrono::seconds(2));
  EXPECT_EQ(AgentMessages().size(), 1U);
  EXPECT_THAT(ChangedBy(1), HasSubstr("attached to (secret-tool) by user1001"));
  Open();
  EXPECT_THAT(ChangedBy(1), HasSubstr("attached to (secret-tool) by user1001"));
  EXPECT_EQ(ChangedBy(1).find("password"), std::string::npos);
}

TEST_F(AttachCallsTest, OnlyTheAnswerOfThatNodeToThisControllerCounts) {
  Start();
  Call(As(Attach(1), 1001));
  const std::uint64_t call = calls_;
  v1::AgentMessage message;
  message.mutable_attach()->set_call(call);
  message.mutable_attach()->set_epoch(0);
  message.mutable_attach()->mutable_reply()->set_output("of a call of an earlier controller");
  Hear(connection_, message);
  EXPECT_FALSE(said_.replies[call].has_attach());
  message.mutable_attach()->set_epoch(1);
  Hear(connection_ + 1, message);
  EXPECT_FALSE(said_.replies[call].has_attach()) << "of nobody's connection";
  message.mutable_attach()->mutable_reply()->set_output("right");
  Hear(connection_, message);
  EXPECT_EQ(said_.replies[call].attach().output(), "right");
}

TEST_F(AttachCallsTest, CallsAreCheckedBeforeTheyArePassedOn) {
  Start();
  Start("later");
  EXPECT_THAT(ErrorOf(As(Attach(2), 1001)), HasSubstr("cannot be attached to: it is waiting"));
  v1::ClientRequest request = As(Attach(1), 1001);
  request.mutable_attach()->set_input(std::string(20'000, 'x'));
  EXPECT_THAT(ErrorOf(request), HasSubstr("more than 16 KiB"));
  request = As(Attach(1), 1001);
  request.mutable_attach()->set_signal(SIGKILL);
  EXPECT_THAT(ErrorOf(request), HasSubstr("signal 9 is not passed on"));
  request = As(Attach(1), 1001);
  request.mutable_attach()->clear_session();
  EXPECT_THAT(ErrorOf(request), HasSubstr("the session has no name"));
  request = As(Attach(1), 1001);
  request.mutable_attach()->set_node("b");
  EXPECT_THAT(ErrorOf(request), HasSubstr("has no worker on node 'b'"));
  EXPECT_TRUE(AgentMessages().empty());
}

TEST_F(AttachCallsTest, SignalsGoToRunningJobsAndAreNoted) {
  Start();
  Start("later");
  EXPECT_THAT(ErrorOf(As(Signal(1), 1002)), HasSubstr("may not change job 1"));
  EXPECT_THAT(ErrorOf(As(Signal(2), 1001)), HasSubstr("is waiting and has no workers to signal"));
  EXPECT_THAT(ErrorOf(As(Signal(1, SIGKILL), 1001)), HasSubstr("is not passed on"));
  EXPECT_TRUE(Signals().empty());
  EXPECT_TRUE(Call(As(Signal(1), 1003, v1::Caller::OPERATOR)).has_signal());
  ASSERT_EQ(Signals().size(), 1U);
  EXPECT_EQ(Signals()[0].signal(), SIGUSR1);
  EXPECT_THAT(ChangedBy(1), HasSubstr("sent SIGUSR1 by user1003"));
}

TEST_F(AttachCallsTest, NoticesFollowFromTheJournal) {
  snapshots_.entries = 0;
  Open();
  Hello();
  notices_.clear();
  Start("now", {"begin", "end", "fail"});
  Start("now", {"end"});
  Start("now", {"end", "fail"});
  Start("quiet");
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(2);
  Call(As(cancel, 1001));
  v1::AttemptReport done = Report(1, 1, v1::AttemptReport::EXITED);
  Tell(connection_, done);
  Tell(connection_, Report(3, 1, v1::AttemptReport::EXITED, 3));
  Tell(connection_, Report(4, 1, v1::AttemptReport::EXITED, 3));
  EXPECT_THAT(notices_, ElementsAre("begin 1 running", "end 2 cancelled", "end 1 completed",
                                    "fail 3 failed"));
  const std::vector<std::string> told = notices_;
  notices_.clear();
  Open();  // twice: beside the restart itself, a comparison with one from the whole journal
  ASSERT_EQ(notices_.size(), 2 * told.size());
  // Whether it has started yet a journal does not say.
  const auto same = [](const std::string& one, const std::string& other) {
    return one.substr(0, one.rfind(' ')) == other.substr(0, other.rfind(' '));
  };
  EXPECT_TRUE(std::equal(told.begin(), told.end(), notices_.begin(), same));
}

TEST_F(AttachCallsTest, NoticesAreToldWhenTheJournalHasThem) {
  Start("now", {"end"});
  store_.fails = true;
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(As(cancel, 1001));
  EXPECT_TRUE(notices_.empty());
  store_.fails = false;
  Step(std::chrono::seconds(2));
  EXPECT_THAT(notices_, ElementsAre("end 1 cancelled"));
}

TEST_F(AttachCallsTest, ALostNodeAndItsReturnAreLogged) {
  Step(std::chrono::hours(1));
  EXPECT_THAT(
      log_,
      ElementsAre(testing::StartsWith("node a: lost: nothing has been heard of its agent for 36")));
  log_.clear();
  Hello();
  EXPECT_THAT(log_, ElementsAre("node a: up"));
}

TEST_F(AttachCallsTest, ChangesAreLoggedOnceWhenTheJournalHasThem) {
  Start();
  EXPECT_THAT(log_, ElementsAre("job 1: submitted by user1001 (uid 1001, user): 'now', 1 GPU"));
  log_.clear();
  EXPECT_TRUE(Call(As(Signal(1), 1003, v1::Caller::OPERATOR)).has_signal());
  ErrorOf(As(Signal(1), 1002));
  EXPECT_THAT(log_, ElementsAre("job 1: sent SIGUSR1 by user1003 (uid 1003, operator)"));
  log_.clear();
  store_.fails = true;
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(As(request, 1001));
  EXPECT_TRUE(log_.empty()) << "it may yet be forgotten";
  store_.fails = false;
  Step(std::chrono::seconds(2));
  EXPECT_THAT(log_, ElementsAre("job 1: cancelled by user1001 (uid 1001, user)"));
  log_.clear();
  request.mutable_drain()->set_node("a");
  request.mutable_drain()->set_drain(true);
  Call(As(request, 0, v1::Caller::ADMIN));
  EXPECT_THAT(log_, ElementsAre("node a: drained by user0 (uid 0, admin)"));
  log_.clear();
  Open();
  EXPECT_TRUE(log_.empty()) << "a restart has nothing new to tell";
}

}  // namespace
}  // namespace trainyard::live
