// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"
#include "support/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "io/file.h"
#include "model/request/node_request.h"
#include "support/scratch_folder.h"
#include "support/trace_files.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kNative =
    "job_id,submit_time,gpus,duration,iterations,user,queue,model,batch_size,deadline,best_"
    "effort\n";
constexpr std::string_view kElasticflow =
    "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n";

std::string NativeRow(std::string_view row) {
  return std::string(kNative) + std::string(row) + "\n";
}
std::string ElasticflowRow(std::string_view row) {
  return std::string(kElasticflow) + std::string(row) + "\n";
}

TEST(NativeTraceTest, ReadsAllColumns) {
  const auto trace = ReadText(NativeRow("a,1.5,8,60,1e3,ann,research,bert,64,99.25,0"));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "native");
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "a");
  EXPECT_EQ(job.submit, AtSeconds(1.5));
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.iterations, 1000);
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.queue, "research");
  EXPECT_EQ(job.model, "bert");
  EXPECT_EQ(job.batch_size, 64);
  EXPECT_EQ(job.deadline, AtSeconds(99.25));
  EXPECT_FALSE(job.best_effort);
}

TEST(NativeTraceTest, ReadsTheFewestColumnsInAnyOrder) {
  const auto trace = ReadText("gpus,iterations,job_id,submit_time\n2,10,a,0\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(trace.value().jobs[0].duration.has_value());
  EXPECT_EQ(trace.value().jobs[0].iterations, 10);
}

TEST(NativeTraceTest, WhatTasksNeedIsThatOfTheirNodes) {
  const auto trace = ReadText(
      "job_id,submit_time,gpus,duration,cpus,memory,nodes,tasks,tasks_per_node\n"
      "a,0,8,5,1.5/task,8G/task,2,8,\n"
      "b,0,8,5,,,,8,2\n"
      "c,0,8,5,4/task,,,,\n"
      "d,0,0,5,4/task,1G/node,,3,\n"
      "e,0,8,5,4/node,,1-2,,6\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::vector<std::string> expected{"6 CPUs/node, 32G memory/node, 2 nodes", "4 nodes",
                                          "4 CPUs/gpu", "12 CPUs/node, 1G memory/node",
                                          "4 CPUs/node, 1-2 nodes"};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(model::TextOf(*trace.value().jobs.at(i).traits->request), expected[i]);
  }
  for (const char* const format : {"native", "jsonl"}) {  // what they come to is kept
    const auto again = ReadText(WriteTrace(trace.value(), format).value());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again.value().jobs[0].traits, *trace.value().jobs[0].traits);
    EXPECT_EQ(*again.value().jobs[3].traits, *trace.value().jobs[3].traits);
  }
  const auto jsonl = ReadText(
      R"({"job_id":"a","submit_time":0,"gpus":8,"duration":5,"cpus":"4/task","tasks_per_node":2})");
  ASSERT_TRUE(jsonl.ok()) << jsonl.error().message;
  EXPECT_EQ(model::TextOf(*jsonl.value().jobs.at(0).traits->request), "8 CPUs/node");
  const std::string head = "job_id,submit_time,gpus,duration,cpus,nodes,tasks\n";
  EXPECT_EQ(ErrorOf(head + "a,0,8,5,,3,8\n"),
            "t.csv:2: its 8 tasks cannot be on 3 nodes, the same number on each; expected 6 or 9 "
            "tasks");
  EXPECT_TRUE(Says(ErrorOf(head + "a,0,8,5,4/task,,8\n"), "nothing says on how many nodes"));
  EXPECT_EQ(ErrorOf(head + "a,0,8,5,,1,0\n"),
            "t.csv:2: column 'tasks' is '0'; expected an integer from 1 to 6400000");
}

TEST(NativeTraceTest, EmptyCellsAreAbsent) {
  const auto trace = ReadText(NativeRow("a,0,1,5,,,,,,,"));
  ASSERT_TRUE(trace.ok());
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_FALSE(job.iterations.has_value());
  EXPECT_FALSE(job.deadline.has_value());
  EXPECT_EQ(job.batch_size, 0);
}

TEST(NativeTraceTest, ABestEffortJobHasNoDeadline) {
  const auto trace = ReadText(NativeRow("a,10,1,5,,,,,,2,1"));
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace.value().jobs[0].best_effort);
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
}

