// SPDX-License-Identifier: Apache-2.0
// trainyard profile with real processes, and what loader predict and allocate say of a profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

// A trainer that waits for so long in each iteration, more with fewer loader workers, and goes on
// where its checkpoint says.
std::string Trainer() {
  return WriteScratch("trainer.py",
                      R"(import argparse, os, pathlib, sys, time
sys.path.insert(0, os.path.join(")" TRAINYARD_SOURCE_DIR R"(", "python"))
sys.dont_write_bytecode = True
from trainyard.train import Job
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--max-iterations", type=int, default=10**9)
parser.add_argument("--job-name")
parser.add_argument("--stages", action="store_true")
options = parser.parse_args()
job = Job()
saved = job.checkpoint_dir / "saved"
done = int(saved.read_text()) if saved.exists() else 0
while done < options.max_iterations and job.notice is None:
    if options.stages:
        with job.stage("load"):
            time.sleep(0.02)
        with job.stage("forward"):
            time.sleep(0.04)
    else:
        time.sleep(0.08 / min(4, options.workers))
    done += 1
    job.progress(done)
saved.write_text(str(done))
job.checkpointed(done)
)");
}

CommandResult Profile(const std::string& verb, const std::string& options,
                      const std::string& command) {
  return RunTrainyard("profile " + verb +
                      " --model net --batch 32 --iterations 8 --warmup 2 --runs 2 --noise 100 " +
                      options + " -- " + command);
}

std::string Python(const std::string& script) { return "/usr/bin/python3 " + script; }

TEST(ProfileTest, ThroughputIsMeasuredAndTakenByASimulation) {
  const std::string out = ScratchPath("throughput");
  const CommandResult result =
      Profile("throughput", "--gpus 1,2 --workers 1 --json --out " + out, Python(Trainer()));
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["cells"].size(), 2U);
  EXPECT_GT(json["cells"][0]["iteration_s"]["mean"], 0.08) << "it waits for as long";
  EXPECT_TRUE(std::filesystem::exists(out + "/throughput-net.csv"));
  const std::string trace = WriteScratch(
      "trace.csv", "job_id,submit_time,gpus,iterations,model,batch_size\na,0,1,100,net,32\n");
  const CommandResult simulated =
      RunTrainyard("simulate " + trace + " --cluster 1x2 --json --profiles " + out);
  ASSERT_EQ(simulated.status, 0) << simulated.err;

  // What was measured is not measured again.
  const CommandResult again =
      Profile("throughput", "--gpus 1,2 --workers 1 --json --out " + out, Python(Trainer()));
  EXPECT_THAT(again.err, HasSubstr("profile: 4 of 4 runs of this command are there"));
  EXPECT_EQ(again.out, result.out);
}

TEST(ProfileTest, AScriptOfSynergysContractNeedsNoLibrary) {
  const std::string script = WriteScratch("perf.sh", R"(#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" != --job-name ] || name=$2
  shift
done
printf '0.25\n60\n1\n' > "PERF_$name.txt"
)");
  const CommandResult result =
      Profile("throughput", "--json --out " + ScratchPath("perf"), "sh " + script);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["cells"][0]["iterations_per_second"], 4);
}

TEST(ProfileTest, FewerCpusAreSlower) {
  const std::string out = ScratchPath("sensitivity");
  const CommandResult result =
      Profile("sensitivity", "--cpu 64 --json --out " + out, Python(Trainer()));
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["points"].size(), 64U);
  EXPECT_GT(json["points"][0]["iteration_s"], json["points"][63]["iteration_s"]);
  EXPECT_GT(json["runs_saved"], 64);
}

TEST(ProfileTest, TheOptionsOfSynergysProfilerAreTaken) {
  const std::string options =
      "--cpu 1 --num-gpus 1 --memory 62.5 --master_addr 127.0.0.1 --master_port 29400 --json "
      "--out " +
      ScratchPath("synergy");
  const std::string script = WriteScratch(
      "port.sh", "[ $MASTER_PORT = 29400 ] && echo 0.5 > PERF_trainyard-profile.txt\n");
  const CommandResult result = Profile("sensitivity", "--nnodes 1 " + options, "sh " + script);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["points"][0]["iteration_s"], 0.5);
  const CommandResult nodes = Profile("sensitivity", "--nnodes 2 " + options, "sh " + script);
  EXPECT_EQ(nodes.status, kWrongUsage);
  EXPECT_THAT(nodes.err, HasSubstr("--nnodes 2: a profile is measured on one machine"));
}

