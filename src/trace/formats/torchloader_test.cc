// SPDX-License-Identifier: Apache-2.0
#include "trace/formats/torchloader.h"

#include <gtest/gtest.h>

#include "support/trace_files.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kTorchloaderHeader =
    "arch, depth, batch, workers, output_folder, master, port, arrival_time, cuda_device, "
    "start_iter, start_epoch, end_iter, end_epoch, node_size\n";

Result<Trace> TorchloaderTrace(std::string_view rows, const TraceOptions& options = {}) {
  return ReadText(std::string(kTorchloaderHeader).append(rows), options);
}

std::string TorchloaderError(std::string_view rows) {
  return ErrorOf(std::string(kTorchloaderHeader).append(rows));
}

std::string RowOn(std::string_view devices) {
  return "vgg, 13, 256, 12, test, d1, 10000, 60, " + std::string(devices) + ", 0, 0, 500, 2, 1\n";
}

Cluster TwoNodes() {
  return {.name = "lab", .nodes = {{.name = "d1", .gpus = 4}, {.name = "d2", .gpus = 2}}};
}

TEST(TorchloaderTest, ReadsARow) {
  const auto trace = TorchloaderTrace(RowOn("{'d2':[0 1] 'd1':[3]}"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "torchloader");
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "vgg13-line2");
  EXPECT_EQ(job.model, "vgg13");
  EXPECT_EQ(job.batch_size, 256);
  EXPECT_EQ(job.submit, AtSeconds(60));
  EXPECT_EQ(job.iterations, 1000);
  EXPECT_EQ(job.gpus, 3);
  EXPECT_EQ(job.traits->loader_workers, 12);
}

