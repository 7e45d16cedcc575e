// SPDX-License-Identifier: Apache-2.0
// The program from outside: what works, what is refused, and with which words and exit status.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kBadInput = 3;

const std::string kExample =
    "data/example_trace.csv --cluster data/example_cluster.toml --profiles "
    "data/example_profiles.csv";

std::string Trace(const std::string& rows) {
  return WriteScratch("trace.csv", "job_id,submit_time,gpus,duration\n" + rows);
}

TEST(SimulateTest, WritesTheThreeFiles) {
  const std::string out = ScratchPath("run");
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy srtf --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("srtf"), std::string::npos);
  const std::string jobs = ReadText(out + "/jobs.csv");
  EXPECT_EQ(jobs.substr(0, jobs.find('\n')),
            "job_id,user,queue,model,gpus_requested,submit_time,start_time,end_time,jct,"
            "queueing_delay,attained_service,preemptions,migrations,resizes,deadline,deadline_met,"
            "outcome,waiting_time");
  EXPECT_EQ(std::count(jobs.begin(), jobs.end(), '\n'), 401);
  EXPECT_NE(ReadText(out + "/summary.json").find("\"journal_digest\""), std::string::npos);
  EXPECT_NE(ReadText(out + "/timeline.csv").find("time,gpus_used,jobs_running,jobs_pending"),
            std::string::npos);
}

TEST(SimulateTest, PrintsJsonOnRequest) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy las --json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.front(), '{');
}

TEST(SimulateTest, AStopRuleLeavesJobsUnfinishedWithoutComplaint) {
  const CommandResult result =
      RunTrainyard("simulate " + kExample + " --policy fifo --until 3600 --json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find("\"unfinished\": 0,"), std::string::npos);
}

TEST(SimulateTest, JobsThatNeverFinishAreAFailure) {
  const std::string trace = Trace("a,0,2,100\n");
  const std::string cluster = WriteScratch(
      "broken.toml", "[[nodes]]\ncount = 1\ngpus = 2\n[[failures]]\nnode = \"n0\"\ndown = 10\n");
  const CommandResult result = RunTrainyard("simulate " + trace + " --cluster " + cluster);
  EXPECT_EQ(result.status, kFailed);
  EXPECT_EQ(result.err,
            "fifo: 1 of 1 jobs never finished (first: job a, 2 GPUs): nothing could "
            "happen any more\n");
}

TEST(CompareTest, WritesAPageThatHoldsTheRuns) {
  const std::string out = ScratchPath("compare");
  const CommandResult result =
      RunTrainyard("compare " + kExample + " --policy fifo --policy srtf --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string page = ReadText(out + "/report.html");
  EXPECT_NE(page.find("\"trainyard-report/1\""), std::string::npos);
  EXPECT_EQ(page.find("__TRAINYARD_REPORT_DATA__"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(out + "/srtf/jobs.csv"));
}

TEST(UsageTest, AMistypedCommandIsNamedWithTheNearestOne) {
  const CommandResult result = RunTrainyard("simulat x");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("unknown command 'simulat'; did you mean 'simulate'?"),
            std::string::npos);
}

TEST(UsageTest, AMistypedPolicyIsNamedWithTheNearestOne) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy tiresas");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("unknown policy 'tiresas'; did you mean 'tiresias'?"),
            std::string::npos);
}

TEST(UsageTest, AnOriginalsNameOutsideItsPresetIsExplained) {
  const CommandResult result = RunTrainyard("simulate " + kExample + " --policy dlas-gpu");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("preset 'tiresias' knows 'dlas-gpu' (--preset tiresias)"),
            std::string::npos);
}

TEST(UsageTest, AnUnknownOptionIsWrongUsage) {
  EXPECT_EQ(RunTrainyard("simulate " + kExample + " --polcy fifo").status, kWrongUsage);
  EXPECT_EQ(RunTrainyard("simulate " + kExample + " --policy las:quantum=soon").status,
            kWrongUsage);
  EXPECT_EQ(RunTrainyard("").status, kWrongUsage);
}

TEST(UsageTest, HelpAndVersionSucceed) {
  EXPECT_EQ(RunTrainyard("--help").status, 0);
  EXPECT_EQ(RunTrainyard("simulate --help").status, 0);
  EXPECT_EQ(RunTrainyard("--version").out.rfind("trainyard ", 0), 0U);
}

struct BadTrace {
  const char* name;
  std::string rows;
  std::string message;  // after "trace.csv"
};

void PrintTo(const BadTrace& one, std::ostream* out) { *out << one.name; }

class BadInput : public testing::TestWithParam<BadTrace> {};

TEST_P(BadInput, IsRefusedWithFileAndLine) {
  const CommandResult result = RunTrainyard("simulate " + Trace(GetParam().rows) +
                                            " --cluster 1x4 --out " + ScratchPath("never"));
  EXPECT_EQ(result.status, kBadInput) << result.err;
  EXPECT_NE(result.err.find("trace.csv" + GetParam().message), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("never")));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadInput,
    testing::Values(BadTrace{"NegativeGpus", "a,0,1,5\nb,0,-1,5\n", ":3: column 'gpus' is '-1'"},
                    BadTrace{"MissingDuration", "a,0,1,\n", ":2: "},
                    BadTrace{"TooManyGpus", "a,0,8,5\n", ":2: "},
                    BadTrace{"DuplicateId", "a,0,1,5\na,1,1,5\n", ":3: "},
                    BadTrace{"EmbeddedNul", std::string("a,0,1,5\nb\0,0,1,5\n", 18), ":3: "},
                    BadTrace{"WrongEncoding", "a,0,1,5\nb\xff\xfe,0,1,5\n", ":3: "},
                    BadTrace{"VeryLongLine", "a,0,1,5\n" + std::string(3'000'000, 'x') + ",0,1,5\n",
                             ":3: "},
                    BadTrace{"FieldMissing", "a,0,1\n", ":2: "}, BadTrace{"NoJobs", "", ""}),
    [](const testing::TestParamInfo<BadTrace>& one) { return one.param.name; });