TEST(NativeTraceTest, RefusesAnUnknownColumn) {
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpus,duration,usr\na,0,1,5,x\n", {.format = "native"}),
            "t.csv:1: unknown column 'usr'; did you mean 'user'?");
}

TEST(NativeTraceTest, ReadsAndWritesDataSets) {
  const std::string text = std::string(kNative.substr(0, kNative.size() - 1)) +
                           ",data_set,data_mib,data_home\n"
                           "a,0,1,5,,,,,,,0,imagenet,150000,n3\n"
                           "b,0,1,5,,,,,,,0,,,\n"
                           "c,0,1,5,,,,,,,0,imagenet,150000,n3\n";
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::vector<JobSpec>& jobs = trace.value().jobs;
  EXPECT_EQ(jobs[0].traits->data_set, (DataSet{.name = "imagenet", .mib = 150'000, .home = "n3"}));
  EXPECT_EQ(jobs[1].traits, nullptr);
  EXPECT_EQ(WriteNativeTrace(jobs), text);
  const auto jsonl = ReadText(WriteJsonlTrace(jobs));
  ASSERT_TRUE(jsonl.ok()) << jsonl.error().message;
  EXPECT_EQ(WriteNativeTrace(jsonl.value().jobs), text);
  EXPECT_EQ(WriteNativeTrace({&jobs[1], 1}), NativeRow("b,0,1,5,,,,,,,0"));
}

TEST(NativeTraceTest, RefusesImpossibleDataSets) {
  const auto error = [](const std::string& rows) {
    return ErrorOf("job_id,submit_time,gpus,duration,data_set,data_mib,data_home\n" + rows);
  };
  EXPECT_EQ(error("a,0,1,5,x,0,\n"),
            "t.csv:2: column 'data_mib' is '0'; expected an integer from 1 to 1000000000");
  EXPECT_EQ(error("a,0,1,5,x,,\n"),
            "t.csv:2: column 'data_mib' is ''; expected an integer from 1 to 1000000000");
  EXPECT_EQ(error("a,0,1,5,,7,\n"),
            "t.csv:2: column 'data_mib' is '7'; expected none where no data_set is named");
  EXPECT_EQ(error("a,0,1,5,x,7,\nb,0,1,5,x,8,\n"),
            "t.csv:3: data_set 'x' has another size or home than in line 2; expected the same for "
            "all jobs");
}

TEST(NativeTraceTest, ReadsAndWritesGpuTypes) {
  const std::string header = std::string(kNative.substr(0, kNative.size() - 1)) + ",gpu_types\n";
  const auto trace = ReadText(header + "a,0,1,5,,,,,,,0,V100|A100\nb,0,1,5,,,,,,,0,\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::vector<JobSpec>& jobs = trace.value().jobs;
  EXPECT_EQ(jobs[0].traits->gpu_types, (std::vector<std::string>{"A100", "V100"}));
  EXPECT_EQ(jobs[1].traits, nullptr);
  const std::string text = header + "a,0,1,5,,,,,,,0,A100|V100\nb,0,1,5,,,,,,,0,\n";
  EXPECT_EQ(WriteNativeTrace(jobs), text);
  const auto jsonl = ReadText(WriteJsonlTrace(jobs));
  ASSERT_TRUE(jsonl.ok()) << jsonl.error().message;
  EXPECT_EQ(WriteNativeTrace(jsonl.value().jobs), text);
  EXPECT_EQ(WriteNativeTrace({&jobs[1], 1}), NativeRow("b,0,1,5,,,,,,,0"));
}

TEST(NativeTraceTest, RefusesImpossibleGpuTypes) {
  for (const std::string bad : {"A100|A100", "|A100", "A100|", "|"}) {
    EXPECT_EQ(ErrorOf("job_id,submit_time,gpus,duration,gpu_types\na,0,1,5," + bad + "\n"),
              "t.csv:2: column 'gpu_types' is '" + bad +
                  "'; expected different names with '|' between them, or in an order with ',', or "
                  "nothing for any");
  }
}

TEST(NativeTraceTest, ReadsAndWritesWhatOnlySomeFormatsState) {
  const std::string text = std::string(kNative.substr(0, kNative.size() - 1)) +
                           ",handover_time,priority,target_times,target_values,iteration_time,"
                           "stage_0,stage_1,stage_2,devices,loader_workers\n"
                           "a,30,2,5,9,,,m,8,40,0,60,2,10-20.5,1-0.25,0.5,0.25,0.125,0,"
                           "{'x':[0] 'y':[1]},3\n"
                           "b,0,1,5,,,,,,,0,,,,,,,,,['5'],\n"
                           "c,0,1,5,,,,,,,0,,,,,,,,,,\n";
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.handover, AtSeconds(60));
  EXPECT_EQ(job.priority, 2);
  ASSERT_NE(job.traits, nullptr);
  ASSERT_EQ(job.traits->deadlines.size(), 2U);
  EXPECT_EQ(job.traits->deadlines[1].at, AtSeconds(50.5));
  EXPECT_EQ(job.traits->deadlines[1].value, 0.25);
  EXPECT_EQ(job.traits->stages->stages, (std::vector<double>{0.25, 0.125, 0}));
  EXPECT_EQ(job.traits->devices.size(), 2U);
  EXPECT_EQ(job.traits->loader_workers, 3);
  EXPECT_EQ(trace.value().jobs[1].traits->devices.at(0).gpus, 1U << 5U);
  EXPECT_EQ(trace.value().jobs[2].traits, nullptr);
  EXPECT_EQ(trace.value().device_nodes.size(), 3U);
  EXPECT_EQ(WriteTrace(trace.value(), "native").value(), text);
  const auto jsonl = ReadText(WriteTrace(trace.value(), "jsonl").value());
  ASSERT_TRUE(jsonl.ok()) << jsonl.error().message;
  EXPECT_EQ(WriteTrace(jsonl.value(), "native").value(), text);
}

TEST(NativeTraceTest, RefusesWhatDoesNotGoTogether) {
  const auto error = [](const std::string& column, const std::string& value) {
    return ErrorOf("job_id,submit_time,gpus,duration,deadline," + column + "\na,10,1,5,20," +
                   value + "\n");
  };
  EXPECT_EQ(error("target_values", "5"),
            "t.csv:2: column 'target_values' is '5'; expected none without target_times");
  EXPECT_EQ(error("target_times,target_values", "5,1"),
            "t.csv:2: column 'target_times' is '5'; expected the first of them to be the deadline, "
            "10 s after the submit");
  EXPECT_EQ(error("stage_1", "5"),
            "t.csv:2: column 'stage_1' is '5'; expected none without an iteration_time");
  EXPECT_EQ(error("devices", "{'x':[0 1]}"),
            "t.csv:2: column 'devices' is '{'x':[0 1]}'; expected 1 GPUs, as many as the job asks "
            "for");
  EXPECT_EQ(error("loader_workers", "0"),
            "t.csv:2: column 'loader_workers' is '0'; expected an integer from 1 to 1000000000");
}

TEST(NativeTraceTest, TakesEndsOfARangeOfGpus) {
  const auto range = [](const std::string& least, const std::string& most) {
    const auto trace = ReadText("job_id,submit_time,gpus,duration,min_gpus,max_gpus\na,0,4,5," +
                                least + "," + most + "\n");
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    const std::shared_ptr<const JobTraits>& traits = trace.value().jobs.at(0).traits;
    return traits ? traits->range : GpuRange{};
  };
  EXPECT_EQ(range("", ""), GpuRange{});
  EXPECT_EQ(range("2", ""), (GpuRange{.least = 2}));
  EXPECT_EQ(range("", "8"), (GpuRange{.most = 8}));
  EXPECT_EQ(range("4", "4"), (GpuRange{.least = 4, .most = 4}));
  const auto error = [](const std::string& least, const std::string& most) {
    return ErrorOf("job_id,submit_time,gpus,duration,min_gpus,max_gpus\na,0,4,5," + least + "," +
                   most + "\n");
  };
  EXPECT_EQ(error("5", ""),
            "t.csv:2: column 'min_gpus' is '5'; expected an integer from 1 to 4; the job asks for "
            "4 GPUs");
  EXPECT_EQ(error("", "3"),
            "t.csv:2: column 'max_gpus' is '3'; expected an integer from 4 to 2147483647; the job "
            "asks for 4 GPUs");
  EXPECT_EQ(error("0", "").find("t.csv:2: column 'min_gpus' is '0'"), 0U);
}

TEST(NativeTraceTest, TakesCountsWithExponents) {
  const auto trace = ReadText("job_id,submit_time,gpus,duration,batch_size\na,0,1e1,1e3,6.4e1\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs[0].gpus, 10);
  EXPECT_EQ(trace.value().jobs[0].batch_size, 64);
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1.5e0,5,,,,,,,")),
            "t.csv:2: column 'gpus' is '1.5e0'; expected an integer from 0 to 6400000");
}

TEST(TraceTest, SaysWhyKnownTracesAreNotRead) {
  EXPECT_NE(ErrorOf("time,type,collection_id,priority\n").find("Google 2019"), std::string::npos);
  EXPECT_NE(ErrorOf("vmId,tenantId,vmTypeId,starttime\n").find("Azure 2020"), std::string::npos);
  EXPECT_NE(ErrorOf("model1,speed1,gpu_util,gmem_util,gmem\n").find("Lucid"), std::string::npos);
}

TEST(NativeTraceTest, RefusesAMissingColumn) {
  EXPECT_EQ(ErrorOf("job_id,gpus,duration\na,1,5\n", {.format = "native"}),
            "t.csv:1: no column submit_time; format native needs job_id, submit_time, gpus, and "
            "duration or iterations");
}

TEST(NativeTraceTest, RefusesATraceWithoutWork) {
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpus\na,0,1\n", {.format = "native"}),
            "t.csv:1: no column duration or iterations; expected one of them at least");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,,,,,,,,")),
            "t.csv:2: neither duration nor iterations; expected one of them at least");
}

TEST(NativeTraceTest, RefusesBadValues) {
  EXPECT_EQ(ErrorOf(NativeRow(",0,1,5,,,,,,,")), "t.csv:2: column 'job_id' is ''; expected a text");
  EXPECT_EQ(ErrorOf(NativeRow("a,-1,1,5,,,,,,,")),
            "t.csv:2: column 'submit_time' is '-1'; expected a number of seconds >= 0 and <= "
            "9000000000");
  EXPECT_EQ(ErrorOf(NativeRow("a,1.6e12,1,5,,,,,,,")),
            "t.csv:2: column 'submit_time' is '1.6e12'; expected a number of seconds >= 0 and <= "
            "9000000000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,-1,5,,,,,,,")),
            "t.csv:2: column 'gpus' is '-1'; expected an integer from 0 to 6400000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1.5,5,,,,,,,")),
            "t.csv:2: column 'gpus' is '1.5'; expected an integer from 0 to 6400000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,99999999,5,,,,,,,")),
            "t.csv:2: column 'gpus' is '99999999'; expected an integer from 0 to 6400000");
  EXPECT_EQ(
      ErrorOf(NativeRow("a,0,1,0,,,,,,,")),
      "t.csv:2: column 'duration' is '0'; expected a number of seconds > 0 and <= 9000000000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,,0,,,,,,")),
            "t.csv:2: column 'iterations' is '0'; expected a number > 0 and <= 1000000000000000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,5,,,,,0,,")),
            "t.csv:2: column 'batch_size' is '0'; expected an integer from 1 to 1000000000000");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,5,,,,,,,yes")),
            "t.csv:2: column 'best_effort' is 'yes'; expected 1 or 0");
}

