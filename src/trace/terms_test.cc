// SPDX-License-Identifier: Apache-2.0
#include "trace/terms.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace trainyard::trace {
namespace {

constexpr const char* kTermColumns = "job_id,submit_time,gpus,duration,dependency,array\n";

Result<Trace> ResolvedTerms(const std::string& rows) {
  const ScratchFolder folder;
  Result<Trace> trace = ReadTrace(folder.Write("t.csv", kTermColumns + rows), {.format = "native"});
  if (!trace.ok()) {
    return trace;
  }
  trace.value().path = "t.csv";
  const Status status = ResolveTerms(trace.value());
  return status.ok() ? std::move(trace) : Result<Trace>(status.error());
}

std::string TermErrorOf(const std::string& rows) {
  const Result<Trace> trace = ResolvedTerms(rows);
  return trace.ok() ? "" : trace.error().message;
}

TEST(TermsTest, AnArrayBecomesARowForEachTask) {
  const Result<Trace> trace = ResolvedTerms("a,0,1,10,,\ns,1,2,10,,\"0-4:2,9%2\"\nb,2,1,10,,\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::vector<std::string> names;
  for (const JobSpec& job : trace.value().jobs) {
    names.push_back(job.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "s_0", "s_2", "s_4", "s_9", "b"}));
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 3, 3, 3, 3, 4}));
}

TEST(TermsTest, NamesInDependenciesBecomeNumbersOfRows) {
  const Result<Trace> trace =
      ResolvedTerms("a,0,1,10,,\ns,1,2,10,,0-2\nb,2,1,10,\"afterok:a:s_1,afterany:s\",\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.back().traits->dependency, "afterok:1:2_1,afterany:2");
}

TEST(TermsTest, OnlyEarlierJobsCanBeWaitedFor) {
  EXPECT_EQ(TermErrorOf("b,2,1,10,afterok:a,\na,5,1,10,,\n"),
            "t.csv:2: dependency 'afterok:a' names job 'a'; expected a job that is submitted "
            "earlier");
  EXPECT_EQ(TermErrorOf("b,2,1,10,afterok:a,\na,1,1,10,,\n"), "") << "rows may be in any order";
  EXPECT_NE(TermErrorOf("b,2,1,10,afterok:b,\n"), "");
  EXPECT_NE(TermErrorOf("b,2,1,10,afterok:x,\n"), "");
}

TEST(TermsTest, SaysWhatIsNoTerm) {
  EXPECT_EQ(TermErrorOf("b,2,1,10,before:a,\n").substr(0, 38),
            "t.csv:2: 'before:a' is no dependency; ");
  for (const char* const array : {"x", "5-1", "1-", "-3", "0-9%0", "0-9%", "0-20000", "1:2"}) {
    EXPECT_EQ(TermErrorOf("b,2,1,10,," + std::string(array) + "\n").substr(0, 9), "t.csv:2: ")
        << array;
  }
}

}  // namespace
}  // namespace trainyard::trace
