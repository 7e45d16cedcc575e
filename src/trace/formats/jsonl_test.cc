// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <utility>

#include "io/file.h"
#include "support/scratch_folder.h"
#include "support/trace_files.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kJob = R"({"job_id":"a","submit_time":0,"gpus":1,"duration":5)";

// A good job with further fields.
std::string With(std::string_view fields) {
  return std::string(kJob) + "," + std::string(fields) + "}\n";
}

TEST(JsonlTraceTest, ReadsAllFields) {
  const auto trace = ReadText(
      R"({"deadline": 99.25, "job_id": "a\u00e9\"", "submit_time": 1.5, "gpus": 8, "duration": 60,)"
      R"( "iterations": 1e3, "user": "ann", "queue": "research", "model": "bert",)"
      R"( "batch_size": 64, "best_effort": false})");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "jsonl");
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "a\u00e9\"");
  EXPECT_EQ(job.submit, AtSeconds(1.5));
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.iterations, 1000);
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.queue, "research");
  EXPECT_EQ(job.model, "bert");
  EXPECT_EQ(job.batch_size, 64);
  EXPECT_EQ(job.deadline, AtSeconds(99.25));
  EXPECT_FALSE(job.best_effort);
}

TEST(JsonlTraceTest, NullAndAbsentFieldsAreAbsentValues) {
  const auto trace = ReadText(With(R"("deadline":null,"user":null,"iterations":null)"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
  EXPECT_FALSE(trace.value().jobs[0].iterations.has_value());
  EXPECT_EQ(trace.value().jobs[0].user, "");
}

TEST(JsonlTraceTest, BestEffortIsABooleanOr1Or0) {
  for (const auto& [value, expected] : {std::pair{"true", true}, std::pair{"false", false},
                                        std::pair{"1", true}, std::pair{"0", false}}) {
    const auto trace = ReadText(With(std::string(R"("best_effort":)") + value));
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().jobs[0].best_effort, expected);
  }
  EXPECT_EQ(ErrorOf(With(R"("best_effort":2)")),
            "t.csv:1: field 'best_effort' is '2'; expected 1 or 0");
  EXPECT_EQ(ErrorOf(With(R"("best_effort":"yes")")),
            "t.csv:1: field 'best_effort' is 'yes'; expected true, false, 1 or 0");
}

TEST(JsonlTraceTest, TheLargestNumberIsNoDeadline) {
  const auto trace = ReadText(With(R"("deadline":9223372036854775807)"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
}

TEST(JsonlTraceTest, BlankLinesMarksAndLineEndsOfOtherSystemsAreFine) {
  const auto trace = ReadText("\xEF\xBB\xBF\r\n  \r\n" + std::string(kJob) +
                              "}\r\n\n {\"job_id\":\"b\",\"submit_time\":0,\"gpus\":2,"
                              "\"iterations\":7}");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(trace.value().jobs[1].iterations, 7);
}

TEST(JsonlTraceTest, IsRecognisedHoweverItIsPacked) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t", folder.Gzip(std::string(kJob) + "}\n"));
  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "jsonl");
  EXPECT_EQ(trace.value().sha256, io::Sha256OfFile(path).value());
}

TEST(JsonlTraceTest, IsReadByItsNameAndAsANativeTrace) {
  EXPECT_TRUE(ReadText(std::string(kJob) + "}", {.format = "jsonl"}).ok());
  EXPECT_TRUE(ReadText(std::string(kJob) + "}", {.format = "native"}).ok());
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpus,duration\n", {.format = "jsonl"}),
            "t.csv:1: no JSON from byte 1 on; expected one object");
}

TEST(JsonlTraceTest, NamesTheFieldOfABadValue) {
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":0,"gpus":-1,"duration":5})"),
            "t.csv:1: field 'gpus' is '-1'; expected an integer from 0 to 6400000");
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":0,"gpus":1.5,"duration":5})"),
            "t.csv:1: field 'gpus' is '1.5'; expected an integer from 0 to 6400000");
  EXPECT_EQ(ErrorOf(R"({"job_id":"","submit_time":0,"gpus":1,"duration":5})"),
            "t.csv:1: field 'job_id' is ''; expected a text");
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":null,"gpus":1,"duration":5})"),
            "t.csv:1: field 'submit_time' is ''; expected a number of seconds >= 0 and <= "
            "9000000000");
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":10,"gpus":1,"duration":5,"deadline":9.5})"),
            "t.csv:1: field 'deadline' is '9.5'; expected a time not before the submit at 10");
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":0,"gpus":1})"),
            "t.csv:1: neither duration nor iterations; expected one of them at least");
}