TEST(NativeTraceTest, RefusesADurationBelowAMicrosecond) {
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,1e-7,,,,,,,")),
            "t.csv:2: column 'duration' is '1e-7'; expected a number of seconds > 0 and <= "
            "9000000000");
}

TEST(NativeTraceTest, RefusesADeadlineBeforeTheSubmit) {
  EXPECT_EQ(ErrorOf(NativeRow("a,10,1,5,,,,,,9.5,")),
            "t.csv:2: column 'deadline' is '9.5'; expected a time not before the submit at 10");
}

TEST(TraceTest, NamesBothLinesOfADuplicateId) {
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,5,,,,,,,\nb,0,1,5,,,,,,,\n\na,1,1,5,,,,,,,")),
            "t.csv:5: job_id 'a' is already in line 2; expected a new one");
}

TEST(TraceTest, FindsADuplicateAmongMany) {
  std::string text(kNative);
  for (int i = 0; i < 5000; ++i) {
    text += "j" + std::to_string(i) + ",0,1,5,,,,,,,\n";
  }
  EXPECT_EQ(ReadText(text).value().jobs.size(), 5000U);
  EXPECT_EQ(ErrorOf(text + "j17,0,1,5,,,,,,,\n"),
            "t.csv:5002: job_id 'j17' is already in line 19; expected a new one");
}

