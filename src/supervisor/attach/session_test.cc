// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attach/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "io/file.h"
#include "supervisor/worker.h"
#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

using Clock = Session::Clock;

// A session with a script of the shell at its other end.
class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  SessionTest() = default;
  SessionTest(const SessionTest&) = delete;
  SessionTest& operator=(const SessionTest&) = delete;

  void Start(const std::string& script, bool terminal = false, bool logged = false) {
    std::optional<SessionStreams> streams =
        terminal ? SessionStreams::Terminal() : SessionStreams::Pipes();
    ASSERT_TRUE(streams);
    const int all = streams->their_input.get();
    const std::variant<pid_t, StartFailure> started =
        StartWorker({.command = {"/bin/sh", "-c", script},
                     .environment = {"PATH=/usr/bin:/bin"},
                     .log = folder_.path() + "/unused",
                     .streams = {.input = all,
                                 .output = terminal ? all : streams->their_output.get(),
                                 .errors = terminal ? all : streams->their_errors.get(),
                                 .own_session = true,
                                 .terminal = terminal}});
    ASSERT_TRUE(std::holds_alternative<pid_t>(started));
    pid_ = std::get<pid_t>(started);
    io::Descriptor log;
    if (logged) {
      log = io::Descriptor(
          open((folder_.path() + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    }
    session_.emplace(std::move(*streams), pid_, std::move(log), Clock::now());
  }
  v1::AttachReply Call(v1::AttachRequest request) {
    v1::AttachOrder order;
    order.set_call(++calls_);
    *order.mutable_request() = std::move(request);
    session_->Take(order, Clock::now());
    for (int i = 0; i < 60'000; ++i) {
      Reap();
      for (const v1::AttachAnswer& answer : session_->Serve(Clock::now())) {
        EXPECT_EQ(answer.call(), calls_);
        return answer.reply();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  void Reap() {
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
      session_->End(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Clock::now());
      pid_ = 0;
    }
  }
  v1::AttachReply Give(std::uint64_t number, const std::string& text, bool ends = false) {
    v1::AttachRequest request;
    request.set_number(number);
    request.set_input(text);
    request.set_input_ends(ends);
    return Call(request);
  }
  v1::AttachReply Ask(std::uint64_t offset, std::uint64_t error_offset = 0) {
    v1::AttachRequest request;
    request.set_waits(true);
    request.set_offset(offset);
    request.set_error_offset(error_offset);
    return Call(request);
  }
  // All that comes until the end.
  std::string Output() {
    std::string text;
    while (true) {
      const v1::AttachReply reply = Ask(text.size());
      text += reply.output();
      if (reply.has_exit_code()) {
        exit_code_ = reply.exit_code();
        return text;
      }
    }
  }

  ScratchFolder folder_;
  std::optional<Session> session_;
  pid_t pid_ = 0;
  std::uint64_t calls_ = 0;
  int exit_code_ = -1;
};

TEST_F(SessionTest, ARepeatedCallGivesItsInputOnce) {
  Start("cat; exit 3");
  EXPECT_EQ(Give(1, "one ").number(), 1U);
  EXPECT_EQ(Give(1, "one ").number(), 1U);
  EXPECT_EQ(Give(3, "three ").number(), 1U) << "the second has not come";
  EXPECT_EQ(Give(2, "two").number(), 2U);
  EXPECT_EQ(Give(3, "", true).number(), 3U);
  EXPECT_EQ(Output(), "one two");
  EXPECT_EQ(exit_code_, 3);
}

TEST_F(SessionTest, OutputStaysUntilItHasArrived) {
  Start("printf abcdef; printf oops >&2; read line");
  v1::AttachReply reply;
  do {
    reply = Ask(0);
  } while (reply.output() != "abcdef" || reply.error_output() != "oops");
  EXPECT_EQ(Ask(0).output(), "abcdef") << "it has not been told that it has";
  EXPECT_EQ(Ask(4, 4).output(), "ef");
  EXPECT_EQ(Ask(0, 0).offset(), 4U) << "what has arrived is gone";
}

TEST_F(SessionTest, AProcessWaitsForItsClient) {
  Start("head -c 3000000 /dev/zero; echo done >&2");
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(session_->Serve(Clock::now()).empty());
  }
  EXPECT_TRUE(Ask(1).error_output().empty()) << "it is not done";
  EXPECT_EQ(Output().size(), 3'000'000U);
}

TEST_F(SessionTest, InputThatDoesNotFitIsNotTaken) {
  Start("exec sleep 1000");
  std::uint64_t number = 0;
  const std::string piece(std::size_t{16} << 10, 'x');
  while (Give(number + 1, piece).number() == number + 1) {
    ASSERT_LT(++number, 100U);
  }
  EXPECT_GT(number, 3U);
}

TEST_F(SessionTest, ATerminalWithALogKeepsNobodyWaiting) {
  Start("seq 1 200000", true, true);
  std::size_t rounds = 0;
  while (pid_ > 0 && ++rounds < 600'000) {
    EXPECT_TRUE(session_->Serve(Clock::now()).empty());
    Reap();
  }
  EXPECT_EQ(pid_, 0) << "it has ended though nobody has looked";
  const v1::AttachReply reply = Ask(0);
  EXPECT_GT(reply.offset(), 1'000'000U) << "the oldest is in the log only";
  const std::string log = io::ReadBytes(folder_.path() + "/log").value();
  EXPECT_TRUE(log.starts_with("1\r\n2\r\n"));
  EXPECT_EQ(log.substr(reply.offset(), reply.output().size()), reply.output());
}

TEST_F(SessionTest, CtrlCAndTheSizeReachTheTerminal) {
  Start("trap 'stty size; exit 7' INT; echo ready; while :; do sleep 0.05; done", true);
  std::string screen;
  while (screen.find("ready") == std::string::npos) {
    screen += Ask(screen.size()).output();
  }
  v1::AttachRequest size;
  size.set_rows(31);
  size.set_columns(97);
  Call(size);
  EXPECT_EQ(Give(1, "\x03").number(), 1U);
  while (exit_code_ < 0) {
    const v1::AttachReply reply = Ask(screen.size());
    screen += reply.output();
    exit_code_ = reply.has_exit_code() ? reply.exit_code() : -1;
  }
  EXPECT_NE(screen.find("31 97"), std::string::npos) << screen;
  EXPECT_EQ(exit_code_, 7);
}

TEST_F(SessionTest, SignalsGoToTheMarkedProcessesWhereThereIsAMark) {
  const std::string mark = "SESSION_TEST=" + folder_.path();
  Start(
      mark +
      " setsid sh -c \"trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep 0.05; done\"; "
      "echo survived");
  session_->SetMark(mark);
  std::string text;
  while (text.find("ready") == std::string::npos) {
    text += Ask(text.size()).output();
  }
  v1::AttachRequest signal;
  signal.set_signal(SIGUSR1);
  Call(signal);
  while (exit_code_ < 0) {
    const v1::AttachReply reply = Ask(text.size());
    text += reply.output();
    exit_code_ = reply.has_exit_code() ? reply.exit_code() : -1;
  }
  EXPECT_EQ(text, "ready\nusr1\nsurvived\n");
}

TEST_F(SessionTest, AtTheEndAllCallsAreAnswered) {
  Start("exec sleep 1000");
  v1::AttachOrder order;
  order.set_call(5);
  order.mutable_request()->set_waits(true);
  session_->Take(order, Clock::now());
  EXPECT_TRUE(session_->Serve(Clock::now()).empty());
  const Session::Answers answers = session_->Close();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.front().call(), 5U);
  EXPECT_TRUE(answers.front().reply().gone());
}

TEST_F(SessionTest, AClientThatDoesNotCallIsGone) {
  Start("exec sleep 1000");
  EXPECT_FALSE(session_->IsForsaken(Clock::now() + std::chrono::seconds(50)));
  EXPECT_TRUE(session_->IsForsaken(Clock::now() + std::chrono::seconds(70)));
}

}  // namespace
}  // namespace trainyard::supervisor
