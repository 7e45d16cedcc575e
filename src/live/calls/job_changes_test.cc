// SPDX-License-Identifier: Apache-2.0
// Calls on many jobs or nodes: one entry of the journal each, what they leave and why, and who may
// make them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "live/controller.h"
#include "profile/execution_model.h"
#include "support/opened_controller.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class FirstCome final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "first-come"; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {Seconds(job.spec->submit)}};
  }
};

// One GPU on the first node that has one.
class FirstFreeGpu final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "first-free"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& /*demand*/) const override {
    for (std::size_t i = 0; i < free.cluster().nodes.size(); ++i) {
      if (const std::uint64_t gpus = free.gpus(NodeAt(i)); gpus != 0) {
        return Slices{{.node = NodeAt(i), .gpus = gpus & (~gpus + 1)}};
      }
    }
    return std::nullopt;
  }
};

// Three nodes with a GPU each.
class JobChangesTest : public OpenedController {
 protected:
  JobChangesTest() { Open(); }

  [[nodiscard]] ControllerSetup SetUpOf() override {
    Cluster cluster;
    cluster.nodes = {
        {.name = "n0", .gpus = 1}, {.name = "n1", .gpus = 1}, {.name = "n2", .gpus = 1}};
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return {.engine = {.configuration = engine::Share({.rules = rules,
                                                       .cluster = cluster,
                                                       .bundle = {.ordering = &ordering_,
                                                                  .placement = &placement_,
                                                                  .admission = &everyone_},
                                                       .rates = rates_.get(),
                                                       .policy = "first-come"}),
                       .measured = profile::MeasuredBook()},
            .live = {.max_live_jobs = most_jobs_, .epoch = 7},
            .snapshots = snapshots_};
  }
  void Join(const std::string& node) { Hear(++connection_, HelloOf(node, {}, 1)); }
  static v1::ClientRequest Submission(const std::string& array = "",
                                      const std::string& token = "") {
    v1::ClientRequest request;
    request.mutable_submit()->set_client_token(token);
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_array(array);
    job.mutable_launch()->add_command("train");
    return request;
  }
  static v1::ClientRequest Cancel(const std::vector<std::string>& jobs) {
    v1::ClientRequest request;
    request.mutable_cancel()->mutable_selection()->mutable_jobs()->Assign(jobs.begin(), jobs.end());
    return request;
  }
  static v1::ClientRequest Hold(const std::vector<std::string>& jobs, bool hold = true) {
    v1::ClientRequest request;
    request.mutable_hold()->set_hold(hold);
    request.mutable_hold()->mutable_selection()->mutable_jobs()->Assign(jobs.begin(), jobs.end());
    return request;
  }
  static v1::ClientRequest Requeue(const std::vector<std::string>& jobs) {
    v1::ClientRequest request;
    request.mutable_requeue()->mutable_selection()->mutable_jobs()->Assign(jobs.begin(),
                                                                           jobs.end());
    return request;
  }
  static v1::ClientRequest Priority(const std::vector<std::string>& jobs, int priority) {
    v1::ClientRequest request;
    v1::UpdateRequest& update = *request.mutable_update();
    update.mutable_selection()->mutable_jobs()->Assign(jobs.begin(), jobs.end());
    update.add_fields("priority");
    update.mutable_values()->mutable_launch()->set_priority(priority);
    return request;
  }
  static v1::ClientRequest Drain(const std::vector<std::string>& nodes, bool drain = true) {
    v1::ClientRequest request;
    request.mutable_drain()->mutable_nodes()->Assign(nodes.begin(), nodes.end());
    request.mutable_drain()->set_drain(drain);
    return request;
  }
  v1::JobStatus StatusOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1));
  }
  std::vector<v1::JobState> States() {
    std::vector<v1::JobState> states;
    for (std::uint64_t job = 1; job <= controller_->world().jobs(); ++job) {
      states.push_back(StatusOf(job).state());
    }
    return states;
  }
  std::size_t Starts() {
    std::size_t starts = 0;
    for (const auto& [connection, messages] : said_.messages) {
      for (const v1::ControllerMessage& message : messages) {
        starts += message.has_start() ? 1 : 0;
      }
    }
    return starts;
  }
  static std::vector<std::string> Sentences(
      const google::protobuf::RepeatedPtrField<v1::LeftOut>& left_out) {
    std::vector<std::string> sentences;
    for (const v1::LeftOut& left : left_out) {
      sentences.push_back(left.why());
    }
    return sentences;
  }

  FirstCome ordering_;
  FirstFreeGpu placement_;
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  std::size_t most_jobs_ = 100'000;
  std::uint64_t connection_ = 0;
};