TEST(TraceTest, RefusesATraceWithoutJobs) {
  EXPECT_EQ(ErrorOf(kNative), "t.csv: no jobs; expected a row at least");
}

TEST(TraceTest, KeepsFileOrderLinesAndDigest) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", NativeRow("a,9,1,5,,,,,,,\n\nb,3,1,5,,,,,,,"));
  const auto trace = ReadTrace(path);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().path, path);
  EXPECT_EQ(trace.value().jobs[0].name, "a");
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(trace.value().sha256, io::Sha256OfFile(path).value());
}

TEST(TraceTest, ReadsGzipAsPlain) {
  const ScratchFolder folder;
  const std::string text = NativeRow("a,9,1,5,,,,,,,");
  const auto trace = ReadText(folder.Gzip(text));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(WriteNativeTrace(trace.value().jobs), WriteNativeTrace(ReadText(text).value().jobs));
}

TEST(TraceTest, SkipsBadRowsOnRequestAndListsThem) {
  const ScratchFolder folder;
  const std::string path = folder.Write(
      "t.csv",
      NativeRow("a,0,1,5,,,,,,,\nb,0,-3,5,,,,,,,\nshort,0\na,0,1,5,,,,,,,\nc,0,1,5,,,,,,,"));
  const auto trace = ReadTrace(path, {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().lines, (std::vector<std::int64_t>{2, 6}));
  ASSERT_EQ(trace.value().skipped.size(), 3U);
  EXPECT_EQ(trace.value().skipped[0].line, 3);
  EXPECT_EQ(trace.value().skipped[0].why,
            path + ":3: column 'gpus' is '-3'; expected an integer from 0 to 6400000");
  EXPECT_EQ(trace.value().skipped[1].why, path + ":4: 2 fields; expected 11 as in the header");
  EXPECT_EQ(trace.value().skipped[2].why,
            path + ":5: job_id 'a' is already in line 2; expected a new one");
}

TEST(TraceTest, RefusesATraceOfWhichAllRowsAreSkipped) {
  const std::string error = ErrorOf(NativeRow("a,0,-1,5,,,,,,,"), {.skip_bad_rows = true});
  EXPECT_TRUE(error.starts_with("t.csv: no jobs; all 1 rows were skipped, the first because of "))
      << error;
}

TEST(TraceTest, SkippingDoesNotExcuseBrokenText) {
  const TraceOptions skip{.skip_bad_rows = true};
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,5,,\xE9,,,,,"), skip),
            "t.csv:2: not UTF-8; expected UTF-8 text");
  EXPECT_EQ(ErrorOf(NativeRow("a,0,1,5,,\"x,,,,,"), skip),
            "t.csv:2: a quoted field that never ends; expected a closing quote");
}

