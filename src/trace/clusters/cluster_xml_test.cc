// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kPublished = R"(<cluster_config>
  <master_config>
    <master_ip>10.0.0.1</master_ip>
    <master_port>6000</master_port>
    <authkey>x</authkey>
  </master_config>
  <worker_config>
    <worker_ip></worker_ip>
    <worker_rpc_port>6321</worker_rpc_port>
    <worker_socket_port>7070</worker_socket_port>
  </worker_config>
</cluster_config>
)";

std::string XmlError(std::string_view text, const NodeSizes& sizes = {.gpus = 4}) {
  const std::string path = "c.xml";
  const auto cluster = ParseClusterXml(path, text, sizes);
  return cluster.ok() ? "no error" : cluster.error().message;
}

std::string Worker(std::string_view keys) {
  return "<cluster_config>\n<worker_config>" + std::string(keys) +
         "</worker_config>\n</cluster_config>\n";
}

TEST(ClusterXmlTest, ReadsThePublishedFile) {
  const auto cluster = ParseClusterXml("c.xml", kPublished, {.gpus = 4, .cpus = 24});
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  ASSERT_EQ(cluster.value().nodes.size(), 1U);
  EXPECT_EQ(cluster.value().nodes[0].name, "n0");
  EXPECT_EQ(cluster.value().nodes[0].gpus, 4);
  EXPECT_EQ(cluster.value().nodes[0].capacity.milli_cpus, 24000);
}

TEST(ClusterXmlTest, WorkersMaySayMore) {
  const auto cluster = ParseClusterXml("c.xml",
                                       "<cluster_config><worker_config><worker_ip>d1</worker_ip>"
                                       "<gpus>8</gpus></worker_config><worker_config>"
                                       "<worker_ip>d2</worker_ip><cpus>6</cpus></worker_config>"
                                       "</cluster_config>",
                                       {.gpus = 2, .cpus = 4});
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().nodes[0].name, "d1");
  EXPECT_EQ(cluster.value().nodes[0].gpus, 8);
  EXPECT_EQ(cluster.value().nodes[1].gpus, 2);
  EXPECT_EQ(cluster.value().nodes[1].capacity.milli_cpus, 6000);
}

TEST(ClusterXmlTest, MistakesAreNamedByLine) {
  EXPECT_EQ(XmlError("<cluster_config>\n<worker_config>\n</cluster_config>").find("c.xml:3: "), 0U);
  EXPECT_EQ(XmlError("<other/>"), "c.xml:1: the root is <other>; expected <cluster_config>");
  EXPECT_EQ(XmlError("<cluster_config/>"),
            "c.xml:1: no <worker_config>; expected one for each node");
  EXPECT_EQ(XmlError(Worker("<worker_ipp>d1</worker_ipp>"))
                .find("c.xml:2: unknown element 'worker_ipp'; did you mean 'worker_ip'?"),
            0U);
  EXPECT_EQ(XmlError(Worker("<worker_socket_port>70700</worker_socket_port>")),
            "c.xml:2: <worker_socket_port> is '70700'; expected an integer from 1 to 65535");
  EXPECT_EQ(XmlError(Worker("<gpus>4</gpus><gpus>4</gpus>")),
            "c.xml:2: <gpus> is there twice; expected it once");
  EXPECT_EQ(XmlError(Worker(""), {}),
            "c.xml:2: no number of GPUs; expected <gpus>, or FILE:gpus=N,cpus=N");
}

TEST(ClusterXmlTest, IsReadByItsEndingWithSizesBehindIt) {
  const ScratchFolder folder;
  const std::string path = folder.Write("dl_cluster_config.xml", kPublished);
  const auto cluster = ReadCluster(path + ":gpus=4,cpus=36");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster.value().name, "dl_cluster_config");
  EXPECT_EQ(cluster.value().nodes[0].capacity.milli_cpus, 36000);
  EXPECT_EQ(ReadCluster(path + ":gpu=4").error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(ReadCluster(path).error().message.find("dl_cluster_config.xml:7: no number of GPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::trace
