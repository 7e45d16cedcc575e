// SPDX-License-Identifier: Apache-2.0
// trainyard trace convert from outside: a trace that has been to another format and back is the
// same trace, and a run of it the same run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli_tests/command.h"
#include "support/reference.h"

namespace trainyard {
namespace {

constexpr int kWrongUsage = 2;
constexpr int kBadInput = 3;

// The digest of a run of `trace`; `options` name the cluster and the rest.
std::string DigestOf(const std::string& trace, const std::string& options) {
  const CommandResult run = RunTrainyard("simulate " + trace + " " + options + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  const std::string key = "\"journal_digest\": \"";
  const std::size_t at = run.out.find(key);
  EXPECT_NE(at, std::string::npos) << run.out;
  constexpr std::size_t kDigits = 64;
  return at == std::string::npos ? "" : run.out.substr(at + key.size(), kDigits);
}

// Through both native forms, packed both ways, and back to its own format where that is written.
void ExpectSameRuns(const std::string& trace, const std::string& format,
                    const std::string& options) {
  SCOPED_TRACE(trace);
  const std::string digest = DigestOf(trace, options);
  const std::string native = ScratchPath("native.csv.zst");
  const std::string jsonl = ScratchPath("lines.jsonl.gz");
  const std::string back = ScratchPath("back.csv");
  for (const std::string& arguments :
       {trace + " " + native, native + " " + jsonl, jsonl + " " + back + " --to " + format}) {
    const CommandResult converted = RunTrainyard("trace convert --force " + arguments);
    EXPECT_EQ(converted.status, 0) << converted.err;
    EXPECT_EQ(converted.err.find("not in format"), std::string::npos) << converted.err;
  }
  for (const std::string& copy : {native, jsonl, back}) {
    EXPECT_EQ(DigestOf(copy, options), digest) << copy;
  }
}

TEST(TraceConvertTest, TheBundledTraceStaysTheSame) {
  ExpectSameRuns("data/example_trace.csv", "native",
                 "--cluster data/example_cluster.toml --profiles data/example_profiles.csv "
                 "--policy elasticflow");
}

TEST(TraceConvertTest, PublishedTracesStayTheSame) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = std::filesystem::absolute(Reference() + "/data").string();
  ExpectSameRuns(data + "/tiresias/60_job.csv", "tiresias",
                 "--cluster " + data + "/tiresias/n4g4.csv --policy las");
  ExpectSameRuns(data + "/muri/trace1_first200.csv.gz", "muri",
                 "--cluster " + data + "/muri/cluster_n8g8.csv --policy muri-l");
  ExpectSameRuns(data + "/chronus/mix2_300.csv", "chronus",
                 "--cluster " + data + "/chronus/n16g8.csv --policy edf");
  ExpectSameRuns(data + "/synergy/trace_sample8.csv", "synergy",
                 "--policy srtf --profiles " + data + "/synergy --cluster " + data +
                     "/synergy/clusters/static_trace.ini");
}

TEST(TraceConvertTest, SaysWhatIsLost) {
  const std::string out = ScratchPath("lossy.swf");
  const CommandResult result =
      RunTrainyard("trace convert data/example_trace.csv " + out + " --force --json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err,
            "not in format swf: job_id, iterations, user, queue, model, batch_size, deadline\n");
  EXPECT_NE(result.out.find("\"to\": \"swf\""), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\"jobs\": 400"), std::string::npos) << result.out;
  EXPECT_EQ(RunTrainyard("trace validate " + out).out,
            out + ": 400 jobs, format swf, 0 rows skipped\n");
}

TEST(TraceConvertTest, SaysWhatItTakesOfALogAndLeaves) {
  const std::string in =
      WriteScratch("log.csv",
                   "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time\n"
                   "1,u,v,1,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,"
                   "2020-04-01 00:00:09\n"
                   "2,u,v,1,0,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,"
                   "2020-04-01 00:00:09\n");
  const std::string out = ScratchPath("taken.csv");
  EXPECT_EQ(RunTrainyard("trace convert --force " + in + " " + out).out,
            out +
                ": 2 jobs, 0 rows skipped, helios to native\n"
                "taken: job_id, submit_time, gpus, duration, user, queue of all jobs, cpus of 1\n"
                "left:  node_num\n");
  const std::string json = RunTrainyard("trace convert --force --json " + in + " " + out).out;
  EXPECT_NE(json.find("\"cpus\": 1"), std::string::npos) << json;
  EXPECT_NE(json.find("\"left\": [\n    \"node_num\"\n  ]"), std::string::npos) << json;
}

TEST(TraceConvertTest, ReplacesAFileOnlyWhenTold) {
  const std::string in = WriteScratch("in.csv", "job_id,submit_time,gpus,duration\na,0,1,5\n");
  const std::string out = WriteScratch("there.csv", "mine");
  const CommandResult refused = RunTrainyard("trace convert " + in + " " + out);
  EXPECT_EQ(refused.status, kWrongUsage);
  EXPECT_NE(refused.err.find("is there already; expected --force, or another name"),
            std::string::npos);
  EXPECT_EQ(ReadText(out), "mine");
  EXPECT_EQ(RunTrainyard("trace convert --force " + in + " " + out).status, 0);
  EXPECT_NE(ReadText(out), "mine");
}

TEST(TraceConvertTest, WritesNothingWhereAJobDoesNotFit) {
  const std::string in =
      WriteScratch("in.csv", "job_id,submit_time,gpus,duration,model\na,0,1,5,m\nb,0,1,5,\n");
  const std::string out = ScratchPath("never.csv");
  const CommandResult result = RunTrainyard("trace convert " + in + " " + out + " --to tiresias");
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("in.csv:3: job 'b' lacks something; expected a model"),
            std::string::npos)
      << result.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(RunTrainyard("trace convert " + in + " " + ScratchPath("x.dat")).status, kWrongUsage);
  EXPECT_EQ(RunTrainyard("trace convert " + in + " " + out + " --to gavel").status, kWrongUsage);
}

