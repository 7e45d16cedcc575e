// SPDX-License-Identifier: Apache-2.0
// Notices of a real cluster: by a program that writes lines, and to an HTTP server.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::HasSubstr;

// Appends each POST to a file, and refuses the first few.
constexpr const char* kServer = R"(
import http.server, sys
left = int(sys.argv[3])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global left
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        left -= 1
        if left < 0:
            with open(sys.argv[2], 'a') as file:
                file.write(self.headers['Content-Type'] + ' ' + body + '\n')
        self.send_response(503 if left >= 0 else 200)
        self.end_headers()
    def log_message(self, *args):
        pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
)";

class NoticesTest : public testing::Test {
 protected:
  NoticesTest() {
    std::ofstream(cluster_.Path("hook")) << "#!/bin/sh\necho \"$TRAINYARD_EVENT $TRAINYARD_JOB "
                                            "$TRAINYARD_NAME $TRAINYARD_STATE\" >>"
                                         << cluster_.Path("said") << '\n';
    std::filesystem::permissions(cluster_.Path("hook"), std::filesystem::perms(0755));
  }
  ~NoticesTest() override { StopServer(); }
  NoticesTest(const NoticesTest&) = delete;
  NoticesTest& operator=(const NoticesTest&) = delete;

  void AddOptions(const Words& options) {
    Words& policy = cluster_.options().policy;
    policy.insert(policy.end(), options.begin(), options.end());
  }
  void StartServer(int refusals) {
    const std::string port = address_.substr(address_.rfind(':') + 1);
    const std::string refused = std::to_string(refusals);
    server_ = fork();
    if (server_ == 0) {
      execlp("python3", "python3", "-c", kServer, port.c_str(), cluster_.Path("posts").c_str(),
             refused.c_str(), nullptr);
      _exit(127);
    }
  }
  void StopServer() {
    if (server_ > 0) {
      kill(server_, SIGKILL);
      waitpid(server_, nullptr, 0);
    }
    server_ = 0;
  }
  [[nodiscard]] bool Says(const std::string& text, const char* file = "said") const {
    return Eventually([&] { return ReadAll(cluster_.Path(file)).find(text) != std::string::npos; });
  }

  LiveCluster cluster_;
  std::string address_ = FreeAddress();
  pid_t server_ = 0;
};

TEST_F(NoticesTest, AProgramIsToldWhatJobsAskFor) {
  AddOptions({"--notify-program", cluster_.Path("hook")});
  cluster_.Start();
  const int good =
      cluster_.Submit({"--gpus", "1", "--name", "good", "--notify", "begin,end,fail"}, {"true"});
  ASSERT_TRUE(cluster_.AwaitState(good, v1::COMPLETED));
  const int bad = cluster_.Submit({"--gpus", "1", "--name", "bad", "--notify", "end,fail"},
                                  {"sh", "-c", "exit 3"});
  const int silent = cluster_.Submit({"--gpus", "1", "--name", "silent"}, {"true"});
  ASSERT_TRUE(cluster_.AwaitState(silent, v1::COMPLETED));
  const int cancelled = cluster_.Submit(
      {"--gpus", "1", "--name", "gone", "--notify", "end,preempt"}, {"sleep", "1000"});
  ASSERT_TRUE(cluster_.AwaitState(cancelled, v1::RUNNING));
  ASSERT_EQ(cluster_.Ask({"requeue", std::to_string(cancelled)}).status, 0);
  EXPECT_TRUE(Says(fmt::format("preempt {} gone", cancelled)));
  ASSERT_EQ(cluster_.Ask({"cancel", std::to_string(cancelled)}).status, 0);
  EXPECT_TRUE(Says(fmt::format("end {} gone cancelled", cancelled)));
  const std::string said = ReadAll(cluster_.Path("said"));
  EXPECT_THAT(said,
              HasSubstr(fmt::format("begin {0} good running\nend {0} good completed\n", good)));
  EXPECT_THAT(said, HasSubstr(fmt::format("fail {} bad failed\n", bad)));
  EXPECT_EQ(said.find("silent"), std::string::npos);
  EXPECT_EQ(said.find("end " + std::to_string(bad)), std::string::npos) << "once, as a failure";
}

