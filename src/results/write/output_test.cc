// SPDX-License-Identifier: Apache-2.0
#include "results/write/output.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class WriteRunTest : public testing::Test {
 public:
  ~WriteRunTest() override { fs::remove_all(folder_); }

 protected:
  WriteRunTest() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) /
              (std::string("trainyard-") + test->name() + "-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  [[nodiscard]] std::string Path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::size_t FilesIn(const char* name) const {
    const fs::directory_iterator files(folder_ / name);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  fs::path folder_;
};

TEST_F(WriteRunTest, WritesOneRowPerJob) {
  ASSERT_TRUE(WriteRun(HandMadeRun(), Path("deep/out")).ok());
  EXPECT_EQ(TextOf(Path("deep/out/jobs.csv")),
            "job_id,user,queue,model,gpus_requested,submit_time,start_time,end_time,jct,"
            "queueing_delay,attained_service,preemptions,migrations,resizes,deadline,deadline_met,"
            "outcome,waiting_time,productive_time,overhead_time,useful_service,jct_alone\n"
            "a,ann,q1,resnet,2,10,10,110,100,0,200,0,0,0,110,1,completed,0,90,10,180,80\n"
            "b,,,,1,20,50,70.5,50.5,30,20.5,0,0,0,60,0,completed,30,20.5,0,20.5,20\n"
            "\"c,\"\"x\"\"\",,,,4,30,,,,,0,0,0,0,100,0,rejected,,0,0,0,\n"
            "d,,,,8,40,60,240,200,20,1280,2,1,3,,,completed,40,150,10,1200,250\n"
            "e,,,,1,50,,,,,0,0,0,0,900,0,unfinished,200,0,0,0,\n");
}

TEST_F(WriteRunTest, LoggedEndsHaveAColumnAndFeedTheJct) {
  RunResult run = HandMadeRun();
  run.uses_logged_end = true;
  ASSERT_TRUE(WriteRun(run, Path("out")).ok());
  const std::string text = TextOf(Path("out/jobs.csv"));
  EXPECT_NE(text.find(",useful_service,jct_alone,end_time_original\n"), std::string::npos);
  EXPECT_NE(
      text.find(
          "\na,ann,q1,resnet,2,10,10,110,101,0,200,0,0,0,110,0,completed,0,90,10,180,80,111\n"),
      std::string::npos);
  EXPECT_NE(text.find(",rejected,,0,0,0,,\n"), std::string::npos);
}

TEST_F(WriteRunTest, WritesOneTimelineRowPerDecision) {
  ASSERT_TRUE(WriteRun(HandMadeRun(), Path("out")).ok());
  EXPECT_EQ(TextOf(Path("out/timeline.csv")),
            "time,gpus_used,jobs_running,jobs_pending,gpus_up\n"
            "10,2,1,0,16\n"
            "60.25,11,3,1,16\n");
}

TEST_F(WriteRunTest, WhatWasRecordedHasAFileAndAColumn) {
  RunResult run = HandMadeRun();
  run.timeline[1].gpus_fragmented = 2.5;
  run.allocations = Allocations{.nodes = {{.name = "n0", .gpus = 64}},
                                .holdings = {{.job = 2,
                                              .gpus = (std::uint64_t{1} << 63) | 0b100'1110,
                                              .start = AtSeconds(10),
                                              .end = AtSeconds(12.5)}}};
  ASSERT_TRUE(WriteRun(run, Path("out")).ok());
  EXPECT_EQ(TextOf(Path("out/allocations.csv")),
            "row,job_id,node,gpus,start_time,end_time\n"
            "2,\"c,\"\"x\"\"\",n0,1-3 6 63,10,12.5\n");
  EXPECT_EQ(TextOf(Path("out/timeline.csv")),
            "time,gpus_used,jobs_running,jobs_pending,gpus_up,gpus_fragmented\n"
            "10,2,1,0,16,0\n"
            "60.25,11,3,1,16,2.5\n");
}

TEST_F(WriteRunTest, LeavesNothingButTheThreeFiles) {
  ASSERT_TRUE(WriteRun(HandMadeRun(), Path("out")).ok());
  EXPECT_EQ(FilesIn("out"), 3U);
  EXPECT_TRUE(TextOf(Path("out/summary.json")).starts_with("{\n  \"jobs\": 5,\n"));
  EXPECT_TRUE(TextOf(Path("out/summary.json")).ends_with("\"\n}\n"));
}

TEST_F(WriteRunTest, LongTablesAreWhole) {
  RunResult run = HandMadeRun();
  constexpr std::int64_t kSamples = 200'000;  // several blocks
  run.timeline.clear();
  for (std::int64_t i = 0; i < kSamples; ++i) {
    run.timeline.push_back({.time = AtSeconds(static_cast<double>(i)), .gpus_used = i});
  }
  ASSERT_TRUE(WriteRun(run, Path("out")).ok());
  std::ifstream file(Path("out/timeline.csv"));
  std::string line;
  std::getline(file, line);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    ASSERT_TRUE(std::getline(file, line));
    ASSERT_EQ(line, std::to_string(i) + "," + std::to_string(i) + ",0,0,0");
  }
  EXPECT_FALSE(std::getline(file, line));
}

TEST_F(WriteRunTest, ReplacesAnEarlierRun) {
  std::ofstream(Path("jobs.csv")) << "old";
  ASSERT_TRUE(WriteRun(HandMadeRun(), folder_.string()).ok());
  EXPECT_TRUE(TextOf(Path("jobs.csv")).starts_with("job_id,"));
}

TEST_F(WriteRunTest, AFileInThePlaceOfTheDirectoryIsAnError) {
  std::ofstream(Path("out")) << "a file";
  for (const std::string& place : {Path("out"), Path("out/below")}) {
    const Status status = WriteRun(HandMadeRun(), place);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kFailed);
    EXPECT_NE(status.error().message.find("'" + place + "': cannot make this output directory"),
              std::string::npos)
        << status.error().message;
  }
  EXPECT_EQ(TextOf(Path("out")), "a file");
}

TEST_F(WriteRunTest, ANameThatCannotBeReplacedIsAnErrorWithoutHalfFiles) {
  fs::create_directories(Path("out/jobs.csv"));
  const Status status = WriteRun(HandMadeRun(), Path("out"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("jobs.csv: cannot write this file: "), std::string::npos);
  EXPECT_EQ(FilesIn("out"), 1U);
}

// As on a full disk: no file of this program may be longer than a few bytes.
class SmallFilesOnly {
 public:
  SmallFilesOnly() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 16;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFilesOnly() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFilesOnly(const SmallFilesOnly&) = delete;
  SmallFilesOnly& operator=(const SmallFilesOnly&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(WriteRunTest, AFailedWriteKeepsTheEarlierRun) {
  fs::create_directories(Path("out"));
  std::ofstream(Path("out/jobs.csv")) << "old";
  Status status;
  {
    const SmallFilesOnly limit;
    status = WriteRun(HandMadeRun(), Path("out"));
  }
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("cannot write this file"), std::string::npos);
  EXPECT_EQ(TextOf(Path("out/jobs.csv")), "old");
  EXPECT_EQ(FilesIn("out"), 1U);
}

}  // namespace
}  // namespace trainyard::results
