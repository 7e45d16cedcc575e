// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kSacctHeader =
    "JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|State|ReqTRES|AllocTRES|NodeList\n";

// A job that ran for a minute on what `allocated` says.
std::string SacctRow(const std::string& id, const std::string& allocated) {
  return id +
         "|ann|gpu|2024-03-01T10:00:00|2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED|"
         "gres/gpu=9|" +
         allocated + "|n1\n";
}

int GpusOf(const std::string& allocated) {
  const auto trace = ReadText(std::string(kSacctHeader) + SacctRow("1", allocated));
  return trace.ok() ? trace.value().jobs.at(0).gpus : -1;
}

// Why the row was left out beside a good one.
std::string WhySacctLeftOut(const std::string& row) {
  return WhyLeftOut(std::string(kSacctHeader) + row + "\n" + SacctRow("99", "gres/gpu=1"));
}

TEST(SacctTraceTest, ReadsAJob) {
  const auto trace = ReadText(std::string(kSacctHeader) +
                              "8|bob|big|2024-03-01T09:59:30|2024-03-01T10:01:00|"
                              "2024-03-02T10:01:01|86401|CANCELLED by 1000||gres/gpu=16|n[1-2]\n" +
                              SacctRow("7_4", "cpu=8,gres/gpu=2"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sacct");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& cancelled = trace.value().jobs[0];  // while it ran
  EXPECT_EQ(cancelled.submit, AtSeconds(0));         // submits count from the first
  EXPECT_EQ(cancelled.duration, FromSeconds(86401));
  EXPECT_EQ(cancelled.gpus, 16);
  const JobSpec& job = trace.value().jobs[1];
  EXPECT_EQ(job.name, "7_4");  // of an array
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.queue, "gpu");
  EXPECT_EQ(job.submit, AtSeconds(30));
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(trace.value().origin, "2024-03-01 09:59:30");
  EXPECT_EQ(trace.value().waits.at(1), FromSeconds(60));
  EXPECT_EQ(trace.value().states.at("CANCELLED"), 1);
}

TEST(SacctTraceTest, CpusStandForGpusWhereTheUserSaysHowMany) {
  const std::string text = std::string(kSacctHeader) + SacctRow("1", "cpu=9,mem=4G") +
                           SacctRow("2", "cpu=64,gres/gpu=2") + SacctRow("3", "mem=4G");
  const auto without = ReadText(text);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_EQ(without.value().jobs.size(), 1U);
  const auto trace = ReadText(text, {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[0].gpus, 2);  // rounded up
  EXPECT_EQ(trace.value().jobs[1].gpus, 2);  // its own
  EXPECT_EQ(trace.value().skipped_rows, 1);
}

TEST(SacctTraceTest, ThePlainEntryIsTheTotal) {
  EXPECT_EQ(GpusOf("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=10G"), 4);
  EXPECT_EQ(GpusOf("gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1"), 4);
  EXPECT_EQ(GpusOf("gres/gpu:a100=3,gres/gpu:v100=2"), 5);
  EXPECT_EQ(GpusOf("gres/gpumem=80G,gres/gpuutil=100,gres/gpu=1"), 1);
  EXPECT_EQ(GpusOf(""), 9);  // then what was requested
}

TEST(SacctTraceTest, ParsableLinesEndWithTheSeparator) {
  std::string text =
      std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") + SacctRow("2", "gres/gpu=1");
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) {
    text.insert(at, "|");
  }
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 2U);
}

TEST(SacctTraceTest, ColumnsAreFoundByName) {
  const auto trace = ReadText(
      "State|AllocTRES|End|JobID|Start|Submit|Elapsed\r\n"
      "COMPLETED|gres/gpu=1|Unknown|5|2024-03-01T10:00:00|2024-03-01T10:00:00|1-02:03:04\r\n"
      "FAILED|gres/gpu=1|2024-03-01T10:00:09|6|2024-03-01T10:00:00|2024-03-01T10:00:00|\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).name, "5");
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(93784));  // though its end is unknown
  EXPECT_EQ(trace.value().jobs.at(1).duration, FromSeconds(9));
}

TEST(SacctTraceTest, RowsThatAreNoJobsAreLeftOut) {
  const std::string submit = "|ann|gpu|2024-03-01T10:00:00|";
  const std::string ran = "2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED||gres/gpu=1|n1";
  for (const char* step : {"1.batch", "1.extern", "1.0"}) {
    EXPECT_TRUE(Says(WhySacctLeftOut(step + submit + ran), "step"));
  }
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "None|Unknown|0|PENDING|gres/gpu=1||None assigned"),
           "never started"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T11:00:00|2024-03-01T11:00:00|0|CANCELLED "
                                   "by 5|gres/gpu=1||None assigned"),
                   "never started"));
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "2024-03-01T10:01:00|Unknown|99|RUNNING||gres/gpu=1|n1"),
           "had not ended"));
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "2024-03-01T10:01:00|Unknown||FAILED||gres/gpu=1|n1"),
           "end is not recorded"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T10:01:00|2024-03-01T10:01:00|0|FAILED||"
                                   "gres/gpu=1|n1"),
                   "took no time"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED|"
                                   "gres/gpu=1|cpu=4|n1"),
                   "no GPUs"));
}

TEST(SacctTraceTest, OfAJobThatWasRequeuedTheLastRunCounts) {
  const auto trace = ReadText(std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") +
                              SacctRow("2", "gres/gpu=1") + SacctRow("1", "gres/gpu=3"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[1].gpus, 3);
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_EQ(trace.value().skipped[0].line, 2);
}

TEST(SacctTraceTest, ABarInAFieldMakesABadRow) {
  const std::string text =
      std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") + "2|a|b|" + SacctRow("x", "");
  EXPECT_EQ(ErrorOf(text), "t.csv:3: 14 fields; expected 11, separated by '|'");
  const auto trace = ReadText(text, {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
}

TEST(SacctTraceTest, RefusesOtherHeadersAndBadValues) {
  const std::string no_header = "t.csv:1: no header with the columns that are needed; expected";
  EXPECT_TRUE(ErrorOf("1|ann|gpu\n", {.format = "sacct"}).starts_with(no_header));
  EXPECT_TRUE(ErrorOf("JobID,Submit,Start\n", {.format = "sacct"}).starts_with(no_header));
  EXPECT_TRUE(ErrorOf("JobID|User\n1|ann\n").starts_with(no_header));
  EXPECT_EQ(ErrorOf(std::string(kSacctHeader) + SacctRow("", "gres/gpu=1")),
            "t.csv:2: field 'JobIDRaw' is ''; expected the id of the job");
  EXPECT_EQ(ErrorOf(std::string(kSacctHeader) + SacctRow("1", "gres/gpu=x")),
            "t.csv:2: field 'AllocTRES' is 'gres/gpu=x'; expected a list such as cpu=4,gres/gpu=2");
}

}  // namespace
}  // namespace trainyard::trace