TEST_F(JobChangesTest, NoTaskBeginsWhileItsArrayIsCancelled) {
  Join("n0");
  Call(Submission("0-99"));
  ASSERT_EQ(Starts(), 1U);
  const std::size_t before = store_.size();
  const v1::ClientReply reply = Call(Cancel({"1"}));
  EXPECT_EQ(reply.cancel().changed().jobs_size(), 100);
  EXPECT_EQ(reply.cancel().changed().left_out_size(), 0);
  EXPECT_EQ(store_.size(), before + 1);
  EXPECT_EQ(Starts(), 1U);
  EXPECT_THAT(States(), testing::Each(v1::CANCELLED));
  Open();  // from a snapshot, and from the whole journal
  EXPECT_THAT(States(), testing::Each(v1::CANCELLED));
  EXPECT_EQ(Call(Cancel({"1"})).cancel().changed().jobs_size(), 100) << "a call that is repeated";
  EXPECT_EQ(Call(Hold({"1"})).error().message(), "job 1_[0-99] has ended and cannot be held");
}

TEST_F(JobChangesTest, AFilterIsResolvedByTheController) {
  Join("n0");
  for (int i = 0; i < 4; ++i) {
    Call(Submission());
  }
  v1::ClientRequest request;
  request.mutable_cancel()->mutable_selection()->add_states(v1::WAITING);
  const std::size_t before = store_.size();
  EXPECT_EQ(Call(request).cancel().changed().jobs_size(), 3);
  EXPECT_EQ(store_.size(), before + 1);
  EXPECT_THAT(States(), ElementsAre(v1::STARTING, v1::CANCELLED, v1::CANCELLED, v1::CANCELLED));
  EXPECT_EQ(Call(request).error().message(), "no job that has not ended fits");
}

TEST_F(JobChangesTest, WhatIsNoJobVoidsNotTheWholeCall) {
  Call(Submission("0-3"));
  Call(Submission());
  const v1::ClientReply reply = Call(Cancel({"1_9", "5", "1_2", "77", "1_2"}));
  EXPECT_THAT(Sentences(reply.cancel().changed().left_out()),
              ElementsAre("there is no task 1_9", "there is no job 77"));
  EXPECT_THAT(States(),
              ElementsAre(v1::WAITING, v1::WAITING, v1::CANCELLED, v1::WAITING, v1::CANCELLED));
  EXPECT_EQ(Call(Cancel({"1_9"})).error().message(), "there is no task 1_9");
}

TEST_F(JobChangesTest, WhoMayNotTouchAJobIsToldAndTheOthersAreDone) {
  Call(As(Submission(), 1001));
  Call(As(Submission(), 1002));
  const v1::ClientReply reply = Call(As(Cancel({"1", "2"}), 1001));
  EXPECT_EQ(reply.cancel().changed().jobs_size(), 1);
  EXPECT_THAT(Sentences(reply.cancel().changed().left_out()),
              ElementsAre(HasSubstr("may not change job 2, which is another user's")));
  EXPECT_THAT(States(), ElementsAre(v1::CANCELLED, v1::WAITING));
  v1::ClientRequest all;
  all.mutable_cancel()->mutable_selection()->add_states(v1::WAITING);
  EXPECT_EQ(Call(As(all, 1001)).error().message(), "no job that has not ended fits")
      << "it may not learn of the others";
}

