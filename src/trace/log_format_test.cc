// SPDX-License-Identifier: Apache-2.0
// The logs that are tables with one row for each job: helios, acme, openb, dlrm, spot-gpu.
#include "trace/log_format.h"

#include <gtest/gtest.h>

#include "model/request/node_request.h"
#include "support/trace_files.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kHelios =
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
    "queue\n";
constexpr std::string_view kSeren =
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time\n";
constexpr std::string_view kKalos =
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,"
    "start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n";
constexpr std::string_view kOpenb =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";
constexpr std::string_view kDlrm =
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,"
    "scheduled_time,deletion_time\n";
constexpr std::string_view kSpotGpu =
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,"
    "job_type\n";

std::string LogError(std::string_view header, std::string_view rows,
                     const TraceOptions& options = {}) {
  return ErrorOf(std::string(header).append(rows), options);
}

// A trace of at least one job, or what went wrong.
Trace Good(std::string_view header, std::string_view rows, const TraceOptions& options = {}) {
  Result<Trace> trace = ReadText(std::string(header).append(rows), options);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? std::move(trace).value() : Trace{.jobs = {JobSpec{}}};
}

std::string Names(const Trace& trace) {
  std::string names;
  for (const JobSpec& job : trace.jobs) {
    names += (names.empty() ? "" : " ") + job.name;
  }
  return names;
}

// "line:rows what" of each group.
std::string Told(const std::vector<RowGroup>& groups) {
  std::string told;
  for (const RowGroup& group : groups) {
    const std::string at = "t.csv:" + std::to_string(group.line) + ": ";
    const std::size_t what = group.why.find(at);
    EXPECT_NE(what, std::string::npos) << group.why;
    told += std::to_string(group.line) + ":" + std::to_string(group.rows) + " " +
            group.why.substr(what + at.size()) + "\n";
  }
  return told;
}

TEST(HeliosTraceTest, ReadsTheColumns) {
  const Trace trace =
      Good(kHelios,
           "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,"
           "2020-06-10 04:55:09,36848,0\n"
           "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:42:27,"
           "2020-06-09 18:46:36,249,60\n");
  EXPECT_EQ(trace.format, "helios");
  ASSERT_EQ(Names(trace), "1425511 1425512");
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(36848));
  EXPECT_EQ(trace.jobs[0].submit, AtSeconds(0));
  const JobSpec& job = trace.jobs[1];
  EXPECT_EQ(job.user, "uVMrF");
  EXPECT_EQ(job.queue, "vchbv");
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.submit, AtSeconds(26));
  EXPECT_EQ(job.duration, FromSeconds(249));
  EXPECT_FALSE(job.best_effort);
  EXPECT_EQ(trace.origin, "2020-06-09 18:41:01");
  EXPECT_EQ(trace.waits, (std::vector<std::optional<Duration>>{FromSeconds(0), FromSeconds(60)}));
  EXPECT_EQ(trace.states, (std::map<std::string, std::int64_t>{{"COMPLETED", 1}, {"FAILED", 1}}));
}

TEST(HeliosTraceTest, WhatIsNoJobToScheduleIsCountedByReason) {
  const Trace trace = Good(
      kHelios,
      "1,u,vc,0,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n"
      "2,u,vc,2,4,1,TIMEOUT,2020-03-31 23:59:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,60\n"
      "3,u,vc,0,4,1,FAILED,2020-04-01 00:00:00,,,,\n"
      "4,u,vc,1,4,1,RUNNING,2020-04-01 00:00:00,2020-04-01 00:00:00,,,0\n"
      "5,u,vc,1,4,1,CANCELLED,2020-04-01 00:00:00,,2020-04-01 00:01:00,,\n"
      "6,u,vc,1,4,1,SUSPENDED,2020-04-01 00:00:00,2020-04-01 00:00:00,None,,0\n"
      "7,u,vc,1,4,1,CANCELLED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:00:00,0,0\n"
      "8,u,vc,8,4,1,NODE_FAIL,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n"
      "9,u,vc,1,4,1,SUSPENDED,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n");
  EXPECT_EQ(Names(trace), "2 8 9");
  EXPECT_EQ(trace.jobs[1].submit, AtSeconds(60)) << "a submit before April is the first";
  EXPECT_EQ(model::TextOf(*trace.jobs[0].traits->request), "4 CPUs");
  EXPECT_EQ(trace.jobs[0].traits, trace.jobs[1].traits) << "one for all";
  EXPECT_EQ(trace.skipped_rows, 6);
  EXPECT_EQ(Told(trace.skipped),
            "2:2 it asks for no GPUs; jobs on CPUs alone are left out\n"
            "5:2 it had not ended when the log was taken; such jobs are left out\n"
            "6:1 no start is recorded; jobs that never started are left out\n"
            "8:1 it ended when it started; jobs that took no time are left out\n");
  EXPECT_EQ(trace.skipped[0].further, (std::vector<std::int64_t>{4}));
}

