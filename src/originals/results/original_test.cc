// SPDX-License-Identifier: Apache-2.0
#include "originals/results/original.h"

#include <gtest/gtest.h>

#include "results/metrics/metrics.h"
#include "support/scratch_folder.h"

namespace trainyard::originals {
namespace {

// Two jobs each, in the columns that the programs write.
constexpr std::string_view kTiresias =
    "time,job_id,num_gpu,submit_time,start_time,end_time,executed_time,JCT,duration,pending_time,"
    "preempt,resume,promote\r\n"
    "164,0,1,0,30,164,134,164,134,30,1,1,0\r\n"
    "180,2,2,53,53,180,127,127,127,0,2,2,0\r\n";
constexpr std::string_view kMuri =
    "time,job_id,num_gpu,submit_time,start_time,end_time,executed_time,real_executed_time,JCT,"
    "duration,pending_time,job_counter,promote\n"
    "2130.5,1,8,1534.0,1800.25,2130.5,330.25,330.25,596.5,281.0,266.25,1,0\n"
    "4869.25,0,8,0.0,0.0,4869.25,4869.25,4869.25,4869.25,5095.0,0.0,3,0\n";
constexpr std::string_view kElasticflow =
    "time,job_id,num_gpu,submit_time,start_time,end_time,ddl,executed_time,JCT,pending_time,"
    "preempt,promote,best_effort_job\n"
    "4080,0,1.0,0,9223372036854775807,4080.0,5896,-9223372036854771727,4080,0,0,0,0\n"
    "9840,1,64,4686,4700,9840,9223372036854775807,5140,5154,0,0,0,1\n";
constexpr std::string_view kElasticflowTable =
    "job_id,last_num_gpu,submit_time,end_time,ddl,jct_s,pending_time,start_time,preempt,"
    "best_effort_job,outcome\n"
    "1,16,129,732.0,800,603.0,111.0,240.0,0,0,completed\n"
    "26,,21464,,31199,,,,,,rejected\n";
constexpr std::string_view kSynergy =
    "job_id,model,gpus,arrival_s,first_start_s,finish_s,jct_s,fair_duration_s,attained_rounds,"
    "tracked\n"
    "0,alexnet,1,0.5,1,901,900.5,2009.4,3,0\n"
    "1,gnmt,4,1,1,3301,3300,3172.2,11,1\n";
constexpr std::string_view kBloxTable =
    "job_id,submit_s,first_metric_s,finish_s,jct_s,responsiveness_s\n"
    "0,58,600,7200,7142,542\n";
constexpr std::string_view kChronus =
    "job_id,pending_time,total_executed_time,progress,submit_time,end_time,preempt,resume,num_gpu,"
    "expect_time,expect_time_list,expect_value_list,miss_ddl,gt_miss_ddl,gt_expect_time,"
    "best_effort,duration,queue_priority\n"
    "0,4,143,143.0,1,148.5,6,7,1,239,239-300,10-5,0.0,0,239,0,140,0\n";

class OriginalTest : public testing::Test {
 protected:
  [[nodiscard]] Result<OriginalResult> Read(std::string_view text, double unit = 1) const {
    return ReadOriginalTable(scratch_.Write("job.csv", text), std::nullopt, unit);
  }
  [[nodiscard]] std::string ErrorOf(std::string_view text) const {
    return ErrorFrom("job.csv", Read(text));
  }
  ScratchFolder scratch_;
};

TEST_F(OriginalTest, TheColumnsSayWhoseResultsTheyAre) {
  const std::vector<std::pair<std::string_view, Original>> texts{
      {kTiresias, Original::kTiresias},       {kMuri, Original::kMuri},
      {kElasticflow, Original::kElasticflow}, {kElasticflowTable, Original::kElasticflow},
      {kSynergy, Original::kSynergy},         {kBloxTable, Original::kBlox},
      {kChronus, Original::kChronus}};
  for (const auto& [text, program] : texts) {
    const Result<OriginalResult> read = Read(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().program, program) << Name(program);
    EXPECT_EQ(ParseOriginal(Name(program)).value(), program);
  }
}

TEST_F(OriginalTest, TimesGpusAndPreemptionsAreRead) {
  const OriginalResult result = Read(kTiresias).value();
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].name, "0");
  EXPECT_EQ(result.rows[0].start, 30);
  EXPECT_EQ(result.rows[1].submit, 53);
  EXPECT_EQ(result.rows[1].end, 180);
  EXPECT_EQ(result.rows[1].gpus, 2);
  EXPECT_EQ(result.preemptions, 3);
  EXPECT_FALSE(Read(kMuri).value().preemptions);  // the column there counts something else
}

TEST_F(OriginalTest, TheLargestNumberStandsForNoTime) {
  const OriginalResult result = Read(kElasticflow).value();
  EXPECT_FALSE(result.rows[0].start);
  EXPECT_EQ(result.rows[0].deadline, 5896);
  EXPECT_FALSE(result.rows[1].deadline);
  EXPECT_TRUE(result.rows[1].best_effort);
}

