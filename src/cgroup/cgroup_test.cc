// SPDX-License-Identifier: Apache-2.0
// Version 1 and the filter of devices are tested on the kernel itself, which needs root and a
// machine that mounts them; version 2 on a tree as a machine of version 2 shows it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "cgroup/group.h"

namespace trainyard::cgroup {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

// ------------------------------------------------------------------------------- what is mounted

TEST(HierarchiesTest, EachControllerOfVersion1HasItsMountPoint) {
  const Hierarchies found = Hierarchies::FromMounts(
      "proc /proc proc rw 0 0\n"
      "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
      "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
  EXPECT_EQ(found.MountOf("memory"), "/sys/fs/cgroup/memory");
  EXPECT_EQ(found.MountOf("cpu"), "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(found.MountOf("pids"), std::nullopt);
  EXPECT_EQ(found.unified, "/sys/fs/cgroup/unified");
  EXPECT_FALSE(found.unified_controls);
}

// --------------------------------------------------------------------------- version 2, recorded

// The files that a kernel 6.1 shows in a group of version 2, as far as they matter here.
class RecordedTree : public testing::Test {
 protected:
  RecordedTree() : root_(testing::TempDir() + "/cgroup2-XXXXXX") {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    for (const char* const group : {"", "/trainyard", "/trainyard/7-2"}) {
      fs::create_directories(root_ + group);
      for (const char* const file :
           {"cgroup.procs", "cgroup.subtree_control", "cgroup.kill", "memory.max", "memory.events",
            "memory.oom.group", "memory.swap.max", "cpu.max", "cpuset.cpus", "pids.max"}) {
        std::ofstream(root_ + group + "/" + file).flush();
      }
      std::ofstream(root_ + group + "/cgroup.controllers") << "cpuset cpu io memory hugetlb pids\n";
    }
    hierarchies_ = Hierarchies::FromMounts("cgroup2 " + root_ + " cgroup2 rw,nosuid 0 0\n");
  }
  ~RecordedTree() override { fs::remove_all(root_); }

  [[nodiscard]] std::string Read(const std::string& file) const {
    return TextOf(root_ + "/trainyard/7-2/" + file);
  }

  std::string root_;
  Hierarchies hierarchies_;
};

TEST_F(RecordedTree, ItsControllersAreFound) {
  EXPECT_TRUE(hierarchies_.unified_controls);
  EXPECT_EQ(hierarchies_.MountOf("cpuset"), root_);
}

TEST_F(RecordedTree, LimitsAreWrittenAsTheKernelReadsThem) {
  const Group group(hierarchies_, "trainyard/7-2");
  const Status made =
      group.Make({.memory_mib = 512, .milli_cpus = 2500, .cpus = "0-3,8", .processes = 4096});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(Read("memory.max"), "536870912");
  EXPECT_EQ(Read("memory.swap.max"), "0");
  EXPECT_EQ(Read("memory.oom.group"), "1");
  EXPECT_EQ(Read("cpu.max"), "250000 100000");
  EXPECT_EQ(Read("cpuset.cpus"), "0-3,8");
  EXPECT_EQ(Read("pids.max"), "4096");
}

TEST_F(RecordedTree, ControllersAreHandedDownToTheGroup) {
  ASSERT_TRUE(Group(hierarchies_, "trainyard/7-2").Make({}).ok());
  for (const char* const above : {"", "/trainyard"}) {
    EXPECT_EQ(TextOf(root_ + above + "/cgroup.subtree_control"), "+memory +cpu +cpuset +pids");
  }
  EXPECT_EQ(Read("cgroup.subtree_control"), "");  // processes and sub-groups do not go together
}

TEST_F(RecordedTree, AProcessJoinsOneFolder) {
  const Group group(hierarchies_, "trainyard/7-2");
  ASSERT_TRUE(group.Make({}).ok());
  ASSERT_TRUE(group.Join(4711).ok());
  EXPECT_EQ(group.Folders(), std::vector<std::string>{root_ + "/trainyard/7-2"});
  EXPECT_EQ(Read("cgroup.procs"), "4711");
  EXPECT_EQ(group.Members(), std::vector<pid_t>{4711});
}

TEST_F(RecordedTree, AGroupWithProcessesIsNotMadeAgain) {
  const Group group(hierarchies_, "trainyard/7-2");
  ASSERT_TRUE(group.Make({}).ok());
  ASSERT_TRUE(group.Join(4711).ok());
  const Status again = group.Make({});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message,
            "control group trainyard/7-2: is there with 1 processes; expected none");
}

TEST_F(RecordedTree, MemoryKillsAreCounted) {
  std::ofstream(root_ + "/trainyard/7-2/memory.events")
      << "low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 1\n";
  EXPECT_EQ(Group(hierarchies_, "trainyard/7-2").MemoryKills(), 3);
}

// What cannot be killed (the recorded process is none) is said, not waited for without an end.
TEST_F(RecordedTree, TheWholeGroupIsKilledByOneWord) {
  const Group group(hierarchies_, "trainyard/7-2");
  std::ofstream(root_ + "/trainyard/7-2/cgroup.procs") << "999999999\n";
  const Status killed = group.KillAll(std::chrono::milliseconds(10));
  EXPECT_FALSE(killed.ok());
  EXPECT_EQ(Read("cgroup.kill"), "1");
  EXPECT_EQ(Read("pids.max"), "0");
}

// --------------------------------------------------------------------------------- the real ones

// A child that does something in the group and leaves with what it says.
pid_t Fork(const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(child());
  }
  return pid;
}

int ExitOf(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  constexpr int kSignal = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status);
}