TEST(BadInputTest, ATruncatedGzipIsRefused) {
  const std::string whole = Trace("a,0,1,5\nb,0,1,5\nc,0,1,5\n");
  ASSERT_EQ(
      std::system(("gzip -c " + whole + " | head -c 40 >" + ScratchPath("cut.csv.gz")).c_str()), 0);
  const CommandResult result = RunTrainyard("trace validate " + ScratchPath("cut.csv.gz"));
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("truncated gzip"), std::string::npos) << result.err;
}

TEST(BadInputTest, SkippedRowsAreCountedAndListed) {
  const CommandResult result =
      RunTrainyard("trace validate " + Trace("a,0,1,5\nb,0,-1,5\n") + " --skip-bad-rows");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.out.find("1 jobs"), std::string::npos);
  EXPECT_NE(result.err.find(":3: column 'gpus' is '-1'"), std::string::npos);
}

TEST(BadInputTest, AMissingFileIsNamed) {
  const CommandResult result = RunTrainyard("simulate nowhere.csv --cluster 1x4");
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("nowhere.csv"), std::string::npos);
}

TEST(BadInputTest, AnUnwritableOutputIsAFailure) {
  const CommandResult result =
      RunTrainyard("simulate " + Trace("a,0,1,5\n") + " --cluster 1x4 --out " + Trace("a,0,1,5\n"));
  EXPECT_EQ(result.status, kFailed);
}

TEST(ReplayLiveTest, WhatCannotBeReplayedIsRefused) {
  const std::string replay = "replay-live " + kExample + " --policy fifo --fast-forward";
  const CommandResult stopped = RunTrainyard(replay + " --until 60");
  EXPECT_EQ(stopped.status, kWrongUsage);
  EXPECT_EQ(stopped.err, "--until and --track stop simulations; expected neither\n");
  const CommandResult command = RunTrainyard(replay + " -- true");
  EXPECT_EQ(command.status, kWrongUsage);
  EXPECT_EQ(command.err, "--fast-forward has no real time in which a command could run\n");
}

TEST(ProgramTest, AHiddenCommandIsNotOffered) {
  const CommandResult result = RunTrainyard("supervize x");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err.find("supervise"), std::string::npos) << result.err;
}

TEST(TraceTest, StatisticsCountWhatIsThere) {
  const CommandResult result =
      RunTrainyard("trace stats " + Trace("a,0,1,3600\nb,3600,2,3600\n") + " --cluster 1x3 --json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\"jobs\": 2"), std::string::npos);
  EXPECT_NE(result.out.find("\"gpu_hours\": 3.0"), std::string::npos);
  EXPECT_NE(result.out.find("\"load\": 1.0"), std::string::npos);
}

TEST(TraceTest, TheExampleIsWhatTheGeneratorMakes) {
  EXPECT_EQ(RunTrainyard("trace generate --jobs 400 --seed 1 --cluster-gpus 128 --load 1.2 "
                         "--largest-job 16 --longest-hours 12 --deadline-share 0.7")
                .out,
            ReadText(TRAINYARD_SOURCE_DIR "/data/example_trace.csv"));
  EXPECT_EQ(RunTrainyard("trace generate-profiles").out,
            ReadText(TRAINYARD_SOURCE_DIR "/data/example_profiles.csv"));
}

TEST(TraceTest, GeneratorOptionsThatContradictAreRefused) {
  for (const std::string options :
       {"--jobs 3", "--figure 10 --jobs 3 --profiles data/example_profiles.csv",
        "--jobs 3 --cluster-gpus 4 --load nan", "--style elasticflow --load 1 --jobs 3"}) {
    EXPECT_EQ(RunTrainyard("trace generate " + options).status, kWrongUsage) << options;
  }
}

TEST(CatalogTest, ListsEverythingAsTextAndJson) {
  for (const std::string command : {"policies", "placements", "admissions", "presets"}) {
    EXPECT_EQ(RunTrainyard(command).status, 0);
    EXPECT_EQ(RunTrainyard(command + " --json").out.front(), '[') << command;
  }
  EXPECT_NE(RunTrainyard("presets tiresias").out.find("[policies.dlas-gpu]"), std::string::npos);
  EXPECT_EQ(RunTrainyard("presets nothing").status, kWrongUsage);
}

// Release and debug builds, and a second run, give the same digest.
TEST(DeterminismTest, TheDigestOfTheExampleIsFixed) {
  const auto digest = [](const std::string& json) {
    const std::size_t at = json.find("\"journal_digest\": \"");
    return json.substr(at, 84);
  };
  const std::string arguments = "simulate " + kExample + " --policy tiresias --json";
  const std::string first = digest(RunTrainyard(arguments).out);
  EXPECT_EQ(first, digest(RunTrainyard(arguments).out));
  const std::string other = TRAINYARD_OTHER_PROGRAM;
  if (!std::filesystem::exists(other)) {
    GTEST_SKIP() << other << " is not built: no second build type to compare with";
  }
  const std::string out = ScratchPath("other.json");
  ASSERT_EQ(
      std::system(
          ("cd '" TRAINYARD_SOURCE_DIR "' && " + other + " " + arguments + " >" + out).c_str()),
      0);
  EXPECT_EQ(first, digest(ReadText(out)));
}

}  // namespace
}  // namespace trainyard
