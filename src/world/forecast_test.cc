// SPDX-License-Identifier: Apache-2.0
#include "world/forecast.h"

#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "profile/execution_model.h"
#include "world/simulated_world.h"

namespace trainyard::world {
namespace {

JobSpec Job(const std::string& name, double submit, int gpus, double duration) {
  return {
      .name = name, .gpus = gpus, .submit = AtSeconds(submit), .duration = FromSeconds(duration)};
}

// An engine on one node of 4 GPUs, some of whose jobs have been simulated for a while.
class ForecastTest : public testing::Test {
 protected:
  scheduler::Bundle BundleOf(const std::string& policy, const std::string& admission = "all") {
    policies_.push_back(
        catalog::Make(ComponentKind::kPolicy, ParseNamedOptions(policy).value(), {}).value());
    admissions_.push_back(
        catalog::Make(ComponentKind::kAdmission, ParseNamedOptions(admission).value()).value());
    return {.ordering = policies_.back().ordering.get(),
            .placement = placement_.placement.get(),
            .admission = admissions_.back().admission.get()};
  }

  void Start(const scheduler::Bundle& bundle, std::vector<JobSpec> jobs, double until,
             const Selector* selector = nullptr, std::vector<scheduler::Bundle> candidates = {}) {
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    jobs_ = std::make_shared<const std::vector<JobSpec>>(std::move(jobs));
    engine_ = std::make_unique<engine::Engine>(
        engine::EngineSetup{.configuration = engine::Share({.rules = rules,
                                                            .cluster = cluster_,
                                                            .bundle = bundle,
                                                            .selector = selector,
                                                            .candidates = std::move(candidates),
                                                            .forks = &forks_,
                                                            .rates = rates_.get()})});
    world_ = std::make_unique<SimulatedWorld>(jobs_, cluster_, *engine_,
                                              StopRule{.until = AtSeconds(until)});
    Finish(*engine_, *world_);
  }

  [[nodiscard]] std::unique_ptr<engine::Engine> ForkDecidedBy(const scheduler::Bundle& bundle) {
    std::unique_ptr<engine::Engine> fork = engine_->Fork();
    fork->DecideBy(bundle);
    return fork;
  }

  static void Finish(engine::Engine& engine, SimulatedWorld& world) {
    for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
         batch = world.Next(engine.next_wakeup())) {
      const auto actions = engine.Step(batch);
      ASSERT_TRUE(actions.ok()) << actions.error().message;
      ASSERT_TRUE(world.Perform(batch.now, actions.value()).ok());
    }
  }
  static double End(const engine::Engine& engine, std::size_t job) {
    return Seconds(engine.records()[job].done);
  }

