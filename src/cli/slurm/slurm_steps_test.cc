// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_steps.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/slurm/slurm_json.h"
#include "io/json.h"

namespace trainyard::cli {
namespace {

using SlurmJson = nlohmann::ordered_json;

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

SlurmJson Only(const char* list, const std::string& text) {
  const SlurmJson json = SlurmJson::parse(text);
  EXPECT_EQ(json["errors"], SlurmJson::array());
  EXPECT_EQ(json["meta"]["Slurm"]["release"], "22.05.8");
  EXPECT_EQ(json[list].size(), 1U);
  return json[list][0];
}

// The keys that tools read, with the types of Slurm 22.05.
TEST(SlurmJsonTest, TheQueueIsAsSlurmHasIt) {
  v1::JobStatus job = Script(v1::RUNNING);
  job.mutable_request()->set_time_s(90);
  job.set_reason_code("None");
  const SlurmJson json =
      Only("jobs", JsonOfQueue({{.line = {.job = &job, .tasks = {}}, .partition = "main"}}));
  EXPECT_EQ(json["job_id"], 12);
  EXPECT_EQ(json["job_state"], "RUNNING");
  EXPECT_EQ(json["time_limit"], 2) << "in minutes";
  EXPECT_EQ(json["start_time"], 1000);
  EXPECT_EQ(json["end_time"], 1090);
  EXPECT_EQ(json["nodes"], "n[0-1]");
  EXPECT_EQ(json["batch_host"], "n0");
  EXPECT_EQ(json["cpus"], 6);
  EXPECT_EQ(json["node_count"], 2);
  EXPECT_EQ(json["tres_per_node"], "gres:gpu:2");
  EXPECT_EQ(json["array_job_id"], 0);
  EXPECT_TRUE(json["array_task_id"].is_null());
  EXPECT_EQ(json["job_resources"]["allocated_nodes"][1]["nodename"], "n1");
}

TEST(SlurmJsonTest, TasksThatWaitAreOneEntry) {
  v1::JobStatus job = Script(v1::WAITING);
  job.clear_grants();
  job.clear_started();
  job.set_job(13);
  job.set_array_job(12);
  job.set_array_index(1);
  job.mutable_request()->set_array("0-9%2");
  const SlurmJson waits =
      Only("jobs", JsonOfQueue({{.line = {.job = &job, .tasks = {1, 2, 3}}, .partition = "main"}}));
  EXPECT_EQ(waits["job_id"], 12);
  EXPECT_EQ(waits["array_task_string"], "1-3%2");
  EXPECT_EQ(waits["array_max_tasks"], 2);
  EXPECT_TRUE(waits["array_task_id"].is_null());
  EXPECT_EQ(waits["start_time"], 0);
  EXPECT_TRUE(waits["time_limit"].is_null());
  job.set_state(v1::FAILED);
  job.set_exit_code(7);
  const SlurmJson ended =
      Only("jobs", JsonOfQueue({{.line = {.job = &job, .tasks = {1}}, .partition = ""}}));
  EXPECT_EQ(ended["array_task_id"], 1);
  EXPECT_EQ(ended["job_id"], 13);
  EXPECT_EQ(ended["exit_code"], 1792) << "as wait(2) has it";
}

TEST(SlurmJsonTest, TheAccountingHasSteps) {
  const v1::JobStatus job = Ended(v1::FAILED, "NonZeroExitCode", 7);
  const SlurmJson json = Only(
      "jobs", JsonOfAccounting({{.line = {.job = &job, .tasks = {}}, .partition = "main"}}, 2000));
  EXPECT_EQ(json["state"]["current"], "FAILED");
  EXPECT_EQ(json["exit_code"]["status"], "ERROR");
  EXPECT_EQ(json["exit_code"]["return_code"], 7);
  EXPECT_EQ(json["time"]["submission"], 900);
  EXPECT_EQ(json["time"]["end"], 1100);
  EXPECT_EQ(json["association"]["user"], "ann");
  EXPECT_EQ(json["steps"][0]["step"]["id"], "batch");
  EXPECT_EQ(json["steps"][1]["step"]["id"], 0);
  EXPECT_EQ(json["steps"][1]["exit_code"]["signal"]["signal_id"], 9);
  EXPECT_TRUE(json["steps"][1]["exit_code"]["return_code"].is_null());
  EXPECT_EQ(json["steps"][2]["nodes"]["list"], SlurmJson::array({"n0", "n1"}));
  EXPECT_EQ(json["steps"][2]["tasks"]["count"], 8);
  EXPECT_EQ(json["tres"]["allocated"][0]["count"], 6);
}

TEST(SlurmJsonTest, NodesAreAsSlurmHasThem) {
  v1::NodeStatus node;
  node.set_node("n1");
  node.set_up(true);
  node.set_gpus(4);
  node.set_gpu_type("a100");
  node.set_cpus(16);
  node.set_memory_mib(8000);
  node.add_partitions("main");
  node.set_drained(true);
  node.set_reason("bad fan");
  const SlurmJson json = Only("nodes", JsonOfNodes({{.node = &node, .used_cpus = 6}}));
  EXPECT_EQ(json["name"], "n1");
  EXPECT_EQ(json["state"], "mixed");
  EXPECT_EQ(json["state_flags"], SlurmJson::array({"DRAIN"}));
  EXPECT_EQ(json["reason"], "bad fan");
  EXPECT_EQ(json["partitions"], SlurmJson::array({"main"}));
  EXPECT_EQ(json["cpus"], 16);
  EXPECT_EQ(json["idle_cpus"], 10);
  EXPECT_EQ(json["real_memory"], 8000);
  EXPECT_EQ(json["gres"], "gpu:a100:4");
}

// Names come from users.
TEST(SlurmJsonTest, WhatIsNoTextKeepsNothingFromBeingRead) {
  v1::JobStatus job = Script(v1::RUNNING);
  job.mutable_steps(1)->set_name("\xff");
  const std::string text =
      JsonOfAccounting({{.line = {.job = &job, .tasks = {}}, .partition = ""}}, 2000);
  EXPECT_TRUE(SlurmJson::accept(text));
}

}  // namespace
}  // namespace trainyard::cli
