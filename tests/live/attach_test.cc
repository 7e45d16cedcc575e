// SPDX-License-Identifier: Apache-2.0
// Into running jobs with the real program: attach, run --pty, input and signals.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "live_tests/cluster.h"
#include "live_tests/podman.h"

namespace trainyard {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// A start of the program in a terminal of its own, into which the test types.
class Typist {
 public:
  explicit Typist(Words arguments, unsigned short rows = 24, unsigned short columns = 80,
                  const Words& command = {}) {
    arguments.insert(arguments.end(), command.begin(), command.end());
    std::vector<char*> words = {const_cast<char*>(TRAINYARD_PROGRAM)};
    for (const std::string& argument : arguments) {
      words.push_back(const_cast<char*>(argument.c_str()));
    }
    words.push_back(nullptr);
    winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      execv(words[0], words.data());
      _exit(127);
    }
  }
  ~Typist() {
    if (!status_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  Typist(const Typist&) = delete;
  Typist& operator=(const Typist&) = delete;

  void Type(const std::string& text) const {
    EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void Resize(unsigned short rows, unsigned short columns) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ioctl(terminal_, TIOCSWINSZ, &size);
  }
  // Whether the screen shows the text by now.
  bool Has(const std::string& text) {
    Look();
    return screen_.find(text) != std::string::npos;
  }
  // Whether it comes to.
  bool Shows(const std::string& text) {
    return Eventually([&] { return Has(text); });
  }
  int Wait() {
    static_cast<void>(Eventually([&] {
      Look();
      int status = 0;
      if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      return status_.has_value();
    }));
    Look();
    return status_.value_or(-1);
  }
  [[nodiscard]] const std::string& screen() const { return screen_; }

 private:
  void Look() {
    std::array<char, 4096> bytes{};
    pollfd ready{.fd = terminal_, .events = POLLIN};
    while (poll(&ready, 1, 0) > 0) {
      const ssize_t got = read(terminal_, bytes.data(), bytes.size());
      if (got <= 0) {
        return;
      }
      screen_.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::optional<int> status_;
  std::string screen_;
};

// Whether the shell there gets to know that its terminal has another size now.
bool HearsOfItsSize(Typist& shell) {
  shell.Resize(40, 100);
  return Eventually([&] {
    shell.Type("stty size\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return shell.Has("40 100");
  });
}

class AttachTest : public testing::Test {
 protected:
  AttachTest() { cluster_.Start(); }

  // A job that runs until the test has made the file "go".
  int Start(const Words& options = {"--gpus", "1"}, const std::string& first = "true") const {
    const int job = cluster_.Submit(options, {"sh", "-c", first + "; " + Until("go")});
    EXPECT_TRUE(cluster_.AwaitState(job, v1::RUNNING));
    return job;
  }
  [[nodiscard]] std::string Until(const std::string& file) const {
    return fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster_.Path(file));
  }
  void Touch(const std::string& file) const { std::ofstream(cluster_.Path(file)) << '\n'; }
  [[nodiscard]] Answer Attach(int job, const Words& options, const Words& command) const {
    Words words{"attach", std::to_string(job)};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return cluster_.Ask(words);
  }
  // The arguments of a command with those of this cluster.
  [[nodiscard]] Words With(Words words) const {
    words.insert(words.begin() + 1, {"--controller", cluster_.address()});
    return words;
  }
  // A line of the shell with {} for the program and its cluster.
  [[nodiscard]] Answer Shell(const std::string& line) const {
    Answer answer;
    const std::string out = cluster_.Path("shell.out");
    const std::string err = cluster_.Path("shell.err");
    setenv("TRAINYARD_CONTROLLER", cluster_.address().c_str(), 1);
    const int status = std::system(fmt::format("({}) >{} 2>{}", line, out, err).c_str());
    unsetenv("TRAINYARD_CONTROLLER");
    answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    answer.out = ReadAll(out);
    answer.err = ReadAll(err);
    return answer;
  }

  LiveCluster cluster_;
};

TEST_F(AttachTest, ACommandRunsInTheJobsEnvironmentFolderAndGpus) {
  const int job = Start({"--gpus", "2", "--env", "FLAVOUR=sweet", "--cwd", cluster_.Path("")});
  const Answer answer = Attach(
      job, {}, {"sh", "-c", "echo $FLAVOUR $CUDA_VISIBLE_DEVICES $TRAINYARD_JOB $RANK; pwd"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.out, fmt::format("sweet 0,1 {} 0\n{}\n", job,
                                    cluster_.Path("").substr(0, cluster_.Path("").size() - 1)));
  EXPECT_THAT(Attach(job, {"--rank", "1"}, {"sh", "-c", "echo $RANK"}).out, "1\n");
  EXPECT_THAT(cluster_.Ask({"status", std::to_string(job)}).out, HasSubstr("attached to (sh) by"));
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
}

TEST_F(AttachTest, ExitCodeErrorOutputAndInputArePassedOn) {
  const int job = Start();
  const Answer failed = Attach(job, {}, {"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(failed.status, 7);
  EXPECT_EQ(failed.out, "out\n");
  EXPECT_EQ(failed.err, "err\n");
  EXPECT_EQ(Attach(job, {}, {"sh", "-c", "kill -9 $$"}).status, 137);
  EXPECT_EQ(Attach(job, {}, {"cat"}).out, "") << "there is nothing to read";
  const Answer piped =
      Shell(fmt::format("seq 1 200000 | {} attach {} -- md5sum", TRAINYARD_PROGRAM, job));
  const Answer here = Shell("seq 1 200000 | md5sum");
  EXPECT_EQ(piped.out, here.out) << piped.err;
  const Answer much =
      Shell(fmt::format("{} attach {} -- seq 1 400000 | md5sum", TRAINYARD_PROGRAM, job));
  EXPECT_EQ(much.out, Shell("seq 1 400000 | md5sum").out) << much.err;
  const Answer missing = Attach(job, {}, {"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_THAT(missing.err, HasSubstr("command 'no-such-program': No such file"));
  const Answer folder = Attach(job, {}, {"/"});
  EXPECT_EQ(folder.status, 126);
  EXPECT_THAT(folder.err, HasSubstr("command '/': Permission denied"));
  Touch("go");
}

TEST_F(AttachTest, OnlyRunningJobsCanBeAttachedTo) {
  const int running = Start({"--gpus", "4"});
  const int waits = cluster_.Submit({"--gpus", "4"}, {"true"});
  EXPECT_THAT(Attach(waits, {}, {"true"}).err, HasSubstr("cannot be attached to: it is waiting"));
  EXPECT_THAT(Attach(99, {}, {"true"}).err, HasSubstr("there is no job 99"));
  EXPECT_THAT(Attach(running, {"--rank", "9"}, {"true"}).err, HasSubstr("has no worker 9"));
  EXPECT_THAT(Attach(running, {"--node", "n9"}, {"true"}).err,
              HasSubstr("has no worker on node 'n9'"));
  EXPECT_EQ(Attach(running, {"--node", cluster_.node_name(1)}, {"sh", "-c", "echo $RANK"}).out,
            "2\n");
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(waits, v1::COMPLETED));
  EXPECT_THAT(Attach(running, {}, {"true"}).err, HasSubstr("expected a running job"));
}

TEST_F(AttachTest, WhatIsAttachedEndsWithTheJob) {
  const int job = Start();
  Program attached(
      With({"attach", std::to_string(job), "--", "sh", "-c", "echo here; exec sleep 1000.5"}),
      cluster_.Path("a.out"), cluster_.Path("a.err"));
  ASSERT_TRUE(Eventually([&] { return ReadAll(cluster_.Path("a.out")) == "here\n"; }));
  Touch("go");
  EXPECT_EQ(attached.Wait(seconds(300)), 137);
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED)) << "it is not the worse for it";
}

TEST_F(AttachTest, ItSurvivesControllerAndAgent) {
  const int job = Start();
  Program attached(With({"attach", std::to_string(job), "--", "sh", "-c",
                         "echo one; " + Until("two") + "; echo two; exit 3"}),
                   cluster_.Path("a.out"), cluster_.Path("a.err"));
  ASSERT_TRUE(Eventually([&] { return ReadAll(cluster_.Path("a.out")) == "one\n"; }));
  cluster_.KillController();
  cluster_.StartController();
  cluster_.KillAgent(0);
  cluster_.StartAgent(0);
  Touch("two");
  EXPECT_EQ(attached.Wait(seconds(300)), 3) << ReadAll(cluster_.Path("a.err"));
  EXPECT_EQ(ReadAll(cluster_.Path("a.out")), "one\ntwo\n");
  Touch("go");
}

TEST_F(AttachTest, AShellHasATerminal) {
  const int job = Start({"--gpus", "1", "--env", "PS1=ready> "});
  Typist shell(With({"attach", std::to_string(job), "--", "sh"}), 31, 97);
  ASSERT_TRUE(shell.Shows("ready> ")) << shell.screen();
  shell.Type("stty size; tty\n");
  EXPECT_TRUE(shell.Shows("31 97")) << shell.screen();
  EXPECT_TRUE(shell.Shows("/dev/pts/")) << shell.screen();
  EXPECT_TRUE(HearsOfItsSize(shell));
  shell.Type("sleep 1000.25\n");
  EXPECT_TRUE(shell.Shows("sleep 1000.25"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  shell.Type("\x03");  // Ctrl-C is the shell's, not this program's
  shell.Type("echo still $((6 * 7)); exit 5\n");
  EXPECT_TRUE(shell.Shows("still 42")) << shell.screen();
  EXPECT_EQ(shell.Wait(), 5);
  Touch("go");
}

TEST_F(AttachTest, RunPtyGivesTheFirstWorkerATerminal) {
  Typist run(With({"run", "--gpus", "2", "--quiet", "--pty", "--", "sh", "-c",
                   "if [ $RANK = 1 ]; then echo hidden; exit; fi; echo ready; read line; stty "
                   "size; echo got "
                   "$line; exit 4"}),
             33, 99);
  ASSERT_TRUE(run.Shows("ready")) << run.screen();
  run.Type("this and that\n");
  EXPECT_TRUE(run.Shows("33 99")) << run.screen();
  EXPECT_TRUE(run.Shows("got this and that")) << run.screen();
  EXPECT_EQ(run.Wait(), 4) << run.screen();
  EXPECT_THAT(run.screen(), Not(HasSubstr("hidden")));
  EXPECT_THAT(cluster_.Ask({"logs", "1"}).out, HasSubstr("got this and that"));
}

TEST_F(AttachTest, RunPtyShowsTheSessionOnce) {
  for (const std::string end : {"exit 3\n", "\x04"}) {
    Typist run(
        With({"run", "--gpus", "1", "--quiet", "--pty", "--env", "PS1=ready> ", "--", "sh", "-i"}));
    ASSERT_TRUE(run.Shows("ready> ")) << run.screen();
    run.Type("echo MAR''KER\n");
    ASSERT_TRUE(run.Shows("MARKER")) << run.screen();
    run.Type(end);
    EXPECT_EQ(run.Wait(), end == "\x04" ? 0 : 3) << run.screen();
    EXPECT_EQ(run.screen().find("MARKER"), run.screen().rfind("MARKER")) << run.screen();
    EXPECT_THAT(run.screen(), Not(HasSubstr("\r\r\n")));
  }
}

TEST_F(AttachTest, RunPtyShowsACommandThatHasEndedBeforeItIsLookedAt) {
  Typist run(With({"run", "--gpus", "1", "--quiet", "--pty", "--", "echo", "at once"}));
  EXPECT_EQ(run.Wait(), 0) << run.screen();
  EXPECT_NE(run.screen().find("at once\r\n"), std::string::npos) << run.screen();
  EXPECT_EQ(run.screen().find("at once"), run.screen().rfind("at once")) << run.screen();
}

TEST_F(AttachTest, RunWaitsForAllTasksOfAnArray) {
  const Answer good = cluster_.Ask({"run", "--gpus", "1", "--array", "0-2", "--", "sh", "-c",
                                    "exit $((TRAINYARD_ARRAY_TASK_ID == 7))"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, testing::ContainsRegex("job 1_.* completed"));
  const Answer bad = cluster_.Ask({"run", "--gpus", "1", "--array", "6-8", "--", "sh", "-c",
                                   "exit $((TRAINYARD_ARRAY_TASK_ID == 7 ? 5 : 0))"});
  EXPECT_EQ(bad.status, 5) << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("job 4_7 failed"));
  EXPECT_EQ(cluster_.Ask({"run", "--pty", "--gpus", "1", "--array", "0-1", "--", "sh"}).status, 2);
}

TEST_F(AttachTest, RunPassesItsInputOn) {
  const Answer cat = Shell(fmt::format("echo hello | {} run --gpus 1 -- cat", TRAINYARD_PROGRAM));
  EXPECT_EQ(cat.status, 0) << cat.err;
  EXPECT_EQ(cat.out, "hello\n");
  const Answer long_one =
      Shell(fmt::format("seq 1 50000 | {} run --gpus 1 -- md5sum | cut -c1-32", TRAINYARD_PROGRAM));
  EXPECT_EQ(long_one.out, Shell("seq 1 50000 | md5sum | cut -c1-32").out) << long_one.err;
  EXPECT_EQ(cluster_.Ask({"run", "--gpus", "1", "--", "cat"}).out, "") << "nothing to read";
}

TEST_F(AttachTest, RunLabelsTheLinesOfAllWorkers) {
  const Answer answer = cluster_.Ask(
      {"run", "--gpus", "3", "--label", "--", "sh", "-c", "echo one; printf \"two of $RANK\""});
  EXPECT_EQ(answer.status, 0) << answer.err;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(answer.out, HasSubstr(fmt::format("{0}: one\n", rank)));
    EXPECT_THAT(answer.out, HasSubstr(fmt::format("{0}: two of {0}\n", rank)));
  }
}

TEST_F(AttachTest, SignalsReachTheWorkers) {
  const std::string script =
      "trap 'echo usr1' USR1; trap 'echo int; exit 9' INT; echo ready; " + Until("never");
  Program run(With({"run", "--gpus", "1", "--", "sh", "-c", script}), cluster_.Path("run.out"),
              cluster_.Path("run.err"));
  const auto shows = [&](const std::string& text) {
    return Eventually(
        [&] { return ReadAll(cluster_.Path("run.out")).find(text) != std::string::npos; });
  };
  ASSERT_TRUE(shows("ready"));
  run.Signal(SIGUSR1);
  EXPECT_TRUE(shows("usr1"));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(seconds(120)), 9);
  EXPECT_EQ(cluster_.StateOf(1), v1::FAILED);
  const int job = Start({"--gpus", "1"}, "trap 'echo hangup' HUP");
  EXPECT_THAT(cluster_.Ask({"signal", "--signal", "KILL", std::to_string(job)}).err,
              HasSubstr("expected HUP, INT"));
  EXPECT_EQ(cluster_.Ask({"signal", "--signal", "SIGHUP", std::to_string(job)}).out,
            fmt::format("job {} has got SIGHUP\n", job));
  EXPECT_TRUE(Eventually([&] {
    return cluster_.Ask({"logs", std::to_string(job)}).out.find("hangup\n") != std::string::npos;
  }));
  EXPECT_THAT(cluster_.StatusOf(job).changed_by(), HasSubstr("sent SIGHUP by"));
  Touch("go");
}

TEST_F(AttachTest, ASecondCtrlCWithinASecondCancels) {
  Program run(
      With({"run", "--gpus", "1", "--", "sh", "-c", "trap '' INT; echo ready; " + Until("never")}),
      cluster_.Path("run.out"), cluster_.Path("run.err"));
  ASSERT_TRUE(Eventually([&] { return ReadAll(cluster_.Path("run.out")) == "ready\n"; }));
  EXPECT_TRUE(Eventually([&] {  // on a slow machine a second may have passed between the two
    run.Signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    run.Signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    return ReadAll(cluster_.Path("run.err")).find("is cancelled") != std::string::npos;
  }));
  EXPECT_EQ(run.Wait(seconds(120)), 128 + SIGINT);
  EXPECT_EQ(cluster_.StateOf(1), v1::CANCELLED);
}

// ------------------------------------------------------------------------------------- containers

// The same of jobs in containers.
class AttachInContainerTest : public AttachTest {
 protected:
  void SetUp() override { TRAINYARD_NEEDS_CONTAINERS(podman_); }
  [[nodiscard]] Words InContainer(Words words) const {
    const Words options = podman_.Options();
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  // A job whose first worker has begun.
  [[nodiscard]] int StartInside(const Words& options = {"--gpus", "1"},
                                const std::string& first = "true") const {
    const int job = Start(InContainer(options), first + "; echo begun");
    EXPECT_TRUE(LogHas(job, "begun\n"));
    return job;
  }
  [[nodiscard]] bool LogHas(int job, const std::string& text, int rank = 0) const {
    const Words logs = {"logs", "--rank", std::to_string(rank), std::to_string(job)};
    return Eventually([&] { return cluster_.Ask(logs).out.find(text) != std::string::npos; });
  }
  // Whether a process of that command line is there.
  [[nodiscard]] bool Runs(const std::string& command) const {
    const auto all = cluster_.Processes();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& process) { return process.second.starts_with(command); });
  }

  const Podman podman_{cluster_};
};

TEST_F(AttachInContainerTest, ACommandRunsInTheWorkersContainer) {
  const int job = StartInside({"--gpus", "2", "--env", "FLAVOUR=sweet"});
  EXPECT_TRUE(LogHas(job, "begun\n", 1)) << "each worker has a container of its own";
  const Answer answer = Attach(job, {"--rank", "1"},
                               {"sh", "-c",
                                "cat /etc/image; echo $FLAVOUR $RANK; ls $TRAINYARD_SOCKET; "
                                "echo err >&2; exit 7"});
  EXPECT_EQ(answer.status, 7);
  EXPECT_EQ(answer.out, "of trainyard's test\nsweet 1\n/run/trainyard/job.sock\n");
  EXPECT_EQ(answer.err, "err\n");
  EXPECT_EQ(Attach(job, {}, {"sh", "-c", "kill -9 $$"}).status, 137);
  EXPECT_EQ(Attach(job, {}, {"cat"}).out, "") << "there is nothing to read";
  const Answer missing = Attach(job, {}, {"no-such-program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_THAT(missing.err, HasSubstr("no-such-program"));
  const Answer piped =
      Shell(fmt::format("seq 1 200000 | {} attach {} -- md5sum", TRAINYARD_PROGRAM, job));
  EXPECT_EQ(piped.out, Shell("seq 1 200000 | md5sum").out) << piped.err;
  const Answer much = Shell(
      fmt::format("{} attach {} -- seq 1 400000 | (sleep 1; md5sum)", TRAINYARD_PROGRAM, job));
  EXPECT_EQ(much.out, Shell("seq 1 400000 | md5sum").out) << much.err;
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
}

TEST_F(AttachInContainerTest, ACommandIsInTheControlGroupAndTheNamespacesOfItsWorker) {
  const std::string where = "echo in $(readlink /proc/self/ns/*) $(cat /proc/self/cgroup)";
  const int job = StartInside({"--gpus", "1"}, where);
  const std::string log = cluster_.Ask({"logs", std::to_string(job)}).out;
  const Answer answer = Attach(job, {}, {"sh", "-c", where});
  EXPECT_TRUE(answer.out.starts_with("in ")) << answer.err;
  EXPECT_THAT(log, HasSubstr(answer.out));
  EXPECT_THAT(Shell(where).out, Not(answer.out));
  Touch("go");
}

// As while an image is on its way.
TEST(AttachToContainerTest, AContainerThatHasNotStartedIsNamed) {
  LiveCluster cluster;
  const std::string podman = cluster.Path("podman");
  std::ofstream(podman) << "#!/bin/sh\n[ $1 != run ] || exec sleep 1000.75\n[ $1 != kill ]\n";
  std::filesystem::permissions(podman, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (cluster.Path("") + ":" + path).c_str(), 1);
  cluster.Start();
  setenv("PATH", path.c_str(), 1);
  const int job = cluster.Submit({"--gpus", "1", "--container-image", "far"}, {"sleep", "1000"});
  ASSERT_TRUE(cluster.AwaitState(job, v1::RUNNING));
  const Answer answer = cluster.Ask({"attach", std::to_string(job), "--", "true"});
  EXPECT_EQ(answer.status, 1);
  EXPECT_THAT(answer.err, HasSubstr("the container of worker 0 of job 1 has not started yet"));
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(job)}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(job, v1::CANCELLED));
}

TEST_F(AttachInContainerTest, AShellHasATerminalInTheContainer) {
  const int job = StartInside({"--gpus", "1", "--env", "PS1=ready> "});
  Typist shell(With({"attach", std::to_string(job)}), 31, 97);
  ASSERT_TRUE(shell.Shows("ready> ")) << shell.screen();
  shell.Type("stty size; cat /etc/image\n");
  EXPECT_TRUE(shell.Shows("31 97")) << shell.screen();
  EXPECT_TRUE(shell.Shows("of trainyard's test")) << shell.screen();
  EXPECT_TRUE(HearsOfItsSize(shell));
  shell.Type("sleep 1000.25\n");
  EXPECT_TRUE(Eventually([&] { return Runs("sleep 1000.25"); }));
  shell.Type("\x03");
  EXPECT_TRUE(Eventually([&] { return !Runs("sleep 1000.25"); }));
  shell.Type("\x10\x11");  // podman's keys to leave what runs to itself
  shell.Type(
      "\x15"
      "echo still $((6 * 7)); exit 5\n");
  EXPECT_TRUE(shell.Shows("still 42")) << shell.screen();
  EXPECT_EQ(shell.Wait(), 5) << shell.screen();
  Touch("go");
}

TEST_F(AttachInContainerTest, RunPtyGivesATerminalInTheContainer) {
  Typist run(With(InContainer({"run", "--gpus", "2", "--quiet", "--pty"})), 33, 99,
             {"--", "sh", "-c",
              "if [ $RANK = 1 ]; then echo hidden; exit; fi; trap 'echo interrupted; exit 4' INT; "
              "echo ready; read line; stty size; cat /etc/image; echo got $line; sleep 1000"});
  ASSERT_TRUE(run.Shows("ready")) << run.screen();
  run.Type("this and that\n");
  EXPECT_TRUE(run.Shows("33 99")) << run.screen();
  EXPECT_TRUE(run.Shows("of trainyard's test")) << run.screen();
  EXPECT_TRUE(run.Shows("got this and that")) << run.screen();
  run.Type("\x03");
  EXPECT_TRUE(run.Shows("interrupted")) << run.screen();
  EXPECT_EQ(run.Wait(), 4) << run.screen();
  EXPECT_THAT(run.screen(), Not(HasSubstr("hidden")));
  EXPECT_THAT(cluster_.Ask({"logs", "1"}).out, HasSubstr("got this and that"));
  EXPECT_TRUE(Eventually([&] { return podman_.Containers().empty(); }));
}

TEST_F(AttachInContainerTest, SignalsReachWhatIsAttachedAndWhatIsNot) {
  const int job = StartInside({"--gpus", "1"}, "trap 'echo worker' USR1");
  Program attached(
      With({"attach", std::to_string(job), "--", "sh", "-c",
            "trap 'echo usr1' USR1; trap 'echo int; exit 9' INT; echo here; " + Until("never")}),
      cluster_.Path("a.out"), cluster_.Path("a.err"));
  const auto says = [&](const std::string& text) {
    return Eventually([&] { return ReadAll(cluster_.Path("a.out")) == text; });
  };
  ASSERT_TRUE(says("here\n"));
  EXPECT_EQ(cluster_.Ask({"signal", "--signal", "USR1", std::to_string(job)}).status, 0);
  EXPECT_TRUE(LogHas(job, "worker\n"));
  attached.Signal(SIGUSR1);
  EXPECT_TRUE(says("here\nusr1\n"));
  attached.Signal(SIGINT);
  EXPECT_EQ(attached.Wait(seconds(120)), 9);
  EXPECT_FALSE(Runs("sh -c trap 'echo usr1'")) << "it is left in the container";
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
}

TEST_F(AttachInContainerTest, WhatIsAttachedEndsWithTheJobAndItsContainer) {
  const int job = StartInside();
  Program attached(
      With({"attach", std::to_string(job), "--", "sh", "-c", "echo here; exec sleep 1000.5"}),
      cluster_.Path("a.out"), cluster_.Path("a.err"));
  ASSERT_TRUE(Eventually([&] { return ReadAll(cluster_.Path("a.out")) == "here\n"; }));
  Touch("go");
  EXPECT_EQ(attached.Wait(seconds(300)), 137);
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED)) << "it is not the worse for it";
  EXPECT_FALSE(Runs("sleep 1000.5"));
  EXPECT_TRUE(Eventually([&] { return podman_.Containers().empty(); }));
}

}  // namespace
}  // namespace trainyard
