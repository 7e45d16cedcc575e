// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/text_stream.h"
#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

// A job with these attempts, on a line of its own.
std::string Job(const std::string& id, const std::string& attempts,
                const std::string& submit = "\"2017-10-07 01:11:39\"") {
  return R"({"status": "Pass", "vc": "ee9e8c", "jobid": ")" + id + R"(", "attempts": )" + attempts +
         R"(, "submitted_time": )" + submit + R"(, "user": "ce2f4c"})";
}

// `stamps` without the date; not quoted where they are null.
std::string AttemptOf(const std::string& start, const std::string& end, int gpus) {
  const auto stamp = [](const std::string& text) {
    return text == "null" ? text : "\"" + (text.size() == 8 ? "2017-10-07 " + text : text) + "\"";
  };
  std::string names;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    names += (gpu == 0 ? "" : ", ") + ("\"gpu" + std::to_string(gpu) + "\"");
  }
  return R"({"start_time": )" + stamp(start) + R"(, "end_time": )" + stamp(end) +
         R"(, "detail": [{"ip": "m1", "gpus": [)" + names + "]}]}";
}

std::string ListOf(const std::vector<std::string>& jobs) {
  std::string text = "[";
  for (const std::string& job : jobs) {
    text += (text.size() == 1 ? "\n" : ",\n") + job;
  }
  return text + "\n]\n";
}

const std::string kPlain = "[" + AttemptOf("01:12:09", "01:13:09", 8) + "]";

TEST(PhillyTraceTest, TheRunIsFromTheFirstStartToTheLastEnd) {
  const auto trace =
      ReadText(ListOf({Job("application_1", "[" + AttemptOf("01:12:09", "01:13:23", 8) + "," +
                                                AttemptOf("01:20:00", "02:12:09", 4) + "]"),
                       Job("application_2", kPlain, "\"2017-10-07 01:12:00\"")}));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "philly");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "application_1");
  EXPECT_EQ(job.user, "ce2f4c");
  EXPECT_EQ(job.queue, "ee9e8c");
  EXPECT_EQ(job.gpus, 8) << "of the first attempt";
  EXPECT_EQ(job.duration, FromSeconds(3600)) << "gaps included";
  EXPECT_EQ(job.submit, AtSeconds(0));
  EXPECT_EQ(trace.value().jobs[1].submit, AtSeconds(21));
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(trace.value().waits[0], FromSeconds(30));
  EXPECT_EQ(trace.value().origin, "2017-10-07 01:11:39");
  EXPECT_EQ(trace.value().states, (std::map<std::string, std::int64_t>{{"Pass", 2}}));
}

TEST(PhillyTraceTest, MissingStampsInTheMiddleDoNotMatter) {
  const auto trace = ReadText(ListOf({Job(
      "a", "[" + AttemptOf("01:12:09", "None", 2) + "," + AttemptOf("None", "01:20:00", 2) + "," +
               AttemptOf("null", "null", 2) + "," + AttemptOf("", "01:22:09", 2) + "]")}));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(600));
}

TEST(PhillyTraceTest, JobsWithoutARunAreLeftOutByReason) {
  const std::string start_missing = "[" + AttemptOf("None", "01:20:00", 2) + "]";
  const auto trace = ReadText(
      ListOf({Job("a", "[]"), Job("b", "[" + AttemptOf("01:12:09", "None", 2) + "]"),
              Job("c", "[" + AttemptOf("01:12:09", "", 2) + "]"),
              Job("d", "[" + AttemptOf("01:12:09", "01:13:00", 2) + "," +
                           AttemptOf("01:14:00", "null", 2) + "]"),
              Job("e", start_missing), Job("f", kPlain, "\"None\""), Job("g", "null"),
              Job("h", "[" + AttemptOf("01:12:09", "01:13:00", 0) + "]"), Job("i", kPlain)}));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().jobs[0].name, "i");
  EXPECT_EQ(trace.value().skipped_rows, 8);
  const std::vector<RowGroup>& skipped = trace.value().skipped;
  ASSERT_EQ(skipped.size(), 5U);
  EXPECT_TRUE(skipped[0].why.ends_with("t.csv:2: it has no attempts; such jobs are left out"));
  EXPECT_EQ(skipped[0].rows, 2);
  EXPECT_TRUE(skipped[1].why.ends_with(
      "t.csv:3: it had not ended when the log was taken; such jobs are left out"));
  EXPECT_EQ(skipped[1].further, (std::vector<std::int64_t>{4, 5}));
  EXPECT_TRUE(
      skipped[2].why.ends_with("no start is recorded; jobs that never started are left "
                               "out"));
  EXPECT_TRUE(skipped[3].why.ends_with("its submit is not recorded; such jobs are left out"));
  EXPECT_TRUE(skipped[4].why.ends_with("jobs on CPUs alone are left out"));
}

