// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kSwfHeader =
    "; Version: 2.2\n; UnixStartTime: 1000000000\n;\n   \n; MaxProcs: 128\n";

// Why the only row of a log with a further, good one was left out.
std::string WhySwfLeftOut(const std::string& row) {
  return WhyLeftOut(row + "\n99 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
}

TEST(SwfTraceTest, ReadsBlanksCommentsAndALineOfBlanks) {
  const auto trace =
      ReadText(std::string(kSwfHeader) +
               "  1 10 3 60 8 45.5 1024 16 3600 -1 1 4294967299 7 2 5 1 -1 -1\r\n"
               "2\t20.5\t-1\t0.25\t4\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "swf");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "1");
  EXPECT_EQ(job.submit, AtSeconds(10));
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.gpus, 16);            // requested
  EXPECT_EQ(job.user, "4294967299");  // longer than 32 bits
  EXPECT_EQ(job.queue, "5");
  ASSERT_NE(job.traits, nullptr);
  EXPECT_EQ(job.traits->time_limit, FromSeconds(3600));
  const JobSpec& unknown = trace.value().jobs[1];
  EXPECT_EQ(unknown.gpus, 4);  // field 8 is -1: those that it got
  EXPECT_EQ(unknown.user, "");
  EXPECT_EQ(unknown.traits, nullptr);
  EXPECT_EQ(unknown.queue, "");
  EXPECT_EQ(unknown.submit, AtSeconds(20.5));
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{6, 7}));
  EXPECT_EQ(trace.value().unread,
            (std::vector<std::string>{"CPU time", "memory", "group", "executable", "partition",
                                      "preceding", "think time"}));
}

TEST(SwfTraceTest, RequestedMemoryIsThatOfAllProcessors) {
  const auto trace = ReadText(
      "1 0 0 5 9 -1 -1 9 -1 2048 1 -1 -1 -1 -1 -1 -1 -1\n"
      "2 0 0 5 8 -1 -1 8 -1 1 1 -1 -1 -1 -1 -1 -1 -1\n",
      {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].traits->request->memory, (MemoryRequest{.mib = 18}));
  EXPECT_EQ(trace.value().jobs[1].traits->request->memory, (MemoryRequest{.mib = 1}));
  for (const int gpus : {1, 3, 7, 1000}) {
    JobSpec job{.name = "1", .gpus = gpus, .duration = FromSeconds(5)};
    job.traits = std::make_shared<const JobTraits>(
        JobTraits{.request = NodeRequest{.memory = {.mib = 64000}}});
    const auto again = ReadText(WriteSwf({.jobs = {&job, 1}}));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again.value().jobs[0].traits->request->memory.mib, 64000) << gpus;
  }
}

TEST(SwfTraceTest, IsRecognisedWithoutHeader) {
  const auto trace = ReadText("1 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "swf");
}

TEST(SwfTraceTest, TheHeaderSaysWhatTimeZeroIs) {
  const std::string row = "1 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
  const auto origin = [&row](const std::string& header) {
    const auto trace = ReadText(header + row);
    return trace.ok() ? trace.value().origin : trace.error().message;
  };
  EXPECT_EQ(origin("; UnixStartTime: 1009864800\n; TimeZone: -21600\n"), "2002-01-01 00:00:00");
  EXPECT_EQ(origin(";UnixStartTime: 1009864800\n;TimeZoneString: US/Central\n"),
            "2002-01-01 06:00:00+00:00");
  EXPECT_EQ(origin("; Computer: x\n"), "");
  EXPECT_EQ(origin("; UnixStartTime: 0\n"), "");
}

TEST(SwfTraceTest, ProcessorsAreMappedToGpus) {
  const auto trace = ReadText(
      "1 0 0 5 9 -1 -1 9 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
      "2 0 0 5 8 -1 -1 8 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n",
      {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].gpus, 2);  // rounded up
  EXPECT_EQ(trace.value().jobs[1].gpus, 1);
}

TEST(SwfTraceTest, RowsThatAreNoJobsAreLeftOut) {
  EXPECT_TRUE(Says(WhySwfLeftOut("1 0 0 0 1 -1 -1 1 -1 -1 5 -1 -1 -1 -1 -1 -1 -1"), "never ran"));
  EXPECT_TRUE(Says(WhySwfLeftOut("1 0 0 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1"), "never ran"));
  EXPECT_TRUE(
      Says(WhySwfLeftOut("1 0 0 9 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"), "processors"));
  EXPECT_TRUE(Says(WhySwfLeftOut("1 0 0 9 0 -1 -1 0 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"), "processors"));
  for (const char* status : {"2", "3", "4"}) {
    EXPECT_TRUE(Says(
        WhySwfLeftOut("1 0 0 9 1 -1 -1 1 -1 -1 " + std::string(status) + " -1 -1 -1 -1 -1 -1 -1"),
        "parts of jobs"));
  }
  // Jobs that failed or were cancelled while they ran held their processors too.
  for (const char* status : {"0", "1", "5", "-1"}) {
    EXPECT_EQ(
        WhySwfLeftOut("1 0 0 9 1 -1 -1 1 -1 -1 " + std::string(status) + " -1 -1 -1 -1 -1 -1 -1"),
        "not left out");
  }
}

TEST(SwfTraceTest, NamesTheNumberOfFieldsAndTheLine) {
  const std::string good = "1 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1";
  EXPECT_EQ(ErrorOf(good + " 7 7\n"), "t.csv:1: 20 fields; expected 18, separated by blanks");
  EXPECT_EQ(ErrorOf(good + "\n2 0 0\n"), "t.csv:2: 3 fields; expected 18, separated by blanks");
  const TraceOptions swf{.format = "swf"};
  EXPECT_EQ(ErrorOf("JobID,Submit,Wait\n" + good + "\n", swf),
            "t.csv:1: 1 fields; expected 18, separated by blanks");
  EXPECT_EQ(ErrorOf("1;0;0;5;1;-1;-1;1;-1;-1;1;-1;-1;-1;-1;-1;-1;-1\n", swf),
            "t.csv:1: 1 fields; expected 18, separated by blanks");
}

TEST(SwfTraceTest, RefusesBadValues) {
  EXPECT_EQ(ErrorOf(";\nx 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"),
            "t.csv:2: field 'job' is 'x'; expected a number, -1 where it is unknown");
  EXPECT_EQ(ErrorOf(";\n1.5 0 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"),
            "t.csv:2: field 'job' is '1.5'; expected the number of the job");
  EXPECT_EQ(ErrorOf(";\n1 -1 0 5 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"),
            "t.csv:2: field 'submit' is '-1'; expected seconds from 0 to 9000000000");
  EXPECT_EQ(ErrorOf(";\n1 0 0 -7 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"),
            "t.csv:2: field 'run' is '-7'; expected seconds > 0 and <= 9000000000, or -1");
  EXPECT_EQ(
      ErrorOf(";\n1 0 0 7 1 -1 -1 1.5 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"),
      "t.csv:2: field 'requested processors' is '1.5'; expected a whole number of processors, "
      "for at most 6400000 GPUs");
}

}  // namespace
}  // namespace trainyard::trace
