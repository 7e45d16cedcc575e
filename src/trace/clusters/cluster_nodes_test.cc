// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"
#include "support/trace_files.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::trace {
namespace {

std::string NodesError(std::string_view text) { return ClusterErrorOf("nodes.csv", text); }

// "name:type x GPUs, milli-CPUs, MiB" of each node.
std::string Shown(std::string_view text) {
  const Result<Cluster> cluster = ReadClusterText("nodes.csv", text);
  EXPECT_TRUE(cluster.ok()) << cluster.error().message;
  std::string shown;
  for (const NodeSpec& node : cluster.value().nodes) {
    shown += node.name + ":" + node.gpu_type + "x" + std::to_string(node.gpus) + "," +
             std::to_string(node.capacity.milli_cpus) + "," +
             std::to_string(node.capacity.memory_mib) + " ";
  }
  return shown;
}

TEST(NodeListTest, ReadsOpenb) {
  EXPECT_EQ(Shown("sn,cpu_milli,memory_mib,gpu,model\n"
                  "openb-node-0227,32000,262144,0,\n"
                  "openb-node-0228,128000,786432,8,G3\n"
                  "openb-node-0229,96000,786432,2,V100M32\n"),
            "openb-node-0228:G3x8,128000,786432 openb-node-0229:V100M32x2,96000,786432 ");
}

TEST(NodeListTest, ReadsSpotGpuInAnyOrderOfColumns) {
  const std::string expected = "0:GPU-series-1x4,192000,0 3:A100-SXM4-80GBx8,128000,0 ";
  EXPECT_EQ(Shown("gpu_model,gpu_capacity_num,cpu_num,node_name\n"
                  "GPU-series-1,4,192,0\nA100-SXM4-80GB,8,128,3\n"),
            expected);
  EXPECT_EQ(Shown("node_name,gpu_model,gpu_capacity_num,cpu_num\n"
                  "0,GPU-series-1,4.0,192\n3,A100-SXM4-80GB,8,128\n"),
            expected);
}

TEST(NodeListTest, ReadsPaiWithAndWithoutHeader) {
  const std::string rows = "82e5af,T4,96,512,2\n82e5b0,CPU,64,64,0\n82e5b1,MISC,96,512,2\n";
  const std::string expected = "82e5af:T4x2,96000,524288 82e5b1:MISCx2,96000,524288 ";
  EXPECT_EQ(Shown(rows), expected);
  EXPECT_EQ(Shown("machine,gpu_type,cap_cpu,cap_mem,cap_gpu\n" + rows), expected);
  EXPECT_EQ(Shown("a,CPU,64,64,0\n" + rows), expected) << "no header, whose names must differ";
}

TEST(NodeListTest, TheNameIsThatOfTheFile) {
  EXPECT_EQ(ReadClusterText("nodes.csv", "a,T4,96,512,2\n").value().name, "nodes");
  const ScratchFolder folder;
  EXPECT_EQ(ReadCluster(folder.Write("spec.tar.gz", folder.Gzip("a,T4,96,512,2\n"))).value().name,
            "spec");
}

TEST(NodeListTest, ColumnsWithoutANameAreNotRead) {
  const auto cluster = ReadClusterText("nodes.csv",
                                       ",machine,gpu_type,cap_cpu,cap_mem,cap_gpu,\n"
                                       "0,a,T4,96,512,2,\n1,b,T4,96,512,2.0,\n");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes.size(), 2U);
}

TEST(NodeListTest, OtherFilesAreNamed) {
  EXPECT_TRUE(Says(NodesError("sn;gpu;model;cpu_milli;memory_mib\na;2;T4;96000;512\n"),
                   "nodes.csv:1: fields separated by ';'; expected commas"));
  EXPECT_TRUE(Says(NodesError("num_switch\tnum_node_p_switch\n1\t2\n"), "separated by tabs"));
  EXPECT_TRUE(Says(NodesError("# nodes\nsn,gpu,model,cpu_milli,memory_mib\n"),
                   "nodes.csv:1: a comment line before the header"));
  EXPECT_TRUE(Says(NodesError("{\"sn\":1}\n"), "nodes.csv:1: JSON; expected a CSV table"));
}

TEST(NodeListTest, AllBadRowsAreTold) {
  const std::string error = NodesError("a,T4,96,512,2\nb,T4,96,512,65\na,T4,96,512,2\n");
  EXPECT_TRUE(error.starts_with(
      "nodes.csv:2: column 'cap_gpu' is '65'; expected an integer from 0 to 64\n"))
      << error;
  EXPECT_TRUE(error.ends_with("nodes.csv:3: node 'a' is already in line 1; expected a new one"))
      << error;
}

TEST(NodeListTest, RefusesBadRows) {
  const std::string good = "a,T4,96,512,2\n";
  EXPECT_EQ(NodesError(good + "a,T4,96,512,2\n"),
            "nodes.csv:2: node 'a' is already in line 1; expected a new one");
  EXPECT_EQ(NodesError(good + "b,T4,96,512,65\n"),
            "nodes.csv:2: column 'cap_gpu' is '65'; expected an integer from 0 to 64");
  EXPECT_EQ(NodesError(good + "b,T4,96,512,0.5\n"),
            "nodes.csv:2: column 'cap_gpu' is '0.5'; expected an integer from 0 to 64");
  EXPECT_EQ(NodesError(good + "b,T4,-1,512,1\n"),
            "nodes.csv:2: column 'cap_cpu' is '-1'; expected a number from 0 to 1000000000");
  EXPECT_EQ(NodesError(good + ",T4,1,512,1\n"),
            "nodes.csv:2: column 'machine' is ''; expected the name of the node");
  std::string types;
  for (int i = 0; i < 65; ++i) {
    types += "n" + std::to_string(i) + ",T" + std::to_string(i) + ",96,512,2\n";
  }
  EXPECT_EQ(NodesError(types),
            "nodes.csv:65: column 'gpu_type' is 'T64'; expected at most 64 different types");
  EXPECT_EQ(NodesError("a,CPU,96,512,0\n"), "nodes.csv: no node with GPUs; expected one at least");
}

}  // namespace
}  // namespace trainyard::trace
