// SPDX-License-Identifier: Apache-2.0
// A job's reports, from the wire to another decision.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "profile/execution_model.h"
#include "support/measured_controller.h"
#include "support/scratch_folder.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

// Two GPUs for each job that they make 1.5 times as fast, otherwise one; the same at every
// decision.
class WorthIt final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "worth-it"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.may = {.resize = true, .name_gpus = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal;
    unsigned first = 0;
    for (const JobId job : snapshot.jobs->live()) {
      const JobSpec& spec = snapshot.jobs->spec(job);
      const bool worth = snapshot.rates->Rate(spec, 2) > 1.5 * snapshot.rates->Rate(spec, 1);
      const int gpus = worth ? 2 : 1;
      if (first + 2 <= 8 && snapshot.up(NodeAt(0))) {
        proposal.demands.push_back(
            {.job = job,
             .gpus = gpus,
             .slices = {{.node = NodeAt(0), .gpus = (worth ? 3U : 1U) << first}}});
      }
      first += 2;
    }
    return proposal;
  }
};

class MeasuredTest : public MeasuredController {
 protected:
  MeasuredTest() {
    parts_ = {.policy = &policy_, .rates = rates_.get(), .profiles = &table_};
    Open();
  }

  // The workers begin to advance `after` the grant and go on so for a while.
  void Advance(std::uint64_t job, std::uint32_t attempt, Duration after, double rate,
               double iterations_before = 0) {
    v1::AttemptReport report = Running(job, attempt);
    Step(after);
    Tell(connection_, report);
    report.set_first_progress_s(1 / rate);
    for (int second = 1; second <= 40; ++second) {
      Step(seconds(1));
      report.set_progress_s(second);
      report.set_iterations(iterations_before + rate * second);
      Tell(connection_, report);
    }
  }
  void End(std::uint64_t job, std::uint32_t attempt) {
    Tell(connection_, Report(job, attempt, v1::AttemptReport::EXITED));
  }

  ScratchFolder scratch_;
  profile::ThroughputTable table_ =
      profile::ThroughputTable::Read(
          scratch_.Write("t.csv",
                         "model,batch_size,gpus,iterations_per_second\n"
                         "m,32,1,10\nm,32,2,12\nother,32,1,10\nother,32,2,12\n"))
          .value();
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(&table_);
  WorthIt policy_;
};

TEST_F(MeasuredTest, RateAndCostOfAJobAreMeasured) {
  Hello();
  const std::uint64_t job = Submit();
  Advance(job, 1, seconds(7), 6);
  const v1::ProfilesReply profiles = Profiles();
  ASSERT_EQ(profiles.measured_size(), 2);
  const v1::MeasuredSamples& start = profiles.measured(0);
  EXPECT_EQ(start.measure(), "start_s");
  EXPECT_EQ(start.batch_size(), 0);
  EXPECT_EQ(start.gpu_type(), "");
  EXPECT_NEAR(start.median(), 7, 1e-6);
  EXPECT_EQ(start.stated(), 1);
  const v1::MeasuredSamples& rate = profiles.measured(1);
  EXPECT_EQ(rate.measure(), "rate");
  EXPECT_EQ(rate.gpu_type(), "A100");
  EXPECT_EQ(rate.batch_size(), 32);
  EXPECT_NEAR(rate.median(), 6, 1e-9);
  EXPECT_EQ(rate.stated(), 10);
  EXPECT_FALSE(rate.counts());
}

