// SPDX-License-Identifier: Apache-2.0
// What a cluster of real processes measures of its jobs, from the jobs' own lines to a simulation:
// the commands of docs/profiling.md, "Measured on the cluster".
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::HasSubstr;

// Tells of an iteration every 20 ms; ends when the file is there.
constexpr const char* kIterating = R"(
import os, socket, sys, time
told = socket.socket(socket.AF_UNIX)
told.connect(os.environ["TRAINYARD_SOCKET"])
done = 0
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
    done += 1
    told.sendall(b"progress %d\n" % done)
)";

// The median of a measure; 0: there is none.
double MedianOf(const v1::ProfilesReply& profiles, const std::string& measure) {
  for (const v1::MeasuredSamples& row : profiles.measured()) {
    if (row.measure() == measure) {
      return row.median();
    }
  }
  return 0;
}

// The words stand behind a command of its own, which Ask does not know.
Answer Profiles(const LiveCluster& cluster, Words words) {
  words.insert(words.begin(), "profiles");
  words.insert(words.end(), {"--controller", cluster.address()});
  return cluster.Run(words);
}

std::string MessageOf(const Answer& answer) {
  EXPECT_NE(answer.status, 0);
  return answer.err;
}

TEST(MeasuredTest, WhatJobsDoIsMeasuredShownExportedComparedAndSimulated) {
  const std::string profile = "model,batch_size,gpus,iterations_per_second\nnet,64,1,500\n";
  LiveCluster cluster({.policy = {"--policy", "fifo", "--measure-window", "0.5"}});
  std::ofstream(cluster.Path("rates.csv")) << profile;
  std::ofstream(cluster.Path("iterating.py")) << kIterating;
  cluster.options().policy.insert(cluster.options().policy.end(),
                                  {"--profiles", cluster.Path("rates.csv")});
  cluster.Start();
  EXPECT_THAT(Profiles(cluster, {"show"}).out, HasSubstr("nothing has been measured yet"));
  EXPECT_THAT(MessageOf(Profiles(cluster, {"export", cluster.Path("none")})),
              HasSubstr("the cluster has measured nothing yet"));
  EXPECT_FALSE(std::filesystem::exists(cluster.Path("none")));

  const std::string end = cluster.Path("end");
  for (int i = 0; i < 3; ++i) {
    cluster.Submit({"--gpus", "1", "--model", "net", "--batch-size", "64", "--iterations", "1e6"},
                   {"python3", cluster.Path("iterating.py"), end});
  }
  const auto profiles = [&] {
    v1::ProfilesReply reply;
    const Answer answer = Profiles(cluster, {"show", "--json"});
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(answer.out, &reply).ok()) << answer.err;
    return reply;
  };
  ASSERT_TRUE(Eventually([&] {
    const v1::ProfilesReply reply = profiles();
    return std::all_of(reply.measured().begin(), reply.measured().end(),
                       [](const auto& row) { return row.counts(); }) &&
           MedianOf(reply, "rate") > 0 && MedianOf(reply, "start_s") > 0;
  }));
  const v1::ProfilesReply before = profiles();
  EXPECT_LT(MedianOf(before, "rate"), 50);
  const std::string shown = Profiles(cluster, {"show"}).out;
  EXPECT_THAT(shown, HasSubstr("rate"));
  EXPECT_THAT(shown, HasSubstr("start_s"));
  EXPECT_THAT(Profiles(cluster, {"diff"}).out, HasSubstr("500"));

  // A controller that is killed knows what it had found.
  cluster.KillController();
  std::ofstream(end) << '\n';
  cluster.StartController();
  const v1::ProfilesReply after = profiles();
  EXPECT_GE(after.measured_size(), before.measured_size());

  ASSERT_EQ(Profiles(cluster, {"export", cluster.Path("measured")}).status, 0);
  const std::string file = ReadAll(cluster.Path("measured/measured.csv"));
  EXPECT_TRUE(file.starts_with("model,batch_size,gpu_type,gpus,measure,value\n")) << file;
  EXPECT_THAT(Profiles(cluster, {"diff", cluster.Path("measured")}).out, HasSubstr("+0.0 %"));

  // 500 iterations per second would be 2 seconds, and a start costs some.
  std::ofstream(cluster.Path("trace.csv"))
      << "job_id,submit_time,model,batch_size,gpus,iterations\na,0,net,64,1,1000\n";
  const auto jct = [&](Words more) {
    Words words = {"simulate",   cluster.Path("trace.csv"), "--cluster", "1x2", "--policy", "fifo",
                   "--profiles", cluster.Path("rates.csv"), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = cluster.Run(words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    const std::size_t at = answer.out.find("\"makespan\"");
    EXPECT_NE(at, std::string::npos) << answer.out;
    return at == std::string::npos ? 0 : std::stod(answer.out.substr(answer.out.find(':', at) + 1));
  };
  EXPECT_LT(jct({}), 6);
  const double measured = 1000 / MedianOf(after, "rate") + MedianOf(after, "start_s");
  EXPECT_NEAR(jct({"--measured", cluster.Path("measured")}), measured, 0.1 * measured);
}

TEST(MeasuredTest, BadFoldersAreNamed) {
  const LiveCluster cluster;
  EXPECT_THAT(MessageOf(cluster.Run({"profiles", "diff", cluster.Path("no"), cluster.Path("no")})),
              HasSubstr(cluster.Path("no")));
  std::ofstream(cluster.Path("bad.csv"))
      << "model,batch_size,gpu_type,gpus,measure,value\nnet,64,,1,speed,2\n";
  for (const Words& command :
       {Words{"profiles", "diff", cluster.Path("bad.csv"), cluster.Path("bad.csv")},
        Words{"simulate", TRAINYARD_SOURCE_DIR "/data/example_trace.csv", "--cluster", "2x8",
              "--policy", "fifo", "--measured", cluster.Path("bad.csv")},
        Words{"controller", "--check-config", "--cluster", "2x8", "--measured",
              cluster.Path("bad.csv")}}) {
    EXPECT_THAT(MessageOf(cluster.Run(command)),
                HasSubstr("bad.csv:2: column 'measure' is 'speed'; expected one of rate"));
  }
  EXPECT_THAT(MessageOf(cluster.Run({"profiles"})), HasSubstr("subcommand"));
  EXPECT_NE(cluster.Run({"profiles", "export"}).status, 0);
}

}  // namespace
}  // namespace trainyard
