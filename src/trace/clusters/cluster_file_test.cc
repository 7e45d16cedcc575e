// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_file.h"
#include "support/reference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/trace_files.h"
#include "trace/clusters/cluster_formats.h"

namespace trainyard::trace {
namespace {

std::string TomlError(std::string_view text) { return ClusterErrorOf("c.toml", text); }
std::string CsvError(std::string_view row) {
  return ClusterErrorOf(
      "c.csv",
      "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n" + std::string(row));
}

TEST(ShortFormTest, GivesNodesOfOneSize) {
  const auto cluster = ReadCluster("16x8");
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster.value().name, "16x8");
  ASSERT_EQ(cluster.value().nodes.size(), 16U);
  EXPECT_EQ(cluster.value().total_gpus(), 128);
  EXPECT_EQ(cluster.value().nodes[15].name, "n15");
  EXPECT_EQ(cluster.value().nodes[15].capacity, Resources{});
}

TEST(ShortFormTest, GivesNodesOfSeveralTypes) {
  const auto cluster = ReadCluster("2x8:A100,1x4:V100-32G,1x1");
  ASSERT_TRUE(cluster.ok());
  const std::vector<NodeSpec>& nodes = cluster.value().nodes;
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(cluster.value().total_gpus(), 21);
  EXPECT_EQ(nodes[1].gpu_type, "A100");
  EXPECT_EQ(nodes[2].name, "n2");
  EXPECT_EQ(nodes[2].gpu_type, "V100-32G");
  EXPECT_EQ(nodes[3].gpu_type, "");
  EXPECT_TRUE(IsShortForm("2x8:A100,1x4"));
  for (const char* const path : {"2x8:", "2x8,", "2x8:a/b", "2x8.toml", "c.xml:gpus=4", ""}) {
    EXPECT_FALSE(IsShortForm(path)) << path;
  }
}

TEST(ShortFormTest, RefusesImpossibleSizes) {
  for (const std::string spec : {"0x8", "16x0", "16x65", "100001x8", "-1x8", "99999x1,2x1"}) {
    const auto cluster = ReadCluster(spec);
    ASSERT_FALSE(cluster.ok());
    EXPECT_EQ(cluster.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(cluster.error().message,
              "cluster '" + spec + "'; expected 1 to 100000 nodes of 1 to 64 GPUs");
  }
}

TEST(ReadClusterTest, SaysWhatASpecCanBe) {
  EXPECT_EQ(ReadCluster("16x").error().message,
            "16x: no such file; expected a cluster file or a short form such as 16x8");
}

TEST(PublishedClusterTest, ReadsItsOneRow) {
  const auto cluster = ReadClusterText(
      "n4g2.csv",
      "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,3,4,64,256");
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster.value().name, "n4g2");
  ASSERT_EQ(cluster.value().nodes.size(), 6U);
  const NodeSpec& last = cluster.value().nodes[5];
  EXPECT_EQ(last.name, "n5");
  EXPECT_EQ(last.gpus, 4);
  EXPECT_EQ(last.switch_index, 1);
  EXPECT_EQ(last.capacity, (Resources{.milli_cpus = 64'000, .memory_mib = 262'144}));
  EXPECT_EQ(cluster.value().nodes[2].switch_index, 0);
}

TEST(PublishedClusterTest, RefusesMoreOrLessThanOneRow) {
  EXPECT_EQ(CsvError(""), "c.csv:1: no row after the header; expected one");
  EXPECT_EQ(CsvError("1,2,4,64,256\n1,2,4,64,256\n"),
            "c.csv:3: a second row; expected one row only");
}

TEST(PublishedClusterTest, RefusesAMissingColumn) {
  EXPECT_EQ(ClusterErrorOf("c.csv", "num_switch,num_node_p_switch\n1,2\n"),
            "c.csv:1: no column 'num_gpu_p_node'; the columns are 'num_switch', "
            "'num_node_p_switch'");
}

TEST(PublishedClusterTest, RefusesBadNumbers) {
  EXPECT_EQ(CsvError("0,2,4,64,256"),
            "c.csv:2: column 'num_switch' is '0'; expected an integer from 1 to 100000");
  EXPECT_EQ(CsvError("1,2,65,64,256"),
            "c.csv:2: column 'num_gpu_p_node' is '65'; expected an integer from 1 to 64");
  EXPECT_EQ(CsvError("1,2,4,-1,256"),
            "c.csv:2: column 'num_cpu_p_node' is '-1'; expected a number from 0 to 1000000000");
  EXPECT_EQ(CsvError("1000,1000,4,64,256"), "c.csv:2: 1000000 nodes; expected at most 100000");
}

TEST(TomlClusterTest, ReadsAllKeys) {
  const auto cluster =
      ReadClusterText("c.toml",
                      "[cluster]\nname = \"lab\"\ncheckpoint_interval = 600\n"
                      "[[nodes]]\ncount = 2\ngpus = 8\ngpu_type = \"a\"\ncpus = 64\n"
                      "memory_gb = 0.5\nswitch = 3\n"
                      "[[nodes]]\ngpus = 4\nname = \"big\"\n"
                      "[[nodes]]\ngpus = 2\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().name, "lab");
  EXPECT_EQ(cluster.value().checkpoint_interval, FromSeconds(600));
  ASSERT_EQ(cluster.value().nodes.size(), 4U);
  const NodeSpec& first = cluster.value().nodes[0];
  EXPECT_EQ(first.name, "n0");
  EXPECT_EQ(first.gpus, 8);
  EXPECT_EQ(first.gpu_type, "a");
  EXPECT_EQ(first.capacity, (Resources{.milli_cpus = 64'000, .memory_mib = 512}));
  EXPECT_EQ(first.switch_index, 3);
  EXPECT_EQ(cluster.value().nodes[2].name, "big0");
  EXPECT_EQ(cluster.value().nodes[3].name, "n2");
}

TEST(TomlClusterTest, ReadsCachesAndBandwidths) {
  const auto cluster = ReadClusterText(
      "c.toml",
      "[[nodes]]\ngpus = 8\ncache_gb = 1.5\nremote_mb_per_s = 250\n[[nodes]]\ngpus = 8\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes[0].cache_mib, 1536);
  EXPECT_EQ(cluster.value().nodes[0].remote_kbps, 250'000);
  EXPECT_EQ(cluster.value().nodes[1].cache_mib, 0);
  EXPECT_EQ(cluster.value().nodes[1].remote_kbps, 0);
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = 8\ncache_gb = -1\n"),
            "c.toml:3: 'cache_gb' is -1; expected a number from 0 to 1000000000");
}

TEST(TomlClusterTest, TakesItsNameFromTheFileWhereItGivesNone) {
  EXPECT_EQ(ReadClusterText("lab.toml", "[[nodes]]\ngpus = 1\n").value().name, "lab");
}

TEST(TomlClusterTest, SortsFailuresByTime) {
  const auto cluster = ReadClusterText("c.toml",
                                       "[[nodes]]\ncount = 2\ngpus = 1\n"
                                       "[[failures]]\nnode = \"n1\"\ndown = 100.5\nup = 500\n"
                                       "[[failures]]\nnode = \"n0\"\ndown = 200\ndrain = true\n"
                                       "[[failures]]\nnode = \"n1\"\ndown = 10\nup = 20\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  std::string changes;
  for (const NodeChange& change : cluster.value().changes) {
    changes += std::to_string(Index(change.node)) + (change.up ? " up " : " down ") +
               std::to_string(change.at.time_since_epoch().count()) + "; ";
  }
  EXPECT_EQ(changes,
            "1 down 10000000; 1 up 20000000; 1 down 100500000; 0 down 200000000; 1 up 500000000; ");
}

TEST(TomlClusterTest, ReadsLabels) {
  const Result<Cluster> cluster = ParseClusterToml(
      "c.toml", "[[nodes]]\ncount = 2\ngpus = 4\nlabels = [\"nvlink\", \"rack=2\"]\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes[1].labels, (std::vector<std::string>{"nvlink", "rack=2"}));
  const auto error = [](const std::string& labels) {
    return TomlError("[[nodes]]\ngpus = 8\nlabels = " + labels + "\n");
  };
  EXPECT_EQ(error("\"nvlink\""),
            "c.toml:3: 'labels' is no list; expected texts, such as [\"nvlink\"]");
  EXPECT_EQ(error("[\"a\", []]"),
            "c.toml:3: 'labels' has an entry that is no text; expected such as [\"nvlink\"]");
  EXPECT_EQ(error("[\"a&b\"]"),
            "c.toml:3: label 'a&b'; expected letters, digits and the signs . _ - : / =");
  EXPECT_EQ(error("[\"a\", \"a\"]"), "c.toml:3: label 'a' is there twice; expected each once");
}

TEST(TomlClusterTest, ReadsPartitions) {
  const Result<Cluster> cluster = ParseClusterToml("c.toml", R"(
[[nodes]]
count = 5
gpus = 4
[[partitions]]
name = "debug"
nodes = ["n[0-1]", "n4", "n1"]
default = true
max_gpus = 2
max_time = "1-12:00:00"
default_time = 600
default_cpus = "4/gpu"
default_memory = "1.5G/node"
[[partitions]]
name = "all"
max_time = "90m"
[[partitions]]
name = "none"
nodes = []
)");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().partitions,
            (std::vector<Partition>{{.name = "debug",
                                     .has_all_nodes = false,
                                     .nodes = {"n0", "n1", "n4"},
                                     .is_default = true,
                                     .most_gpus = 2,
                                     .longest = std::chrono::hours(36),
                                     .default_time = std::chrono::minutes(10),
                                     .default_cpus = {.milli = 4000, .per = Per::kGpu},
                                     .default_memory = {.mib = 1536, .per = Per::kNode}},
                                    {.name = "all", .longest = std::chrono::minutes(90)},
                                    {.name = "none", .has_all_nodes = false}}));
}

TEST(TomlClusterTest, RefusesBadPartitions) {
  const auto error = [](const std::string& partitions) {
    return TomlError("[[nodes]]\ngpus = 8\ncount = 2\n" + partitions);
  };
  EXPECT_EQ(error("[[partitions]]\nnodes = [\"n0\"]\n"),
            "c.toml:4: [[partitions]]: no 'name'; expected that of a queue");
  EXPECT_EQ(error("[[partitions]]\nname = \"a\"\nnodes = [\"n[0-2]\"]\n"),
            "c.toml:4: [[partitions]]: partition 'a' has node 'n2', which the cluster has not; "
            "expected one of its nodes");
  EXPECT_EQ(error("[[partitions]]\nname = \"a\"\nnodes = \"n0\"\n"),
            "c.toml:6: 'nodes' is no list; expected texts, such as [\"n[0-3]\", \"v0\"]");
  EXPECT_EQ(
      error("[[partitions]]\nname = \"a\"\n[[partitions]]\nname = \"a\"\n"),
      "c.toml:6: [[partitions]]: there are two partitions 'a'; expected another name for one");
  EXPECT_EQ(
      error("[[partitions]]\nname = \"a\"\ndefault = true\n"
            "[[partitions]]\nname = \"b\"\ndefault = true\n"),
      "c.toml:7: [[partitions]]: partitions 'a' and 'b' are both the default; expected one at "
      "most");
  EXPECT_EQ(
      error("[[partitions]]\nname = \"a\"\ndefault_memory = \"much\"\n"),
      "c.toml:6: 'much' is no amount; expected memory for the whole job (64G), or for each of "
      "its nodes (128G/node) or GPUs (16G/gpu); units K, M, G and T");
  EXPECT_EQ(error("[[partitions]]\nname = \"a\"\nmax_time = \"soon\"\n"),
            "c.toml:6: 'soon' is no time; expected 90m, 2h, 1-12:00:00 or seconds, more than 0");
  EXPECT_EQ(error("[[partitions]]\nname = \"a\"\nmax_time = \"1h\"\ndefault_time = \"2h\"\n"),
            "c.toml:4: [[partitions]]: partition 'a' has default_time 2h00m; expected at most its "
            "max_time of 1h00m");
}

TEST(TomlClusterTest, RefusesUnknownKeys) {
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = 8\ngpu_typ = \"a\"\n"),
            "c.toml:3: unknown [[nodes]] key 'gpu_typ'; did you mean 'gpu_type'?; known: count, "
            "gpus, gpu_type, cpus, memory_gb, switch, cache_gb, remote_mb_per_s, name, "
            "host, labels, tmp_gb");
  EXPECT_EQ(TomlError("[[node]]\ngpus = 8\n"),
            "c.toml:1: unknown top-level key 'node'; did you mean 'nodes'?; known: cluster, "
            "nodes, gpu_types, partitions, licenses, failures");
  EXPECT_EQ(TomlError("[cluster]\nnam = \"x\"\n"),
            "c.toml:2: unknown [cluster] key 'nam'; did you mean 'name'?; known: name, "
            "checkpoint_interval");
}

TEST(TomlClusterTest, RefusesBadValues) {
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = 65\n"),
            "c.toml:2: 'gpus' is 65; expected an integer from 1 to 64");
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = \"8\"\n"),
            "c.toml:2: 'gpus' is '8'; expected an integer from 1 to 64");
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = 2.5\n"),
            "c.toml:2: 'gpus' is 2.5; expected an integer from 1 to 64");
  EXPECT_EQ(TomlError("[[nodes]]\ncount = 2\n"),
            "c.toml:1: [[nodes]]: no 'gpus'; expected the GPUs of a node");
  EXPECT_EQ(TomlError("[[nodes]]\ngpus = 1\ncpus = -1\n"),
            "c.toml:3: 'cpus' is -1; expected a number from 0 to 1000000000");
  EXPECT_EQ(TomlError("[cluster]\ncheckpoint_interval = nan\n"),
            "c.toml:2: 'checkpoint_interval' is nan; expected a number from 0 to 9000000000");
  EXPECT_EQ(TomlError("[cluster]\nname = 5\n"), "c.toml:2: 'name' is 5; expected a text");
  EXPECT_EQ(TomlError("nodes = 5\n"), "c.toml:1: 'nodes' is no list of tables; expected [[nodes]]");
  EXPECT_EQ(TomlError("cluster = 5\n"), "c.toml:1: 'cluster' is no table; expected [cluster]");
}

constexpr std::string_view kTwoTypes =
    "[[nodes]]\ngpus = 8\ngpu_type = \"V100\"\n[[nodes]]\ngpus = 4\ngpu_type = \"A100\"\n";

TEST(TomlClusterTest, ReadsTheSpeedsOfGpuTypes) {
  const Result<Cluster> cluster = ParseClusterToml(
      "c.toml", std::string(kTwoTypes) + "[[gpu_types]]\nname = \"A100\"\nspeed = 2.5\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes[1].gpu_type, "A100");
  EXPECT_EQ(cluster.value().SpeedOf("A100"), 2.5);
  EXPECT_EQ(cluster.value().SpeedOf("V100"), 1);
}

TEST(TomlClusterTest, RefusesBadGpuTypes) {
  const std::string types = std::string(kTwoTypes) + "[[gpu_types]]\n";
  EXPECT_EQ(TomlError(types + "speed = 1\n"),
            "c.toml:7: [[gpu_types]]: no 'name'; expected a 'gpu_type' of nodes");
  EXPECT_EQ(TomlError(types + "name = \"A100\"\n"),
            "c.toml:7: [[gpu_types]]: no 'speed'; expected a number, such as 1");
  EXPECT_EQ(TomlError(types + "name = \"A100\"\nspeed = 0\n"),
            "c.toml:9: 'speed' is 0; expected a number from 0.001 to 1000");
  EXPECT_EQ(TomlError(types + "name = \"H100\"\nspeed = 2\n"),
            "c.toml:8: no node has GPUs of type 'H100'; expected one of: A100, V100");
  const std::string one = "name = \"A100\"\nspeed = 2\n";
  EXPECT_EQ(TomlError(types + one + "[[gpu_types]]\n" + one),
            "c.toml:11: a second 'A100'; expected one for each");
}

TEST(TomlClusterTest, RefusesTooManyNodes) {
  EXPECT_EQ(TomlError("[[nodes]]\ncount = 60000\ngpus = 1\n[[nodes]]\ncount = 60000\ngpus = 1\n"),
            "c.toml:4: [[nodes]]: more than 100000 nodes; expected fewer");
}

TEST(TomlClusterTest, RefusesTwoNodesOfOneName) {
  EXPECT_EQ(TomlError("[[nodes]]\ncount = 11\ngpus = 1\n[[nodes]]\nname = \"n1\"\ngpus = 1\n"),
            "c.toml:4: [[nodes]]: a second node 'n10'; expected another 'name'");
}

TEST(TomlClusterTest, RefusesAClusterWithoutNodes) {
  EXPECT_EQ(TomlError("[cluster]\n"), "c.toml: no nodes; expected a [[nodes]] at least");
}

TEST(TomlClusterTest, RefusesBadFailures) {
  const std::string nodes = "[[nodes]]\ncount = 2\ngpus = 1\n[[failures]]\n";
  EXPECT_EQ(TomlError(nodes + "down = 1\n"),
            "c.toml:4: [[failures]]: no 'node'; expected the name of a node");
  EXPECT_EQ(TomlError(nodes + "node = \"n1\"\n"),
            "c.toml:4: [[failures]]: no 'down'; expected a time in seconds");
  EXPECT_EQ(TomlError(nodes + "node = \"n2\"\ndown = 1\n"),
            "c.toml:5: no node 'n2'; expected one of 'n0' to 'n1'");
  EXPECT_EQ(TomlError(nodes + "node = \"n1\"\ndown = -1\n"),
            "c.toml:6: 'down' is -1; expected a number from 0 to 9000000000");
  EXPECT_EQ(TomlError(nodes + "node = \"n1\"\ndown = 5\nup = 5\n"),
            "c.toml:7: the node is up before it is down; expected 'up' after 'down'");
}

TEST(TomlClusterTest, RefusesOverlappingFailuresOfANode) {
  const std::string nodes = "[[nodes]]\ngpus = 1\n[[failures]]\nnode = \"n0\"\ndown = 100\n";
  const std::string again = "[[failures]]\nnode = \"n0\"\ndown = 200\nup = 300\n";
  constexpr auto kOverlap =
      ": [[failures]]: node 'n0' is down already at that time; expected failures of a node one "
      "after the other";
  EXPECT_EQ(TomlError(nodes + again), std::string("c.toml:6") + kOverlap);
  EXPECT_EQ(TomlError(nodes + "up = 200\n" + again), std::string("c.toml:7") + kOverlap);
  EXPECT_EQ(TomlError(nodes + "up = 199\n" + again), "no error");
}

TEST(TomlClusterTest, SaysWhereTheTomlBreaks) {
  const std::string error = TomlError("[[nodes]]\ngpus = \n");
  EXPECT_TRUE(error.starts_with("c.toml:2: not TOML: ")) << error;
}

TEST(TomlClusterTest, ReportsAHeaderThatTomlPlusPlusAssertsAgainst) {
  const std::string error = TomlError("[[nodes]]\ngpus = 8\n[[[nodes]]]\n");
  EXPECT_TRUE(error.starts_with("c.toml:3: not TOML: ")) << error;
}

TEST(TomlClusterTest, RefusesWhatIsNoText) {
  EXPECT_EQ(TomlError(std::string_view("[[nodes]]\n\0", 11)),
            "c.toml:2: a NUL byte; expected text");
}

TEST(PublishedClusterTest, ReadsAllPublishedFiles) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string specs = Reference() + "/data/elasticflow/cluster_specs";
  for (const auto& file : std::filesystem::directory_iterator(specs)) {
    const auto cluster = ReadCluster(file.path().string());
    EXPECT_TRUE(cluster.ok()) << cluster.error().message;
  }
  const auto cluster = ReadCluster(specs + "/n64g8.csv");
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster.value().nodes.size(), 64U);
  EXPECT_EQ(cluster.value().nodes[63].switch_index, 1);
}

TEST(ClusterTomlTest, NodesMayHaveTheNamesOfTheirHosts) {
  const Result<Cluster> cluster =
      ReadClusterText("c.toml",
                      "[[nodes]]\nhost = \"gpu01\"\ngpus = 8\n[[nodes]]\nhost = "
                      "\"gpu07.example\"\ngpus = 4\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes[0].name, "gpu01");
  EXPECT_EQ(cluster.value().nodes[1].name, "gpu07.example");
  const Result<Cluster> wrong =
      ReadClusterText("c.toml", "[[nodes]]\nhost = \"gpu01\"\ncount = 2\ngpus = 8\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("'host' beside 'name' or 'count'"), std::string::npos);
  for (const char* const key : {"host", "name"}) {
    const auto list =
        ReadClusterText("c.toml", fmt::format("[[nodes]]\n{} = \"n[0-1]\"\ngpus = 8\n", key));
    ASSERT_FALSE(list.ok());
    EXPECT_NE(list.error().message.find("'n[0-1]'; expected a name without blanks"),
              std::string::npos)
        << list.error().message;
  }
}

}  // namespace
}  // namespace trainyard::trace
