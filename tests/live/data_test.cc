// SPDX-License-Identifier: Apache-2.0
// Copies of data sets on agents, fetched by the real rsync.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DataTest : public testing::Test {
 protected:
  // The home of a data set with that much in it; its first file has its name.
  std::string MakeHome(const std::string& name, std::size_t mib) {
    const fs::path home = cluster_.Path("store/" + name);
    fs::create_directories(home / "images");
    std::ofstream(home / "name") << name << '\n';
    std::ofstream(home / "images/all") << std::string(mib << 20, 'x');
    return home.string();
  }
  // A job that writes down where its data are and what is in them.
  [[nodiscard]] int SubmitReader(const std::string& data, const Words& options = {}) {
    Words words{"--gpus", "1", "--data-set", data};
    words.insert(words.end(), options.begin(), options.end());
    return cluster_.SubmitWorker(
        words, "say read \"$TRAINYARD_DATA_DIR\" \"$(cat \"$TRAINYARD_DATA_DIR/name\")\"");
  }
  // "FOLDER CONTENT" of the job's only reading.
  [[nodiscard]] std::string ReadBy(int job) {
    const std::vector<WorkerLine> lines = cluster_.LinesOf(job, "read");
    return lines.size() == 1 ? lines[0].rest : fmt::format("{} lines", lines.size());
  }
  [[nodiscard]] std::string CopyOf(const std::string& name, int node = 0) {
    return cluster_.Path(
        fmt::format("nodes/{}/data/whole/{}/files", cluster_.node_name(node), name));
  }
  [[nodiscard]] Words HeldBy(int node) {
    Words names;
    const v1::NodeStatus status = cluster_.NodeStatus(node);
    for (const v1::DataSet& set : status.data_sets()) {
      names.push_back(set.name());
    }
    return names;
  }

  LiveCluster cluster_{{.nodes = 1, .agent = {"--data-cache", "20MB"}}};
};

TEST_F(DataTest, ASetIsFetchedOnceAndSurvivesItsAgent) {
  cluster_.Start();
  const std::string home = MakeHome("pets", 2);
  const int first = SubmitReader("pets=" + home);  // its size is found
  ASSERT_TRUE(cluster_.AwaitState(first, v1::COMPLETED));
  EXPECT_EQ(ReadBy(first), CopyOf("pets") + " pets");
  EXPECT_THAT(HeldBy(0), ElementsAre("pets"));
  EXPECT_THAT(cluster_.Ask({"nodes"}).out, HasSubstr("3/20 MiB: pets"));
  cluster_.KillAgent(0);
  fs::rename(home, home + "-away");  // nobody can fetch it again
  cluster_.StartAgent(0);
  const int second = SubmitReader("pets=" + home + ":3");
  ASSERT_TRUE(cluster_.AwaitState(second, v1::COMPLETED)) << cluster_.StatusOf(second).reason();
  EXPECT_EQ(ReadBy(second), CopyOf("pets") + " pets");
}

TEST_F(DataTest, UnusedSetsGoForOthersAndUsedOnesStay) {
  cluster_.Start();
  const std::string until =
      fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster_.Path("shared/go"));
  const int user =
      cluster_.SubmitWorker({"--gpus", "1", "--data-set", "used=" + MakeHome("used", 8)}, until);
  ASSERT_TRUE(cluster_.AwaitState(user, v1::RUNNING));
  for (const std::string name : {"old", "new"}) {
    const int reader = SubmitReader(name + "=" + MakeHome(name, 8));
    ASSERT_TRUE(cluster_.AwaitState(reader, v1::COMPLETED));
    EXPECT_EQ(ReadBy(reader), CopyOf(name) + " " + name);
  }
  EXPECT_THAT(HeldBy(0), ElementsAre("new", "used"));
  EXPECT_FALSE(fs::exists(CopyOf("old")));
  EXPECT_TRUE(fs::exists(CopyOf("used")));
  const std::string large = MakeHome("large", 15);  // beside what is used there is no room
  const int at_home = SubmitReader("large=" + large);
  ASSERT_TRUE(cluster_.AwaitState(at_home, v1::COMPLETED));
  EXPECT_EQ(ReadBy(at_home), large + " large");
  std::ofstream(cluster_.Path("shared/go")) << '\n';
  EXPECT_TRUE(cluster_.AwaitState(user, v1::COMPLETED));
}