// A group of the kernel's. With `version1` as a machine without version 2 has it.
class KernelTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Result<Hierarchies> found = Hierarchies::OfThisMachine();
    if (geteuid() != 0 || !found.ok() || found.value().unified_controls) {
      GTEST_SKIP() << "not checked: this kernel gives this user no control groups of version 1";
    }
    hierarchies_ = std::move(found).value();
    if (GetParam()) {
      hierarchies_.unified.clear();
    } else if (hierarchies_.unified.empty()) {
      GTEST_SKIP() << "not checked: this kernel has no version 2 of control groups beside 1";
    }
    name_ = "trainyard-test-" + std::to_string(getpid()) + "/1-1";
    group_.emplace(hierarchies_, name_);
  }
  void TearDown() override {
    if (group_.has_value()) {
      EXPECT_TRUE(group_->KillAll(seconds(30)).ok());
      EXPECT_TRUE(group_->Remove().ok());
      EXPECT_TRUE(Group(hierarchies_, name_.substr(0, name_.find('/'))).Remove().ok());
    }
  }
  [[nodiscard]] std::string Read(const char* controller, const char* file) const {
    return TextOf(*hierarchies_.MountOf(controller) + "/" + name_ + "/" + file);
  }
  // What a process of the group says.
  [[nodiscard]] int InGroup(const std::function<int()>& what) const {
    return ExitOf(Fork([this, &what] { return group_->Join(getpid()).ok() ? what() : 99; }));
  }

  Hierarchies hierarchies_;
  std::string name_;
  std::optional<Group> group_;
};

INSTANTIATE_TEST_SUITE_P(Cgroup, KernelTest, testing::Values(true, false), [](const auto& test) {
  return test.param ? "Version1" : "Version1Beside2";
});

