// SPDX-License-Identifier: Apache-2.0
// What jobs say of themselves: metrics.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

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
  StepHearing(10, seconds(20));
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
  StepHearing(10, seconds(30));
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
  StepHearing(10, seconds(20));
  Say(many);
  EXPECT_EQ(store_.size(), blocks + 1) << "names that do not fit are not told again";
}

}  // namespace
}  // namespace trainyard::live
