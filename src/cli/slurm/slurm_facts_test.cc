// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_facts.h"

#include <gtest/gtest.h>

#include "base/unix_time.h"

namespace trainyard::cli {
namespace {

TEST(SlurmFactsTest, SpansAreWrittenAsSlurmWritesThem) {
  EXPECT_EQ(SlurmSpan(2.9), "0:02");
  EXPECT_EQ(SlurmSpan(3600), "1:00:00");
  EXPECT_EQ(SlurmSpan(2 * 86400 + 3 * 3600 + 245), "2-03:04:05");
  EXPECT_EQ(SlurmLongSpan(17), "00:00:17");
  EXPECT_EQ(SlurmLongSpan(-1), "00:00:00");
}

TEST(SlurmFactsTest, AJobThatWasStoppedEndsByWhatIsLeftOfItsLimit) {
  v1::JobStatus job;
  job.set_state(v1::RUNNING);
  job.mutable_request()->set_time_s(600);
  EXPECT_FALSE(SlurmEnd(job)) << "it has not started";
  job.set_started(base::UnixNow() - 100'000);
  job.set_attempt(1);
  EXPECT_EQ(SlurmEnd(job), job.started() + 600);
  job.set_attempt(2);
  job.set_run_s(200);
  EXPECT_NEAR(*SlurmEnd(job), base::UnixNow() + 400, 60);
  job.set_state(v1::WAITING);
  EXPECT_FALSE(SlurmEnd(job));
  job.set_ended(5);
  EXPECT_EQ(SlurmEnd(job), 5);
}

TEST(SlurmFactsTest, StatesHaveTheirCodesAndAreFoundByEither) {
  v1::JobStatus job;
  job.set_state(v1::WAITING);
  EXPECT_EQ(SlurmState(job), "PENDING");
  job.set_state(v1::FAILED);
  EXPECT_EQ(SlurmState(job), "FAILED");
  job.set_reason_code("TimeLimit");
  EXPECT_EQ(SlurmStateCode(SlurmState(job)), "TO");
  EXPECT_EQ(SlurmStateNamed("pd"), "PENDING");
  EXPECT_EQ(SlurmStateNamed("Completing"), "COMPLETING");
  EXPECT_EQ(SlurmStateNamed("P"), "");
}

TEST(SlurmFactsTest, CpusAreThoseThatAJobHasOrElseThoseThatItAsksFor) {
  v1::JobStatus job;
  v1::JobRequest& request = *job.mutable_request();
  request.set_gpus(8);
  request.set_nodes("2");
  EXPECT_EQ(SlurmCpus(job), 8) << "one for each worker";
  request.set_cpus("4/gpu");
  EXPECT_EQ(SlurmCpus(job), 32);
  request.set_cpus("6/node");
  EXPECT_EQ(SlurmCpus(job), 12);
  request.set_memory("64G");
  EXPECT_EQ(SlurmMemory(job), "32G") << "of each node";
  for (const char* const node : {"n1", "n0"}) {
    v1::NodeGrant& grant = *job.add_grants();
    grant.set_node(node);
    grant.mutable_share()->set_milli_cpus(2500);
  }
  EXPECT_EQ(SlurmCpus(job), 5);
  EXPECT_EQ(SlurmCpusOn(job, "n0"), 3);
  EXPECT_EQ(SlurmCpusOn(job, "n2"), 0);
  EXPECT_EQ(SlurmNodes(job), "n[0-1]");
  EXPECT_EQ(SlurmGpus(job), "gpu:8");
  request.add_gpu_types("a100");
  EXPECT_EQ(SlurmGpus(job), "gpu:a100:8");
}

TEST(SlurmFactsTest, AnExitCodeAboveAHundredAndTwentyEightIsASignal) {
  v1::JobStatus job;
  job.set_exit_code(7);
  EXPECT_EQ(SlurmExitCode(job), "7:0");
  job.set_exit_code(137);
  EXPECT_EQ(SlurmExitCode(job), "0:9");
  job.set_exit_code(255);
  EXPECT_EQ(SlurmExitCode(job), "255:0");
}

TEST(SlurmFactsTest, NodesAreIdleMixedAllocatedDrainingOrDown) {
  v1::NodeStatus node;
  EXPECT_EQ(SlurmNodeState(node, false), "down");
  node.set_up(true);
  node.set_gpus(4);
  EXPECT_EQ(SlurmNodeState(node, false), "idle");
  node.set_gpus_used(2);
  EXPECT_EQ(SlurmNodeState(node, true), "mixed");
  node.set_gpus_used(4);
  node.set_silent(true);
  EXPECT_EQ(SlurmNodeState(node, false), "alloc*");
  node.set_silent(false);
  node.set_drained(true);
  EXPECT_EQ(SlurmNodeState(node, false), "drng");
  node.set_gpus_used(0);
  EXPECT_EQ(SlurmNodeState(node, true), "drained");
}

}  // namespace
}  // namespace trainyard::cli
