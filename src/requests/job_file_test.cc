// SPDX-License-Identifier: Apache-2.0
#include "requests/job_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "support/scratch_folder.h"

namespace trainyard::requests {
namespace {

// "ok", or the error from behind the folder's name.
std::string Read(const std::string& name, const std::string& text, v1::JobRequest& job) {
  const ScratchFolder folder;
  const Status status = ReadJobFile(folder.Write(name, text), job);
  if (status.ok()) {
    return "ok";
  }
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  return status.error().message.substr(status.error().message.rfind(name + ":"));
}

std::string Set(std::string_view key, const std::string& text, v1::JobRequest& job) {
  const Status status = SetJobOption(key, text, job);
  if (status.ok()) {
    return "ok";
  }
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().message;
}

TEST(JobFileTest, TomlAndJsonSayTheSame) {
  v1::JobRequest toml;
  EXPECT_EQ(Read("job.toml", R"(
name = "bert"
gpus = "2:8"
batch_size = 256
duration = "2h"
iterations = 1.5e4
deadline = "3h"
best_effort = true
queue = "night"
workers = "per-node"
grace = 30
max_restarts = 2
priority = -1
cwd = "/tmp/../tmp/x"
env = {A = "1", B = "two words"}
command = ["python3", "train.py", "--lr", "0.1"]
)",
                 toml),
            "ok");
  v1::JobRequest json;
  EXPECT_EQ(Read("job.json", R"({
  "name": "bert", "gpus": "2:8", "batch_size": 256, "duration": 7200, "iterations": 15000,
  "deadline": "180m", "best_effort": true, "queue": "night", "workers": "per-node",
  "grace": "30s", "max_restarts": 2, "priority": -1, "cwd": "/tmp/x",
  "env": {"A": "1", "B": "two words"}, "command": ["python3", "train.py", "--lr", "0.1"]})",
                 json),
            "ok");
  EXPECT_EQ(toml.DebugString(), json.DebugString());
  EXPECT_EQ(toml.gpus(), 2);
  EXPECT_EQ(toml.min_gpus(), 2);
  EXPECT_EQ(toml.max_gpus(), 8);
  EXPECT_EQ(toml.launch().grace(), 30'000);
  EXPECT_EQ(toml.launch().workers(), v1::LaunchSpec::PER_NODE);
  EXPECT_EQ(toml.launch().command_size(), 4);
  EXPECT_EQ(toml.launch().environment(1).value(), "two words");
}

TEST(JobFileTest, LaunchersAndContainersAreStatedInBothForms) {
  v1::JobRequest toml;
  EXPECT_EQ(Read("job.toml", R"(launcher = "torchrun"
venv = "/opt/../opt/venv"
container_image = "localhost/train:2"
container_mounts = ["/data:/input:ro+rprivate", "/models"]
container_workdir = "/work"
container_name = "mine"
)",
                 toml),
            "ok");
  v1::JobRequest set;
  EXPECT_EQ(Set("launcher", "torchrun", set), "ok");
  EXPECT_EQ(Set("venv", "/opt/venv", set), "ok");
  EXPECT_EQ(Set("container_image", "localhost/train:2", set), "ok");
  EXPECT_EQ(Set("container_mounts", "/data:/input:ro+rprivate,/models", set), "ok");
  EXPECT_EQ(Set("container_workdir", "/work", set), "ok");
  EXPECT_EQ(Set("container_name", "mine", set), "ok");
  EXPECT_EQ(toml.DebugString(), set.DebugString());
  EXPECT_EQ(set.launch().launcher(), v1::LaunchSpec::TORCHRUN);
  EXPECT_EQ(set.launch().venv(), "/opt/venv");
  ASSERT_EQ(set.launch().container().mounts_size(), 2);
  EXPECT_EQ(set.launch().container().mounts(1), "/models:/models");
  EXPECT_EQ(Set("launcher", "mpirun", set),
            "--launcher: unknown value 'mpirun'; known: plain, torchrun, mpi");
  EXPECT_EQ(Set("container_mounts", "data:/data", set),
            "--container-mounts is 'data:/data'; expected SOURCE:TARGET[:FLAG+FLAG], with commas "
            "between several");
}

