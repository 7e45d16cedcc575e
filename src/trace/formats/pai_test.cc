// SPDX-License-Identifier: Apache-2.0
#include "trace/own_format.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "model/request/node_request.h"
#include "support/scratch_folder.h"

namespace trainyard::trace {
namespace {

// One job of two tasks, and further ones, each for a trap.
constexpr std::string_view kJobs =
    "job_0,inst_0,user_a,Terminated,494319.0,495000.0\n"
    "job_1,inst_1,user_b,Failed,494400.0,494500.0\n"
    "job_cpu,inst_2,user_b,Terminated,494400.0,494500.0\n"
    "job_run,inst_3,user_b,Running,494400.0,\n"
    "job_wait,inst_4,user_b,Waiting,494400.0,\n"
    "job_bare,inst_5,user_b,Failed,494400.0,494500.0\n"
    "job_never,inst_6,user_b,Failed,494400.0,494500.0\n";
constexpr std::string_view kTasks =
    "job_0,ps,1.0,Terminated,494350.0,495000.0,600.0,29.296875,,\n"
    "job_1,tensorflow,3.0,Failed,494410.0,494500.0,600.0,29.296875,50.0,MISC\n"
    "job_0,worker,2.0,Terminated,494329.0,494990.0,400.0,10.0,200.0,V100\n"
    "job_cpu,worker,2.0,Terminated,494329.0,494990.0,400.0,10.0,0.0,CPU\n"
    "job_run,worker,1.0,Running,494329.0,,400.0,10.0,100.0,T4\n"
    "job_wait,worker,1.0,Waiting,,,400.0,10.0,100.0,\n"
    "job_never,worker,1.0,Failed,0.0,494500.0,400.0,10.0,100.0,\n";
constexpr std::string_view kTags =
    "inst_1,user_b,V100M32,fbeb14d6,nmt\n"
    "inst_0,user_a,,fbeb14d6,\n";

class PaiTraceTest : public testing::Test {
 protected:
  void Write(std::string_view jobs = kJobs, std::string_view tasks = kTasks) const {
    static_cast<void>(folder_.Write("pai_job_table.csv", jobs));
    static_cast<void>(folder_.Write("pai_task_table.csv", tasks));
  }
  [[nodiscard]] std::string ErrorOf(const TraceOptions& options = {}) const {
    return ErrorFrom("pai_", ReadTrace(folder_.path(), options));
  }

  ScratchFolder folder_;
};

TEST_F(PaiTraceTest, AFolderIsReadByItself) {
  Write();
  const auto trace = ReadTrace(folder_.path());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "pai");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "job_0");
  EXPECT_EQ(job.user, "user_a");
  EXPECT_EQ(job.gpus, 4) << "2 instances of 200 %";
  EXPECT_EQ(job.submit, AtSeconds(0));
  EXPECT_EQ(job.duration, FromSeconds(495000 - 494329)) << "from the first start of a task";
  EXPECT_EQ(trace.value().waits[0], FromSeconds(10));
  EXPECT_EQ(trace.value().jobs[1].gpus, 2) << "3 instances of 50 %";
  EXPECT_EQ(trace.value().jobs[1].submit, AtSeconds(81));
  EXPECT_TRUE(trace.value().jobs[1].traits->gpu_types.empty()) << "the type it got is no wish";
  EXPECT_EQ(model::TextOf(*job.traits->request), "8 CPUs, 20G memory") << "without its ps";
  EXPECT_EQ(model::TextOf(*trace.value().jobs[1].traits->request), "18 CPUs, 90000M memory");
  EXPECT_EQ(trace.value().origin, "494319 s");
  ASSERT_EQ(trace.value().remarks.size(), 1U);
  EXPECT_EQ(trace.value().remarks[0].line, 2);
  EXPECT_EQ(trace.value().states,
            (std::map<std::string, std::int64_t>{{"Failed", 1}, {"Terminated", 1}}));
}

