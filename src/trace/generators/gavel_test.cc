// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/gavel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "support/reference.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

struct PublishedGavel {
  const char* file;
  GavelOptions options;
};
void PrintTo(const PublishedGavel& one, std::ostream* out) { *out << one.file; }

class GavelStream : public testing::TestWithParam<PublishedGavel> {};

TEST_P(GavelStream, ComesOutJobByJob) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data/gavel/";
  const auto kinds = ReadGavelKinds(data + "simulation_throughputs.csv.gz");
  ASSERT_TRUE(kinds.ok()) << kinds.error().message;
  const auto jobs = GenerateGavelTrace(GetParam().options, kinds.value());
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  const auto published = ReadTrace(data + GetParam().file, {.format = "gavel"});
  ASSERT_TRUE(published.ok()) << published.error().message;
  ASSERT_EQ(jobs.value().size(), published.value().jobs.size());
  for (std::size_t i = 0; i < jobs.value().size(); ++i) {
    const JobSpec& job = jobs.value()[i];
    const JobSpec& theirs = published.value().jobs[i];
    EXPECT_EQ(job.name, theirs.name);
    EXPECT_EQ(job.model, theirs.model) << i;
    EXPECT_EQ(job.batch_size, theirs.batch_size) << i;
    EXPECT_EQ(job.gpus, theirs.gpus) << i;
    EXPECT_EQ(job.priority, theirs.priority) << i;
    EXPECT_EQ(std::trunc(*job.iterations), *theirs.iterations) << i;
    EXPECT_NEAR(Seconds(job.submit), Seconds(theirs.submit), 1e-6) << i << ": six digits there";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GavelStream,
    testing::Values(
        PublishedGavel{"gen20.trace.gz", {.jobs = 20, .jobs_per_hour = 1}},
        PublishedGavel{
            "gen60.trace.gz",
            {.jobs = 60, .jobs_per_hour = 2, .seed = 57, .multi_gpu = true, .priorities = true}},
        PublishedGavel{"gen200.trace.gz",
                       {.jobs = 200,
                        .jobs_per_hour = 3600.0 / 2700,
                        .seed = 7,
                        .multi_gpu = true,
                        .even_hours = GavelOptions::EvenHours{1, 10, 10}}}));

TEST(GavelKindsTest, ATableWithoutAKindIsNamed) {
  const ScratchFolder folder;
  const std::string table = folder.Write(
      "t.csv",
      "worker_type,job_type,scale_factor,other_job_type,other_scale_factor,steps_per_s,"
      "steps_per_s_other\nv100,A3C,1,,,3.5,\n");
  const auto kinds = ReadGavelKinds(table);
  ASSERT_FALSE(kinds.ok());
  EXPECT_EQ(kinds.error().message,
            table +
                ": no 'ResNet-18' with batch size 16 on one v100; expected all jobs of Gavel's "
                "simulation_throughputs.csv");
}

TEST(GavelKindsTest, AnotherTableIsRefused) {
  const ScratchFolder folder;
  const auto kinds = ReadGavelKinds(folder.Write("t.csv", "model,rate\na,1\n"));
  ASSERT_FALSE(kinds.ok());
  EXPECT_NE(kinds.error().message.find("t.csv:1: no table of Gavel"), std::string::npos)
      << kinds.error().message;
}

}  // namespace
}  // namespace trainyard::trace