TEST(JsonlTraceTest, RefusesValuesOfAnotherKind) {
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":0,"gpus":"8","duration":5})"),
            "t.csv:1: field 'gpus' is '8'; expected a number without quotes");
  EXPECT_EQ(ErrorOf(R"({"job_id":7.5,"submit_time":0,"gpus":8,"duration":5})"),
            "t.csv:1: field 'job_id' is '7.5'; expected text in quotes");
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":"0","gpus":8,"duration":5})"),
            "t.csv:1: field 'submit_time' is '0'; expected a number without quotes");
  EXPECT_EQ(ErrorOf(With(R"("user":true)")),
            "t.csv:1: field 'user' is 'true'; expected text in quotes");
  EXPECT_EQ(ErrorOf(With(R"("batch_size":[64])")),
            "t.csv:1: field 'batch_size' is '[...]'; expected a number without quotes");
  EXPECT_EQ(ErrorOf(With(R"("model":{"name":"bert"})")),
            "t.csv:1: field 'model' is '{...}'; expected text in quotes");
  EXPECT_EQ(ErrorOf(With(R"("model":"b\u0000")")),
            "t.csv:1: field 'model' is ''; expected text without a NUL character");
}

TEST(JsonlTraceTest, IdsMayBeIntegersAndTimesTexts) {
  const auto trace = ReadText(
      R"({"job_id":7,"submit_time":"2024-03-01T10:00:00Z","gpus":4.0,"duration":"02:00:00","user":9}
{"job_id":8,"submit_time":"2024-03-01T11:00:00+00:00","gpus":1,"duration":"10m",)"
      R"("deadline":"2024-03-01T12:00:00Z","begin":"2024-03-01T11:30:00Z"})");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const JobSpec& first = trace.value().jobs.at(0);
  EXPECT_EQ(first.name, "7");
  EXPECT_EQ(first.user, "9");
  EXPECT_EQ(first.gpus, 4);
  EXPECT_EQ(first.submit, AtSeconds(0));
  EXPECT_EQ(first.duration, FromSeconds(7200));
  const JobSpec& second = trace.value().jobs.at(1);
  EXPECT_EQ(second.submit, AtSeconds(3600));
  EXPECT_EQ(second.duration, FromSeconds(600));
  EXPECT_EQ(second.deadline, AtSeconds(7200));
  EXPECT_EQ(second.traits->begin, AtSeconds(5400));
  EXPECT_EQ(trace.value().origin, "2024-03-01 10:00:00+00:00");
}

TEST(JsonlTraceTest, FieldsMayHaveNamesOfTheirOwn) {
  const std::string text =
      R"({"id":"a","tags":[1,{"gpus":9}],"arrival":5,"n_gpus":2,"gpus":9,"duration":60,"x":{"y":{}}}
{"x":7,"id":"b","arrival":6,"n_gpus":1,"duration":1,"note":null})";
  const TraceOptions options{.columns = "job_id=id, submit_time=arrival,gpus=n_gpus"};
  const auto trace = ReadText(text, options);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[0].gpus, 2);
  EXPECT_EQ(trace.value().jobs[0].submit, AtSeconds(5));
  EXPECT_EQ(trace.value().jobs[1].name, "b");
  EXPECT_TRUE(ErrorOf(text).starts_with("t.csv:1: unknown field 'id'"));
}