TEST(TraceTest, RefusesColumnsThatFitNoFormat) {
  const std::string error = ErrorOf("id,when\n1,2\n");
  EXPECT_EQ(
      error,
      "t.csv:1: the columns id, when fit no trace format; expected job_id, submit_time, gpus, "
      "and duration or iterations (--map gpus=NAME,... reads columns with names of their own; "
      "`trainyard trace --help` lists all formats)");
}

TEST(TraceTest, NamesTheNearestFormatOfColumnsThatFitNone) {
  const std::string error =
      ErrorOf("job_id,user,vc,gpus,state,submit_time,start_time,end_time\n1,2,3,4,5,6,7,8\n");
  EXPECT_TRUE(
      error.ends_with("fit no trace format; nearest is helios, which needs also gpu_num "
                      "(`trainyard trace --help` lists all formats)"))
      << error;
}

TEST(TraceTest, ASlipInANativeColumnIsNamed) {
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpus,duration,batchsize\na,0,1,5,64\n"),
            "t.csv:1: unknown column 'batchsize'; did you mean 'batch_size'? The other columns are "
            "of format native");
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpu,duration,user\na,0,1,5,x\n"),
            "t.csv:1: unknown column 'gpu'; did you mean 'gpus'? The other columns are of format "
            "native");
  EXPECT_EQ(ErrorOf("job_id,gpus,duration,user,deadline\na,1,5,x,9\n"),
            "t.csv:1: no column submit_time; the others are of format native, which needs job_id, "
            "submit_time, gpus, and duration or iterations");
  EXPECT_EQ(ErrorOf("job_id,submit_time,gpus,user\na,0,1,x\n"),
            "t.csv:1: no column duration or iterations; expected one of them at least");
  EXPECT_TRUE(ErrorOf("job_id,submit_time,gpus,duration,min_gpus,colour\na,0,1,5,1,red\n")
                  .starts_with("t.csv:1: unknown column 'colour'; format native has job_id, "
                               "submit_time, gpus, and duration or iterations (docs/formats"));
}