TEST_P(KernelTest, LimitsAreTheKernels) {
  const Status made =
      group_->Make({.memory_mib = 256, .milli_cpus = 1500, .cpus = "0", .processes = 200});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(Read("memory", "memory.limit_in_bytes"), "268435456");
  EXPECT_EQ(Read("cpu", "cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(Read("cpuset", "cpuset.cpus"), "0");
  EXPECT_EQ(Read("pids", "pids.max"), "200");
}

TEST_P(KernelTest, LimitsCanRiseAndFall) {
  ASSERT_TRUE(group_->Make({.memory_mib = 256}).ok());
  for (const std::int64_t mib : {512, 128}) {
    ASSERT_TRUE(group_->Limit({.memory_mib = mib}).ok());
    EXPECT_EQ(Read("memory", "memory.limit_in_bytes"), std::to_string(mib << 20));
  }
}

TEST_P(KernelTest, AGroupWithoutLimitsTakesProcesses) {
  ASSERT_TRUE(group_->Make({}).ok());
  EXPECT_EQ(InGroup([] { return 7; }), 7);
}

TEST_P(KernelTest, ChildrenAreMembersToo) {
  ASSERT_TRUE(group_->Make({}).ok());
  const pid_t parent = Fork([this] {
    static_cast<void>(group_->Join(getpid()).ok());
    const pid_t child = fork();
    if (child == 0) {
      setsid();  // neither a session nor a group of processes leads out
    }
    pause();
    return 0;
  });
  while (group_->Members().size() < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(group_->KillAll(seconds(30)).ok());
  EXPECT_EQ(ExitOf(parent), 128 + SIGKILL);
  EXPECT_TRUE(group_->Members().empty());
}

// Each child forks as fast as it can: one killed after the other would never come to an end.
TEST_P(KernelTest, WhatForksWithoutAnEndIsKilled) {
  ASSERT_TRUE(group_->Make({.processes = 64}).ok());
  const pid_t parent = Fork([this] {
    static_cast<void>(group_->Join(getpid()).ok());
    signal(SIGCHLD, SIG_IGN);
    while (true) {
      fork();
    }
    return 0;
  });
  while (group_->Members().size() < 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(group_->KillAll(seconds(60)).ok());
  EXPECT_EQ(ExitOf(parent), 128 + SIGKILL);
}

TEST_P(KernelTest, NoMoreProcessesStartThanAllowed) {
  ASSERT_TRUE(group_->Make({.processes = 2}).ok());
  EXPECT_EQ(InGroup([] {
              const pid_t first = fork();
              if (first == 0) {
                pause();
              }
              const pid_t second = fork();
              const int error = second < 0 ? errno : 0;
              kill(first, SIGKILL);
              return error;
            }),
            EAGAIN);
}

TEST_P(KernelTest, WhoUsesMoreMemoryIsKilledAndCounted) {
  ASSERT_TRUE(group_->Make({.memory_mib = 32}).ok());
  EXPECT_EQ(InGroup([] {
              constexpr std::size_t kBytes = std::size_t{256} << 20;
              void* memory =
                  mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              std::memset(memory, 1, kBytes);
              return 0;
            }),
            128 + SIGKILL);
  EXPECT_EQ(group_->MemoryKills(), 1);
}

TEST_P(KernelTest, AProcessOfTheGroupSeesItsMemoryKills) {
  ASSERT_TRUE(group_->Make({.memory_mib = 32}).ok());
  EXPECT_EQ(InGroup([] { return static_cast<int>(MemoryKillsAroundMe()); }), 0);
}

TEST_P(KernelTest, ForbiddenDevicesCannotBeOpenedAndOthersCan) {
  ASSERT_TRUE(group_->Make({}).ok());
  const Result<Device> full = DeviceAt("/dev/full");
  ASSERT_TRUE(full.ok());
  const Status forbidden = group_->Forbid({full.value()});
  ASSERT_TRUE(forbidden.ok()) << forbidden.error().message;
  const auto error_of = [](const char* path) {
    return open(path, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
  };
  EXPECT_EQ(InGroup([&] { return error_of("/dev/full"); }), EPERM);
  EXPECT_EQ(InGroup([&] { return error_of("/dev/zero"); }), 0);
  EXPECT_EQ(error_of("/dev/full"), 0);  // outside of the group
}

// Root makes the node itself; the numbers count, not the name.
TEST_P(KernelTest, AnotherNodeOfAForbiddenDeviceHelpsNobody) {
  ASSERT_TRUE(group_->Make({}).ok());
  const Result<Device> full = DeviceAt("/dev/full");
  ASSERT_TRUE(full.ok() && group_->Forbid({full.value()}).ok());
  const std::string node = testing::TempDir() + "/another-full-" + std::to_string(getpid());
  EXPECT_EQ(InGroup([&] {
              return mknod(node.c_str(), S_IFCHR | 0666,
                           makedev(full.value().major, full.value().minor)) < 0
                         ? errno
                         : 0;
            }),
            EPERM);
}

TEST(DeviceFilterTest, WithoutForbiddenDevicesItAllowsAtOnce) {
  constexpr std::size_t kBegin = 4;
  constexpr std::size_t kOfADevice = 5;
  constexpr std::size_t kEnd = 2;
  EXPECT_EQ(FilterProgram({}).size(), kBegin + kEnd);
  EXPECT_EQ(FilterProgram({{.major = 195, .minor = 0}, {.major = 195, .minor = 1}}).size(),
            kBegin + 2 * kOfADevice + kEnd);
}

TEST(DeviceFilterTest, WhatIsNoDeviceIsRefused) {
  const Result<Device> none = DeviceAt("/etc/passwd");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message,
            "/etc/passwd: is no device; expected a character or block device");
}

}  // namespace
}  // namespace trainyard::cgroup
