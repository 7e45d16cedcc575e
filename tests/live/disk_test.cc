// SPDX-License-Identifier: Apache-2.0
// Nodes and controllers whose disk is full, and jobs that harm the node they run on, with the real
// program.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A small file system of its own under a folder, where this user may mount one.
class SmallDisk {
 public:
  SmallDisk(std::string folder, const char* size) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (mounted_) {
      umount2(folder_.c_str(), MNT_DETACH);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }
  // To the last byte.
  void Fill() const {
    const int file = open(Filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (const std::size_t size : {std::size_t{65536}, std::size_t{4096}, std::size_t{1}}) {
      const std::string bytes(size, 'x');
      while (write(file, bytes.data(), size) > 0) {
      }
    }
    close(file);
  }
  void Free() const { fs::remove(Filler()); }

 private:
  [[nodiscard]] std::string Filler() const { return folder_ + "/filler"; }

  std::string folder_;
  bool mounted_ = false;
};

std::string Until(const LiveCluster& cluster, const std::string& file) {
  return fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster.Path("shared/" + file));
}

void Touch(const LiveCluster& cluster, const std::string& file) {
  std::ofstream(cluster.Path("shared/" + file)) << '\n';
}

TEST(DiskTest, OneFullDiskFailsNoneOfManyJobs) {
  LiveCluster cluster({.nodes = 3, .gpus = 8});
  const std::string state = cluster.Path("nodes/n0");
  const SmallDisk disk(state, "size=256k");
  cluster.Start();
  if (disk.mounted()) {
    disk.Fill();
  } else {  // nothing can be made in it either
    fs::remove_all(state + "/attempts");
    std::ofstream(state + "/attempts") << '\n';
  }
  std::vector<int> jobs;
  for (int i = 0; i < 20; ++i) {
    jobs.push_back(cluster.SubmitWorker({"--gpus", "8", "--workers", "per-node"}, "true"));
  }
  for (const int job : jobs) {
    ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << job;
    EXPECT_EQ(cluster.StatusOf(job).failures(), 0U);
    EXPECT_EQ(cluster.LinesOf(job, "start").size(), 1U);
  }
  const v1::NodeStatus node = cluster.NodeStatus(0);
  EXPECT_TRUE(node.up());
  EXPECT_TRUE(node.drained());
  EXPECT_THAT(node.reason(), HasSubstr("3 failures in a row, the last: "));
  EXPECT_THAT(node.reason(),
              HasSubstr(disk.mounted() ? "No space left on device" : "Not a directory"));
  const std::string nodes = cluster.Ask({"nodes"}).out;
  EXPECT_THAT(nodes, HasSubstr("n0 is drained by the controller at "));
  EXPECT_THAT(nodes, HasSubstr(": 3 failures in a row"));

  cluster.KillController();  // the next one knows
  cluster.StartController();
  EXPECT_EQ(cluster.NodeStatus(0).reason(), node.reason());
  disk.Free();
  if (!disk.mounted()) {
    fs::remove(state + "/attempts");
  }
  EXPECT_EQ(cluster.Ask({"undrain", "n0"}).status, 0);
  EXPECT_EQ(cluster.NodeStatus(0).reason(), "");
  const int whole = cluster.SubmitWorker({"--gpus", "24", "--workers", "per-node"}, "true");
  EXPECT_TRUE(cluster.AwaitState(whole, v1::COMPLETED));
}

TEST(DiskTest, AJobThatKillsItsSupervisorsIsFailed) {
  LiveCluster cluster({.nodes = 2, .gpus = 1});
  cluster.Start();
  const int job = cluster.Submit({"--gpus", "1"}, {"/bin/sh", "-c", "kill -9 $PPID; sleep 60"});
  ASSERT_TRUE(Eventually([&] { return cluster.StateOf(job) == v1::FAILED; }, 300));
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 4U) << "more than once on each of the two nodes";
  EXPECT_THAT(cluster.StatusOf(job).reason(), HasSubstr("vanished in 4 attempts"));
  EXPECT_FALSE(cluster.NodeStatus(0).drained());
  EXPECT_FALSE(cluster.NodeStatus(1).drained());
}

TEST(DiskTest, JobsRunOnWhileTheControllerCannotWrite) {
  LiveCluster cluster({.nodes = 1, .gpus = 4, .lease = kShortLease, .grace = 1});
  const SmallDisk disk(cluster.Path("controller"), "size=8m");
  if (!disk.mounted()) {
    GTEST_SKIP() << "not checked: this kernel does not let this user mount a file system";
  }
  cluster.Start();
  const std::string ticks = "i=0; while [ $i -lt 400 ] && ! [ -e " + cluster.Path("shared/go") +
                            " ]; do say tick; sleep 0.1; i=$((i+1)); done";
  const int runs = cluster.SubmitWorker({"--gpus", "1"}, ticks);
  const int first = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "first"));
  const int second = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "second"));
  for (const int job : {runs, first, second}) {
    ASSERT_TRUE(cluster.AwaitState(job, v1::RUNNING));
  }
  disk.Fill();
  Touch(cluster, "first");  // its end cannot be written
  ASSERT_TRUE(Eventually([&] {
    return cluster.Log("controller").find("the journal cannot be written") != std::string::npos;
  }));
  const Answer refused = cluster.Ask({"submit", "--gpus", "1", "--", "true"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot write its journal"));
  // Twice as long as the lease and its grace.
  const std::size_t before = cluster.LinesOf(runs, "tick").size();
  ASSERT_TRUE(cluster.AwaitLines(runs, "tick", before + 80));
  EXPECT_EQ(cluster.LinesOf(runs, "start").size(), 1U);
  EXPECT_EQ(cluster.LinesOf(runs, "end").size(), 0U);
  disk.Free();
  ASSERT_TRUE(Eventually([&] {
    return cluster.Log("controller").find("the journal is written again") != std::string::npos;
  }));
  EXPECT_TRUE(cluster.AwaitState(first, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(runs), v1::RUNNING);

  // It ends cleanly, with what was not written yet.
  disk.Fill();
  Touch(cluster, "second");
  ASSERT_TRUE(Eventually([&] {
    const std::string log = cluster.Log("controller");
    return log.rfind("the journal cannot be written") > log.rfind("the journal is written again");
  }));
  cluster.controller().Signal(SIGTERM);
  EXPECT_EQ(cluster.controller().Wait(std::chrono::seconds(60)), 0);
  disk.Free();
  cluster.StartController();
  EXPECT_TRUE(cluster.AwaitState(second, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(second).attempt(), 1U);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(runs, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(runs).attempt(), 1U);
}

}  // namespace
}  // namespace trainyard