TEST_F(PaiTraceTest, JobsWithoutARunOnGpusAreLeftOut) {
  Write();
  const auto trace = ReadTrace(folder_.path());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::vector<RowGroup>& skipped = trace.value().skipped;
  EXPECT_EQ(trace.value().skipped_rows, 5);
  ASSERT_EQ(skipped.size(), 4U);
  EXPECT_TRUE(skipped[0].why.ends_with(
      "pai_job_table.csv:3: it asks for no GPUs; jobs on CPUs alone are left out"));
  EXPECT_TRUE(skipped[1].why.ends_with("such jobs are left out"));
  EXPECT_EQ(skipped[1].rows, 2) << "running and waiting";
  EXPECT_EQ(skipped[2].line, 6) << "without tasks";
  EXPECT_EQ(skipped[3].line, 7) << "a start of 0 is none";
}

TEST_F(PaiTraceTest, TagsGiveWishesAndWorkloads) {
  Write();
  static_cast<void>(folder_.Write("pai_group_tag_table.csv", kTags));
  const auto trace = ReadTrace(folder_.path());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].model, "");
  EXPECT_TRUE(trace.value().jobs[0].traits->gpu_types.empty());
  EXPECT_EQ(trace.value().jobs[1].model, "nmt");
  EXPECT_EQ(trace.value().jobs[1].traits->gpu_types, std::vector<std::string>{"V100M32"});
}

TEST_F(PaiTraceTest, HeadersMayBeThereAndTablesPacked) {
  static_cast<void>(folder_.Write(
      "pai_job_table.csv.gz",
      folder_.Gzip("job_name,inst_id,user,status,start_time,end_time\n" + std::string(kJobs))));
  static_cast<void>(folder_.Write("pai_task_table.tar.gz", folder_.Gzip(kTasks)));
  const auto trace = ReadTrace(folder_.path(), {.format = "pai"});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().lines[0], 2);
}

TEST_F(PaiTraceTest, TheTableOfJobsStandsForItsFolder) {
  Write();
  const auto trace = ReadTrace(folder_.path() + "/pai_job_table.csv", {.format = "pai"});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 2U);
  const std::string digest = trace.value().sha256;
  Write(kJobs, std::string(kTasks) + "x,y,1.0,Failed,1.0,2.0,1.0,1.0,1.0,\n");
  EXPECT_NE(ReadTrace(folder_.path()).value().sha256, digest) << "of both tables";
}

TEST_F(PaiTraceTest, AMissingTableIsNamed) {
  static_cast<void>(folder_.Write("pai_job_table.csv", kJobs));
  EXPECT_TRUE(ReadTrace(folder_.path())
                  .error()
                  .message.ends_with(": no pai_task_table; expected pai_task_table.csv, .csv.gz, "
                                     ".csv.zst or .tar.gz in the "
                                     "folder"));
  const ScratchFolder empty;
  EXPECT_TRUE(ReadTrace(empty.path()).error().message.ends_with(": is a folder; expected a file"));
}

TEST_F(PaiTraceTest, BadRowsNameTheirTable) {
  Write(kJobs, std::string(kTasks) + "job_1,x,,Failed,1.0,2.0,1.0,1.0,50.0,T4\n");
  EXPECT_EQ(ErrorOf(),
            "pai_task_table.csv:8: column 'inst_num' is ''; expected the number of instances");
  const auto trace = ReadTrace(folder_.path(), {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().skipped_rows, 6);
  Write(std::string(kJobs) + "job_1,inst_9,u,Failed,1.0,2.0\n");
  EXPECT_EQ(ErrorOf(),
            "pai_job_table.csv:8: it ended 494408 s before it started; expected an end "
            "behind the start");
  Write(std::string(kJobs) + "job_1,inst_9,u,Failed\n");
  EXPECT_EQ(ErrorOf(),
            "pai_job_table.csv:8: 4 fields; expected 6: job_name, inst_id, user, status, "
            "start_time, end_time");
  Write(std::string(kJobs) + "job_1,inst_9,u,Failed,yesterday,2.0\n");
  EXPECT_EQ(ErrorOf(),
            "pai_job_table.csv:8: column 'start_time' is 'yesterday'; expected seconds from 0 to "
            "9000000000, or nothing");
}

}  // namespace
}  // namespace trainyard::trace