TEST_F(NoticesTest, AServerIsToldThoughItIsAwayAndTheControllerKilled) {
  AddOptions({"--notify-url", "http://" + address_ + "/hook?key=secret"});
  cluster_.Start();
  const int job =
      cluster_.Submit({"--gpus", "1", "--name", "a \"b\" \\", "--notify", "end"}, {"true"});
  ASSERT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  EXPECT_TRUE(Eventually([&] {
    return cluster_.Log("controller").find("has not arrived: 'curl' has ended") !=
           std::string::npos;
  }));
  cluster_.KillController();
  cluster_.StartController();
  StartServer(1);
  EXPECT_TRUE(Says(fmt::format("application/json {{\"job\":{}", job), "posts"));
  EXPECT_THAT(ReadAll(cluster_.Path("posts")), HasSubstr(R"("name":"a \"b\" \\","user":")"));
  EXPECT_THAT(ReadAll(cluster_.Path("posts")), HasSubstr(R"("event":"end")"));
  EXPECT_EQ(cluster_.Log("controller").find("secret"), std::string::npos);
}

// After a snapshot the journal before it says nothing again: the store must have what was on its
// way. It has no file of its own.
TEST_F(NoticesTest, WhatIsOnItsWayOutlivesAKillBehindASnapshot) {
  AddOptions({"--notify-url", "http://" + address_ + "/", "--snapshot-entries", "1"});
  cluster_.Start();
  std::vector<int> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(cluster_.Submit({"--gpus", "1", "--notify", "end"}, {"true"}));
    ASSERT_TRUE(cluster_.AwaitState(jobs.back(), v1::COMPLETED));
    cluster_.KillController();
    cluster_.StartController();
  }
  EXPECT_FALSE(std::filesystem::exists(cluster_.Path("controller/notices")));
  StartServer(0);
  for (const int job : jobs) {
    EXPECT_TRUE(Says(fmt::format("{{\"job\":{},", job), "posts")) << job;
  }
  cluster_.KillController();
  cluster_.StartController();
  const int last = cluster_.Submit({"--gpus", "1", "--notify", "end"}, {"true"});
  EXPECT_TRUE(Says(fmt::format("{{\"job\":{},", last), "posts"));
}

TEST_F(NoticesTest, TheFileOf020IsTakenOver) {
  AddOptions({"--notify-program", cluster_.Path("hook")});
  const std::string folder = cluster_.Path("controller/notices");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/program")
      << R"({"mark":-1,"keys":[]})" << '\n'
      << R"({"job":7,"name":"old","user":"ann","event":"end","time":1.5,"state":"failed",)"
      << R"("reason":"","at":1500000})" << '\n';
  cluster_.StartController();
  EXPECT_TRUE(Says("end 7 old failed"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/program"));
}

TEST_F(NoticesTest, UpTellsAndAJobIsToldWhereNobodyListens) {
  AddOptions({"--notify-program", cluster_.Path("hook")});
  cluster_.StartUp();
  const int job = cluster_.Submit({"--gpus", "1", "--name", "up", "--notify", "end"}, {"true"});
  EXPECT_TRUE(Says(fmt::format("end {} up completed", job)));
  EXPECT_THAT(cluster_.Ask({"submit", "--gpus", "1", "--notify", "noon", "--", "true"}).err,
              HasSubstr("expected begin, end, fail and preempt"));
}

TEST_F(NoticesTest, WithoutADestinationTheUserIsToldSo) {
  cluster_.Start();
  EXPECT_THAT(cluster_.Ask({"submit", "--gpus", "1", "--notify", "end", "--", "true"}).err,
              HasSubstr("notify has no effect: the controller was started without"));
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED)) << "or its supervisor is still to come";
}

}  // namespace
}  // namespace trainyard