TEST(TraceConvertTest, ProcessorsBecomeGpus) {
  const std::string in =
      WriteScratch("log.swf", "1 0 0 5 16 -1 -1 16 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
  const std::string out = ScratchPath("log.csv");
  EXPECT_EQ(RunTrainyard("trace convert --force --procs-per-gpu 8 " + in + " " + out).status, 0);
  EXPECT_NE(ReadText(out).find("\n1,0,2,5,"), std::string::npos) << ReadText(out);
  const CommandResult native =
      RunTrainyard("trace convert --procs-per-gpu 8 " + out + " " + ScratchPath("again.csv"));
  EXPECT_EQ(native.status, kWrongUsage);
  EXPECT_NE(native.err.find("(--procs-per-gpu) have no effect on format 'native'"),
            std::string::npos)
      << native.err;
  EXPECT_FALSE(std::filesystem::exists(ScratchPath("again.csv")));
}

// Columns with names of the file's own.
TEST(TraceMapTest, EveryCommandThatReadsTracesTakesOwnNames) {
  const std::string in = WriteScratch("own.csv",
                                      "id,arrival,n_gpus,runtime,comment\n"
                                      "a,0,1,00:00:05,x\nb,2,1,10,y\n");
  const std::string map = " --map job_id=id,submit_time=arrival,gpus=n_gpus,duration=runtime ";
  const CommandResult validated = RunTrainyard("trace validate " + in + map);
  EXPECT_EQ(validated.out, in + ": 2 jobs, format native, 0 rows skipped\n");
  EXPECT_EQ(validated.err, in + ":1: columns that are not read: comment\n");
  const std::string out = ScratchPath("mapped.csv");
  EXPECT_EQ(RunTrainyard("trace convert --force " + in + " " + out + map).status, 0);
  EXPECT_NE(ReadText(out).find("\na,0,1,5,"), std::string::npos) << ReadText(out);
  for (const std::string command : {"trace stats ", "simulate ", "compare "}) {
    std::string rest;
    if (command == "simulate ") {
      rest = " --cluster 1x1 --policy fifo";
    } else if (command == "compare ") {
      rest = " --cluster 1x1 --policy fifo --policy srtf --out " + ScratchPath("own-compared");
    }
    const CommandResult result = RunTrainyard(command + in + map + rest);
    EXPECT_EQ(result.status, 0) << command << result.err;
    EXPECT_EQ(RunTrainyard(command + in + rest).status, kBadInput) << command;
  }
  EXPECT_EQ(RunTrainyard("trace validate --map n_gpus=gpus " + in).status, kWrongUsage);
}

TEST(TraceValidateTest, TellsAllBadRowsAtOnceAlsoThoseThatDoNotFitTheCluster) {
  const std::string in = WriteScratch(
      "bad.csv", "job_id,submit_time,gpus,duration\na,0,-1,5\nb,0,9,5\nc,0,1,x\nd,0,8,5\n");
  const CommandResult result = RunTrainyard("trace validate " + in + " --cluster 1x8");
  EXPECT_EQ(result.status, kBadInput);
  for (const std::string part : {":2: column 'gpus' is '-1'", ":3: job 'b' asks for 9 GPUs",
                                 ":4: column 'duration' is 'x'"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
}

TEST(TraceHelpTest, ListsTheFormats) {
  const CommandResult result = RunTrainyard("trace --help");
  EXPECT_NE(result.out.find("  tiresias     * "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  gavel          "), std::string::npos) << result.out;
}

TEST(SimulateTest, ATraceWithoutWorkIsRefused) {
  const std::string in =
      WriteScratch("sia.csv", "name,time,application,num_replicas,batch_size\na,0,bert,1,32\n");
  const CommandResult result = RunTrainyard("simulate " + in + " --cluster 1x1");
  EXPECT_EQ(result.status, kBadInput);
  EXPECT_NE(result.err.find("sia.csv:2: job a states no work"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace trainyard
