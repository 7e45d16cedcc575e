// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kMuriHeader =
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\r\n";

Result<Trace> MuriTrace(std::string_view row) {
  return ReadText(std::string(kMuriHeader).append(row) + "\r\n");
}

std::string MuriError(std::string_view row) {
  return ErrorOf(std::string(kMuriHeader).append(row) + "\r\n");
}

TEST(MuriTraceTest, TimesAreMilliseconds) {
  const Result<Trace> trace = MuriTrace("7,4,1500,200,resnet18,128,184200,0,921,723,113,0.5,1");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "muri");
  const JobSpec& job = trace.value().jobs.at(0);
  EXPECT_EQ(job.name, "7");
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.submit, AtSeconds(1.5));
  EXPECT_EQ(job.iterations, 200);
  EXPECT_EQ(job.model, "resnet18");
  EXPECT_EQ(job.duration, FromSeconds(184.2));
  EXPECT_EQ(job.priority, 1);
  ASSERT_NE(job.traits, nullptr);
  ASSERT_TRUE(job.traits->stages.has_value());
  EXPECT_DOUBLE_EQ(job.traits->stages->iteration, 0.921);
  ASSERT_EQ(job.traits->stages->stages.size(), 3U);
  EXPECT_DOUBLE_EQ(job.traits->stages->stages[0], 0.723);
  EXPECT_DOUBLE_EQ(job.traits->stages->stages[1], 0.113);
  EXPECT_DOUBLE_EQ(job.traits->stages->stages[2], 0.0005);
}

TEST(MuriTraceTest, TheBatchSizeIsThatOfAllGpus) {
  const Result<Trace> trace = MuriTrace("7,4,0,200,resnet18,128,184200,0,921,723,113,73,0");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).batch_size, 512);
}

TEST(MuriTraceTest, RefusesWhatIsNoTime) {
  EXPECT_EQ(MuriError("7,4,0,200,resnet18,128,184200,0,0,723,113,73,0"),
            "t.csv:2: column 'iteration_time' is '0'; expected a number of milliseconds > 0 and <= "
            "9000000000000");
  EXPECT_EQ(MuriError("7,4,0,200,resnet18,128,184200,0,921,723,-1,73,0"),
            "t.csv:2: column 'resource_time_1' is '-1'; expected a number of milliseconds >= 0 and "
            "<= 9000000000000");
  EXPECT_EQ(MuriError("7,4,9e13,200,resnet18,128,184200,0,921,723,1,73,0"),
            "t.csv:2: column 'submit_time' is '9e13'; expected a number of milliseconds >= 0 and "
            "<= 9000000000000");
}

TEST(MuriTraceTest, SomeStageMustTakeTime) {
  EXPECT_EQ(MuriError("7,4,0,200,resnet18,128,184200,0,921,0,0,0,0"),
            "t.csv:2: all stages take no time; expected one at least that takes some");
}

TEST(MuriTraceTest, ThePriorityIsWhole) {
  EXPECT_EQ(
      MuriError("7,4,0,200,resnet18,128,184200,0,921,723,113,73,low"),
      "t.csv:2: column 'priority' is 'low'; expected an integer from -2147483648 to 2147483647");
}

}  // namespace
}  // namespace trainyard::trace
