// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kChronusHeader =
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type\r\n";

Result<Trace> ChronusTrace(std::string_view rows, const TraceOptions& options = {}) {
  return ReadText(std::string(kChronusHeader).append(rows), options);
}

std::string ChronusError(std::string_view rows) {
  return ErrorOf(std::string(kChronusHeader).append(rows));
}

TEST(ChronusTraceTest, ReadsSoftDeadlinesInMinutes) {
  const auto trace = ChronusTrace("7,ann,8,2,7474,vgg16,140,0,239-259-309,10-8-5,0,soft\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "chronus");
  const JobSpec& job = trace.value().jobs.at(0);
  EXPECT_EQ(job.name, "7");
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.submit, AtSeconds(120));
  EXPECT_EQ(job.duration, FromSeconds(8400));
  EXPECT_EQ(job.iterations, 7474);
  EXPECT_EQ(job.deadline, AtSeconds(241 * 60));
  ASSERT_NE(job.traits, nullptr);
  ASSERT_EQ(job.traits->deadlines.size(), 3U);
  EXPECT_EQ(job.traits->deadlines[2].at, AtSeconds(311 * 60));
  EXPECT_EQ(job.traits->deadlines[2].value, 5);
}

TEST(ChronusTraceTest, TheUnitCanBeGiven) {
  const auto trace = ChronusTrace("7,ann,8,2.5,7474,vgg16,140,0,239,10,0,strict\n", {.unit = 1});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const JobSpec& job = trace.value().jobs.at(0);
  EXPECT_EQ(job.submit, AtSeconds(2.5));
  EXPECT_EQ(job.deadline, AtSeconds(241.5));
}

TEST(ChronusTraceTest, TargetsOfBestEffortJobsMeanNothing) {
  const auto trace = ChronusTrace("7,ann,8,312,7474,vgg16,140,0,312,10,1,best\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(trace.value().jobs.at(0).best_effort);
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
  EXPECT_EQ(trace.value().jobs[0].traits, nullptr);
}

TEST(ChronusTraceTest, JobsWithoutGpusAreLeftOut) {
  const auto trace = ChronusTrace(
      "1,ann,0,0,7474,vgg16,140,0,239,10,0,strict\n2,ann,1,0,7474,vgg16,140,0,239,10,0,strict\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_EQ(trace.value().skipped[0].line, 2);
}

TEST(ChronusTraceTest, RefusesBadTargets) {
  EXPECT_EQ(ChronusError("1,a,1,0,5,vgg16,140,0,239-200,10-8,0,soft\n"),
            "t.csv:2: column 'expect_time_list' is '239-200'; expected times after the submit, "
            "ascending, with '-' between them");
  EXPECT_EQ(ChronusError("1,a,1,0,5,vgg16,140,0,239-300,10,0,soft\n"),
            "t.csv:2: column 'expect_value_list' is '10'; expected 2 falling values with '-' "
            "between them, one for each of '239-300'");
  EXPECT_EQ(ChronusError("1,a,1,0,5,vgg16,140,0,239-300,5-10,0,soft\n"),
            "t.csv:2: column 'expect_value_list' is '5-10'; expected 2 falling values with '-' "
            "between them, one for each of '239-300'");
  EXPECT_EQ(ChronusError("1,a,1,0,5,vgg16,140,0,,10,0,soft\n"),
            "t.csv:2: column 'expect_time_list' is ''; expected times after the submit, ascending, "
            "with '-' between them");
  EXPECT_EQ(ChronusError("1,a,1,0,5,vgg16,140,0,239-,10-8,0,soft\n"),
            "t.csv:2: column 'expect_time_list' is '239-'; expected times after the submit, "
            "ascending, with '-' between them");
}

}  // namespace
}  // namespace trainyard::trace