TEST(JsonlTraceTest, RefusesUnknownMissingAndRepeatedFields) {
  EXPECT_EQ(ErrorOf(With(R"("usr":"x")")), "t.csv:1: unknown field 'usr'; did you mean 'user'?");
  EXPECT_TRUE(
      ErrorOf(With(R"("a\u0007b":"x")")).starts_with(R"(t.csv:1: unknown field 'a\u0007b')"))
      << ErrorOf(With(R"("a\u0007b":"x")"));
  EXPECT_EQ(ErrorOf(R"({"job_id":"a","submit_time":0,"duration":5})"),
            "t.csv:1: no field 'gpus'; expected job_id, submit_time, gpus, and duration or "
            "iterations");
  EXPECT_EQ(ErrorOf(With(R"("gpus":1)")),
            "t.csv:1: field 'gpus' is there twice; expected different names");
}

TEST(JsonlTraceTest, RefusesWhatIsNoObjectOnALineOfItsOwn) {
  const std::string job = std::string(kJob) + "}";
  EXPECT_EQ(ErrorOf(job + "\n[1]\n"), "t.csv:2: an array or a single value; expected an object");
  EXPECT_EQ(ErrorOf(job + "\n7\n"), "t.csv:2: an array or a single value; expected an object");
  EXPECT_EQ(ErrorOf(job + job), "t.csv:1: no JSON from byte 53 on; expected one object");
  EXPECT_TRUE(ErrorOf("{\n\"job_id\":\"a\"}")
                  .starts_with("t.csv:1: no JSON from byte 2 on; expected one object\n"));
  EXPECT_EQ(ErrorOf(With(R"("iterations":01)")),
            "t.csv:1: no JSON from byte 67 on; expected one object");
  EXPECT_EQ(ErrorOf(With(R"("iterations":NaN)")),
            "t.csv:1: no JSON from byte 66 on; expected one object");
  EXPECT_EQ(ErrorOf(With(R"("iterations":1e999)")),
            "t.csv:1: a number at byte 70 that is out of range; expected a smaller one");
}

TEST(JsonlTraceTest, RefusesWhatIsNoText) {
  EXPECT_EQ(ErrorOf(std::string(kJob) + "}\n\xE9"), "t.csv:2: not UTF-8; expected UTF-8 text");
  EXPECT_EQ(ErrorOf("", {.format = "jsonl"}), "t.csv: no jobs; expected a row at least");
}

TEST(JsonlTraceTest, NamesBothLinesOfADuplicateId) {
  EXPECT_EQ(ErrorOf(std::string(kJob) + "}\n\n" + std::string(kJob) + "}\n"),
            "t.csv:3: job_id 'a' is already in line 1; expected a new one");
}

TEST(JsonlTraceTest, SkipsBadRowsOnRequestAndListsThem) {
  const auto trace =
      ReadText("{\"job_id\":\n" + std::string(kJob) + "}\n[[]]\n" + std::string(kJob) + "}\n" +
                   With(R"("job":{})") + R"({"job_id":"b","submit_time":0,"gpus":1,"duration":5})",
               {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 6}));
  std::vector<std::int64_t> skipped;
  for (const RowGroup& row : trace.value().skipped) {
    skipped.push_back(row.line);
    EXPECT_NE(row.why.find("t.csv:" + std::to_string(row.line) + ": "), std::string::npos);
  }
  EXPECT_EQ(skipped, (std::vector<std::int64_t>{1, 3, 4, 5}));
}

TEST(WriteJsonlTraceTest, ReadsBackAsTheSameJobs) {
  const auto trace = ReadText(
      "job_id,submit_time,gpus,duration,iterations,user,queue,model,batch_size,deadline,best_"
      "effort\n"
      "a,0.000001,1,1700000000.123456,0.1,\"x,\"\"y\"\"\",,m,64,,1\n"
      "b,12.5,64,3,1e15,ann,q\\,m,1,4e9,0\n"
      "\"c\nd\",100,2,,0.30000000000000004,\xC3\xA9,,,,100,0\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const auto again = ReadText(WriteJsonlTrace(trace.value().jobs));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(WriteNativeTrace(again.value().jobs), WriteNativeTrace(trace.value().jobs));
}

TEST(WriteJsonlTraceTest, LeavesOutWhatIsAbsent) {
  const auto trace = ReadText(std::string(kJob) + "}");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(WriteJsonlTrace(trace.value().jobs), std::string(kJob) + "}\n");
}

}  // namespace
}  // namespace trainyard::trace
