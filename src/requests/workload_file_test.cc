// SPDX-License-Identifier: Apache-2.0
#include "requests/workload_file.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "live/jobs/job_request.h"
#include "support/scratch_folder.h"

namespace trainyard::requests {
namespace {

constexpr std::string_view kWorkloadHeader =
    "arch, depth, batch, workers, output_folder, master, port, arrival_time, cuda_device, "
    "start_iter, start_epoch, end_iter, end_epoch, node_size\n";

std::string AppOn(std::string_view devices, std::string_view arrival = "60") {
  return "vgg, 13, 256, 12, night, d1, 10000, " + std::string(arrival) + ", " +
         std::string(devices) + ", 0, 0, 500, 2, 1\n";
}

// d1 with 4 GPUs, d2 with 2.
v1::NodesReply TwoNodes() {
  v1::NodesReply nodes;
  for (const auto& [name, address, gpus] :
       {std::tuple{"d1", "10.0.0.1", 4}, {"d2", "10.0.0.2", 2}}) {
    v1::NodeStatus& node = *nodes.add_nodes();
    node.set_node(name);
    node.set_address(address);
    node.set_gpus(gpus);
  }
  return nodes;
}

std::string ClusterXml(std::initializer_list<std::string_view> workers) {
  std::string text = "<cluster_config>\n<master_config><master_ip>d1</master_ip></master_config>\n";
  for (const std::string_view worker : workers) {
    text += "<worker_config><worker_ip>" + std::string(worker) + "</worker_ip></worker_config>\n";
  }
  return text + "</cluster_config>\n";
}

// `xml` empty: without such a file.
Result<WorkloadFile> ReadApps(const std::string& csv, const std::string& xml = "") {
  const ScratchFolder folder;
  return ReadWorkloadFile(folder.Write("w.csv", csv), xml.empty() ? "" : folder.Write("c.xml", xml),
                          TwoNodes());
}

Result<WorkloadFile> AppsOn(std::string_view devices, const std::string& xml = "") {
  return ReadApps(std::string(kWorkloadHeader) + AppOn(devices), xml);
}

// "d1:0,1 d2:0" of the first app, or the error from the name of the file on.
std::string DevicesOf(const Result<WorkloadFile>& read) {
  if (!read.ok()) {
    return ErrorFrom(read.error().message.find("c.xml") == std::string::npos ? "w.csv" : "c.xml",
                     read);
  }
  std::string text;
  for (const v1::NodeGrant& there : read.value().apps.at(0).request.devices()) {
    text += (text.empty() ? "" : " ") + there.node();
    for (const int gpu : there.gpus()) {
      text += (gpu == there.gpus(0) ? ":" : ",") + std::to_string(gpu);
    }
  }
  return text;
}

std::map<std::string, std::string> ValuesOf(const WorkloadApp& app) {
  return {app.placeholders.begin(), app.placeholders.end()};
}

// The word that a command gets for this one, or the error.
std::string FilledWord(const std::string& word) {
  v1::LaunchSpec launch;
  launch.add_command(word);
  const Status status =
      FillPlaceholders({{"arch", "vgg"}, {"batch", "256"}, {"brace", "{batch}"}}, launch);
  return status.ok() ? launch.command(0) : status.error().message;
}

TEST(WorkloadFileTest, AnAppIsAJobThatItsUserCouldHaveSubmitted) {
  const auto read = AppsOn("{'d2':[0 1] 'd1':[3]}");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().apps.size(), 1U);
  EXPECT_TRUE(read.value().states_addresses);
  const WorkloadApp& app = read.value().apps[0];
  EXPECT_EQ(app.arrival, FromSeconds(60));
  EXPECT_EQ(app.line, 2);
  const v1::JobRequest& job = app.request;
  EXPECT_EQ(job.name(), "vgg13-line2");
  EXPECT_EQ(job.model(), "vgg13");
  EXPECT_EQ(job.gpus(), 3);
  EXPECT_EQ(job.batch_size(), 256);
  EXPECT_EQ(job.iterations(), 1000);
  EXPECT_EQ(job.loader_workers(), 12);
  EXPECT_EQ(job.launch().workers(), v1::LaunchSpec::PER_GPU);
  EXPECT_EQ(job.launch().command_size(), 0);
}

TEST(WorkloadFileTest, TheControllerTakesWhatComesOfIt) {
  Result<WorkloadFile> read = AppsOn("{'d2':[0 1] 'd1':[3]}");
  ASSERT_TRUE(read.ok());
  v1::JobRequest& job = read.value().apps[0].request;
  job.mutable_launch()->add_command("x");
  const Cluster cluster{.name = "lab",
                        .nodes = {{.name = "d1", .gpus = 4}, {.name = "d2", .gpus = 2}}};
  const auto draft = live::DraftOf(job, TimePoint{}, cluster);
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft.value().traits.devices,
            (Slices{{.node = NodeAt(0), .gpus = 0b1000}, {.node = NodeAt(1), .gpus = 3}}));
}

