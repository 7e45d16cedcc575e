// SPDX-License-Identifier: Apache-2.0
// Attempts that share GPUs.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

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

}  // namespace
}  // namespace trainyard::live