TEST(ProfileTest, OverheadBecomesAPreset) {
  const std::string out = ScratchPath("overhead");
  const CommandResult result = Profile("overhead", "--out " + out, Python(Trainer()));
  ASSERT_EQ(result.status, 0) << result.err;
  const CommandResult shown = RunTrainyard("presets " + out + "/overhead.toml");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(ReadText(out + "/overhead.toml"), HasSubstr("[overhead.models.\"net\"]"));
  const CommandResult figure = RunTrainyard("reproduce elasticflow/fig12 --measured " + out +
                                            " --out " + ScratchPath("overhead-figure"));
  EXPECT_EQ(figure.status, 0) << figure.err;
  EXPECT_THAT(figure.out, HasSubstr("start on 1 GPU"));
}

TEST(ProfileTest, StagesLetJobsInterleave) {
  const std::string out = ScratchPath("stages");
  const CommandResult result =
      Profile("stages", "--json --out " + out, Python(Trainer()) + " --stages");
  ASSERT_EQ(result.status, 0) << result.err;
  const Json stages = Json::parse(result.out)["rows"][0]["stages_s"];
  EXPECT_GE(stages[0], 0.02);
  EXPECT_GE(stages[1], 0.04);
  const std::string trace = WriteScratch("staged.csv",
                                         "job_id,submit_time,gpus,iterations,model,batch_size\n"
                                         "a,0,1,100,net,32\nb,0,1,100,net,32\n");
  const CommandResult simulated =
      RunTrainyard("simulate " + trace + " --cluster 1x1 --policy muri-s --profiles " + out);
  ASSERT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_EQ(simulated.err.find("jobs without stage times"), std::string::npos) << simulated.err;
}

TEST(ProfileTest, ALoaderProfileWithoutWaitingIsNamed) {
  const std::string options = "--workers 1,2 --params 1000000 --flops 1000000000 --out ";
  const CommandResult result =
      Profile("loader", options + ScratchPath("no-loading"), Python(Trainer()));
  EXPECT_THAT(result.err, HasSubstr("no run told of waiting for data"));
  const CommandResult same = Profile("loader", options + ScratchPath("same-workers"),
                                     Python(Trainer()) + " --max-iterations {iterations}");
  EXPECT_EQ(same.status, kWrongUsage);
  EXPECT_THAT(same.err, HasSubstr("the command has placeholders but not {workers}"));
}

// It dies as it saves, at notice.
TEST(ProfileTest, ACheckpointThatFailsIsNamedWithTheLastLine) {
  const std::string script = WriteScratch("unsaved.py",
                                          R"(import os, sys, time
sys.path.insert(0, os.path.join(")" TRAINYARD_SOURCE_DIR R"(", "python"))
sys.dont_write_bytecode = True
from trainyard.train import Job
job = Job()
done = 0
while job.notice is None:
    time.sleep(0.02)
    done += 1
    job.progress(done)
sys.exit("nothing to save")
)");
  const CommandResult result =
      Profile("overhead", "--out " + ScratchPath("unsaved"), Python(script));
  EXPECT_EQ(result.status, kFailed);
  EXPECT_THAT(result.err, HasSubstr("go on with 1 GPU: run 1 does not go on: it left no checkpoint "
                                    "when it was given notice, and ended with exit status 1; "
                                    "expected a script that calls Checkpoint.save(), or "
                                    "job.checkpointed(), of trainyard.train; its last line: "
                                    "nothing to save"));
}

TEST(ProfileTest, AScriptThatRunsOnIsKilledSoonAndNamed) {
  const std::string script = WriteScratch("deaf.py",
                                          R"(import os, signal, sys, time
sys.path.insert(0, os.path.join(")" TRAINYARD_SOURCE_DIR R"(", "python"))
sys.dont_write_bytecode = True
from trainyard.train import Job
job = Job()
for done in range(1, 10**9):
    time.sleep(0.02)
    job.progress(done)
)");
  const CommandResult result =
      Profile("throughput", "--out " + ScratchPath("deaf"), Python(script));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the script ran on for 3 s after its last iteration and was "
                                    "killed, in every run; expected one that ends at {iterations}, "
                                    "or at notice"));
}