TEST(WorkloadFileTest, EveryNotationOfDevices) {
  EXPECT_EQ(DevicesOf(AppsOn("{'d2':[0 1] 'd1':[3]}")), "d1:3 d2:0,1");
  EXPECT_EQ(DevicesOf(AppsOn("[\"0 1\" \"1\"]")), "d1:0,1 d2:1");
  EXPECT_EQ(DevicesOf(AppsOn("\"0 3\"")), "d1:0,3");
  EXPECT_EQ(DevicesOf(AppsOn("2")), "d1:2");
}

TEST(WorkloadFileTest, TheClusterFileSaysWhichNodeIsTheFirstWorker) {
  const std::string turned = ClusterXml({"d2", "d1"});
  EXPECT_EQ(DevicesOf(AppsOn("[\"0 1\" \"3\"]", turned)), "d2:0,1 d1:3");
  EXPECT_EQ(DevicesOf(AppsOn("\"0 1\"", turned)), "d2:0,1");
  EXPECT_EQ(DevicesOf(AppsOn("{'d1':[3]}", turned)), "d1:3");
  EXPECT_EQ(DevicesOf(AppsOn("\"0 1\"", ClusterXml({"10.0.0.2"}))), "d2:0,1");
  EXPECT_EQ(DevicesOf(AppsOn("[\"0\" \"1\"]", ClusterXml({"", ""}))), "d1:0 d2:1");
}

TEST(WorkloadFileTest, OlderAndNewerFilesOfTorchloader) {
  const auto older = ReadApps(
      "arch, depth, batch, workers, output_folder, port, arrival_time, cuda_device, start_iter, "
      "start_epoch, end_iter, end_epoch\n"
      "googlenet, 1, 256, 6, test, 10000, 0, \"0 2\", 0, 0, 500, 1\n");
  EXPECT_EQ(DevicesOf(older), "d1:0,2");
  const auto newer = ReadApps(
      "arch, depth, batch, workers, output_folder, master, port, arrival_time, cuda_device, "
      "start_iter, start_epoch, end_iter, end_epoch, world_size\n"
      "resnet, 10, 256, 40, test, d3096, 5340, 1, \"1 0 2 3\", 0, 1, 500, 1, 4\n");
  EXPECT_EQ(DevicesOf(newer), "d1:0,1,2,3");
  const auto bare = ReadApps(
      "arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch\n"
      "vgg,13,256,12,0,\"0\",500,2\n");
  EXPECT_EQ(DevicesOf(bare), "d1:0");
  EXPECT_FALSE(bare.value().states_addresses);
  EXPECT_EQ(ValuesOf(bare.value().apps[0])["output"], "trace/app2_vgg13_256_12_1");
}