TEST_F(JobChangesTest, HoldAndRequeueOfAnArraySayWhatTheyLeave) {
  Join("n0");
  Join("n1");
  Call(Submission("0-5"));
  Tell(1, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(2, Report(2, 1, v1::AttemptReport::RUNNING));
  const std::size_t before = store_.size();
  const v1::Changed held = Call(Hold({"1"})).hold().changed();
  EXPECT_EQ(store_.size(), before + 1);
  EXPECT_EQ(held.jobs_size(), 4);
  EXPECT_TRUE(held.jobs(0).held());
  EXPECT_THAT(Sentences(held.left_out()),
              ElementsAre("job 1_[0-1] is running and goes on, not held; 'trainyard requeue --hold "
                          "1_[0-1]' stops and holds it"));
  EXPECT_EQ(held.left_out(0).code(), 0) << "nobody has named them";
  const v1::Changed requeued = Call(Requeue({"1"})).requeue().changed();
  EXPECT_EQ(requeued.jobs_size(), 2);
  EXPECT_THAT(Sentences(requeued.left_out()),
              ElementsAre(HasSubstr("job 1_[2-5] is waiting and holds no GPUs")));
  v1::ClientRequest by_state;  // which nothing comes of
  by_state.mutable_hold()->set_hold(true);
  by_state.mutable_hold()->mutable_selection()->add_names("nobody");
  EXPECT_EQ(Call(by_state).error().message(), "no job that has not ended fits");
}

TEST_F(JobChangesTest, AHoldOfARunningJobByItsNameSaysSo) {
  Join("n0");
  v1::ClientRequest named = Submission();
  named.mutable_submit()->mutable_job()->set_name("r1");
  Call(named);
  Tell(1, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest hold;
  hold.mutable_hold()->set_hold(true);
  hold.mutable_hold()->mutable_selection()->add_names("r1");
  EXPECT_THAT(Call(hold).error().message(), HasSubstr("job 1 is running and goes on, not held"));
}

TEST_F(JobChangesTest, AnAdminsHoldIsNotItsOwnersToRelease) {
  Call(As(Submission(), 1001));
  Call(As(Hold({"1"}), 0, v1::Caller::ADMIN));
  Open();
  EXPECT_THAT(Call(As(Hold({"1"}, false), 1001)).error().message(),
              HasSubstr("may not release job 1: it is held by user0 (uid 0, admin)"));
  Call(As(Hold({"1"}), 1001));  // takes nothing over
  EXPECT_THAT(Call(As(Hold({"1"}, false), 1001)).error().message(), HasSubstr("held by user0"));
  EXPECT_TRUE(StatusOf(1).held());
  Call(As(Priority({"1"}, 3), 1001));
  EXPECT_THAT(StatusOf(1).reason(), HasSubstr("held by user0 (uid 0, admin); ")) << "not changed";
  Open();
  EXPECT_THAT(StatusOf(1).reason(), HasSubstr("held by user0 (uid 0, admin); "));
  EXPECT_FALSE(Call(As(Hold({"1"}, false), 1003, v1::Caller::OPERATOR)).has_hold());
  EXPECT_TRUE(Call(As(Hold({"1"}, false), 2, v1::Caller::ADMIN)).has_hold());
  EXPECT_FALSE(StatusOf(1).held());
  Call(As(Hold({"1"}), 1001));
  EXPECT_TRUE(Call(As(Hold({"1"}, false), 1001)).has_hold());
}

TEST_F(JobChangesTest, HoldsAndReleasesOfOneTimeCountInTheirOrder) {
  Call(Submission("0-3"));
  controller_->world().OnCall(100, Hold({"1_3", "1_1"}));
  controller_->world().OnCall(101, Hold({"1_0", "1_1"}, false));
  Step();
  EXPECT_TRUE(StatusOf(4).held());
  EXPECT_FALSE(StatusOf(2).held());
  controller_->world().OnCall(102, Hold({"1_3"}, false));
  controller_->world().OnCall(103, Hold({"1"}));
  Step();
  EXPECT_TRUE(StatusOf(4).held());
}

TEST_F(JobChangesTest, AJobIsNotMovedToANodeThatIsDrainedToo) {
  Join("n0");
  Join("n1");
  Join("n2");
  Call(Submission());
  Tell(1, Report(1, 1, v1::AttemptReport::RUNNING));
  const std::size_t before = store_.size();
  const v1::DrainReply reply = Call(Drain({"n0", "n9", "n1"})).drain();
  EXPECT_EQ(store_.size(), before + 1);
  EXPECT_EQ(reply.nodes_size(), 2);
  EXPECT_TRUE(reply.nodes(0).drained() && reply.nodes(1).drained());
  EXPECT_THAT(Sentences(reply.left_out()), ElementsAre("there is no node 'n9'"));
  Tell(1, Report(1, 1, v1::AttemptReport::EXITED, 1));
  for (const v1::ControllerMessage& message : said_.messages[2]) {
    EXPECT_FALSE(message.has_start()) << "n1 is drained by the same call";
  }
  EXPECT_EQ(Call(Drain({"n0", "n1"}, false)).drain().nodes_size(), 2);
}

TEST_F(JobChangesTest, AnUpdateSaysOldAndNewValues) {
  Call(Submission("0-1"));
  const std::size_t before = store_.size();
  const v1::Changed changed = Call(Priority({"1"}, 5)).update().changed();
  EXPECT_EQ(store_.size(), before + 1);
  ASSERT_EQ(changed.jobs_size(), 2);
  ASSERT_EQ(changed.jobs(1).history_size(), 1);
  EXPECT_EQ(changed.jobs(1).history(0).what(), "updated priority");
  EXPECT_EQ(changed.jobs(1).history(0).before(), "0");
  EXPECT_EQ(changed.jobs(1).history(0).after(), "5");
}

TEST_F(JobChangesTest, ASubmissionIsTheSameAfterAnUpdate) {
  EXPECT_EQ(Call(Submission("", "mine")).submit().job(), 1U);
  Call(Priority({"1"}, 5));
  Call(Priority({"1"}, 6));
  EXPECT_EQ(Call(Submission("", "mine")).submit().job(), 1U);
  Open();
  EXPECT_EQ(Call(Submission("", "mine")).submit().job(), 1U);
  EXPECT_EQ(StatusOf(1).request().submitted_as(), "") << "there may be secrets in it";
}

TEST_F(JobChangesTest, AnArrayWaitsForAnotherTimeAsAWhole) {
  v1::ClientRequest array = Submission("0-2");
  array.mutable_submit()->mutable_job()->set_begin_s(60);
  Call(array);
  v1::ClientRequest request = Priority({"1"}, 4);
  request.mutable_update()->add_fields("begin");
  request.mutable_update()->mutable_values()->set_begin_s(600);
  EXPECT_EQ(Call(request).update().changed().jobs_size(), 3);
  Step(seconds(60));
  for (const std::uint64_t job : {1U, 2U, 3U}) {
    EXPECT_THAT(StatusOf(job).reason(), HasSubstr("begins in")) << job;
    EXPECT_EQ(StatusOf(job).request().launch().priority(), 4) << job;
  }
}

TEST_F(JobChangesTest, WhatCannotBeUpdatedHasOneCode) {
  Call(Submission());
  v1::ClientRequest request;
  request.mutable_update()->set_job(1);
  request.mutable_update()->add_fields("gpus");
  request.mutable_update()->mutable_values()->set_gpus(-1);
  const v1::CallError with_gpus = Call(request).error();
  v1::ClientRequest submission = Submission();
  submission.mutable_submit()->mutable_job()->set_gpus(-1);
  EXPECT_EQ(with_gpus.code(), Call(submission).error().code());
  EXPECT_EQ(with_gpus.message(), Call(submission).error().message());
}

TEST_F(JobChangesTest, AnArrayThatIsTooLargeIsToldTheLimit) {
  most_jobs_ = 20;
  Open();
  Call(Submission("0-9"));
  EXPECT_EQ(Call(Submission("0-10")).error().message(),
            "it has 11 tasks, and 10 jobs have not ended; the controller takes 20 in all");
  EXPECT_EQ(Call(Submission("0-9")).submit().job(), 11U);
}

TEST_F(JobChangesTest, ACallThatGoesAwayDoesNotOvertakeItself) {
  v1::ClientRequest submission = Submission();
  submission.mutable_submit()->set_wait_for_verdict(true);
  submission.mutable_submit()->mutable_job()->set_begin_s(60);
  controller_->world().OnCall(100, submission);
  controller_->world().OnCallGone(100);
  Step();
  EXPECT_EQ(controller_->world().jobs(), 1U);
  const std::size_t answered = said_.replies.count(100);
  Step(seconds(61));
  EXPECT_EQ(said_.replies.count(100), answered) << "nobody waits for the verdict any more";
}

}  // namespace
}  // namespace trainyard::live