TEST(HeliosTraceTest, MemoryDoesNotGrowWithTheRowsLeftOut) {
  std::string rows;
  for (int i = 0; i < 5000; ++i) {
    rows += std::to_string(i) + ",u,vc,0,4,1,COMPLETED,,,,,\n";
  }
  rows += "x,u,vc,1,4,1,OK,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n";
  const Trace trace = Good(kHelios, rows);
  EXPECT_EQ(trace.skipped_rows, 5000);
  ASSERT_EQ(trace.skipped.size(), 1U);
  EXPECT_EQ(trace.skipped[0].rows, 5000);
  EXPECT_EQ(trace.skipped[0].further, (std::vector<std::int64_t>{3, 4, 5, 6}));
}

TEST(HeliosTraceTest, BadRowsRefuseTheFileOrAreSkipped) {
  const std::string good =
      "1,u,vc,1,4,1,OK,2020-04-01 00:00:00,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n";
  const auto error = [&](const std::string& row) { return LogError(kHelios, good + row); };
  EXPECT_EQ(error(good), "t.csv:3: job_id '1' is already in line 2; expected a new one");
  EXPECT_EQ(error("2,u,vc,x,4,1,OK,,,,,\n"),
            "t.csv:3: column 'gpu_num' is 'x'; expected the number of GPUs");
  EXPECT_EQ(error("2,u,vc,,4,1,OK,,,,,\n"),
            "t.csv:3: column 'gpu_num' is ''; expected the number of GPUs");
  EXPECT_EQ(error("2,u,vc,-1,4,1,OK,,,,,\n"),
            "t.csv:3: column 'gpu_num' is '-1'; expected the number of GPUs");
  EXPECT_EQ(error("2,u,vc,1e12,4,1,OK,,,,,\n"),
            "t.csv:3: column 'gpu_num' is '1e12'; expected at most 6400000 GPUs of one job");
  EXPECT_EQ(error(",u,vc,1,4,1,OK,,,,,\n"),
            "t.csv:3: column 'job_id' is ''; expected the id of the job");
  EXPECT_EQ(error("2,u,vc,1,4,1,OK,2020-04-31 00:00:00,,,,\n"),
            "t.csv:3: column 'submit_time' is '2020-04-31 00:00:00'; expected a time such as "
            "2020-04-01 00:00:05, with a zone or without");
  EXPECT_EQ(error("2,u,vc,1,4,1,OK,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 00:00:00,,"
                  "\n"),
            "t.csv:3: it ended 60 s before it started; expected an end behind the start");
  EXPECT_EQ(error("2,u,vc\n"), "t.csv:3: 3 fields; expected 12 as in the header");
  const Trace trace =
      Good(kHelios, good + "2,u,vc\n" + good + "3,u,vc,0,4,1,OK,,,,,\n", {.skip_bad_rows = true});
  EXPECT_EQ(trace.skipped_rows, 3);
  EXPECT_EQ(Told(trace.skipped),
            "3:1 3 fields; expected 12 as in the header\n"
            "4:1 job_id '1' is already in line 2; expected a new one\n"
            "5:1 it asks for no GPUs; jobs on CPUs alone are left out\n");
}

TEST(HeliosTraceTest, AStartBeforeTheSubmitIsRemarked) {
  const Trace trace =
      Good(kHelios,
           "1,u,vc,1,4,1,OK,2020-04-01 00:00:30,2020-04-01 00:00:00,2020-04-01 00:01:00,60,0\n"
           "2,u,vc,1,4,1,OK,2020-04-01 00:00:30,2020-04-01 00:00:40,2020-04-01 00:01:00,60,0\n");
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(60));
  EXPECT_EQ(trace.waits, (std::vector<std::optional<Duration>>{std::nullopt, FromSeconds(10)}));
  EXPECT_EQ(Told(trace.remarks),
            "2:1 it is recorded to start before its submit; its wait is not taken\n");
}