TEST(JobFileTest, WhatIsWrongIsNamedWithItsLine) {
  v1::JobRequest job;
  EXPECT_TRUE(Read("job.toml", "name = \"a\"\ngpu = 1\n", job)
                  .starts_with("job.toml:2: unknown key 'gpu'; did you mean 'gpus'?; known: name"));
  EXPECT_TRUE(Read("job.json", "{\n\"name\": \"gpu\",\n \"gpu\" : 1}", job)
                  .starts_with("job.json:3: unknown key 'gpu'; did you mean 'gpus'?"));
  EXPECT_EQ(Read("job.toml", "\ngpus = -1", job),
            "job.toml:2: 'gpus' is -1; expected a number of GPUs, MIN:MAX for an elastic job, or 0 "
            "for one on CPUs alone");
  EXPECT_EQ(Read("job.json", "{\"best_effort\": \"yes\"}", job),
            "job.json:1: 'best_effort' is 'yes'; expected true or false");
  EXPECT_EQ(Read("job.json", "{\n\"gpus\": 1,\n\"gpus\": 2}", job),
            "job.json:2: 'gpus' is there twice; expected it once");
  EXPECT_EQ(Read("job.json", "{\n\"gpus\": }", job), "job.json:2: not JSON; expected one object");
  EXPECT_EQ(Read("job.json", "[]", job),
            "job.json:1: not an object; expected one with the job's keys");
  EXPECT_TRUE(Read("job.toml", "a = \nb", job).starts_with("job.toml:1: not TOML"));
  EXPECT_EQ(Read("job.toml", "command = \"python x\"", job),
            "job.toml:1: 'command' is 'python x'; expected a list of texts: the program and its "
            "arguments");
  EXPECT_EQ(Read("job.toml", "env = \"A=1\"", job),
            "job.toml:1: 'env' is 'A=1'; expected a table of texts");
  EXPECT_EQ(ReadJobFile("job.yaml", job).error().code, ErrorCode::kInvalidArgument);
}

TEST(JobOptionTest, OptionsOverrideAndAddVariables) {
  v1::JobRequest job;
  ASSERT_EQ(Read("job.toml", "gpus = \"2:4\"\nenv = {A = \"1\", B = \"2\"}", job), "ok");
  EXPECT_EQ(Set("gpus", "3", job), "ok");
  EXPECT_EQ(job.gpus(), 3);
  EXPECT_EQ(job.max_gpus(), 0);
  EXPECT_EQ(Set("env", "B=x=y", job), "ok");
  EXPECT_EQ(Set("env", "C=", job), "ok");
  ASSERT_EQ(job.launch().environment_size(), 3);
  EXPECT_EQ(job.launch().environment(1).value(), "x=y");
  EXPECT_EQ(Set("best_effort", "true", job), "ok");
  EXPECT_TRUE(job.best_effort());
}

TEST(JobOptionTest, WrongValuesAreNamedAfterTheOption) {
  v1::JobRequest job;
  EXPECT_EQ(Set("batch_size", "many", job),
            "--batch-size is 'many'; expected an integer from 1 to 1000000000000");
  EXPECT_EQ(
      Set("gpus", "4:2", job),
      "--gpus is '4:2': the least number is greater than the most; expected a number of GPUs, "
      "MIN:MAX for an elastic job, or 0 for one on CPUs alone");
  EXPECT_EQ(Set("duration", "2w", job),
            "--duration is '2w'; expected a duration such as 90s, 15m or 2h");
  EXPECT_EQ(Set("workers", "per-nod", job),
            "--workers: unknown value 'per-nod'; did you mean 'per-node'?; known: per-gpu, "
            "per-node, emulated, once");
  EXPECT_EQ(Set("env", "=1", job), "--env is '=1'; expected NAME=VALUE");
  EXPECT_EQ(Set("deadline", "2001-02-03T04:05", job),
            "--deadline is '2001-02-03T04:05'; expected a time to come");
}

