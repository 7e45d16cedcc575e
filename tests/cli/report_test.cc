// SPDX-License-Identifier: Apache-2.0
// trainyard report and what compare says of differences, as users meet them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli_tests/command.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;

constexpr const char* kExample =
    "data/example_trace.csv --cluster data/example_cluster.toml --profiles "
    "data/example_profiles.csv ";

// Three runs, made once.
const std::string& Compared() {
  static const std::string folder = [] {
    const std::string out = ScratchPath("compared");
    const CommandResult result = RunTrainyard(
        "compare " + std::string(kExample) +
        "--policy fifo --policy srtf --policy elasticflow --explain-jobs 0 --out " + out);
    EXPECT_EQ(result.status, 0) << result.err;
    return out;
  }();
  return folder;
}

// A copy of one run to break.
std::string CopyOfRun() {
  const std::string folder = ScratchPath("broken");
  std::filesystem::remove_all(folder);
  std::filesystem::copy(Compared() + "/srtf", folder);
  return folder;
}

std::string Report(const std::string& arguments) {
  return "report " + arguments + " --out " + ScratchPath("page/report.html");
}

TEST(ReportTest, ShowsWhatCompareShowed) {
  const CommandResult compared = RunTrainyard(
      "compare " + std::string(kExample) +
      "--policy elasticflow --policy fifo --policy srtf --out " + ScratchPath("again"));
  const CommandResult read = RunTrainyard(Report(Compared()));
  ASSERT_EQ(read.status, 0) << read.err;
  EXPECT_EQ(read.out, compared.out);
  const std::string page = ReadText(ScratchPath("page/report.html"));
  EXPECT_NE(page.find("\"label\":\"elasticflow\""), std::string::npos);
  EXPECT_EQ(page.find("__TRAINYARD_REPORT_DATA__"), std::string::npos);
  const std::string csv = ReadText(ScratchPath("page/report.csv"));
  EXPECT_TRUE(csv.starts_with("label,jobs,completed,"));
  EXPECT_NE(csv.find("\nsrtf,400,400,"), std::string::npos);
}

TEST(ReportTest, TheJsonIsThatOfCompare) {
  const CommandResult read = RunTrainyard(Report(Compared() + "/srtf --json"));
  ASSERT_EQ(read.status, 0) << read.err;
  const Json runs = Json::parse(read.out);
  ASSERT_EQ(runs.size(), 1U);
  const Json summary = Json::parse(ReadText(Compared() + "/srtf/summary.json"));
  for (const auto& [key, value] : summary.items()) {
    EXPECT_EQ(runs[0][key], value) << key;
  }
}

TEST(ReportTest, DifferencesAreExplainedInPartsThatSum) {
  const CommandResult read =
      RunTrainyard(Report(Compared() + " --json --explain srtf,fifo --explain-jobs 400"));
  ASSERT_EQ(read.status, 0) << read.err;
  const Json explanation = Json::parse(read.out)["explanation"];
  EXPECT_EQ(explanation["run"], "srtf");
  EXPECT_EQ(explanation["other"], "fifo");
  EXPECT_EQ(explanation["completed_in_both"], 400);
  std::size_t jobs = 0;
  double sum = 0;
  for (const char* kind : {"gained", "lost"}) {
    for (const Json& job : explanation[kind]) {
      const Json& parts = job["difference"];
      const double difference = job["run"]["jct"].get<double>() - job["other"]["jct"].get<double>();
      double parts_sum = 0;
      for (const char* part : {"queued", "suspended", "productive", "overhead", "registered"}) {
        parts_sum += parts[part].get<double>();
      }
      EXPECT_NEAR(parts_sum, difference, 1e-5) << job["job_id"];
      EXPECT_EQ(parts["registered"], 0) << job["job_id"];  // sound mode rounds no end
      EXPECT_NE(job["sentence"].get<std::string>().find(difference < 0 ? " gained " : " lost "),
                std::string::npos);
      sum += difference;
      ++jobs;
    }
  }
  EXPECT_GT(jobs, 100U);
  EXPECT_NEAR(explanation["difference_total"]["jct"].get<double>(), sum, 1e-3);
}

TEST(ReportTest, JobsThatOneRunRejectedAreNamed) {
  const CommandResult read = RunTrainyard(Report(Compared() + " --explain elasticflow,fifo"));
  ASSERT_EQ(read.status, 0) << read.err;
  EXPECT_NE(read.out.find("elasticflow against fifo: mean JCT "), std::string::npos);
  EXPECT_NE(read.out.find("completed in one run only: 11 jobs\n"), std::string::npos);
  EXPECT_NE(read.out.find(" rejected under elasticflow, completed after "), std::string::npos);
  EXPECT_NE(read.out.find(" GPUs instead of "), std::string::npos);
}