TEST(LogFormatTest, ColumnsMayBeInAnyOrderWithMarksQuotesAndCrlf) {
  const Trace trace = Good(
      "\xEF\xBB\xBFvc,end_time,\"start_time\",submit_time,state,gpu_num,user,job_id\r\n",
      "\"v,\"\"c\"\"\",2020-04-01 00:01:00,2020-04-01 00:00:00,2020-04-01 00:00:00,OK,1,\"u\r\nv\","
      "a\r\n"
      "v,x,2020-04-01 00:00:00,2020-04-01 00:00:00,OK,1,u,b\r\n",
      {.skip_bad_rows = true});
  EXPECT_EQ(trace.format, "helios");
  EXPECT_EQ(trace.jobs[0].queue, "v,\"c\"");
  EXPECT_EQ(trace.jobs[0].user, "u\r\nv");
  EXPECT_EQ(trace.skipped[0].line, 4) << "the line in which the row starts";
}

TEST(LogFormatTest, ANamedFormatSaysWhatItMisses) {
  EXPECT_EQ(LogError(kSeren, "", {.format = "helios"}),
            "t.csv:1: no column vc; format helios needs job_id, user, vc, gpu_num, state, "
            "submit_time, start_time, end_time");
  EXPECT_EQ(LogError(kHelios, "", {.format = "helois"}).substr(0, 54),
            "unknown trace format 'helois'; did you mean 'helios'?;");
}

TEST(AcmeTraceTest, ReadsSerenWithItsZone) {
  const Trace trace =
      Good(kSeren,
           "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
           "2023-03-01 00:20:51+08:00,117,32,936.0\n"
           "5778433,u5907,1,0,128,Other,FAILED,2023-03-01 00:18:22+08:00,,,,,\n");
  EXPECT_EQ(trace.format, "acme");
  ASSERT_EQ(Names(trace), "5778432");
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(117));
  EXPECT_EQ(trace.jobs[0].gpus, 8);
  EXPECT_EQ(trace.jobs[0].queue, "Other");
  EXPECT_EQ(trace.waits[0], FromSeconds(32));
  EXPECT_EQ(trace.origin, "2023-02-28 16:18:22+00:00");
  EXPECT_EQ(trace.skipped_rows, 1);
}

TEST(AcmeTraceTest, KalosDurationsAreThoseOfTheStamps) {
  const Trace trace =
      Good(kKalos,
           "dlctk696s0jbvitv,uf794,8,64.0,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,"
           "2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,"
           "1152.0\n"
           "dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Debug,CANCELLED,2023-05-17 11:28:42+00:00,"
           "2023-05-17 11:28:54+00:00,2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,82,12.0,"
           "5248.0\n"
           "r,uf794,8,64,960,1000,100.0,Other,RUNNING,2023-05-17 11:28:42+00:00,"
           "2023-05-17 11:28:54+00:00,2023-08-31 00:00:00+00:00,,,82,12.0,\n");
  EXPECT_EQ(trace.format, "acme");
  ASSERT_EQ(Names(trace), "dlctk696s0jbvitv dlc1t2ypl09b8qtp");
  EXPECT_EQ(trace.jobs[0].gpus, 64);
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(8));
  EXPECT_EQ(trace.jobs[1].duration, FromSeconds(70));
  EXPECT_EQ(trace.jobs[1].submit, AtSeconds(27 * 60 + 44));
  EXPECT_EQ(trace.jobs[1].queue, "Debug");
  EXPECT_EQ(Told(trace.skipped),
            "4:1 it had not ended when the log was taken; such jobs are left out\n");
}