  Cluster cluster_{.nodes = {{.name = "n", .gpus = 4}}};
  Components placement_ =
      catalog::Make(ComponentKind::kPlacement, {.name = "consolidated"}).value();
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeDurationModel();
  SimulatedForks forks_;
  std::vector<Components> policies_;
  std::vector<Components> admissions_;
  std::shared_ptr<const std::vector<JobSpec>> jobs_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<SimulatedWorld> world_;
};

// As in a live cluster, where nobody ends because it was predicted.
TEST_F(ForecastTest, AJobThatIsLateMayEndAtAnyTime) {
  const scheduler::Bundle bundle = BundleOf("fifo");
  Start(bundle, {Job("a", 0, 4, 10)}, 5);
  const auto next = std::make_shared<const JobSpec>(Job("b", 20, 4, 7));
  ASSERT_TRUE(
      engine_
          ->Step({.now = AtSeconds(20),
                  .events = {{.at = AtSeconds(20),
                              .fact = model::fact::Submitted{.job = JobAt(1), .spec = next}}}})
          .ok());
  const std::unique_ptr<engine::Engine> fork = ForkDecidedBy(bundle);
  ASSERT_TRUE(forks_.Run(*fork, std::nullopt).ok());
  EXPECT_EQ(End(*fork, 0), 20);
  EXPECT_EQ(End(*fork, 1), 27);
}

TEST_F(ForecastTest, AForkEndsAsTheRunItselfWouldWithoutArrivals) {
  const scheduler::Bundle srtf = BundleOf("srtf");
  Start(srtf, {Job("a", 0, 4, 100), Job("b", 10, 4, 50), Job("c", 20, 2, 500)}, 60);
  const std::unique_ptr<engine::Engine> fork = ForkDecidedBy(srtf);
  ASSERT_TRUE(forks_.Run(*fork, std::nullopt).ok());
  EXPECT_EQ(End(*fork, 0), 150);
  EXPECT_EQ(End(*fork, 1), 60);
  EXPECT_EQ(End(*fork, 2), 650);
  EXPECT_EQ(engine_->records()[0].phase.get(),
            model::JobPhase::kRunning);  // the engine is as it was
  EXPECT_EQ(engine_->records()[2].phase.get(), model::JobPhase::kWaiting);
}

TEST_F(ForecastTest, AForkMayDecideByOtherRules) {
  Start(BundleOf("fifo"), {Job("a", 0, 4, 100), Job("b", 10, 4, 50), Job("c", 20, 4, 5)}, 40);
  const std::unique_ptr<engine::Engine> fork = ForkDecidedBy(BundleOf("srtf"));
  ASSERT_TRUE(forks_.Run(*fork, std::nullopt).ok());
  EXPECT_EQ(End(*fork, 2), 25);  // at once, at the time of the last decision
  EXPECT_EQ(End(*fork, 1), 75);
  EXPECT_EQ(End(*fork, 0), 155);
}

TEST_F(ForecastTest, AHorizonEndsIt) {
  const scheduler::Bundle fifo = BundleOf("fifo");
  Start(fifo, {Job("a", 0, 4, 100), Job("b", 10, 4, 50)}, 40);
  const std::unique_ptr<engine::Engine> fork = ForkDecidedBy(fifo);
  ASSERT_TRUE(forks_.Run(*fork, AtSeconds(120)).ok());
  EXPECT_EQ(fork->records()[0].phase.get(), model::JobPhase::kCompleted);
  EXPECT_EQ(fork->records()[1].phase.get(), model::JobPhase::kRunning);
}

TEST_F(ForecastTest, TheEndOfALateJobIsNoCauseToDecideInThePast) {
  const Components chooser = catalog::Make(ComponentKind::kPolicy, {.name = "auto"}, {}).value();
  Start(BundleOf("fifo"), {Job("a", 0, 4, 10), Job("b", 1, 2, 50), Job("c", 2, 4, 5)}, 5,
        chooser.selector.get(), {BundleOf("fifo"), BundleOf("srtf")});
  ASSERT_TRUE(
      engine_
          ->Step({.now = AtSeconds(30),
                  .events = {{.at = AtSeconds(30), .fact = model::fact::Ended{.job = JobAt(2)}}}})
          .ok());
  EXPECT_EQ(engine_->records()[2].done, AtSeconds(30));
  EXPECT_EQ(engine_->records()[0].grant.gpus, 4);
}

TEST_F(ForecastTest, TheSelectorTakesTheBetterOne) {
  const Components chooser = catalog::Make(ComponentKind::kPolicy, {.name = "auto"}, {}).value();
  Start(BundleOf("fifo"), {Job("a", 0, 4, 100), Job("b", 10, 4, 50), Job("c", 20, 4, 5)}, 1000,
        chooser.selector.get(), {BundleOf("fifo"), BundleOf("srtf")});
  EXPECT_EQ(End(*engine_, 2), 25);
  EXPECT_EQ(End(*engine_, 1), 65);
  EXPECT_EQ(End(*engine_, 0), 155);
}

}  // namespace
}  // namespace trainyard::world
