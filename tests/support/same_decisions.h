// SPDX-License-Identifier: Apache-2.0
// For tests of queues: two that must decide alike.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/queued_jobs.h"

namespace trainyard::scheduler {

// Gives both the same random jobs, whose keys, as `ordering` has them, are drawn anew where they
// may move, and compares who holds GPUs after each decision. One of them is restored now and then.
inline void ExpectSameDecisions(SetOrdering& ordering, QueueByCount& subject, QueueByCount& oracle,
                                unsigned seed) {
  std::mt19937_64 random(seed);
  const bool always = (ordering.traits().moves & kAlways) != 0;
  TimePoint now{};
  for (int step = 0; step < 120; ++step) {
    now += Duration{1 + static_cast<Duration::rep>(random() % 1'000'000)};
    const JobId next = JobAt(static_cast<std::size_t>(step));
    ordering.standings[next] = {.key = {static_cast<double>(random() % 8)}, .slope = -1e-6};
    for (QueueByCount* const one : {&subject, &oracle}) {
      one->Arrive(1 << (step * 7 % 3), now);
    }
    if (const std::vector<JobId> running = oracle.jobs().running(); running.size() > 2) {
      const JobId ended = running[random() % running.size()];
      subject.End(ended, now);
      oracle.End(ended, now);
    }
    if (always) {
      for (const JobId job : oracle.jobs().live()) {
        ordering.SetKey(job, static_cast<double>(random() % 8));
      }
    }
    if (step % 17 == 16) {
      subject.Restore();
      ASSERT_TRUE(subject.restored());
    }
    subject.Decide(now);
    oracle.Decide(now);
    ASSERT_EQ(subject.jobs().running(), oracle.jobs().running()) << "seed " << seed << ", " << step;
    ASSERT_EQ(subject.queue().standings().Waiting(now), oracle.queue().standings().Waiting(now));
  }
}

}  // namespace trainyard::scheduler