TEST(ReportTest, ResultsOfPublishedProgramsAreMeasuredBothWays) {
  const std::string table = WriteScratch(
      "job.csv",
      "time,job_id,num_gpu,submit_time,start_time,end_time,executed_time,real_executed_time,JCT,"
      "duration,pending_time,preempt,promote\n"
      "300,0,1,100,100,300,200,200,200,200,0,0,0\n500,1,2,110,200,500,300,300,390,300,90,0,0\n");
  const CommandResult text = RunTrainyard(Report(table));
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("makespan                        500.000          400.000  last end, "
                          "counted from 0 / last end - first submit\n"),
            std::string::npos)
      << text.out;
  const Json published = Json::parse(RunTrainyard(Report(table + " --json")).out)[0]["published"];
  EXPECT_EQ(published["program"], "muri");
  EXPECT_EQ(published["jct_mean"], 295);
  EXPECT_EQ(published["jct_p99"], 390);
  EXPECT_EQ(RunTrainyard(Report(table + " --format tiresias")).status, 0);
  EXPECT_EQ(RunTrainyard(Report(table + " --format blox")).status, 3);
  const CommandResult slip = RunTrainyard(Report(table + " --format tiresia"));
  EXPECT_EQ(slip.status, 2);
  EXPECT_NE(slip.err.find("did you mean 'tiresias'?"), std::string::npos);
}

TEST(ReportTest, WhatCannotBeReadIsNamedWithItsLine) {
  const CommandResult missing = RunTrainyard(Report(ScratchPath("nothing")));
  EXPECT_EQ(missing.status, 3);
  EXPECT_NE(missing.err.find("nothing: is not there"), std::string::npos);
  const CommandResult wrong = RunTrainyard(Report("data/example_trace.csv"));
  EXPECT_EQ(wrong.status, 3);
  EXPECT_NE(wrong.err.find("data/example_trace.csv:1: is neither jobs.csv of a run nor"),
            std::string::npos);
  const std::string folder = CopyOfRun();
  const std::string jobs = ReadText(folder + "/jobs.csv");
  std::ofstream(folder + "/jobs.csv", std::ios::trunc) << jobs.substr(0, jobs.size() / 2);
  const CommandResult cut = RunTrainyard(Report(folder));
  EXPECT_EQ(cut.status, 3);
  EXPECT_NE(cut.err.find("/jobs.csv:"), std::string::npos) << cut.err;
  std::filesystem::remove(CopyOfRun() + "/summary.json");
  const CommandResult half = RunTrainyard(Report(folder));
  EXPECT_EQ(half.status, 3);
  EXPECT_NE(half.err.find("/summary.json: "), std::string::npos);
}

TEST(ReportTest, TheTableBesideThePageReplacesNothingOfTheUser) {
  const std::string trace = WriteScratch("mine.csv", "job_id,submit_time,gpus,duration\na,0,1,5\n");
  const CommandResult refused =
      RunTrainyard("report " + Compared() + " --out " + ScratchPath("mine.html"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, trace +
                             ": is there already and is no table of report, which goes beside the "
                             "page under this name; expected another name for --out\n");
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("mine.html")));
  // Its own table gives way, but not the table that is read.
  const std::string own = "report " + Compared() + " --out " + ScratchPath("report-of-own.html");
  EXPECT_EQ(RunTrainyard(own).status, 0);
  EXPECT_EQ(RunTrainyard(own).status, 0);
  const std::string folder = CopyOfRun();
  const std::string jobs = ReadText(folder + "/jobs.csv");
  for (const std::string& read : {folder, folder + "/jobs.csv"}) {
    EXPECT_EQ(RunTrainyard("report " + read + " --out " + folder + "/jobs.html").status, 2) << read;
    EXPECT_EQ(ReadText(folder + "/jobs.csv"), jobs);
  }
}

TEST(ReportTest, RunsOnDifferentClustersAreLabelledAndNotExplained) {
  const std::string mix = ScratchPath("mix");
  for (const char* run : {"16x8 --policy fifo", "32x8 --policy las"}) {
    ASSERT_EQ(RunTrainyard("simulate data/example_trace.csv --out " + mix + "/" +
                           std::string(run).substr(0, 4) + " --cluster " + run)
                  .status,
              0);
  }
  const CommandResult read = RunTrainyard(Report(mix));
  EXPECT_EQ(read.status, 0) << read.err;
  EXPECT_NE(read.out.find("\nfifo on 16x8 "), std::string::npos) << read.out;
  EXPECT_NE(read.out.find("\nlas on 32x8 "), std::string::npos) << read.out;
  EXPECT_EQ(read.out.find(" against "), std::string::npos) << read.out;
  const CommandResult refused = RunTrainyard(Report(mix + " --explain las,fifo"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("'las on 32x8' is a run on cluster 32x8 (256 GPUs) and 'fifo on 16x8' "
                             "on 16x8 (128 GPUs)"),
            std::string::npos)
      << refused.err;
}

TEST(ReportTest, WrongUsageIsSaidBeforeAnythingRuns) {
  const CommandResult labels =
      RunTrainyard("compare " + std::string(kExample) +
                   "--policy fifo --policy srtf --explain fifo,las --out " + ScratchPath("never"));
  EXPECT_EQ(labels.status, 2);
  EXPECT_NE(labels.err.find("--explain is 'fifo,las'; expected A,B: two of fifo, srtf"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("never")));
  EXPECT_EQ(RunTrainyard("report " + Compared() + " --out page.txt").status, 2);
  EXPECT_EQ(RunTrainyard("report").status, 2);
}

}  // namespace
}  // namespace trainyard
