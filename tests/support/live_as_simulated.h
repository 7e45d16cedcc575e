// SPDX-License-Identifier: Apache-2.0
// For tests: a trace played to the live controller and agents, beside a simulation.
#pragma once

#include <gtest/gtest.h>

#include "daemon/fast_forward.h"
#include "results/metrics/metrics.h"
#include "scenario/scenario.h"

namespace trainyard {

constexpr double kRounding = 1e-3;  // s

// The same outcome, changes, starts and ends of all jobs. In seconds: `start_within`, where a
// decision hangs on ends that are rounded; `end_within`, where trainers round them.
inline void ExpectLiveAsSimulated(const scenario::Inputs& inputs,
                                  const scenario::RunRequest& request, int completed,
                                  double start_within = 0, double end_within = kRounding) {
  const Result<results::RunResult> simulated = scenario::RunScenario(inputs, request);
  const Result<results::RunResult> live = daemon::RunFastForward(inputs, request);
  ASSERT_TRUE(simulated.ok()) << simulated.error().message;
  ASSERT_TRUE(live.ok()) << live.error().message;
  ASSERT_EQ(live.value().jobs.size(), simulated.value().jobs.size());
  for (std::size_t i = 0; i < live.value().jobs.size(); ++i) {
    const results::JobResult& a = simulated.value().jobs[i];
    const results::JobResult& b = live.value().jobs[i];
    ASSERT_EQ(b.outcome, a.outcome) << "job " << i;
    ASSERT_EQ(b.start.has_value(), a.start.has_value()) << "job " << i;
    if (a.start) {
      EXPECT_NEAR(Seconds(*b.start), Seconds(*a.start), start_within) << "job " << i;
    }
    ASSERT_EQ(b.end.has_value(), a.end.has_value()) << "job " << i;
    if (a.end) {
      EXPECT_NEAR(Seconds(*b.end), Seconds(*a.end), end_within) << "job " << i;
    }
    EXPECT_EQ(b.preemptions, a.preemptions) << "job " << i;
    EXPECT_EQ(b.migrations, a.migrations) << "job " << i;
    EXPECT_EQ(b.resizes, a.resizes) << "job " << i;
    EXPECT_NEAR(b.attained_service, a.attained_service, 0.1) << "job " << i;
  }
  EXPECT_GE(results::Measure(simulated.value()).completed, completed);
}

}  // namespace trainyard