TEST_F(DataTest, AHalfFetchedSetIsGoneOnWith) {
  cluster_.options().agent = {"--data-cache", "20MB", "--data-rate", "100KB"};
  cluster_.Start();
  const int job = SubmitReader("pets=" + MakeHome("pets", 8));
  const std::string part = cluster_.Path("nodes/n0/data/begun/pets/files");
  ASSERT_TRUE(Eventually([&] {
    return cluster_.StatusOf(job).reason().starts_with("fetches data set pets onto n0, ") &&
           fs::exists(part + "/images");
  })) << cluster_.StatusOf(job).reason();
  EXPECT_EQ(cluster_.StateOf(job), v1::STARTING);
  EXPECT_THAT(HeldBy(0), IsEmpty());
  cluster_.KillAgent(0);
  cluster_.options().agent = {"--data-cache", "20MB"};
  cluster_.StartAgent(0);
  ASSERT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(ReadBy(job), CopyOf("pets") + " pets");
  EXPECT_EQ(fs::file_size(CopyOf("pets") + "/images/all"), std::size_t{8} << 20);
  EXPECT_FALSE(fs::exists(part));
  EXPECT_EQ(cluster_.StatusOf(job).attempt(), 1U) << "the fetch is no failure";
}

TEST_F(DataTest, ASetThatIsNotThereFailsItsJobWithTheReason) {
  cluster_.Start();
  const std::string home = cluster_.Path("nowhere");
  const int job = SubmitReader("pets=" + home + ":5");
  ASSERT_TRUE(cluster_.AwaitState(job, v1::FAILED));
  EXPECT_THAT(cluster_.StatusOf(job).reason(),
              testing::AllOf(HasSubstr("data set 'pets' cannot be fetched onto n0: rsync: "),
                             HasSubstr(home), HasSubstr("No such file or directory")));
  EXPECT_EQ(cluster_.StatusOf(job).exit_code(), 126);
  const Answer unknown =
      cluster_.Ask({"submit", "--gpus", "1", "--data-set", "pets=" + home, "--", "true"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("its size in MiB behind it"));
}

// With the option of placements a job goes where its data are, also after restarts; the cluster
// file says nothing of caches.
TEST(DataLocalityTest, JobsGoWhereTheirDataAre) {
  for (const std::string locality : {"1", "0"}) {
    LiveCluster cluster(
        {.policy = {"--policy", "fifo", "--placement", "consolidated:locality=" + locality},
         .agent = {"--data-cache", "20MB", "--data-rate", "1MB"}});
    cluster.Start();
    const fs::path home = cluster.Path("store/pets");
    fs::create_directories(home);
    std::ofstream(home / "a") << std::string(2U << 20, 'a');
    const std::string until =
        fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster.Path("shared/go"));
    const int filler = cluster.SubmitWorker({"--gpus", "2"}, until);
    ASSERT_TRUE(cluster.AwaitState(filler, v1::RUNNING));
    ASSERT_EQ(cluster.StatusOf(filler).grants(0).node(), "n0");
    const Words with_data{"--gpus", "1", "--data-set", "pets=" + home.string()};
    const auto node_of_next = [&] {
      const int job = cluster.SubmitWorker(with_data, "sleep 0.1");
      EXPECT_TRUE(cluster.AwaitLines(job, "start", 1));
      EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
      return fs::exists(cluster.Path("nodes/n0/logs/" + std::to_string(job) + "-1")) ? "n0" : "n1";
    };
    EXPECT_STREQ(node_of_next(), "n1");
    std::ofstream(cluster.Path("shared/go")) << '\n';
    ASSERT_TRUE(cluster.AwaitState(filler, v1::COMPLETED));
    if (locality == "0") {
      EXPECT_STREQ(node_of_next(), "n0");
      continue;
    }
    EXPECT_STREQ(node_of_next(), "n1");
    cluster.KillController();
    cluster.KillAgent(1);
    cluster.StartController();
    cluster.StartAgent(1);
    ASSERT_TRUE(Eventually([&] { return cluster.NodeStatus(1).data_sets_size() == 1; }));
    EXPECT_STREQ(node_of_next(), "n1");
    EXPECT_FALSE(fs::exists(cluster.Path("nodes/n0/data/whole/pets")));
  }
}

TEST_F(DataTest, WithoutRoomJobsReadAtHome) {
  cluster_.options().agent = {};
  cluster_.Start();
  const std::string home = MakeHome("pets", 1);
  const int job = SubmitReader("pets=" + home);
  ASSERT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(ReadBy(job), home + " pets");
  EXPECT_FALSE(fs::exists(cluster_.Path("nodes/n0/data")));
}

}  // namespace
}  // namespace trainyard
