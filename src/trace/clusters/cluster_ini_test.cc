// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kBody =
    "racks = 1\nservers_per_rack = 2\ngpus_per_server = 8\ncpus_per_server = 24\n"
    "dram_per_server = 500\nsspeed_per_server = 300\n";

std::string IniError(const std::string& text) {
  const Result<Cluster> cluster = ParseClusterIni("c.ini", text);
  return cluster.ok() ? "no error" : cluster.error().message;
}
std::string Cluster1(std::string_view rest) {
  return "[CLUSTER]\n" + std::string(kBody) + std::string(rest);
}

TEST(ClusterIniTest, ReadsAllAmounts) {
  const ScratchFolder folder;
  const Result<Cluster> read = ReadCluster(
      folder.Write("small.ini", "# two servers\r\n[SCHEDULER]\r\npolicy = FIFO\r\n\r\n" +
                                    Cluster1("; unused\nnet_per_server : 40\n")));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Cluster& cluster = read.value();
  EXPECT_EQ(cluster.name, "small");
  ASSERT_EQ(cluster.nodes.size(), 2U);
  EXPECT_EQ(cluster.nodes[1].name, "n1");
  EXPECT_EQ(cluster.nodes[1].gpus, 8);
  EXPECT_EQ(cluster.nodes[1].capacity,
            (Resources{.milli_cpus = 24000, .memory_mib = 512000, .storage_kbps = 300000}));
}

TEST(ClusterIniTest, RacksAreSwitchesAndNumberOn) {
  const Result<Cluster> read = ParseClusterIni(
      "c.ini",
      "[CLUSTER]\nracks=2\nservers_per_rack=3\ngpus_per_server=4\ncpus_per_server=0\n"
      "dram_per_server=0\nsspeed_per_server=0\n");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().nodes.size(), 6U);
  EXPECT_EQ(read.value().nodes[2].switch_index, 0);
  EXPECT_EQ(read.value().nodes[3].switch_index, 1);
  EXPECT_EQ(read.value().nodes[5].name, "n5");
}

TEST(ClusterIniTest, AByteOrderMarkIsNoSection) {
  EXPECT_EQ(IniError("\xEF\xBB\xBF" + Cluster1("")), "no error");
}

TEST(ClusterIniTest, ComplainsWithFileAndLine) {
  EXPECT_EQ(IniError("racks = 1\n"), "c.ini:1: 'racks = 1' before any section; expected [CLUSTER]");
  EXPECT_EQ(IniError("[CLUSTR]\n"),
            "c.ini:1: '[CLUSTR]'; expected the section [CLUSTER] or [SCHEDULER]");
  EXPECT_EQ(IniError(Cluster1("racks = 2\n")), "c.ini:8: 'racks' is there twice; expected it once");
  EXPECT_EQ(IniError(Cluster1("[CLUSTER]\n")),
            "c.ini:8: the section [CLUSTER] is there twice; expected it once");
  EXPECT_EQ(IniError("[CLUSTER]\ngpus_per_server = 8.0\n"),
            "c.ini:2: 'gpus_per_server' is '8.0'; expected an integer from 1 to 64");
  EXPECT_EQ(IniError("[CLUSTER]\nracks\n"), "c.ini:2: 'racks'; expected key = number");
  EXPECT_EQ(IniError("[CLUSTER]\nracks = 1\n"),
            "c.ini: no 'servers_per_rack' in [CLUSTER]; expected a number");
  EXPECT_EQ(IniError("[CLUSTER]\nrack = 1\n").find("c.ini:2: unknown [CLUSTER] key 'rack'"), 0U);
}

}  // namespace
}  // namespace trainyard::trace