TEST(JobOptionTest, WhatSomePoliciesAskFor) {
  v1::JobRequest job;
  EXPECT_EQ(Set("stages", "0.1,0.3,0.05", job), "ok");
  EXPECT_EQ(job.stages().stages_s_size(), 3);
  EXPECT_EQ(job.stages().iteration_s(), 0.3);
  EXPECT_EQ(Set("iteration_time", "0.4", job), "ok");
  EXPECT_EQ(job.stages().iteration_s(), 0.4);
  EXPECT_EQ(Set("soft_deadlines", "2h=10,4h=5", job), "ok");
  EXPECT_EQ(job.deadline_s(), 7200);
  EXPECT_EQ(job.soft_deadlines(1).after_s(), 14400);
  EXPECT_EQ(job.soft_deadlines(1).value(), 5);
  EXPECT_EQ(Set("gpu_types", "V100|A100", job), "ok");
  ASSERT_EQ(job.gpu_types_size(), 2);
  EXPECT_EQ(job.gpu_types(1), "A100");
  EXPECT_EQ(Set("gpu_types", "V100|", job).find("--gpu-types is"), 0U);
  EXPECT_EQ(Set("devices", "n0:0-1,3 n1:2", job), "ok");
  ASSERT_EQ(job.devices_size(), 2);
  EXPECT_EQ(job.devices(0).node(), "n0");
  EXPECT_EQ(job.devices(0).gpus_size(), 3);
  EXPECT_EQ(job.devices(1).gpus(0), 2);
  EXPECT_EQ(Set("loader_workers", "12", job), "ok");
  EXPECT_EQ(job.loader_workers(), 12);

  EXPECT_EQ(Set("stages", "0.1,0.3", job),
            "--stages is '0.1,0.3'; expected seconds of an iteration for loading, GPU and network: "
            "0.1,0.3,0.05");
  EXPECT_EQ(Set("stages", "0,0,0", job).find("--stages is"), 0U);
  EXPECT_EQ(Set("soft_deadlines", "4h=10,2h=5", job),
            "--soft-deadlines is '4h=10,2h=5'; expected rising times from now, each worth no more "
            "than the one before: 2h=10,4h=5");
  EXPECT_EQ(Set("soft_deadlines", "2h=5,4h=10", job).find("--soft-deadlines is"), 0U);
  EXPECT_EQ(Set("soft_deadlines", "4h", job).find("--soft-deadlines is"), 0U);
  EXPECT_EQ(Set("devices", "n0", job), "--devices is 'n0'; expected nodes and GPUs: 'n0:0-1 n1:3'");
  EXPECT_EQ(Set("devices", "n0:3-1", job).find("--devices is"), 0U);
  v1::JobRequest read;
  EXPECT_EQ(Read("job.toml", "stages = [0.1, 0.2, 0]\ndevices = \"n0:1\"\n", read), "ok");
  EXPECT_EQ(read.stages().stages_s(1), 0.2);
}