// All three notations, on the nodes of a cluster.
TEST(TorchloaderTest, ReadsEveryNotation) {
  auto trace = TorchloaderTrace(RowOn("{'d2':[0 1] 'd1':[3]}") + RowOn("[\"0 1\" \"1\"]") +
                                RowOn("\"0 1\"") + RowOn("2"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const Status bound = BindDevices(trace.value(), TwoNodes());
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  const auto devices = [&](std::size_t job) { return trace.value().jobs[job].traits->devices; };
  EXPECT_EQ(devices(0),
            (Slices{{.node = NodeAt(0), .gpus = 0b1000}, {.node = NodeAt(1), .gpus = 3}}));
  EXPECT_EQ(devices(1), (Slices{{.node = NodeAt(0), .gpus = 3}, {.node = NodeAt(1), .gpus = 2}}));
  EXPECT_EQ(devices(2), (Slices{{.node = NodeAt(0), .gpus = 3}}));
  EXPECT_EQ(devices(3), (Slices{{.node = NodeAt(0), .gpus = 4}}));
  EXPECT_EQ(trace.value().jobs[1].gpus, 3);
}

TEST(TorchloaderTest, TheOlderFileLacksTwoColumns) {
  const auto trace = ReadText(
      "arch, depth, batch, workers, output_folder, port, arrival_time, cuda_device, start_iter, "
      "start_epoch, end_iter, end_epoch\n"
      "googlenet, 1, 256, 6, test, 10000, 0, \"0 2\", 0, 0, 500, 1\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].model, "googlenet1");
}

TEST(TorchloaderTest, TheThirdFileStatesTheNumberOfDevices) {
  const auto trace = ReadText(
      "arch, depth, batch, workers, output_folder, master, port, arrival_time, cuda_device, "
      "start_iter, start_epoch, end_iter, end_epoch, world_size\n"
      "resnet, 10, 256, 40, test, d3096, 5340, 1, \"1 0 2 3\", 0, 1, 500, 1, 4\n"
      "resnet, 10, 256, 40, test, d3096, 5340, 2, \"1 0\", 0, 1, 500, 1, 1\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[0].gpus, 4);
  EXPECT_EQ(trace.value().jobs[0].traits->devices.at(0).gpus, 0b1111U);
  EXPECT_EQ(trace.value().jobs[1].gpus, 2);
  ASSERT_EQ(trace.value().remarks.size(), 1U);
  EXPECT_EQ(trace.value().remarks[0].line, 3);
  EXPECT_NE(trace.value().remarks[0].why.find("the devices count"), std::string::npos);
}

TEST(TorchloaderTest, AWorkloadSaysHowAppsAreStarted) {
  const ScratchFolder folder;
  const auto workload = ReadTorchloaderWorkload(
      folder.Write("w.csv", std::string(kTorchloaderHeader) + RowOn("\"0 1\"") + RowOn("2")));
  ASSERT_TRUE(workload.ok()) << workload.error().message;
  EXPECT_TRUE(workload.value().states_addresses);
  EXPECT_EQ(workload.value().trace.jobs.size(), 2U);
  ASSERT_EQ(workload.value().apps.size(), 2U);
  const TorchloaderApp& app = workload.value().apps[0];
  EXPECT_EQ(app.arch, "vgg");
  EXPECT_EQ(app.depth, 13);
  EXPECT_EQ(app.output_folder, "test");
  EXPECT_EQ(app.iterations_of_epoch, 500);
  EXPECT_EQ(app.epochs, 2);
  EXPECT_FALSE(ReadTorchloaderWorkload(folder.path() + "/none.csv").ok());
}

TEST(TorchloaderTest, BadRowsAreNamedByLine) {
  EXPECT_EQ(TorchloaderError(RowOn("{'d1':[0 0]}")),
            "t.csv:2: column 'cuda_device' is '{'d1':[0 0]}'; expected GPUs as {'node':[0 1] "
            "'other':[0 1]}, [\"0 1\" \"0 1\"] or \"0 1\", each GPU once, from 0 to 63");
  EXPECT_EQ(TorchloaderError(RowOn("\"0\"") + RowOn("{'d1':[0]"))
                .find("t.csv:3: column 'cuda_device' is '{'d1':[0]'; expected GPUs as"),
            0U);
  EXPECT_EQ(TorchloaderError(RowOn("\"\"")).find("t.csv:2: column 'cuda_device' is ''"), 0U);
  EXPECT_EQ(TorchloaderError("vgg, 13, 0, 12, test, d1, 10000, 60, 0, 0, 0, 500, 2, 1\n"),
            "t.csv:2: column 'batch' is '0'; expected an integer from 1 to 1000000000");
  EXPECT_EQ(TorchloaderError("vgg, 13, 8, 12, test, d1, 10000, -1, 0, 0, 0, 500, 2, 1\n"),
            "t.csv:2: column 'arrival_time' is '-1'; expected seconds from 0 to 9000000000");
}

TEST(TorchloaderTest, BadRowsCanBeSkipped) {
  const auto trace = TorchloaderTrace(RowOn("\"0\"") + RowOn("x"), {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().jobs.size(), 1U);
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_EQ(trace.value().skipped[0].line, 3);
}

TEST(TorchloaderTest, DevicesMustBeThoseOfTheCluster) {
  const auto error = [](std::string_view devices) {
    auto trace = TorchloaderTrace(RowOn(devices));
    const Status bound = BindDevices(trace.value(), TwoNodes());
    const std::string message = bound.ok() ? "no error" : bound.error().message;
    return message.substr(message.rfind('/') + 1);
  };
  EXPECT_EQ(error("{'d3':[0]}"),
            "t.csv:2: node 'd3' is not in cluster 'lab'; expected one of d1, d2");
  EXPECT_EQ(error("{'d2':[0 2]}"),
            "t.csv:2: GPU 2 of node 'd2' is asked for; expected one below 2");
  EXPECT_EQ(error("[\"0\" \"0\" \"0\"]"),
            "t.csv:2: node number 3 is not in cluster 'lab'; expected one of d1, d2");
  EXPECT_EQ(error("{'d2':[0] 'd2':[1]}"),
            "t.csv:2: node 'd2' is named twice; expected each node once");
}

TEST(TorchloaderTest, UnknownColumnsAreRefused) {
  const auto trace =
      ReadText("arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch,node_sizes\n");
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().message.find("unknown column 'node_sizes'; did you mean 'node_size'?"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::trace
