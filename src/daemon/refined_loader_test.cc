// SPDX-License-Identifier: Apache-2.0
// torchloader's model as live jobs refine it: their reports, from the wire to another division.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "loader/measured_loader.h"
#include "support/measured_controller.h"

namespace trainyard::daemon {
namespace {

using std::chrono::seconds;

// Policy torchloader on 12 cores: a GPU takes 640 images a second, and a worker loads 50 as stated,
// so that one job wants 13 workers.
class RefinedLoaderTest : public live::MeasuredController {
 protected:
  RefinedLoaderTest() {
    parts_ = {.policy = torchloader_.policy.get(),
              .rates = rates_.get(),
              .corrector = loader::RefinedBy(profiles_, loader::WorkersFrom::kGrant),
              .bind = [](JobSpec& job) {
                job.profile_row = 0;
                return Status();
              }};
    Open();
    Hello();
  }

  // Of the job, as its agent was told last.
  int WorkersOf(std::uint64_t job) {
    int workers = -1;
    for (const v1::StartAttempt& start : Starts()) {
      workers = start.id().job() == job ? start.share().loader_workers() : workers;
    }
    for (const v1::TuneAttempt& tune :
         Told(&v1::ControllerMessage::has_tune, &v1::ControllerMessage::tune)) {
      workers = tune.id().job() == job ? tune.share().loader_workers() : workers;
    }
    return workers;
  }
  // For five minutes, with workers that load so many images a second each.
  void Train(std::uint64_t job, double of_a_worker, bool says_how_it_waits = true) {
    constexpr double kGpu = 640;
    const double images = std::min(kGpu, of_a_worker * WorkersOf(job));
    v1::AttemptReport report = Running(job, 1);
    Tell(connection_, report);
    report.set_first_progress_s(1);
    for (int second = 1; second <= 300; ++second) {
      Step(seconds(1));
      report.set_progress_s(second);
      report.set_iterations(images / 32 * second);
      report.clear_metrics();
      if (says_how_it_waits) {
        v1::Metric& waits = *report.add_metrics();
        waits.set_name("loading_share");
        waits.set_value(1 - images / kGpu);
      }
      Tell(connection_, report);
    }
  }

  const loader::LoaderProfiles profiles_ = loader::LoaderProfiles::Of(
      {{.name = "m"}, {.name = "other"}}, {.gpu = {.base = 0.05}, .loader = {.per_worker = 0.02}});
  const std::unique_ptr<ExecutionModel> rates_ =
      loader::MakeLoaderModel(profiles_, loader::WorkersFrom::kGrant);
  const Components torchloader_ = catalog::Make(ComponentKind::kPolicy, {.name = "torchloader"},
                                                {.read_samples = {}, .loader = &profiles_})
                                      .value();
};

TEST_F(RefinedLoaderTest, ThePolicyDividesByWhatWorkersHaveDelivered) {
  Submit("m");
  Submit("other");
  const int stated = WorkersOf(1);
  ASSERT_GT(stated, 4);
  ASSERT_GT(WorkersOf(2), 0);
  Train(1, 10);
  EXPECT_EQ(WorkersOf(1), stated) << "a measurement alone is no cause to decide";
  EXPECT_NEAR(Measured("loader_s", stated), 0.1 / stated, 1e-9);
  EXPECT_NEAR(Measured("rate", 1), 20, 1e-9) << "as with data enough";
  const std::uint64_t third = Submit("other");
  EXPECT_EQ(WorkersOf(1), 1);
  EXPECT_EQ(WorkersOf(1) + WorkersOf(2) + WorkersOf(third), 12);
  Open();  // from the snapshot and from the journal it decides the same
  EXPECT_NEAR(Measured("loader_s", stated), 0.1 / stated, 1e-9);
}

TEST_F(RefinedLoaderTest, WhatIsStatedIsBesideWhatIsMeasured) {
  Submit("m");
  Train(1, 10);
  std::map<std::string, double> stated;
  const v1::ProfilesReply profiles = Profiles();
  for (const v1::MeasuredSamples& row : profiles.measured()) {
    stated[row.measure()] = row.stated();
  }
  EXPECT_NEAR(stated["rate"], 20, 1e-9);
  EXPECT_NEAR(stated["loader_s"], 0.02 / 12, 1e-9);
}

TEST_F(RefinedLoaderTest, JobsThatDoNotWaitOrDoNotSaySoTellNothingOfTheirLoader) {
  Submit("m");
  Submit("other");
  Train(1, 1000);
  Train(2, 10, false);
  for (int workers = 0; workers <= 12; ++workers) {
    EXPECT_EQ(Measured("loader_s", workers), 0);
  }
}

}  // namespace
}  // namespace trainyard::daemon
