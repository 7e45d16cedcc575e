// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

// A workload of these jobs, each in a line of its own from line 2 on.
std::string Workload(const std::string& jobs) {
  return "{\"nb_res\":8,\"jobs\":[\n" + jobs +
         "\n],\"profiles\":{\"d\":{\"type\":\"delay\",\"delay\":20.20},"
         "\"now\":{\"type\":\"DelayProfile\",\"delay\":5,\"ret\":0},"
         "\"p\":{\"type\":\"parallel_homogeneous\",\"cpu\":1e9,\"com\":0},"
         "\"bad\":{\"type\":\"delay\"},\"zero\":{\"type\":\"delay\",\"delay\":0}},"
         "\"description\":\"ignored\"}\n";
}

TEST(BatsimTraceTest, ReadsDelaysOfAllGenerations) {
  const auto trace = ReadText(Workload(
      R"({"id":"w0!1","subtime":10,"res":4,"profile":"d","walltime":100,"user":"ignored"},)"
      "\n"
      R"({"id":2,"subtime":1.5,"res":1,"profile":"now"})"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "batsim");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "w0!1");
  EXPECT_EQ(job.submit, AtSeconds(10));
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.duration, FromSeconds(20.2));
  EXPECT_EQ(trace.value().jobs[1].name, "2");  // a number; and it comes earlier
  EXPECT_EQ(trace.value().jobs[1].submit, AtSeconds(1.5));
  EXPECT_EQ(trace.value().jobs[1].duration, FromSeconds(5));
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 3}));
}

TEST(BatsimTraceTest, ProfilesMayComeFirst) {
  const auto trace = ReadText(
      R"({"profiles":{"d":{"delay":3,"type":"delay"}},"jobs":[{"id":1,"subtime":0,"res":16,)"
      R"("profile":"d"}]})",
      {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].gpus, 2);
}

TEST(BatsimTraceTest, AJobIsKilledAtItsWalltime) {
  const auto trace =
      ReadText(Workload(R"({"id":1,"subtime":0,"res":1,"profile":"d","walltime":7.5},)"
                        R"({"id":2,"subtime":0,"res":1,"profile":"d","walltime":-1})"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(7.5));
  EXPECT_EQ(trace.value().jobs[1].duration, FromSeconds(20.2));  // no limit
}

TEST(BatsimTraceTest, OnlyDelaysStateARunTime) {
  const auto trace =
      ReadText(Workload("{\"id\":1,\"subtime\":0,\"res\":1,\"profile\":\"d\"},\n"
                        "{\"id\":2,\"subtime\":0,\"res\":1,\"profile\":\"p\"},\n"
                        "{\"id\":3,\"subtime\":0,\"res\":1,\"profile\":\"zero\"}"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
  ASSERT_EQ(trace.value().skipped.size(), 2U);
  EXPECT_EQ(trace.value().skipped[0].line, 3);
  EXPECT_NE(trace.value().skipped[0].why.find("parallel_homogeneous"), std::string::npos);
  EXPECT_NE(trace.value().skipped[1].why.find("no time"), std::string::npos);
}

TEST(BatsimTraceTest, RefusesBadJobs) {
  const auto error = [](const std::string& job) { return ErrorOf(Workload(job)); };
  EXPECT_EQ(error(R"({"subtime":0,"res":1,"profile":"d"})"),
            "t.csv:2: field 'id' is ''; expected the id of the job");
  EXPECT_EQ(error(R"({"id":1,"subtime":0,"res":1,"profile":"x"})"),
            "t.csv:2: field 'profile' is 'x'; expected the name of one of the file's profiles");
  EXPECT_EQ(error(R"({"id":1,"subtime":-2,"res":1,"profile":"d"})"),
            "t.csv:2: field 'subtime' is '-2'; expected seconds from 0 to 9000000000");
  EXPECT_EQ(error(R"({"id":1,"subtime":0,"res":0,"profile":"d"})"),
            "t.csv:2: field 'res' is '0'; expected an integer from 1 to 6400000");
  EXPECT_EQ(error(R"({"id":1,"subtime":0,"res":1,"profile":"d","walltime":"x"})"),
            "t.csv:2: field 'walltime' is 'x'; expected seconds, or nothing for no limit");
  EXPECT_EQ(error(R"({"id":1,"subtime":0,"res":1,"profile":"bad"})"),
            "t.csv:2: field 'profile' is 'bad'; expected a profile with a delay from 0 to "
            "9000000000 s, which this one states as ''");
  EXPECT_EQ(error("{\"id\":1,\"subtime\":0,\"res\":1,\"profile\":\"d\"},\n"
                  "{\"id\":\"1\",\"subtime\":0,\"res\":1,\"profile\":\"d\"}"),
            "t.csv:3: job_id '1' is already in line 2; expected a new one");
  EXPECT_EQ(error("7"), "t.csv:2: a job that is no object; expected {\"id\":...}");
}

TEST(BatsimTraceTest, RefusesBrokenText) {
  EXPECT_EQ(ErrorOf("{\"jobs\":[\n{\"id\":1,}\n]}"),
            "t.csv:2: no JSON from here on; expected one object with jobs and profiles");
  EXPECT_EQ(ErrorOf("{\"profiles\":{}}"), "t.csv:1: no list 'jobs'; expected jobs and profiles");
}

TEST(BatsimTraceTest, BadJobsCanBePassedOver) {
  const auto trace = ReadText(Workload("{\"id\":1,\"subtime\":0,\"res\":1,\"profile\":\"x\"},\n"
                                       "{\"id\":2,\"subtime\":0,\"res\":1,\"profile\":\"d\"}"),
                              {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().skipped.size(), 1U);
}

}  // namespace
}  // namespace trainyard::trace
