// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_steps.h"

#include <gtest/gtest.h>

#include <string>

namespace trainyard::cli {
namespace {

v1::JobStatus Script(v1::JobState state) {
  v1::JobStatus job;
  job.set_job(12);
  job.set_state(state);
  job.set_submitted(900);
  job.set_started(1000);
  v1::JobRequest& request = *job.mutable_request();
  request.set_name("train");
  request.set_user("ann");
  request.set_gpus(4);
  request.mutable_launch()->set_workers(v1::LaunchSpec::ONCE);
  request.mutable_launch()->mutable_batch();
  for (const char* const node : {"n0", "n1"}) {
    v1::NodeGrant& grant = *job.add_grants();
    grant.set_node(node);
    grant.mutable_share()->set_milli_cpus(3000);
  }
  v1::StepRecord& ended = *job.add_steps();
  ended.set_name("prepare");
  ended.set_started(1001);
  ended.set_ended(1011.5);
  ended.set_exit_code(137);
  v1::StepRecord& open = *job.add_steps();
  open.set_number(1);
  open.set_name("python3");
  open.set_started(1020);
  open.set_tasks(8);
  open.set_cpus(16);
  open.set_nodes(2);
  open.set_node_list("n[0-1]");
  return job;
}

v1::JobStatus Ended(v1::JobState state, const std::string& reason, int exit_code) {
  v1::JobStatus job = Script(state);
  job.set_ended(1100);
  job.set_reason_code(reason);
  job.set_exit_code(exit_code);
  return job;
}

// "batch RUNNING 0:0; 0 FAILED 0:9; "
std::string Texts(const v1::JobStatus& job) {
  std::string texts;
  for (const SlurmStep& step : SlurmStepsOf(job)) {
    texts += step.id + " " + step.state + " " + step.exit_code + "; ";
  }
  return texts;
}

TEST(SlurmStepsTest, AScriptIsAStepBeforeThoseThatItStarts) {
  const v1::JobStatus job = Script(v1::RUNNING);
  EXPECT_EQ(Texts(job), "batch RUNNING 0:0; 0 FAILED 0:9; 1 RUNNING 0:0; ");
  const std::vector<SlurmStep> steps = SlurmStepsOf(job);
  EXPECT_EQ(steps[0].cpus, 3) << "of its own node";
  EXPECT_EQ(steps[0].node_list, "n0");
  EXPECT_EQ(steps[0].ElapsedAt(1050), 50);
  EXPECT_EQ(steps[1].ElapsedAt(1050), 10.5);
  EXPECT_EQ(steps[2].tasks, 8);
  EXPECT_EQ(steps[2].node_list, "n[0-1]");
}

TEST(SlurmStepsTest, WhatEndsWithItsJobHasBeenCancelled) {
  EXPECT_EQ(Texts(Ended(v1::FAILED, "NonZeroExitCode", 7)),
            "batch FAILED 7:0; 0 FAILED 0:9; 1 CANCELLED 0:15; ");
  EXPECT_EQ(Texts(Ended(v1::FAILED, "TimeLimit", 0)),
            "batch CANCELLED 0:15; 0 CANCELLED 0:9; 1 CANCELLED 0:15; ");
  EXPECT_EQ(Texts(Ended(v1::COMPLETED, "None", 0)),
            "batch COMPLETED 0:0; 0 FAILED 0:9; 1 CANCELLED 0:15; ");
  EXPECT_EQ(SlurmStepsOf(Ended(v1::CANCELLED, "None", 143))[2].ended, 1100);
}

TEST(SlurmStepsTest, OtherJobsHaveNone) {
  v1::JobStatus waits = Script(v1::WAITING);
  waits.clear_started();
  EXPECT_EQ(Texts(waits), "");
  v1::JobStatus workers = Script(v1::RUNNING);
  workers.mutable_request()->mutable_launch()->set_workers(v1::LaunchSpec::PER_GPU);
  EXPECT_EQ(Texts(workers), "");
}

}  // namespace
}  // namespace trainyard::cli
