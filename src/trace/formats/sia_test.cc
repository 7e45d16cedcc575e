// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

TEST(SiaTraceTest, ReadsColumnsInAnyOrder) {
  const auto trace = ReadText(
      "\xEF\xBB\xBFname,time,application,num_replicas,batch_size\r\n"
      "cifar10-0,46,cifar10,1,128\r\nbert-1,195.25,bert,4,48\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sia");
  const JobSpec& job = trace.value().jobs.at(1);
  EXPECT_EQ(job.name, "bert-1");
  EXPECT_EQ(job.submit, AtSeconds(195.25));
  EXPECT_EQ(job.model, "bert");
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.batch_size, 48);
  EXPECT_FALSE(job.duration || job.iterations);  // the format states none
  const auto other = ReadText(
      "batch_size,time,name,category,application,num_replicas\n128,46,cifar10-0,small,cifar10,1\n");
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other.value().jobs.at(0).model, "cifar10");
}

TEST(SiaTraceTest, RefusesBadValues) {
  const std::string header = "name,time,application,num_replicas,batch_size\n";
  EXPECT_EQ(ErrorOf(header + "a,0,bert,0,1\n"),
            "t.csv:2: column 'num_replicas' is '0'; expected an integer from 1 to 6400000");
  EXPECT_EQ(ErrorOf(header + "a,0,,1,1\n"), "t.csv:2: column 'application' is ''; expected a text");
}

constexpr std::string_view kPhilly = "timestamp,duration,num_gpus,gpu_time,cluster\n";

TEST(SiaPhillyTraceTest, CountsFromTheFirstSubmitInAnyOrder) {
  const auto trace = ReadText(std::string(kPhilly) +
                              "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
                              "2017-10-09 07:01:00,2951.5,8,23612.0,6214e9\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sia-philly");
  const JobSpec& job = trace.value().jobs.at(0);
  EXPECT_EQ(job.name, "line2");  // there are no ids
  EXPECT_EQ(job.submit, AtSeconds(55));
  EXPECT_EQ(job.duration, FromSeconds(66));
  EXPECT_EQ(job.queue, "11cb48");
  EXPECT_EQ(trace.value().jobs.at(1).submit, AtSeconds(0));
  EXPECT_EQ(trace.value().jobs[1].gpus, 8);
}

TEST(SiaPhillyTraceTest, LeavesOutWhatNeverRanAndRefusesBadValues) {
  const auto trace = ReadText(std::string(kPhilly) +
                              "2017-10-09 07:01:55,0.0,1,0.0,a\n2017-10-09 07:01:00,5,0,0,a\n"
                              "2017-10-09 07:01:00,5,1,5,a\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().skipped.size(), 2U);
  EXPECT_EQ(ErrorOf(std::string(kPhilly) + "2017-10-09,5,1,5,a\n"),
            "t.csv:2: column 'timestamp' is '2017-10-09'; expected a time such as 2020-04-01 "
            "00:00:05, with a zone or without");
  EXPECT_EQ(ErrorOf(std::string(kPhilly) + "2017-10-09 07:01:00,-5,1,5,a\n"),
            "t.csv:2: column 'duration' is '-5'; expected seconds from 0 to 9000000000");
}

}  // namespace
}  // namespace trainyard::trace
