// SPDX-License-Identifier: Apache-2.0
// Reading job by job: the same jobs and complaints as ReadTrace, in less memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kVisitHeader = "job_id,submit_time,gpus,duration,user\n";

// Of a log, the latest first.
std::string RowsOfLog(int count) {
  std::string text =
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
      "queue\n";
  for (int i = count; i-- > 0;) {
    const std::string hour =
        fmt::format("2020-{:02}-{:02} {:02}", 4 + i / 24 / 28 % 6, 1 + i / 24 % 28, i % 24);
    text += fmt::format("{},somebody,vc,{},8,1,COMPLETED,{}:00:00,{}:00:05,{}:30:05,1800,5\n", i,
                        i % 3, hour, hour, hour);
  }
  return text;
}

std::string Rows(int count) {
  std::string text(kVisitHeader);
  for (int i = 0; i < count; ++i) {
    text += "job-of-a-long-name-" + std::to_string(i) + "," + std::to_string(i) +
            ",4,60,somebody-with-a-long-name\n";
  }
  return text;
}

struct Seen {
  std::vector<JobSpec> jobs;
  std::vector<std::int64_t> lines;
  std::vector<std::string> skipped;
};

Result<TraceFacts> Visit(const std::string& path, const TraceOptions& options, Seen& seen) {
  return ForEachJob(path, options,
                    {.on_job = [&](JobSpec& job, std::int64_t line) -> Status {
                       seen.jobs.push_back(std::move(job));
                       seen.lines.push_back(line);
                       return {};
                     },
                     .on_skipped = [&](const RowGroup& row) { seen.skipped.push_back(row.why); }});
}

std::string VisitError(std::string_view text, const TraceOptions& options = {}) {
  const ScratchFolder folder;
  Seen seen;
  return ErrorFrom("t.csv", Visit(folder.Write("t.csv", text), options, seen));
}