TEST(JobOptionTest, ADeadlineIsADurationOrATime) {
  v1::JobRequest job;
  EXPECT_EQ(Set("deadline", "90", job), "ok");
  EXPECT_EQ(job.deadline_s(), 90);
  EXPECT_EQ(Set("deadline", "1.5d", job), "ok");
  EXPECT_EQ(job.deadline_s(), 129'600);
  const std::time_t at = std::time(nullptr) + 7200;
  std::tm parts{};
  gmtime_r(&at, &parts);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  EXPECT_EQ(Set("deadline", text, job), "ok");
  EXPECT_NEAR(job.deadline_s(), 7200, 2);
}

TEST(JobOptionTest, ATimeOfDayThatThereIsNotIsNoDuration) {
  v1::JobRequest job;
  for (const char* const text : {"25:00", "99:00:00", "9:75"}) {
    EXPECT_FALSE(SetJobOption("begin", text, job).ok()) << text;
  }
  EXPECT_TRUE(SetJobOption("begin", "90s", job).ok());
  EXPECT_TRUE(SetJobOption("begin", "1:30", job).ok());
}

TEST(JobOptionTest, ABeginNeedsAUnitAsANumberAloneIsADayInSlurm) {
  v1::JobRequest job;
  for (const char* const text : {"1225", "90", "1.5"}) {
    EXPECT_EQ(Set("begin", text, job),
              std::string("--begin is '") + text +
                  "'; expected a unit, as a number alone is a day in Slurm: 90s, 15m, 2h or "
                  "2026-11-21");
  }
  EXPECT_FALSE(job.has_begin_s());
  EXPECT_EQ(Read("job.toml", "begin = 90\n", job), "ok");
  EXPECT_EQ(job.begin_s(), 90) << "a file of ours has seconds";
}

TEST(JobOptionTest, DaysAndHoursThatDoNotExistAreRefusedWithTheReason) {
  v1::JobRequest job;
  const std::string expected =
      "; expected a duration from now such as 90s, 15m or 2h, or a time: 2026-11-21T18:00, 18:00, "
      "now+1hour";
  for (const char* const key : {"begin", "deadline"}) {
    const std::string name = OptionName(key);
    EXPECT_EQ(
        Set(key, "2027-02-30T00:00", job),
        name + " is '2027-02-30T00:00': there is no day 30 in 2027-02, which has 28" + expected);
    EXPECT_EQ(Set(key, "24:00", job),
              name + " is '24:00': there is no hour 24; expected 00:00 to 23:59" + expected);
    EXPECT_EQ(Set(key, "2027-02", job), name + " is '2027-02'" + expected);
    EXPECT_EQ(Set(key, "1999-01-01T00:00", job),
              name + " is '1999-01-01T00:00'; expected a time to come");
  }
  EXPECT_EQ(Read("job.toml", "begin = \"2027-06-31T00:00\"\n", job),
            "job.toml:1: 'begin' is '2027-06-31T00:00': there is no day 31 in 2027-06, which has "
            "30" +
                expected);
}

TEST(JobOptionTest, SpansThatAreNoneSayWhy) {
  v1::JobRequest job;
  EXPECT_EQ(Set("time", "1:99:00", job),
            "--time is '1:99:00': 99 minutes; expected 0 to 59; expected a duration such as 90s, "
            "15m or 2h, or UNLIMITED");
  EXPECT_EQ(Set("duration", "1-24", job),
            "--duration is '1-24': 24 hours; expected 0 to 23; expected a duration such as 90s, "
            "15m or 2h");
  EXPECT_EQ(Set("gpus", "4:2", job),
            "--gpus is '4:2': the least number is greater than the most; expected a number of "
            "GPUs, MIN:MAX for an elastic job, or 0 for one on CPUs alone");
  EXPECT_EQ(Set("gpus", "v100:2", job),
            "--gpus is 'v100:2': types are stated by --gpu-types; expected a number of GPUs, "
            "MIN:MAX for an elastic job, or 0 for one on CPUs alone");
  EXPECT_EQ(Set("grace", "0:75:00", job),
            "--grace is '0:75:00': 75 minutes; expected 0 to 59; expected a duration such as 30s "
            "or 2m");
}

TEST(JobOptionTest, NoTimeLimitTakesAnEarlierOneAway) {
  for (const char* const text : {"0", "UNLIMITED", "infinite", "0:00", "0m"}) {
    v1::JobRequest job;
    EXPECT_EQ(Set("time", "2h", job), "ok");
    EXPECT_EQ(Set("time", text, job), "ok");
    EXPECT_FALSE(job.has_time_s()) << text;
  }
  v1::JobRequest job;
  EXPECT_EQ(Read("job.toml", "time = 0\n", job), "ok");
  EXPECT_FALSE(job.has_time_s());
  EXPECT_EQ(Set("time", "90", job),
            "--time is '90'; expected a unit, as Slurm counts minutes here: 90m, 2h or 1-12:00:00");
  EXPECT_EQ(Set("duration", "0", job),
            "--duration is '0'; expected a duration such as 90s, 15m or 2h");
}

TEST(JobFileTest, ADataSetHasANameAFolderAndASize) {
  v1::JobRequest job;
  EXPECT_EQ(Set("data_set", "pets=/data/./pets/:300", job), "ok");
  EXPECT_EQ(job.data_set().name(), "pets");
  EXPECT_EQ(job.data_set().home(), "/data/pets");
  EXPECT_EQ(job.data_set().mib(), 300);
  EXPECT_EQ(Set("data_set", "pets=ann@store:/data/pets:7", job), "ok");
  EXPECT_EQ(job.data_set().home(), "ann@store:/data/pets");
  EXPECT_EQ(job.data_set().mib(), 7);
  const ScratchFolder folder;
  (void)folder.Write("a", std::string((1U << 20) + 1, 'a'));
  EXPECT_EQ(Set("data_set", "pets=" + folder.path(), job), "ok");
  EXPECT_EQ(job.data_set().home(),
            std::filesystem::path(folder.path()).lexically_normal().string());
  EXPECT_EQ(job.data_set().mib(), 2) << "as found, rounded up";
  const std::string form = "NAME=FOLDER or NAME=HOST:FOLDER, with :MIB behind it or without";
  for (const std::string text : {"pets", "=/data:5", "pets="}) {
    EXPECT_EQ(Set("data_set", text, job), "--data-set is '" + text + "'; expected " + form);
  }
  EXPECT_EQ(Set("data_set", "pets=store:/data/pets", job),
            "--data-set is 'pets=store:/data/pets'; expected its size in MiB behind it, as the "
            "folder cannot be looked into from here: NAME=PATH:MIB");
  EXPECT_EQ(Set("data_set", "pets=/no/such/folder", job),
            "--data-set is 'pets=/no/such/folder'; expected a folder that can be looked into from "
            "here, or, where only nodes have it, its size in MiB behind it: NAME=PATH:MIB");
  EXPECT_EQ(Set("data_set", "pets=/data/pets:0", job),
            "--data-set is 'pets=/data/pets:0'; expected NAME=PATH:MIB with an integer from 1 to "
            "1000000000");
}

}  // namespace
}  // namespace trainyard::requests
