// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/blox.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/reference.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

void ExpectSame(const std::vector<JobSpec>& got, const std::vector<JobSpec>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].handover, expected[i].handover) << i;
    ASSERT_EQ(got[i].submit, expected[i].submit) << i;
    ASSERT_EQ(got[i].duration, expected[i].duration) << i;
    ASSERT_EQ(got[i].gpus, expected[i].gpus) << i;
    ASSERT_EQ(got[i].name, expected[i].name) << i;
  }
}

TEST(GenerateBloxTest, TheBaseStreamIsHandedOverAtRounds) {
  const auto jobs = GenerateBloxTrace({.jobs_per_hour = 8, .jobs = 50}, nullptr);
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs.value().size(), 50U);
  for (const JobSpec& job : jobs.value()) {
    EXPECT_EQ(job.handover->time_since_epoch() % std::chrono::seconds(300), Duration{0});
    EXPECT_LE(job.submit, *job.handover);
    EXPECT_LT(*job.handover - job.submit, std::chrono::seconds(300));
    EXPECT_GE(*job.duration, std::chrono::hours(10));
    EXPECT_LE(*job.duration, std::chrono::hours(24));
  }
}

TEST(GenerateBloxTest, BurstsComeEveryFourHoursBeforeTheirSubmitTime) {
  const auto jobs =
      GenerateBloxTrace({.jobs_per_hour = 3, .until = AtSeconds(20'000), .bursts = true}, nullptr);
  ASSERT_TRUE(jobs.ok());
  int early = 0;
  for (const JobSpec& job : jobs.value()) {
    if (job.submit > *job.handover) {
      ++early;
      EXPECT_EQ(job.handover->time_since_epoch() % std::chrono::hours(4), Duration{0});
      EXPECT_LE(*job.duration, std::chrono::hours(1));
    }
  }
  EXPECT_EQ(early, 24);  // at 0 and at 14,400 s
}

TEST(GenerateBloxTest, JobsOfAPoolAreTakenInTurn) {
  const BloxPool pool{.rows = {{.iterations = 5.5, .gpus = 2}, {.iterations = 7, .gpus = 1}}};
  const auto jobs = GenerateBloxTrace({.jobs_per_hour = 1, .jobs = 3}, &pool);
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(jobs.value()[2].duration, FromSeconds(5.5));
  EXPECT_EQ(jobs.value()[2].gpus, 2);
  EXPECT_EQ(jobs.value()[1].gpus, 1);
}

TEST(GenerateBloxTest, ThePublishedStreamComesOut) {
  const std::string file = Reference() + "/data/blox/trace_smalllarge_load8_seed1.csv.gz";
  TRAINYARD_NEEDS_REFERENCE();
  const auto published = ReadTrace(file, {.format = "blox"});
  ASSERT_TRUE(published.ok()) << published.error().message;
  const auto jobs = GenerateBloxTrace({.jobs_per_hour = 8,
                                       .seed = 1,
                                       .until = published.value().jobs.back().handover,
                                       .bursts = true},
                                      nullptr);
  ASSERT_TRUE(jobs.ok());
  ExpectSame(jobs.value(), published.value().jobs);
}

TEST(GenerateBloxTest, AStreamOverAPublishedPoolComesOut) {
  const std::string data = Reference() + "/data/blox/pool_sim_multigpu.csv";
  TRAINYARD_NEEDS_REFERENCE();
  const auto pool = ReadBloxPool(data);
  ASSERT_TRUE(pool.ok()) << pool.error().message;
  const auto published =
      ReadTrace(Reference() + "/golden/blox/sim_multigpu_load7/trace.csv", {.format = "blox"});
  ASSERT_TRUE(published.ok()) << published.error().message;
  const auto jobs = GenerateBloxTrace(
      {.jobs_per_hour = 7, .seed = 1, .until = published.value().jobs.back().handover},
      &pool.value());
  ASSERT_TRUE(jobs.ok());
  ExpectSame(jobs.value(), published.value().jobs);
}

TEST(WriteBloxTraceTest, ReadsBackAsTheSameJobs) {
  const auto jobs =
      GenerateBloxTrace({.jobs_per_hour = 5, .until = AtSeconds(30'000), .bursts = true}, nullptr);
  ASSERT_TRUE(jobs.ok());
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", WriteBloxTrace(jobs.value()));
  const auto read = ReadTrace(path, {.format = "blox"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  ExpectSame(read.value().jobs, jobs.value());
}

}  // namespace
}  // namespace trainyard::trace
