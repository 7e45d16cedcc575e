// SPDX-License-Identifier: Apache-2.0
// What a controller makes of the time in which there was none.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "profile/execution_model.h"
#include "support/measured_controller.h"

namespace trainyard::live {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// The first GPU for the first job.
class FirstAlone final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "first-alone"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.name_gpus = true}}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    if (snapshot.up(NodeAt(0)) && !snapshot.jobs->live().empty()) {
      proposal.demands.push_back({.job = *snapshot.jobs->live().begin(),
                                  .gpus = 1,
                                  .slices = {{.node = NodeAt(0), .gpus = 1}}});
    }
    return proposal;
  }
};

class OutageTest : public MeasuredController {
 protected:
  OutageTest() {
    parts_.policy = &policy_;
    parts_.rates = rates_.get();
    Open();
    Hello();
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_time_s(3600);
    job.set_duration_s(1800);
    job.mutable_launch()->add_command("train");
    EXPECT_EQ(Call(request).submit().job(), 1U);
    Tell(connection_, Running(1, 1));
    Step(seconds(50));
  }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = MeasuredController::SetUpOf();
    setup.absent_since = absent_since_;
    return setup;
  }
  // No controller for so long.
  void Restart(Duration outage) {
    absent_since_ = now_;
    now_ += outage;
    Open();
  }
  [[nodiscard]] v1::JobStatus Job() const { return controller_->world().StatusOf(JobAt(0)); }

  FirstAlone policy_;
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  std::optional<TimePoint> absent_since_;
};

TEST_F(OutageTest, AShortOneIsRunTimeAsTheJobRunsOn) {
  Restart(seconds(50));
  Hello({Running(1, 1)});
  EXPECT_EQ(Job().state(), v1::RUNNING);
  EXPECT_EQ(Job().attempt(), 1U);
}

TEST_F(OutageTest, ALongOneIsRunTimeUntilTheLeasesAreOver) {
  Restart(hours(10));
  EXPECT_EQ(Job().state(), v1::STOPPING) << "its time limit of an hour is not used up";
  EXPECT_EQ(Job().attained_service(), 110) << "50 s, and the lease of 60 s";
  Step(hours(1));
  EXPECT_EQ(Job().attained_service(), 110) << "no agent, no run time";
}

TEST_F(OutageTest, ItsJobsStartAgainWhenTheirAgentsAreBack) {
  Restart(hours(10));
  Hello();
  EXPECT_EQ(Job().state(), v1::STARTING);
  EXPECT_EQ(Job().attempt(), 2U);
  Tell(connection_, Running(1, 2));
  EXPECT_EQ(Job().state(), v1::RUNNING);
  Restart(seconds(1));
  EXPECT_EQ(Job().attempt(), 2U);
}

TEST_F(OutageTest, NothingStartsWhileAnAttemptIsLeft) {
  Restart(hours(10));  // as the clock says, which may have been set
  Hello({Running(1, 1)});
  EXPECT_EQ(Job().attempt(), 2U);
  EXPECT_EQ(Starts().size(), 1U) << "only the first attempt";
  EXPECT_GE(Stops(), 1U);
  Tell(connection_, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(Starts().size(), 2U);
}

TEST_F(OutageTest, WhatHasFinishedMeanwhileIsNotRepeated) {
  Restart(hours(10));
  Hello({Report(1, 1, v1::AttemptReport::EXITED)});
  EXPECT_EQ(Job().state(), v1::COMPLETED);
  EXPECT_EQ(Starts().size(), 1U);
}

}  // namespace
}  // namespace trainyard::live