TEST(TraceTest, RefusesAnUnknownFormat) {
  const auto trace = ReadText(kNative, {.format = "elastic"});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(trace.error().message.starts_with("unknown trace format 'elastic'; "))
      << trace.error().message;
  for (const TraceFormat& format : TraceFormats()) {
    EXPECT_NE(trace.error().message.find(format.name), std::string::npos) << format.name;
  }
}

TEST(TraceTest, ListsTheFormats) {
  ASSERT_GE(TraceFormats().size(), 23U);
  EXPECT_EQ(TraceFormats()[0].name, "native");
  EXPECT_TRUE(
      std::is_sorted(TraceFormats().begin() + 1, TraceFormats().end(),
                     [](const TraceFormat& a, const TraceFormat& b) { return a.name < b.name; }));
}

TEST(WriteNativeTraceTest, ReadsBackAsTheSameJobs) {
  const std::string text = NativeRow(
      "a,0.000001,1,1700000000.123456,0.1,\"x,\"\"y\"\"\",,m,64,,1\n"
      "b,12.5,64,3,1e15,ann,q,m,1,4e9,0\n"
      "\"c\nd\",100,2,,0.30000000000000004,,,,,100,0");
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::string written = WriteNativeTrace(trace.value().jobs);
  const auto again = ReadText(written);
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again.value().jobs.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const JobSpec& a = trace.value().jobs[i];
    const JobSpec& b = again.value().jobs[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.user, b.user);
    EXPECT_EQ(a.queue, b.queue);
    EXPECT_EQ(a.model, b.model);
    EXPECT_EQ(a.gpus, b.gpus);
    EXPECT_EQ(a.batch_size, b.batch_size);
    EXPECT_EQ(a.submit, b.submit);
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(a.iterations, b.iterations);
    EXPECT_EQ(a.deadline, b.deadline);
    EXPECT_EQ(a.best_effort, b.best_effort);
  }
}

TEST(WriteNativeTraceTest, WritesShortDecimals) {
  EXPECT_EQ(WriteNativeTrace(ReadText(NativeRow("a,1.50,1,60.0,10.0,,,,,,")).value().jobs),
            std::string(kNative) + "a,1.5,1,60,10,,,,,,0\n");
}

TEST(ElasticflowTraceTest, ReadsTheSpellingOfTheArtifact) {
  const auto trace = ReadText(ElasticflowRow("7,10,7246,resnet50,5896,256,4,3930,0"));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "elasticflow");
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "7");
  EXPECT_EQ(job.submit, AtSeconds(10));
  EXPECT_EQ(job.iterations, 7246);
  EXPECT_EQ(job.model, "resnet50");
  EXPECT_EQ(job.deadline, AtSeconds(5896));
  EXPECT_EQ(job.batch_size, 256);
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.duration, FromSeconds(3930));
}

TEST(ElasticflowTraceTest, ReadsTheSpellingOfThePublicTraces) {
  const auto trace = ReadText(
      "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
      "u-1,10,7,bert,20,64,1,5\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "elasticflow");
  EXPECT_EQ(trace.value().jobs[0].deadline, AtSeconds(20));
}

TEST(ElasticflowTraceTest, IgnoresFurtherColumns) {
  const auto trace = ReadText(
      "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,"
      "iteration\n0,0,1,vgg16,9,256,1,2,5,7\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().jobs[0].iterations, 7);
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(5));
}

TEST(ElasticflowTraceTest, BestEffortDropsTheDeadline) {
  const auto trace = ReadText(ElasticflowRow("0,10,7,bert,5,64,1,5,1"));
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace.value().jobs[0].best_effort);
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
}

