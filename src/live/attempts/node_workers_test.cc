// SPDX-License-Identifier: Apache-2.0
// Jobs with a stated number of workers on each node.
#include <gtest/gtest.h>

#include <string>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

v1::ClientRequest WithWorkers(int gpus, int workers_per_node) {
  v1::ClientRequest request;
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_gpus(gpus);
  job.mutable_launch()->add_command("train");
  job.mutable_launch()->set_workers(v1::LaunchSpec::PER_NODE);
  job.mutable_launch()->set_workers_per_node(workers_per_node);
  return request;
}

TEST_F(LiveWorldTest, RanksGoOnFromNodeToNodeWhateverTheirGpus) {
  Hello(10, "a");
  Hello(11, "b");
  Heard(10);
  Heard(11);
  ASSERT_EQ(ErrorOf(WithWorkers(3, 5)), "");  // two GPUs there, and one here
  const v1::StartAttempt first = Heard(10).back().start();
  const v1::StartAttempt second = Heard(11).back().start();
  EXPECT_EQ(first.gpus_size(), 2);
  EXPECT_EQ(second.gpus_size(), 1);
  EXPECT_EQ(first.first_rank(), 0);
  EXPECT_EQ(second.first_rank(), 5);
  for (const v1::StartAttempt& start : {first, second}) {
    EXPECT_EQ(start.world_size(), 10);
    EXPECT_EQ(start.launch().workers(), v1::LaunchSpec::PER_NODE);
    EXPECT_EQ(start.launch().workers_per_node(), 5);
    ASSERT_EQ(start.node_workers_size(), 2);
    EXPECT_EQ(start.node_workers(0), 5);
    EXPECT_EQ(start.node_workers(1), 5);
  }
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  Heard(11);
  v1::ClientRequest logs;
  logs.mutable_logs()->set_job(1);
  logs.mutable_logs()->set_rank(4);
  Call(logs);
  EXPECT_EQ(Heard(10).size(), 1U);
  logs.mutable_logs()->set_rank(5);
  Call(logs);
  EXPECT_EQ(Heard(11).size(), 1U) << "the first worker of the second node";
  logs.mutable_logs()->set_rank(10);
  EXPECT_EQ(ErrorOf(logs), "job 1 has no worker 10");
}

TEST_F(LiveWorldTest, NumbersOfWorkersThatGoWithNoKindAreRefused) {
  const std::string refused =
      "the number of workers of a node is none; expected --tasks-per-node from 1 to 4096, and no "
      "other workers";
  EXPECT_EQ(ErrorOf(WithWorkers(1, -1)), refused);
  EXPECT_EQ(ErrorOf(WithWorkers(1, 5000)), refused);
  v1::ClientRequest request = WithWorkers(1, 2);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_workers(v1::LaunchSpec::PER_GPU);
  EXPECT_EQ(ErrorOf(request), refused);
  request = WithWorkers(1, 2);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_tasks(5);
  EXPECT_EQ(ErrorOf(request),
            "the workers in all are no multiple of those of a node; expected a client of the "
            "controller's version");
  request = WithWorkers(1, 2);
  request.mutable_submit()->mutable_job()->set_cpus("4/task");
  EXPECT_EQ(ErrorOf(request),
            "cpus is 4/task; expected those of each node (16/node), as tasks are known to 'submit' "
            "alone");
}

TEST_F(LiveWorldTest, AnotherNumberOfNodesIsAnotherNumberOfTasks) {
  v1::ClientRequest request = WithWorkers(2, 4);  // no node is up, so that it waits
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_nodes("2");
  job.mutable_launch()->set_tasks(8);
  ASSERT_EQ(ErrorOf(request), "");
  EXPECT_EQ(StatusOf(1).request().launch().tasks(), 8);
  v1::ClientRequest update;
  update.mutable_update()->mutable_selection()->add_jobs("1");
  update.mutable_update()->add_fields("nodes");
  update.mutable_update()->mutable_values()->set_nodes("1");
  ASSERT_EQ(ErrorOf(update), "");
  EXPECT_EQ(StatusOf(1).request().nodes(), "1");
  EXPECT_EQ(StatusOf(1).request().launch().tasks(), 0);
  EXPECT_EQ(StatusOf(1).request().launch().workers_per_node(), 4);
}

}  // namespace
}  // namespace trainyard::live