TEST(WorkloadFileTest, AppsComeInTheOrderOfTheirArrival) {
  const auto read = ReadApps(std::string(kWorkloadHeader) + AppOn("0", "20") + AppOn("1", "5.5") +
                             AppOn("2", "20"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<std::int64_t> lines;
  for (const WorkloadApp& app : read.value().apps) {
    lines.push_back(app.line);
  }
  EXPECT_EQ(lines, (std::vector<std::int64_t>{3, 2, 4}));
  EXPECT_EQ(read.value().apps[0].arrival, FromSeconds(5.5));
}

TEST(WorkloadFileTest, PlaceholdersAreWhatTheFileSays) {
  const auto read = AppsOn("{'d2':[0 1] 'd1':[3]}");
  ASSERT_TRUE(read.ok());
  const std::map<std::string, std::string> expected{{"arch", "vgg"},
                                                    {"depth", "13"},
                                                    {"model", "vgg13"},
                                                    {"batch", "256"},
                                                    {"workers", "12"},
                                                    {"batch_per_gpu", "85"},
                                                    {"workers_per_gpu", "4"},
                                                    {"world_size", "3"},
                                                    {"end_iter", "500"},
                                                    {"end_epoch", "2"},
                                                    {"iterations", "1000"},
                                                    {"output", "trace/night/app2_vgg13_256_12_3"},
                                                    {"app", "2"}};
  EXPECT_EQ(ValuesOf(read.value().apps[0]), expected);
}

// The digits at the end of a model are not all of its depth.
TEST(WorkloadFileTest, ArchAndDepthAreThoseOfTheFile) {
  const auto read = ReadApps(
      "arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch\n"
      "resnet_cifar10,20,256,12,0,\"0\",500,2\n");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ValuesOf(read.value().apps[0])["arch"], "resnet_cifar10");
  EXPECT_EQ(ValuesOf(read.value().apps[0])["depth"], "20");
  EXPECT_EQ(read.value().apps[0].request.model(), "resnet_cifar1020");
}

TEST(WorkloadFileTest, MistakesAreNamedByFileAndLine) {
  EXPECT_EQ(DevicesOf(AppsOn("{'d3':[0]}")),
            "w.csv:2: node 'd3' is not in cluster 'live'; expected one of d1, d2");
  EXPECT_EQ(DevicesOf(AppsOn("{'d2':[2]}")),
            "w.csv:2: GPU 2 of node 'd2' is asked for; expected one below 2");
  EXPECT_EQ(DevicesOf(AppsOn("\"0 0\"")).find("w.csv:2: column 'cuda_device' is '0 0'; expected"),
            0U);
  EXPECT_EQ(DevicesOf(ReadApps("arch,depth\n")).find("w.csv:1: no column 'batch'"), 0U);
  EXPECT_EQ(DevicesOf(AppsOn("0", ClusterXml({"d1", "d3"}))),
            "c.xml:4: unknown node of the cluster 'd3'; did you mean 'd1'?; known: d1, d2");
  EXPECT_EQ(DevicesOf(AppsOn("0", ClusterXml({"d1", "10.0.0.1"}))),
            "c.xml:4: worker '10.0.0.1' is node 'd1', as one before it is; expected one worker for "
            "each node");
  EXPECT_EQ(DevicesOf(AppsOn("0", "<cluster/>")),
            "c.xml:1: the root is <cluster>; expected <cluster_config>");
}

TEST(PlaceholderTest, StandAnywhereInAWord) {
  EXPECT_EQ(FilledWord("train.py"), "train.py");
  EXPECT_EQ(FilledWord("--name={arch}-{batch}x"), "--name=vgg-256x");
  EXPECT_EQ(FilledWord("{{\"lr\": {batch}}}"), "{\"lr\": 256}");
  EXPECT_EQ(FilledWord("{brace}"), "{batch}");  // what a file says is no placeholder
  EXPECT_EQ(FilledWord(""), "");
}

TEST(PlaceholderTest, StandInTheEnvironment) {
  v1::LaunchSpec launch;
  v1::EnvironmentVariable& variable = *launch.add_environment();
  variable.set_name("ARCH");
  variable.set_value("{arch}");
  EXPECT_TRUE(FillPlaceholders({{"arch", "vgg"}}, launch).ok());
  EXPECT_EQ(launch.environment(0).value(), "vgg");
}

TEST(PlaceholderTest, OtherBracesAreErrors) {
  EXPECT_EQ(FilledWord("{batsh}"),
            "'{batsh}': unknown placeholder 'batsh'; did you mean 'batch'?; known: arch, batch, "
            "brace; {{ and }} stand for braces");
  EXPECT_EQ(FilledWord("{}").find("'{}': unknown placeholder ''"), 0U);
  EXPECT_EQ(FilledWord("a{batch"),
            "'a{batch' has a '{' that belongs to no placeholder; expected one such as {batch}; {{ "
            "and }} stand for braces");
  EXPECT_EQ(FilledWord("a}").find("'a}' has a '}' that belongs to no placeholder"), 0U);
}

}  // namespace
}  // namespace trainyard::requests