TEST(PhillyTraceTest, FurtherKeysAreIgnored) {
  const auto trace = ReadText(
      R"([{"x": {"jobid": "no", "attempts": [1, {"start_time": 3}]}, "y": [[{}], 1.5, true],
"jobid": 17, "vc": null, "user": "u", "status": "Killed", "submitted_time": "2017-10-07 01:00:00",
"attempts": [{"z": {"end_time": 4}, "start_time": "2017-10-07 01:00:00",
"end_time": "2017-10-07 01:00:10", "detail": [{"ip": ["m"], "gpus": ["gpu0", "gpu1"]},
{"ip": "n", "gpus": ["gpu0"], "more": ["a", "b"]}]}]}])");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "philly");
  EXPECT_EQ(trace.value().jobs[0].name, "17");
  EXPECT_EQ(trace.value().jobs[0].queue, "");
  EXPECT_EQ(trace.value().jobs[0].gpus, 3);
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(10));
}

TEST(PhillyTraceTest, MayBeOneLongLine) {
  std::string text = "\xEF\xBB\xBF[";
  constexpr int kJobs = 20000;
  for (int i = 0; i < kJobs; ++i) {
    text += (i == 0 ? "" : ", ") + Job("application_" + std::to_string(i), kPlain);
  }
  ASSERT_GT(text.size(), 3 * io::kMaxLineBytes);
  const auto trace = ReadText(text + "]");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 20000U);
  EXPECT_EQ(trace.value().lines.back(), 1);
}

TEST(PhillyTraceTest, BadJobsRefuseTheFileOrAreSkipped) {
  const auto error = [](const std::string& job) {
    return ErrorOf(ListOf({Job("a", kPlain), job}));
  };
  EXPECT_EQ(error(Job("a", kPlain)),
            "t.csv:3: job_id 'a' is already in line 2; expected a new one");
  EXPECT_EQ(error(Job("", kPlain)), "t.csv:3: field 'jobid' is ''; expected the id of the job");
  EXPECT_EQ(error(Job("b", kPlain, "\"2017-10-07\"")),
            "t.csv:3: field 'submitted_time' is '2017-10-07'; expected a time such as 2020-04-01 "
            "00:00:05, with a zone or without");
  EXPECT_EQ(error(Job("b", "[" + AttemptOf("01:12:09", "01:12:00", 1) + "]")),
            "t.csv:3: it ended 9 s before it started; expected an end behind the start");
  EXPECT_EQ(error(Job("b", "\"two\"")), "t.csv:3: field 'attempts' is 'two'; expected a list");
  EXPECT_EQ(
      error(Job("b", "[[]]")),
      "t.csv:3: its attempts are not as expected: a list of objects, each with a list 'detail' "
      "of objects");
  EXPECT_EQ(error(Job("b", kPlain, "{}")),
            "t.csv:3: field 'submitted_time' is a list or an object; expected text");
  EXPECT_EQ(error("7"), "t.csv:3: a single value; expected an object");
  const auto trace = ReadText(ListOf({Job("a", kPlain), Job("a", kPlain), "7", Job("b", kPlain)}),
                              {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().skipped_rows, 2);
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 5}));
}

TEST(PhillyTraceTest, WhatIsNoListOfJobsIsRefused) {
  const TraceOptions philly{.format = "philly", .skip_bad_rows = true};
  EXPECT_EQ(ErrorOf("{}", philly), "t.csv:1: an object; expected a list of jobs");
  EXPECT_EQ(ErrorOf("[\n[]]", philly), "t.csv:2: a list within the list; expected jobs as objects");
  EXPECT_EQ(ErrorOf("5", philly), "t.csv:1: a single value; expected a list of jobs");
  EXPECT_EQ(ErrorOf("[]", philly), "t.csv: no jobs; expected a row at least");
  EXPECT_EQ(ErrorOf("[\n" + Job("a", kPlain) + ",\n{\"jobid\": ]", philly),
            "t.csv:3: no JSON from here on; expected a list of jobs");
  EXPECT_EQ(ErrorOf("", philly), "t.csv:1: no JSON from here on; expected a list of jobs");
}

}  // namespace
}  // namespace trainyard::trace