TEST(ElasticflowTraceTest, TheLargestNumberIsNoDeadline) {
  const auto trace = ReadText(ElasticflowRow("0,10,7,bert,9223372036854775807,64,1,5,0"));
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(trace.value().jobs[0].deadline.has_value());
}

TEST(ElasticflowTraceTest, RefusesBadValues) {
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,0,bert,20,64,1,5,0")),
            "t.csv:2: column 'iteration' is '0'; expected a number > 0 and <= 1000000000000000");
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,7,bert,20,64,1,-5,0")),
            "t.csv:2: column 'duration' is '-5'; expected a number of seconds > 0 and <= "
            "9000000000");
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,7,bert,20,64,0,5,0")),
            "t.csv:2: column 'num_gpu' is '0'; expected an integer from 1 to 6400000");
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,7,,20,64,1,5,0")),
            "t.csv:2: column 'model_name' is ''; expected a text");
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,7,bert,9,64,1,5,0")),
            "t.csv:2: column 'ddl' is '9'; expected a time not before the submit at 10");
  EXPECT_EQ(ErrorOf(ElasticflowRow("0,10,7,bert,,64,1,5,0")),
            "t.csv:2: column 'ddl' is ''; expected a number of seconds >= 0 and <= 9000000000");
}

TEST(ItpTraceTest, ReadsTheRawTable) {
  const auto trace = ReadText("job_id,submit_time,gpus,duration,status\na,5,8,600,Pass\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "itp");
  EXPECT_EQ(trace.value().jobs[0].gpus, 8);
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(600));
}

TEST(ItpTraceTest, ReadsThePublicSpelling) {
  const auto trace = ReadText("job_id,submission_time,duration,num_gpu\na,5,600,8\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "itp");
}

TEST(ItpTraceTest, LeavesFailedJobsOutAndListsThem) {
  const auto trace =
      ReadText("job_id,submit_time,gpus,duration,status\na,5,8,0,Failed\nb,5,8,60,Killed\n");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().jobs[0].name, "b");
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_EQ(trace.value().skipped[0].line, 2);
  EXPECT_TRUE(trace.value().skipped[0].why.ends_with(
      "t.csv:2: column 'status' is 'Failed'; failed jobs are left out"));
}

TEST(TiresiasTraceTest, ReadsTheSimulatorsColumns) {
  const auto trace = ReadText(
      "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n1,8,30,133,vgg11,147.5,"
      "23\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "tiresias");
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.submit, AtSeconds(30));
  EXPECT_EQ(job.model, "vgg11");
  EXPECT_EQ(job.duration, FromSeconds(147.5));
  EXPECT_FALSE(job.iterations.has_value());
}