TEST(OpenbTraceTest, ReadsPodsOfWholeGpus) {
  const Trace trace = Good(
      kOpenb,
      "openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437497\n"
      "openb-pod-0035,16000,32768,1,1000,V100M16|V100M32,LS,Running,9967058,9968575,9967063\n");
  EXPECT_EQ(trace.format, "openb");
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.jobs[0].gpus, 8);
  EXPECT_EQ(trace.jobs[0].queue, "Burstable");
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(1332357));
  EXPECT_TRUE(trace.jobs[0].traits->gpu_types.empty());
  EXPECT_EQ(model::TextOf(*trace.jobs[0].traits->request), "88 CPUs, 320G memory");
  EXPECT_EQ(trace.jobs[1].submit, AtSeconds(529561));
  EXPECT_EQ(trace.jobs[1].duration, FromSeconds(1512));
  EXPECT_EQ(trace.jobs[1].traits->gpu_types, (std::vector<std::string>{"V100M16", "V100M32"}));
  EXPECT_EQ(trace.waits[1], FromSeconds(5));
  EXPECT_EQ(trace.origin, "9437497 s");
  EXPECT_TRUE(trace.remarks.empty());
}

TEST(OpenbTraceTest, FractionsAreRoundedUpAndTold) {
  const Trace trace = Good(kOpenb,
                           "a,4000,15258,1,220,,BE,Running,10,50,10\n"
                           "b,4000,15258,2,220,,LS,Running,10,50,10\n"
                           "c,4000,15258,0,0,,LS,Running,10,50,10\n"
                           "d,4000,15258,1,500,,BE,Failed,0,50,10\n");
  EXPECT_EQ(Names(trace), "a b d");
  EXPECT_EQ(trace.jobs[0].gpus, 1);
  EXPECT_TRUE(trace.jobs[0].best_effort);
  EXPECT_EQ(trace.jobs[1].gpus, 2) << "milli-GPUs mean nothing beside several GPUs";
  EXPECT_FALSE(trace.jobs[1].best_effort);
  EXPECT_EQ(Told(trace.remarks),
            "2:2 it asks for a fraction of a GPU, which is rounded up: jobs here have whole "
            "GPUs\n");
  EXPECT_EQ(trace.skipped_rows, 1);
  EXPECT_EQ(LogError(kOpenb, "a,4000,15258,1,1500,,BE,Running,10,50,10\n"),
            "t.csv:2: column 'gpu_milli' is '1500'; expected a number from 1 to 1000 where num_gpu "
            "is 1");
}

TEST(OpenbTraceTest, PodsThatNeverRanAreLeftOut) {
  const Trace trace = Good(kOpenb,
                           "a,4000,15258,1,1000,,LS,Pending,10,50,\n"
                           "b,4000,15258,1,1000,,LS,Running,20,50,20.0\n");
  EXPECT_EQ(Names(trace), "b");
  EXPECT_EQ(Told(trace.skipped),
            "2:1 no start is recorded; jobs that never started are left out\n");
}

TEST(OpenbTraceTest, AListWithoutTimesIsNoTrace) {
  const std::string why =
      "t.csv:1: a list of pods without times (as openb_pod_list_multigpuNN.csv): it says what pods "
      "ask for, but not when, and is no trace; expected also the columns creation_time, "
      "deletion_time, scheduled_time";
  constexpr std::string_view kHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
  EXPECT_EQ(LogError(kHeader, "a,4000,15258,1,1000\n"), why);
  EXPECT_EQ(LogError(kHeader, "a,4000,15258,1,1000\n", {.format = "openb"}), why);
}