// The profile says that a second GPU is worth little. One is slower than it says, which three jobs
// show; those with two are not measured before.
TEST_F(MeasuredTest, APolicyDecidesByWhatHasBeenMeasured) {
  known_->Add({.model = "m", .batch_size = 32, .gpu_type = "A100", .gpus = 2},
              profile::Measure::kRate, 12);
  known_->Add({.model = "m", .batch_size = 32, .gpu_type = "A100", .gpus = 2},
              profile::Measure::kRate, 12);
  known_->Add({.model = "m", .batch_size = 32, .gpu_type = "A100", .gpus = 2},
              profile::Measure::kRate, 12);
  Open();
  Hello();
  for (std::uint64_t job = 1; job <= 3; ++job) {
    ASSERT_EQ(Submit(), job);
    ASSERT_EQ(Starts().back().gpus_size(), 1);
    Advance(job, 1, seconds(2), 5);
    if (job < 3) {
      EXPECT_EQ(Stops(), 0U);
    }
  }
  EXPECT_EQ(Stops(), 0U) << "a measurement alone is no cause to decide";
  EXPECT_NEAR(Measured("rate", 1), 5, 1e-9);
  const std::size_t starts = Starts().size();
  Submit("other");
  EXPECT_EQ(Stops(), 3U) << "all three get another GPU";
  for (std::uint64_t job = 1; job <= 3; ++job) {
    End(job, 1);
  }
  Submit();
  ASSERT_GT(Starts().size(), starts);
  EXPECT_EQ(Starts().back().gpus_size(), 2);
  Open();  // decides the same
}

TEST_F(MeasuredTest, AJobIsChargedWhatChangesHaveCost) {
  Hello();
  for (std::uint64_t job = 1; job <= 3; ++job) {
    Submit();
    Advance(job, 1, seconds(20), 10);
    End(job, 1);
  }
  EXPECT_NEAR(Measured("start_s", 1), 20, 1e-6);
  const std::uint64_t job = Submit();
  EXPECT_EQ(controller_->engine().records()[job - 1].progress.debt, seconds(20));
  const std::uint64_t other = Submit("other");
  EXPECT_EQ(controller_->engine().records()[other - 1].progress.debt, seconds(1));
}

TEST_F(MeasuredTest, ARestartForgetsNothingThatIsAFact) {
  Hello();
  Submit();
  Advance(1, 1, seconds(2), 5);
  const std::string before = Profiles().ShortDebugString();
  Open();
  EXPECT_EQ(Profiles().ShortDebugString(), before);
  Hello({Running(1, 1)});
  v1::AttemptReport report = Running(1, 1);
  report.set_progress_s(500);
  report.set_iterations(9000);
  Tell(connection_, report);  // an attempt that this controller has not seen begin
  EXPECT_EQ(Profiles().ShortDebugString(), before);
}

TEST_F(MeasuredTest, WindowsGrowSoThatAQuietJobWritesLittle) {
  Hello();
  Submit();
  v1::AttemptReport report = Running(1, 1);
  Tell(connection_, report);
  report.set_first_progress_s(1);
  for (int minute = 1; minute <= 600; ++minute) {
    Step(seconds(60));
    report.set_progress_s(minute * 60);
    report.set_iterations(minute * 600.0);
    Tell(connection_, report);
  }
  const v1::ProfilesReply profiles = Profiles();
  for (const v1::MeasuredSamples& row : profiles.measured()) {
    if (row.measure() == "rate") {
      EXPECT_GE(row.values_size(), 8);
      EXPECT_LE(row.values_size(), 15);
    }
  }
}

TEST_F(MeasuredTest, PretendedWorkersAreNotMeasured) {
  Hello();
  v1::ClientRequest request;
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_gpus(1);
  job.set_model("m");
  job.set_batch_size(32);
  job.set_iterations(1e6);
  job.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
  Call(request);
  Advance(1, 1, seconds(2), 5);
  EXPECT_EQ(Profiles().measured_size(), 0);
}

TEST_F(MeasuredTest, HowLongAStopTookIsMeasured) {
  Hello();
  Submit();
  Advance(1, 1, seconds(2), 5);
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(request);
  Step(seconds(4));
  v1::AttemptReport report = Running(1, 1);
  report.set_state(v1::AttemptReport::EXITED);
  Tell(connection_, report);
  Step();
  EXPECT_EQ(Measured("stop_s", 1), 4);
}

}  // namespace
}  // namespace trainyard::live