TEST_F(OriginalTest, RejectedAndUncountedJobsAreKnown) {
  const OriginalResult rejected = Read(kElasticflowTable).value();
  EXPECT_TRUE(rejected.rows[0].completed);
  EXPECT_FALSE(rejected.rows[1].completed);
  const OriginalResult tracked = Read(kSynergy).value();
  EXPECT_FALSE(tracked.rows[0].counted);
  EXPECT_TRUE(tracked.rows[1].counted);
}

TEST_F(OriginalTest, WhereNobodyIsTrackedAllCount) {
  std::string text(kSynergy);
  text.replace(text.rfind(",1\n"), 3, ",0\n");
  const OriginalResult result = Read(text).value();
  for (const ResultRow& row : result.rows) {
    EXPECT_TRUE(row.counted);
  }
}

TEST_F(OriginalTest, TimesMayBeInMinutes) {
  const OriginalResult result = Read(kChronus, 60).value();
  EXPECT_EQ(result.rows[0].submit, 60);
  EXPECT_EQ(result.rows[0].end, 8910);
}

TEST_F(OriginalTest, ABloxJobStartsARoundBeforeItsFirstMetric) {
  EXPECT_EQ(Read(kBloxTable).value().rows[0].start, 300);
}

TEST_F(OriginalTest, BrokenTablesAreRefused) {
  EXPECT_EQ(ErrorOf("a,b\n1,2\n").substr(0, 60),
            "job.csv:1: is neither jobs.csv of a run nor a table of resul");
  const std::string text(kTiresias);
  EXPECT_EQ(ErrorOf(text.substr(0, text.find("\r\n") + 2)),
            "job.csv: has no job; expected a row for each");
  EXPECT_EQ(ErrorOf(text + text.substr(text.find("180"))),
            "job.csv: job '2' is there twice; expected it once");
  EXPECT_EQ(ErrorOf(text + "200,3,1,x,53,180,1,1,1,0,0,0,0\n").substr(0, 41),
            "job.csv:4: column 'submit_time' is 'x'; e");
  EXPECT_EQ(ErrorOf(text + "200,3,1,53,53,,1,1,1,0,0,0,0\n"),
            "job.csv:4: column 'end_time' is ''; expected seconds, since the job completed");
  EXPECT_EQ(ErrorOf(text + "200,3\n"), "job.csv:4: 2 fields; expected 13 as in the header");
  EXPECT_FALSE(ReadOriginalTable(scratch_.Write("job.csv", kMuri), Original::kElasticflow, 1).ok());
}

TEST_F(OriginalTest, TheRunHasWhatIsKnown) {
  const results::RunResult run = RunOf(Read(kElasticflowTable).value());
  ASSERT_EQ(run.jobs.size(), 2U);
  EXPECT_EQ(run.jobs[0].outcome, results::Outcome::kCompleted);
  EXPECT_EQ(run.jobs[1].outcome, results::Outcome::kRejected);
  const results::Metrics metrics = results::Measure(run);
  EXPECT_EQ(metrics.jct_mean, 603);
  EXPECT_EQ(metrics.queueing_delay_mean, 111);
  EXPECT_EQ(metrics.deadlines_met, 1);
  EXPECT_EQ(metrics.deadlines_rejected, 1);
  EXPECT_FALSE(metrics.waiting_time_mean);
  EXPECT_FALSE(metrics.gpu_utilization);
  EXPECT_FALSE(metrics.preemptions);
}

TEST_F(OriginalTest, BloxJsonFilesAreOneSet) {
  const std::string path = scratch_.Write("x_0_1_Las_AcceptAll_load_8.0_job_stats.json",
                                          R"({"0": [58, 7200], "1": [60.5, 900]})");
  (void)scratch_.Write("x_0_1_Las_AcceptAll_load_8.0_responsivness.json",
                       R"({"0": [58, 600], "1": [60.5, 600]})");
  (void)scratch_.Write("x_0_1_Las_AcceptAll_load_8.0_run_time_stats.json",
                       R"({"0": {"num_GPUs": 4}, "1": {}})");
  (void)scratch_.Write("x_0_1_Las_AcceptAll_load_8.0_custom_metrics.json",
                       R"({"300": {"num_preemptions": 2}, "600": {"num_preemptions": 3}})");
  const Result<OriginalResult> read = ReadBloxResult(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const OriginalResult& result = read.value();
  ASSERT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.rows[0].gpus, 4);
  EXPECT_EQ(result.rows[0].start, 300);
  EXPECT_EQ(result.rows[1].submit, 60.5);
  EXPECT_EQ(result.rows[1].end, 900);
  EXPECT_EQ(result.preemptions, 5);
}

TEST_F(OriginalTest, BrokenBloxFilesAreRefused) {
  const auto error = [&](std::string_view text) {
    return ErrorFrom("a_job", ReadBloxResult(scratch_.Write("a_job_stats.json", text)));
  };
  EXPECT_EQ(error("{\"0\": [58,\n"),
            "a_job_stats.json:2: the text ends or goes wrong here; expected JSON");
  EXPECT_EQ(error("[]"), "a_job_stats.json:1: is not an object; expected '{'");
  EXPECT_EQ(error("{}"), "a_job_stats.json: has no job; expected an object with one key for each");
  EXPECT_EQ(error(R"({"0": [58]})"),
            "a_job_stats.json: job '0' is [58]; expected two times in seconds");
}

}  // namespace
}  // namespace trainyard::originals