TEST(ProfileTest, WrongWordsAreAnsweredWithTheRightOnes) {
  const CommandResult verb = RunTrainyard("profile troughput --model m1");
  EXPECT_EQ(verb.status, kWrongUsage);
  EXPECT_THAT(verb.err, HasSubstr("trainyard profile: unknown command 'troughput'; did you mean "
                                  "'throughput'?"));
  const CommandResult mark =
      RunTrainyard("profile throughput --model m --batch 1 --out x /usr/bin/python3 bare.py");
  EXPECT_EQ(mark.status, kWrongUsage);
  EXPECT_EQ(mark.err,
            "trainyard profile throughput: '/usr/bin/python3' is no option; expected -- before the "
            "training script: trainyard profile throughput [OPTIONS] -- /usr/bin/python3 "
            "bare.py\n");
  EXPECT_THAT(RunTrainyard("profile throughput --model m --batch -32 --out x -- true").err,
              HasSubstr("--batch: "));
}

TEST(ProfileTest, WhatDoesNotCountIsNamed) {
  const CommandResult fails =
      Profile("throughput", "--out " + ScratchPath("fails"), "sh -c 'echo no data >&2; exit 3'");
  EXPECT_EQ(fails.status, kFailed);
  EXPECT_THAT(fails.err, HasSubstr("batch 32, 1 GPU: run 1 fails: "));
  EXPECT_THAT(fails.err, HasSubstr("; its last line: no data"));
  EXPECT_THAT(fails.err, HasSubstr("batch 32, 1 GPU: run 2 failed in the same way"));
  const CommandResult missing =
      Profile("throughput", "--out " + ScratchPath("missing"), "no-such-program");
  EXPECT_EQ(missing.status, kFailed);
  EXPECT_EQ(missing.err.find("run 1"), std::string::npos) << missing.err;
  const CommandResult early = Profile("throughput", "--out " + ScratchPath("early"),
                                      Python(Trainer()) + " --max-iterations 4 --batch {batch}");
  EXPECT_EQ(early.status, kFailed);
  EXPECT_THAT(early.err, HasSubstr("ends early: it did 4 of 10 iterations"));
  const CommandResult silent = Profile("throughput", "--out " + ScratchPath("silent"), "true");
  EXPECT_THAT(silent.err, HasSubstr("tells nothing: after 2 iterations of warm-up it told of 0"));
  const CommandResult hangs =
      Profile("throughput", "--limit 1 --out " + ScratchPath("hangs"), "sh -c 'sleep 100'");
  EXPECT_THAT(hangs.err, HasSubstr("hangs: it has not done 10 iterations within 1 s, but 0"));
  EXPECT_EQ(Profile("throughput", "--out " + ScratchPath("none"), "").status, kWrongUsage);
}

constexpr const char* kCatalog = " --profiles data/example_loader/models.csv";

TEST(LoaderPredictionTest, MoreWorkersHelpUntilTheGpusAreTheLimit) {
  const CommandResult result = RunTrainyard(
      std::string("loader predict --model cnn16 --batch 256 --workers 1,64 --json") + kCatalog);
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json[0]["limit"], "loading");
  EXPECT_EQ(json[1]["limit"], "GPUs");
  EXPECT_NEAR(json[0]["loader_images_per_second"], 1 / (0.007807040084325026 + 7.073599776914e-5),
              1e-6);
  EXPECT_EQ(
      RunTrainyard(std::string("loader predict --model cn16 --batch 1 --workers 1") + kCatalog)
          .status,
      kFailed + 2);
}

TEST(LoaderPredictionTest, WorkersGoWhereTheyHelpWithinTheCoresOfEachNode) {
  const std::string command = std::string(
                                  "loader allocate data/example_loader/workload.csv --cluster "
                                  "data/example_loader/cluster.toml --json") +
                              kCatalog;
  const CommandResult exact = RunTrainyard(command);
  ASSERT_EQ(exact.status, 0) << exact.err;
  const CommandResult published = RunTrainyard(command + " --allocation v2");
  ASSERT_EQ(published.status, 0) << published.err;
  EXPECT_EQ(Json::parse(exact.out)["jobs"].size(), 6U);
  EXPECT_GT(Json::parse(exact.out)["images_per_second"], 0);
  EXPECT_EQ(
      RunTrainyard("loader allocate data/example_trace.csv --cluster 1x8" + std::string(kCatalog))
          .status,
      kWrongUsage)
      << "the nodes state no CPUs";
}

}  // namespace
}  // namespace trainyard