TEST(DlrmTraceTest, KeepsInstancesOnCpusAloneIfAsked) {
  constexpr std::string_view kRows =
      "a,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,50.0,60.0,90.0\n"
      "b,CN,app_1,0,0,0,0,1,1,320.0,320.0,255.0,300.0,-1,50.0,60.0,90.0\n"
      "c,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,100.0,130.0,190.0\n";
  EXPECT_EQ(Names(Good(kDlrm, kRows)), "c");
  const Trace trace = Good(kDlrm, kRows, {.cpu_jobs = true});
  ASSERT_EQ(Names(trace), "a c");
  EXPECT_EQ(trace.jobs[0].gpus, 0);
  EXPECT_EQ(trace.jobs[0].traits->request->cpus.milli, 64'000);
  EXPECT_EQ(Told(trace.skipped), "3:1 it asks for neither GPUs nor CPUs; such jobs are left out\n");
}

TEST(DlrmTraceTest, ReadsGpuInstancesWithinTheLog) {
  const Trace trace =
      Good(kDlrm,
           "instance_1,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,\n"
           "instance_2,CN,app_130,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435629.0,1435629.0,"
           "1435760.0\n"
           "instance_3,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,100.0,130.0,190.0\n"
           "instance_4,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,100.0,130.0,\n"
           "instance_5,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,100.0,,190.0\n"
           "instance_6,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,NaN,5.0,190.0\n");
  EXPECT_EQ(trace.format, "dlrm");
  ASSERT_EQ(Names(trace), "instance_3");
  EXPECT_EQ(trace.jobs[0].queue, "app_7");
  EXPECT_EQ(trace.jobs[0].duration, FromSeconds(60));
  EXPECT_EQ(trace.waits[0], FromSeconds(30));
  EXPECT_EQ(trace.origin, "100 s");
  EXPECT_EQ(Told(trace.skipped),
            "2:2 it was there before the log begins; such instances are left out\n"
            "3:1 it asks for no GPUs; jobs on CPUs alone are left out\n"
            "5:1 it had not ended when the log was taken; such jobs are left out\n"
            "6:1 no start is recorded; jobs that never started are left out\n");
  EXPECT_EQ(
      LogError(kDlrm, "i,HN,app_7,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,-5,130.0,190.0\n"),
      "t.csv:2: column 'creation_time' is '-5'; expected seconds from 0 to 9000000000, or nothing");
}

TEST(SpotGpuTraceTest, ReadsWorkersTimesGpus) {
  const Trace trace = Good(kSpotGpu,
                           "239255,13,A10,20.0,1.0,1,0.0,2764799.0,HP\n"
                           "437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot\n"
                           "3,57,,15,2,3,9589663,41060,Spot\n");
  EXPECT_EQ(trace.format, "spot-gpu");
  ASSERT_EQ(Names(trace), "239255 437260 3");
  EXPECT_EQ(trace.jobs[0].gpus, 1);
  EXPECT_EQ(trace.jobs[0].queue, "13");
  EXPECT_FALSE(trace.jobs[0].best_effort);
  EXPECT_EQ(trace.jobs[0].traits->gpu_types, std::vector<std::string>{"A10"});
  EXPECT_EQ(trace.jobs[1].gpus, 16);
  EXPECT_TRUE(trace.jobs[1].best_effort);
  EXPECT_EQ(trace.jobs[1].submit, AtSeconds(9589663));
  EXPECT_EQ(trace.jobs[1].duration, FromSeconds(41060));
  EXPECT_EQ(trace.jobs[2].gpus, 6);
  EXPECT_TRUE(trace.jobs[2].traits->gpu_types.empty());
  EXPECT_EQ(model::TextOf(*trace.jobs[2].traits->request), "45 CPUs") << "of three workers";
  EXPECT_TRUE(trace.waits.empty());
}

TEST(SpotGpuTraceTest, ColumnsGoByName) {
  const Trace trace = Good(
      "gpu_model,job_name,organization,job_type,cpu_request,duration,gpu_request,submit_time,"
      "worker_num\n",
      "A10,x,1,HP,8,60,0.5,7,2\nA10,y,1,HP,8,60,0.5,9,1\nA10,z,1,HP,8,60,0,9,1\n");
  ASSERT_EQ(Names(trace), "x y");
  EXPECT_EQ(trace.jobs[0].gpus, 1);
  EXPECT_EQ(trace.jobs[1].gpus, 1);
  EXPECT_EQ(trace.jobs[1].submit, AtSeconds(2));
  EXPECT_EQ(trace.origin, "7 s");
  ASSERT_EQ(trace.remarks.size(), 1U);
  EXPECT_EQ(trace.remarks[0].line, 3);
  EXPECT_EQ(trace.skipped_rows, 1);
}

TEST(SpotGpuTraceTest, RefusesBadRows) {
  EXPECT_EQ(LogError(kSpotGpu, "1,13,A10,20,1,1,0,10,Hp\n"),
            "t.csv:2: column 'job_type' is 'Hp'; expected HP or Spot");
  EXPECT_EQ(LogError(kSpotGpu, "1,13,A10,20,1,many,0,10,HP\n"),
            "t.csv:2: column 'worker_num' is 'many'; expected the number of workers");
}

}  // namespace
}  // namespace trainyard::trace