TEST(TiresiasTraceTest, ReadsTheNeededColumnsAlone) {
  const auto trace = ReadText("job_id,num_gpu,submit_time,model_name,duration\n1,8,30,vgg11,147\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "tiresias");
}

TEST(SynergyTraceTest, ReadsTheFiveColumns) {
  const auto trace =
      ReadText("job_id,model,arrival_s,total_iterations,gpus\r\n7,gnmt,0.001,26435,2\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "synergy");
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "7");
  EXPECT_EQ(job.model, "gnmt");
  EXPECT_EQ(job.submit, AtSeconds(0.001));
  EXPECT_EQ(job.iterations, 26435);
  EXPECT_EQ(job.gpus, 2);
  EXPECT_FALSE(job.duration.has_value());
}

TEST(SynergyTraceTest, ReadsTheTwelveColumns) {
  const auto trace = ReadText(
      "job_id,model,task,arrival_s,total_iterations,iter_time_s,gpus,fair_duration_s,cpu_demand,"
      "mem_demand_gb,sspeed_demand,speedup\n"
      "0,alexnet,IMAGE,409,8176,0.6,1,4905.6,12,125.0,62.5,2.94\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "synergy");
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(4905.6));
  EXPECT_EQ(trace.value().jobs[0].iterations, 8176);
}

TEST(SynergyTraceTest, WritesWhatItReads) {
  const std::string text =
      "job_id,model,arrival_s,total_iterations,gpus\n0,alexnet,0,3349,1\n1,m5,12.5,1000000,8\n";
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(WriteSynergyTrace(trace.value().jobs), text);
}

TEST(SynergyTraceTest, RefusesBadRows) {
  EXPECT_EQ(
      ErrorOf("job_id,model,arrival_s,total_iterations,gpus\n0,alexnet,0,0,1\n"),
      "t.csv:2: column 'total_iterations' is '0'; expected a number > 0 and <= 1000000000000000");
  EXPECT_EQ(ErrorOf("job_id,model,arrival_s,total_iterations,gpus\n0,,0,5,1\n"),
            "t.csv:2: column 'model' is ''; expected a text");
}

TEST(CheckFitsTest, NamesTheFirstJobThatIsTooLarge) {
  const auto trace = ReadText(NativeRow("a,0,8,5,,,,,,,\nb,0,9,5,,,,,,,"));
  ASSERT_TRUE(trace.ok());
  Cluster cluster{.name = "small", .nodes = {{.name = "n0", .gpus = 8}}};
  const Status status = CheckFits(trace.value(), cluster);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            trace.value().path +
                ":3: job 'b' asks for 9 GPUs; expected at most the 8 of cluster 'small'");
  cluster.nodes.push_back({.name = "n1", .gpus = 1});
  EXPECT_TRUE(CheckFits(trace.value(), cluster).ok());
}

// What a real sacct prints, in both forms.
TEST(PublishedTracesTest, JobsOfSacctAreTheSameInJsonAndTables) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string folder = Reference() + "/reports/sacct-22.05";
  const auto json = ReadTrace(folder + "/sacct.json", {.cpu_jobs = true, .node_requests = true});
  const auto table =
      ReadTrace(folder + "/all-columns.txt", {.cpu_jobs = true, .node_requests = true});
  ASSERT_TRUE(json.ok()) << json.error().message;
  ASSERT_TRUE(table.ok()) << table.error().message;
  std::map<std::string, const JobSpec*> of_json;
  for (const JobSpec& job : json.value().jobs) {
    of_json[job.name] = &job;
  }
  int on_two_nodes = 0;
  for (const JobSpec& job : table.value().jobs) {
    ASSERT_TRUE(of_json.contains(job.name)) << job.name;
    const JobSpec& same = *of_json[job.name];
    EXPECT_EQ(same.gpus, job.gpus) << job.name;
    EXPECT_EQ(same.duration, job.duration) << job.name;
    EXPECT_EQ(same.user, job.user) << job.name;
    EXPECT_EQ(same.queue, job.queue) << job.name;
    ASSERT_TRUE(same.traits && job.traits) << job.name;
    EXPECT_EQ(*same.traits, *job.traits) << job.name;
    on_two_nodes += job.traits->request->nodes.least == 2 ? 1 : 0;
  }
  EXPECT_EQ(on_two_nodes, 3);
  EXPECT_EQ(table.value().jobs.size(), 21U);
  EXPECT_EQ(json.value().jobs.size(), 22U) << "one with an odd name is not in the table";
}

TEST(PublishedTracesTest, AreAllRead) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data";
  for (const auto& file : std::filesystem::directory_iterator(data + "/elasticflow/traces")) {
    const auto trace = ReadTrace(file.path().string());
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().format, "elasticflow");
  }
  const auto trace = ReadTrace(data + "/tiresias/60_job.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "tiresias");
  EXPECT_EQ(trace.value().jobs.size(), 60U);
  const auto soft = ReadTrace(data + "/chronus/mix2_300.csv");
  ASSERT_TRUE(soft.ok()) << soft.error().message;
  EXPECT_EQ(soft.value().format, "chronus");
  EXPECT_EQ(soft.value().jobs.size(), 300U);
  for (const auto& file : std::filesystem::directory_iterator(data + "/muri")) {
    if (file.path().filename().string().find("trace") != std::string::npos) {
      const auto muri = ReadTrace(file.path().string());
      ASSERT_TRUE(muri.ok()) << muri.error().message;
      EXPECT_EQ(muri.value().format, "muri");
    }
  }
}

}  // namespace
}  // namespace trainyard::trace