TEST(ForEachJobTest, GivesTheJobsOfReadTrace) {
  const ScratchFolder folder;
  const std::string rows = Rows(Rounds(60'000));
  for (const std::string& bytes : {rows, folder.Gzip(rows)}) {
    const std::string path = folder.Write("t.csv", bytes);
    const auto trace = ReadTrace(path);
    ASSERT_TRUE(trace.ok());
    Seen seen;
    const auto facts = Visit(path, {}, seen);
    ASSERT_TRUE(facts.ok()) << facts.error().message;
    EXPECT_EQ(WriteNativeTrace(seen.jobs), WriteNativeTrace(trace.value().jobs));
    EXPECT_EQ(seen.lines, trace.value().lines);
    EXPECT_EQ(facts.value().jobs, Rounds(60'000U));
    EXPECT_EQ(facts.value().format, "native");
    EXPECT_EQ(facts.value().sha256, trace.value().sha256);
  }
}

TEST(ForEachJobTest, GivesJsonLinesToo) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < Rounds(60'000); ++i) {
    text += R"({"job_id":"a)" + std::to_string(i) + R"(","submit_time":1,"gpus":1,"duration":2})" +
            "\n";
  }
  Seen seen;
  const auto facts = Visit(folder.Write("t.jsonl", text), {}, seen);
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_EQ(facts.value().format, "jsonl");
  EXPECT_EQ(seen.jobs.size(), Rounds(60'000U));
  EXPECT_EQ(seen.jobs.back().name, "a" + std::to_string(Rounds(60'000) - 1));
  EXPECT_EQ(seen.lines.back(), Rounds(60'000));
}

TEST(ForEachJobTest, GivesTheJobsOfLogsFromTheirFirstSubmit) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", RowsOfLog(4'000) + "x,u,v,1,1,1,COMPLETED,,,,,\n");
  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  Seen seen;
  const auto facts = Visit(path, {}, seen);
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_EQ(WriteNativeTrace(seen.jobs), WriteNativeTrace(trace.value().jobs));
  EXPECT_EQ(seen.jobs.back().submit, TimePoint{});
  EXPECT_EQ(seen.lines, trace.value().lines);
  EXPECT_EQ(facts.value().jobs, trace.value().jobs.size());
  EXPECT_EQ(facts.value().skipped, static_cast<std::size_t>(trace.value().skipped_rows));
  EXPECT_EQ(seen.skipped.size(), trace.value().skipped.size());
  EXPECT_EQ(facts.value().origin, "2020-04-01 01:00:00");
  EXPECT_EQ(facts.value().origin, trace.value().origin);
  EXPECT_EQ(facts.value().waits, trace.value().waits);
  EXPECT_EQ(facts.value().states, trace.value().states);
  EXPECT_EQ(facts.value().sha256, trace.value().sha256);
}

TEST(ForEachJobTest, ALogWithAnErrorHandsOutNothing) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", RowsOfLog(100) + "7,u,v,-1,1,1,COMPLETED,,,,,\n");
  Seen seen;
  const auto facts = Visit(path, {}, seen);
  EXPECT_EQ(ErrorFrom("t.csv", facts), ErrorFrom("t.csv", ReadTrace(path)));
  EXPECT_TRUE(seen.jobs.empty());
}

TEST(ForEachJobTest, SaysWhereAnIdWasBefore) {
  EXPECT_EQ(VisitError(Rows(50'000) + "job-of-a-long-name-7,0,1,5,x\n"),
            "t.csv:50002: job_id 'job-of-a-long-name-7' is already in line 9; expected a new one");
}

TEST(ForEachJobTest, SkipsBadRowsIfAsked) {
  const ScratchFolder folder;
  const std::string path = folder.Write(
      "t.csv", std::string(kVisitHeader) + "a,0,1,5,x\nb,0,-1,5,x\na,0,1,5,x\nc,0,1,5,x\n");
  Seen seen;
  const auto facts = Visit(path, {.skip_bad_rows = true}, seen);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts.value().jobs, 2U);
  EXPECT_EQ(facts.value().skipped, 2U);
  ASSERT_EQ(seen.skipped.size(), 2U);
  EXPECT_EQ(seen.skipped[1], path + ":4: job_id 'a' is already in line 2; expected a new one");
}

TEST(ForEachJobTest, AFileOfBadRowsOnlyHasNoJobs) {
  const std::string error =
      VisitError(std::string(kVisitHeader) + "b,0,-1,5,x\n", {.skip_bad_rows = true});
  EXPECT_TRUE(error.starts_with("t.csv: no jobs; all 1 rows were skipped, the first because of /"))
      << error;
}

TEST(ForEachJobTest, TheVisitorEndsTheReading) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", Rows(10));
  int jobs = 0;
  const auto facts = ForEachJob(path, {.skip_bad_rows = true},
                                {.on_job = [&](JobSpec& /*job*/, std::int64_t line) -> Status {
                                  ++jobs;
                                  return line == 4 ? Status(BadInput("enough")) : Status();
                                }});
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.error().message, "enough");
  EXPECT_EQ(jobs, 3);
}

TEST(ForEachJobTest, TheVisitorEndsTheReadingOfALog) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", RowsOfLog(10));
  int jobs = 0;
  const auto facts = ForEachJob(path, {.skip_bad_rows = true},
                                {.on_job = [&](JobSpec& /*job*/, std::int64_t /*line*/) -> Status {
                                  return ++jobs == 3 ? Status(BadInput("enough")) : Status();
                                }});
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.error().message, "enough");
  EXPECT_EQ(jobs, 3);
}

#ifndef TRAINYARD_SANITIZED
// The peak memory of a child that reads the file, in bytes.
template <typename Read>
double PeakOf(const Read& read) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(read() ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// What a file of ten times as many jobs costs more, for each job.
template <typename Read>
double BytesPerJob(std::string (*rows)(int count), const Read& read) {
  constexpr int kFew = 30'000;
  constexpr int kMany = 300'000;
  const ScratchFolder folder;
  const std::string few = folder.Write("few.csv", rows(kFew));
  const std::string many = folder.Write("many.csv", rows(kMany));
  const double more = PeakOf([&] { return read(many); }) - PeakOf([&] { return read(few); });
  return more / (kMany - kFew);
}

bool Visited(const std::string& path) {
  const JobVisitor nothing{.on_job = [](JobSpec&, std::int64_t) { return Status(); }};
  return ForEachJob(path, {}, nothing).ok();
}
bool Kept(const std::string& path) { return ReadTrace(path).ok(); }

TEST(ForEachJobTest, NeedsLittleMemoryForAJob) {
  const double visited = BytesPerJob(Rows, Visited);
  EXPECT_LT(visited, 40);  // the hashes of the ids; a row has more than 60 bytes
  EXPECT_GT(BytesPerJob(Rows, Kept), 5 * visited);
}

TEST(ForEachJobTest, NeedsLittleMemoryForAJobOfALog) {
  EXPECT_LT(BytesPerJob(RowsOfLog, Visited), 80);  // and the waits, whose vector grows by copying
}
#endif

}  // namespace
}  // namespace trainyard::trace
