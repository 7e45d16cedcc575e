// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/synergy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "support/reference.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

profile::SensitivityTable SynergyTable(std::string_view rows) {
  const ScratchFolder folder;
  (void)folder.Write(
      "model_profiles.csv",
      "cpu_per_gpu_ratio,model,task,class_id,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
      "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n" +
          std::string(rows));
  return profile::SensitivityTable::Read(folder.path()).value();
}

constexpr std::string_view kRows =
    "3,a,image,0,1,6,60,60,8,2,0.5\n3,b,image,1,1,6,60,60,8,2,0.25\n"
    "3,c,language,2,1,1,60,60,8,1,0.5\n3,d,speech,3,1,1,60,60,8,1,0.5\n"
    "4,a,image,0,1,6,60,60,8,2,0.4\n";

TEST(GenerateSynergyTest, FamiliesKeepTheirSharesAndModelsTakeTurns) {
  const auto jobs = GenerateSynergyTrace({.jobs = 100, .jobs_per_hour = 10, .split = {20, 70, 10}},
                                         SynergyTable(kRows), 3);
  ASSERT_TRUE(jobs.ok());
  std::map<std::string, int> counts;
  for (const JobSpec& job : jobs.value()) {
    ++counts[job.model];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 10}, {"b", 10}, {"c", 70}, {"d", 10}}));
}

TEST(GenerateSynergyTest, DurationsAndSubmitsAreWhole) {
  const auto jobs = GenerateSynergyTrace({.jobs = 200, .jobs_per_hour = 10, .one_gpu = true},
                                         SynergyTable(kRows), 3);
  ASSERT_TRUE(jobs.ok());
  TimePoint last{};
  for (const JobSpec& job : jobs.value()) {
    EXPECT_EQ(job.gpus, 1);
    EXPECT_EQ(job.submit.time_since_epoch() % std::chrono::seconds(1), Duration{0});
    EXPECT_GT(job.submit, last);
    EXPECT_GE(*job.duration, std::chrono::minutes(31));
    EXPECT_LE(*job.duration, std::chrono::hours(168));
    last = job.submit;
  }
}

TEST(GenerateSynergyTest, RefusesProfilesWithoutAFamily) {
  const auto jobs = GenerateSynergyTrace({.jobs = 1, .jobs_per_hour = 1}, SynergyTable(kRows), 4);
  ASSERT_FALSE(jobs.ok());
  EXPECT_EQ(jobs.error().message,
            "no models of the family 'language' for 4 CPUs per GPU; expected those published with "
            "Synergy");
}

struct PublishedSynergy {
  const char* file;
  double jobs_per_hour;
  bool one_gpu;
};
void PrintTo(const PublishedSynergy& one, std::ostream* out) { *out << one.file; }

class PublishedStream : public testing::TestWithParam<PublishedSynergy> {};

TEST_P(PublishedStream, ComesOutJobByJob) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data/synergy";
  const auto profiles = profile::SensitivityTable::Read(data);
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  const auto trace = ReadTrace(data + "/" + GetParam().file);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const auto jobs = GenerateSynergyTrace({.jobs = static_cast<int>(trace.value().jobs.size()),
                                          .jobs_per_hour = GetParam().jobs_per_hour,
                                          .one_gpu = GetParam().one_gpu},
                                         profiles.value(), 3);
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  EXPECT_EQ(WriteSynergyTrace(jobs.value()), WriteSynergyTrace(trace.value().jobs));
}

INSTANTIATE_TEST_SUITE_P(
    Synergy, PublishedStream,
    testing::Values(PublishedSynergy{"trace_syn32multi-load0.9-seed42.csv", 0.9, false},
                    PublishedSynergy{"trace_syn128single-load9-seed42.csv.gz", 9, true},
                    PublishedSynergy{"trace_syn128single-load7-seed42.csv.gz", 7, true}));

}  // namespace
}  // namespace trainyard::trace
