// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "model/request/node_request.h"
#include "support/trace_files.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kSacctHeader =
    "JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|State|ReqTRES|AllocTRES|NodeList\n";

// A job that ran for a minute on what `allocated` says.
std::string SacctRow(const std::string& id, const std::string& allocated) {
  return id +
         "|ann|gpu|2024-03-01T10:00:00|2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED|"
         "gres/gpu=9|" +
         allocated + "|n1\n";
}

int GpusOf(const std::string& allocated) {
  const auto trace = ReadText(std::string(kSacctHeader) + SacctRow("1", allocated));
  return trace.ok() ? trace.value().jobs.at(0).gpus : -1;
}

// Why the row was left out beside a good one.
std::string WhySacctLeftOut(const std::string& row) {
  return WhyLeftOut(std::string(kSacctHeader) + row + "\n" + SacctRow("99", "gres/gpu=1"));
}

TEST(SacctTraceTest, ReadsAJob) {
  const auto trace = ReadText(std::string(kSacctHeader) +
                              "8|bob|big|2024-03-01T09:59:30|2024-03-01T10:01:00|"
                              "2024-03-02T10:01:01|86401|CANCELLED by 1000||gres/gpu=16|n[1-2]\n" +
                              SacctRow("7_4", "cpu=8,gres/gpu=2"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sacct");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& cancelled = trace.value().jobs[0];  // while it ran
  EXPECT_EQ(cancelled.submit, AtSeconds(0));         // submits count from the first
  EXPECT_EQ(cancelled.duration, FromSeconds(86401));
  EXPECT_EQ(cancelled.gpus, 16);
  const JobSpec& job = trace.value().jobs[1];
  EXPECT_EQ(job.name, "7_4");  // of an array
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.queue, "gpu");
  EXPECT_EQ(job.submit, AtSeconds(30));
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(trace.value().origin, "2024-03-01 09:59:30");
  EXPECT_EQ(trace.value().waits.at(1), FromSeconds(60));
  EXPECT_EQ(trace.value().states.at("CANCELLED"), 1);
}

TEST(SacctTraceTest, CpusStandForGpusWhereTheUserSaysHowMany) {
  const std::string text = std::string(kSacctHeader) + SacctRow("1", "cpu=9,mem=4G") +
                           SacctRow("2", "cpu=64,gres/gpu=2") + SacctRow("3", "mem=4G");
  const auto without = ReadText(text);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_EQ(without.value().jobs.size(), 1U);
  const auto trace = ReadText(text, {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[0].gpus, 2);  // rounded up
  EXPECT_EQ(trace.value().jobs[1].gpus, 2);  // its own
  EXPECT_EQ(trace.value().skipped_rows, 1);
}

TEST(SacctTraceTest, ThePlainEntryIsTheTotal) {
  EXPECT_EQ(GpusOf("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=10G"), 4);
  EXPECT_EQ(GpusOf("gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1"), 4);
  EXPECT_EQ(GpusOf("gres/gpu:a100=3,gres/gpu:v100=2"), 5);
  EXPECT_EQ(GpusOf("gres/gpumem=80G,gres/gpuutil=100,gres/gpu=1"), 1);
  EXPECT_EQ(GpusOf(""), 9);  // then what was requested
}

TEST(SacctTraceTest, ParsableLinesEndWithTheSeparator) {
  std::string text =
      std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") + SacctRow("2", "gres/gpu=1");
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) {
    text.insert(at, "|");
  }
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 2U);
}

TEST(SacctTraceTest, ColumnsAreFoundByName) {
  const auto trace = ReadText(
      "State|AllocTRES|End|JobID|Start|Submit|Elapsed\r\n"
      "COMPLETED|gres/gpu=1|Unknown|5|2024-03-01T10:00:00|2024-03-01T10:00:00|1-02:03:04\r\n"
      "FAILED|gres/gpu=1|2024-03-01T10:00:09|6|2024-03-01T10:00:00|2024-03-01T10:00:00|\r\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).name, "5");
  EXPECT_EQ(trace.value().jobs[0].duration, FromSeconds(93784));  // though its end is unknown
  EXPECT_EQ(trace.value().jobs.at(1).duration, FromSeconds(9));
}

TEST(SacctTraceTest, RowsThatAreNoJobsAreLeftOut) {
  const std::string submit = "|ann|gpu|2024-03-01T10:00:00|";
  const std::string ran = "2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED||gres/gpu=1|n1";
  for (const char* step : {"1.batch", "1.extern", "1.0"}) {
    EXPECT_TRUE(Says(WhySacctLeftOut(step + submit + ran), "step"));
  }
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "None|Unknown|0|PENDING|gres/gpu=1||None assigned"),
           "never started"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T11:00:00|2024-03-01T11:00:00|0|CANCELLED "
                                   "by 5|gres/gpu=1||None assigned"),
                   "never started"));
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "2024-03-01T10:01:00|Unknown|99|RUNNING||gres/gpu=1|n1"),
           "had not ended"));
  EXPECT_TRUE(
      Says(WhySacctLeftOut("1" + submit + "2024-03-01T10:01:00|Unknown||FAILED||gres/gpu=1|n1"),
           "end is not recorded"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T10:01:00|2024-03-01T10:01:00|0|FAILED||"
                                   "gres/gpu=1|n1"),
                   "took no time"));
  EXPECT_TRUE(Says(WhySacctLeftOut("1" + submit +
                                   "2024-03-01T10:01:00|2024-03-01T10:02:00|60|COMPLETED|"
                                   "gres/gpu=1|cpu=4|n1"),
                   "no GPUs"));
}

TEST(SacctTraceTest, JobsOnCpusAloneAreKeptIfAsked) {
  const std::string text = std::string(kSacctHeader) + SacctRow("1", "cpu=9,mem=4G") +
                           SacctRow("2", "cpu=64,gres/gpu=2") + SacctRow("3", "mem=4G");
  const auto trace = ReadText(text, {.cpu_jobs = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[0].gpus, 0);
  EXPECT_EQ(trace.value().jobs[0].traits->request->cpus.milli, 9'000);
  EXPECT_EQ(trace.value().jobs[0].traits->request->memory.mib, 4096);
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_TRUE(Says(trace.value().skipped[0].why, "neither GPUs nor CPUs"));
}

TEST(SacctTraceTest, OfAJobThatWasRequeuedTheLastRunCounts) {
  const auto trace = ReadText(std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") +
                              SacctRow("2", "gres/gpu=1") + SacctRow("1", "gres/gpu=3"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  EXPECT_EQ(trace.value().jobs[1].gpus, 3);
  ASSERT_EQ(trace.value().skipped.size(), 1U);
  EXPECT_EQ(trace.value().skipped[0].line, 2);
}

TEST(SacctTraceTest, ABarInAFieldMakesABadRow) {
  const std::string text =
      std::string(kSacctHeader) + SacctRow("1", "gres/gpu=1") + "2|a|b|" + SacctRow("x", "");
  EXPECT_EQ(ErrorOf(text), "t.csv:3: 14 fields; expected 11, separated by '|'");
  const auto trace = ReadText(text, {.skip_bad_rows = true});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.size(), 1U);
}

// ------------------------------------------------------------------------------- GPUs in GRES

// A started job of a site whose TRES do not count GPUs.
Result<Trace> ReadGres(const std::string& alloc_gres, const std::string& req_gres,
                       const std::string& alloc_tres = "cpu=8,mem=64G,node=1",
                       const std::string& req_tres = "cpu=8") {
  return ReadText(
      "JobIDRaw|Submit|Start|ElapsedRaw|State|ReqGRES|AllocGRES|ReqTRES|AllocTRES\n"
      "1|2019-07-04T10:00:00|2019-07-04T10:00:00|3600|COMPLETED|" +
      req_gres + "|" + alloc_gres + "|" + req_tres + "|" + alloc_tres + "\n");
}

TEST(SacctTraceTest, OlderVersionsNameGpusInGres) {
  const std::vector<std::pair<std::string, int>> lists{{"gpu:4", 4},
                                                       {"gpu:a100:2", 2},
                                                       {"gres:gpu:2", 2},
                                                       {"gres/gpu:3", 3},
                                                       {"gres:gpu:v100:2", 2},
                                                       {"gpu", 1},
                                                       {"gpu:a100", 1},
                                                       {"gpu:2,lscratch:300", 2},
                                                       {"lscratch:3,gpu:a100:2(S:0-1)", 2},
                                                       {"gpu:a100:2(IDX:0,3),gpu:v100:1", 3},
                                                       {"7696487:4", 4},
                                                       {"gpu=2", 2}};
  for (const auto& [list, gpus] : lists) {
    const auto trace = ReadGres(list, "");
    ASSERT_TRUE(trace.ok()) << list << ": " << trace.error().message;
    EXPECT_EQ(trace.value().jobs.at(0).gpus, gpus) << list;
  }
  for (const std::string bad : {"gpu:x:y", "gpu:-1", "gpu:99999999", "gpu:"}) {
    const auto trace = ReadGres(bad, "");
    ASSERT_FALSE(trace.ok()) << bad;
    EXPECT_TRUE(Says(trace.error().message, "t.csv:2: field 'AllocGRES' is '" + bad +
                                                "'; expected a list such as gpu:a100:2"))
        << trace.error().message;
  }
}

TEST(SacctTraceTest, WhatWasAllocatedCountsBeforeWhatWasRequested) {
  const auto gpus = [](const Result<Trace>& trace) {
    return trace.ok() ? trace.value().jobs.at(0).gpus : -1;
  };
  EXPECT_EQ(gpus(ReadGres("gpu:2", "gpu:v100:4")), 2);
  EXPECT_EQ(gpus(ReadGres("", "gpu:v100:4")), 4);
  EXPECT_EQ(gpus(ReadGres("", "", "cpu=8,gres/gpu=3", "gres/gpu=5")), 3);
  EXPECT_EQ(gpus(ReadGres("gpu:2", "gpu:2", "cpu=8,gres/gpu=3")), 3);  // TRES before GRES
  EXPECT_EQ(gpus(ReadGres("", "", "", "gres/gpu=5")), 5);
  const auto differ = ReadGres("gpu:2", "", "gres/gpu=3");
  ASSERT_TRUE(differ.ok());
  EXPECT_EQ(differ.value().remarks.size(), 1U);
  // The type is that of the first list that names one.
  EXPECT_EQ(ReadGres("gpu:2", "gpu:v100:2").value().jobs[0].traits->gpu_types,
            std::vector<std::string>{"v100"});
}

TEST(SacctTraceTest, CpuJobsOfOlderVersionsAreLeftOut) {
  EXPECT_TRUE(Says(WhySacctLeftOut("1|ann|gpu|2024-03-01T10:00:00|2024-03-01T10:01:00|"
                                   "2024-03-01T10:02:00|60|COMPLETED|cpu=4|cpu=4|n1"),
                   "no GPUs"));
  const auto gres = ReadGres("craynetwork:0", "");
  ASSERT_FALSE(gres.ok());
  EXPECT_TRUE(Says(gres.error().message, "no GPUs"));
}

TEST(SacctTraceTest, CpusOfColumnsCountWhereNoListHasThem) {
  const auto trace = ReadText(
      "JobID|Submit|Start|ElapsedRaw|NCPUS|ReqGRES\n"
      "1|2019-07-04T10:00:00|2019-07-04T10:00:00|3600|16|\n",
      {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).gpus, 2);
}

// --------------------------------------------------------------------------- what else is kept

constexpr std::string_view kFullHeader =
    "JobID|JobIDRaw|User|Account|Partition|Submit|Start|End|Elapsed|State|AllocTRES|Timelimit|"
    "ExitCode|JobName|\n";

std::string FullRow(const std::string& id, const std::string& limit, const std::string& name,
                    const std::string& elapsed = "00:01:00") {
  return id + "|22|ann|lab|gpu|2026-11-26T22:15:00|2026-11-26T22:15:01|2026-11-26T22:16:01|" +
         elapsed + "|COMPLETED|cpu=1,gres/gpu:a100=2,gres/gpu=2|" + limit + "|0:0|" + name + "|\n";
}

TEST(SacctTraceTest, TypesLimitsAccountsNamesAndArraysAreKept) {
  const auto trace =
      ReadText(std::string(kFullHeader) + FullRow("13_0", "00:05:00", "train") +
               FullRow("14", "1-00:00:00", "eval") + FullRow("15", "UNLIMITED", "x"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const JobSpec& job = trace.value().jobs.at(0);
  EXPECT_EQ(job.name, "13_0");  // not 22
  ASSERT_NE(job.traits, nullptr);
  EXPECT_EQ(job.traits->gpu_types, std::vector<std::string>{"a100"});
  EXPECT_EQ(job.traits->time_limit, FromSeconds(300));
  EXPECT_EQ(job.traits->account, "lab");
  EXPECT_EQ(job.traits->label, "train");
  EXPECT_EQ(trace.value().jobs.at(1).traits->time_limit, FromSeconds(86'400));
  EXPECT_EQ(trace.value().jobs.at(2).traits->time_limit, std::nullopt);
  const auto native = ReadText(WriteTrace(trace.value(), "native").value());
  ASSERT_TRUE(native.ok()) << native.error().message;
  EXPECT_EQ(*native.value().jobs[0].traits, *job.traits);
}

TEST(SacctTraceTest, WhatWasGivenBesideGpusIsTakenAndWhatWasAskedIsNot) {
  const auto request = [](const std::string& allocated, int procs = 0) {
    const auto trace =
        ReadText(std::string(kSacctHeader) + SacctRow("1", allocated), {.procs_per_gpu = procs});
    EXPECT_TRUE(trace.ok());
    const std::shared_ptr<const JobTraits>& traits = trace.value().jobs.at(0).traits;
    return traits && traits->request ? model::TextOf(*traits->request) : "none";
  };
  EXPECT_EQ(request("billing=8,cpu=8,gres/gpu=2,mem=64G,node=1"), "8 CPUs, 64G memory");
  EXPECT_EQ(request("cpu=2,gres/gpu=1,mem=4000M"), "2 CPUs, 4000M memory");
  EXPECT_EQ(request("gres/gpu=1"), "none");
  EXPECT_EQ(request(""), "none") << "gres/gpu=9 was requested";
  EXPECT_EQ(request("cpu=8,mem=1G", 4), "1G memory") << "CPUs stand for GPUs";
}

TEST(SacctTraceTest, NumbersAndLabelsOfNodesAreTakenIfAsked) {
  const std::string text =
      "JobID|Submit|Start|ElapsedRaw|AllocTRES|ReqTRES|ReqNodes|Constraints\n"
      "1|2019-07-04T10:00:00|2019-07-04T10:00:00|62|gres/gpu=4,node=2|node=2|2|a100&(ib|nvlink)\n"
      "2|2019-07-04T10:00:00|2019-07-04T10:00:00|62|gres/gpu=8,node=4|gres/gpu=8,node=1|1|\n"
      "3|2019-07-04T10:00:00|2019-07-04T10:00:00|62|cpu=8,gres/gpu=1,node=3||3|[r1*2&r2*4]\n"
      "4|2019-07-04T10:00:00|2019-07-04T10:00:00|62|gres/gpu=6,node=3||3|ib*2&fast\n";
  const auto request = [](const Trace& trace, std::size_t job) {
    const std::shared_ptr<const JobTraits>& traits = trace.jobs.at(job).traits;
    return traits && traits->request ? model::TextOf(*traits->request) : "none";
  };
  const auto with = ReadText(text, {.node_requests = true});
  ASSERT_TRUE(with.ok()) << with.error().message;
  EXPECT_EQ(request(with.value(), 0), "2 nodes, constraint 'a100&(ib|nvlink)'");
  EXPECT_EQ(request(with.value(), 1), "none") << "4 nodes were given, and 1 stands for no number";
  EXPECT_EQ(request(with.value(), 2), "8 CPUs") << "3 nodes are too many for a GPU";
  EXPECT_EQ(request(with.value(), 3), "3 nodes, constraint 'ib*2&fast'");
  ASSERT_EQ(with.value().remarks.size(), 2U);
  EXPECT_TRUE(Says(with.value().remarks[0].why, "t.csv:4: it asked for more nodes than it had"));
  EXPECT_TRUE(Says(with.value().remarks[1].why, "t.csv:4: its constraint is none of"));
  EXPECT_TRUE(with.value().unread.empty());
  const auto without = ReadText(text);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_EQ(request(without.value(), 0), "none");
  EXPECT_EQ(without.value().unread, (std::vector<std::string>{"ReqNodes", "Constraints"}));
  EXPECT_TRUE(Says(ErrorOf("job_id,submit_time,gpus,duration\na,0,1,1\n", {.node_requests = true}),
                   "(--node-requests) have no effect on format 'native'"));
}

TEST(SacctTraceTest, LimitsMayBeMinutesAndAreNoShorterThanTheRun) {
  const auto limit = [](const std::string& raw) {
    const auto trace = ReadText(
        "JobID|Submit|Start|ElapsedRaw|TimelimitRaw|AllocTRES\n"
        "1|2019-07-04T10:00:00|2019-07-04T10:00:00|62|" +
        raw + "|gres/gpu=1\n");
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    const auto& traits = trace.value().jobs.at(0).traits;
    return traits ? traits->time_limit : std::nullopt;
  };
  EXPECT_EQ(limit("5"), FromSeconds(300));
  EXPECT_EQ(limit("1"), FromSeconds(62));  // Slurm ended it two seconds behind its limit
  EXPECT_EQ(limit(""), std::nullopt);
  EXPECT_EQ(limit("Partition_Limit"), std::nullopt);
  EXPECT_TRUE(Says(ErrorOf(std::string(kFullHeader) + FullRow("1", "soon", "x")),
                   "field 'Timelimit' is 'soon'; expected [days-]hours:minutes:seconds"));
}

TEST(SacctTraceTest, ANameMayHoldTheSeparatorWhereTheRestDecides) {
  const std::vector<std::string> names{"my, odd | name", "a|b|c", "|", "x|22|ann|lab"};
  for (const std::string& name : names) {
    const auto last = ReadText(std::string(kFullHeader) + FullRow("1", "00:05:00", name));
    ASSERT_TRUE(last.ok()) << last.error().message;
    EXPECT_EQ(last.value().jobs.at(0).traits->label, name);
    const auto middle =
        ReadText("JobID|JobName|User|Submit|Start|ElapsedRaw|Comment|AllocTRES\n1|" + name +
                 "|ann|2019-07-04T10:00:00|2019-07-04T10:00:00|62||gres/gpu=1\n"
                 "2|x|bob|2019-07-04T10:00:00|2019-07-04T10:00:00|62|" +
                 name + "|gres/gpu=1\n");
    ASSERT_TRUE(middle.ok()) << middle.error().message;
    EXPECT_EQ(middle.value().jobs.at(0).traits->label, name);
    EXPECT_EQ(middle.value().jobs[0].user, "ann");
    EXPECT_EQ(middle.value().jobs.at(1).traits->label, "x");
    EXPECT_EQ(middle.value().jobs[1].gpus, 1);
  }
  // Which bar ends the name, and which is the user's?
  EXPECT_TRUE(Says(ErrorOf("JobID|JobName|User|WorkDir|Submit|Start|ElapsedRaw|AllocTRES\n"
                           "1|a|b|c|d|2019-07-04T10:00:00|2019-07-04T10:00:00|62|gres/gpu=1\n"),
                   "t.csv:2: 9 fields; expected 8, separated by '|'"));
}

// ------------------------------------------------------------------------------- other prints

TEST(SacctTraceTest, OtherSeparatorsOfSacctAreRead) {
  for (const std::string separator : {";", "\t", "^", "~"}) {
    std::string text = std::string(kSacctHeader) + SacctRow("1", "cpu=8,gres/gpu=2");
    std::string other;
    for (const char c : text) {
      other += c == '|' ? separator : std::string(1, c);
    }
    const auto trace = ReadText(other);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    EXPECT_EQ(trace.value().format, "sacct");
    EXPECT_EQ(trace.value().jobs.at(0).gpus, 2);
  }
}

TEST(SacctTraceTest, ATableOfASpreadsheetIsRead) {
  const std::string header = "JobID,Submit,Start,ElapsedRaw,State,AllocTRES\n";
  const std::string stamps = "1,2024-03-01T10:00:00,2024-03-01T10:01:00,60,COMPLETED,";
  const auto trace = ReadText("," + header + "0," + stamps + "\"cpu=8,gres/gpu=2\"\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sacct");
  EXPECT_EQ(trace.value().jobs.at(0).gpus, 2);
  EXPECT_EQ(ErrorOf(header + stamps + "cpu=8,gres/gpu=2\n"),
            "t.csv:2: 7 fields; expected 6 as in the header (a column that the header does not "
            "name?)\nTRES lists hold commas themselves; expected them in quotes, or another "
            "separator (sacct --parsable2)");
}

TEST(SacctTraceTest, FixedWidthsAreNamedInALine) {
  EXPECT_EQ(ErrorOf("JobID                     Submit               Start \n"
                    "------------ ------------------- ------------------- \n"
                    "1            2026-11-26T22:15:00 2026-11-26T22:15:01 \n"),
            "t.csv:1: sacct's columns of fixed widths, which cut long values off; expected what "
            "`sacct --parsable2` prints, with '|' between the columns");
}

// A job as version 22.05 prints it; of an array, where `array` is its id.
std::string OldJson(int id, int array, const std::string& task, const std::string& name) {
  return R"({"account":"lab","array":{"job_id":)" + std::to_string(array) + R"(,"task_id":)" +
         task + R"(},"association":{"user":"ann"},"het":{"job_id":0,"job_offset":null},"job_id":)" +
         std::to_string(id) + R"(,"name":")" + name +
         R"(","nodes":"n0","partition":"gpu","state":{"current":"COMPLETED","reason":"None"},
 "time":{"elapsed":60,"end":1795731362,"start":1795731302,"submission":1795731300,"limit":5},
 "constraints":"nvlink","required":{"CPUs":16,"memory":0},
 "steps":[{"time":{"elapsed":1},"tres":{"allocated":[{"type":"gres","name":"gpu","count":9}]}}],
 "tres":{"allocated":[{"type":"cpu","name":null,"id":1,"count":1},
  {"type":"energy","name":null,"id":3,"count":null},
  {"type":"gres","name":"gpu","id":1001,"count":2},
  {"type":"mem","name":null,"id":2,"count":4096},
  {"type":"gres","name":"gpu:a100","id":1002,"count":2}],
  "requested":[{"type":"mem","name":null,"id":2,"count":200000},
  {"type":"node","name":null,"id":4,"count":2}]},"user":"ann"})";
}

TEST(SacctTraceTest, ReadsJson) {
  const std::string head = R"({"meta":{"Slurm":{"release":"22.05.8"}},"errors":[],"jobs":[)";
  const auto trace = ReadText(head + OldJson(1, 0, "null", "my | name") + ",\n" +
                              OldJson(22, 13, "0", "wrap") + "]}\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "sacct");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.name, "1");
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.queue, "gpu");
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(job.duration, FromSeconds(60));
  EXPECT_EQ(job.traits->gpu_types, std::vector<std::string>{"a100"});
  EXPECT_EQ(job.traits->time_limit, FromSeconds(300));
  EXPECT_EQ(job.traits->account, "lab");
  EXPECT_EQ(job.traits->label, "my | name");
  EXPECT_EQ(trace.value().jobs[1].name, "13_0");
  EXPECT_EQ(trace.value().waits.at(0), FromSeconds(2));
  EXPECT_EQ(trace.value().origin, "2026-11-26 22:15:00+00:00");
  EXPECT_EQ(model::TextOf(*job.traits->request), "1 CPU, 4G memory");
}

TEST(SacctTraceTest, JsonGivesTheSameAsTheTableOfTheSameJobs) {
  const std::string json =
      R"({"jobs":[)" + OldJson(1, 0, "null", "wrap") + "," + OldJson(22, 13, "0", "wrap") + "]}";
  const std::string fields =
      "|ann|lab|wrap|gpu|2026-11-26T22:15:00|2026-11-26T22:15:02|60|COMPLETED|n0|5|"
      "cpu=1,gres/gpu:a100=2,gres/gpu=2,mem=4G|mem=200000M,node=2|nvlink\n";
  const std::string table =
      "JobID|User|Account|JobName|Partition|Submit|Start|ElapsedRaw|State|NodeList|TimelimitRaw|"
      "AllocTRES|ReqTRES|Constraints\n1" +
      fields + "13_0" + fields;
  for (const bool node_requests : {false, true}) {
    const auto of_json = ReadText(json, {.node_requests = node_requests});
    const auto of_table = ReadText(table, {.node_requests = node_requests});
    ASSERT_TRUE(of_json.ok()) << of_json.error().message;
    ASSERT_TRUE(of_table.ok()) << of_table.error().message;
    const std::string native = WriteTrace(of_json.value(), "native").value();
    EXPECT_EQ(native, WriteTrace(of_table.value(), "native").value());
    EXPECT_EQ(Says(native, "nvlink"), node_requests) << native;
    EXPECT_EQ(of_json.value().jobs[0].traits->request->nodes.least, node_requests ? 2 : 0);
  }
}

TEST(SacctTraceTest, CpusOfARequestInJsonCountWhereNoListHasThem) {
  const auto trace = ReadText(R"({"jobs":[{"job_id":7,"association":{"user":"ann"},
 "required":{"CPUs":16},"state":{"current":"COMPLETED"},
 "time":{"elapsed":60,"end":1795731362,"start":1795731302,"submission":1795731300},
 "tres":{"allocated":[],"requested":[]}}]})",
                              {.procs_per_gpu = 8});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().jobs.at(0).gpus, 2);
}

TEST(SacctTraceTest, ReadsJsonOfNewerVersions) {
  const auto trace = ReadText(R"({"jobs":[{"account":"lab","association":{"user":"ann"},
 "array":{"job_id":0,"task_id":{"set":false,"infinite":false,"number":0}},
 "job_id":7,"name":"x","nodes":"n0","partition":"gpu","state":{"current":["TIMEOUT"]},
 "time":{"elapsed":60,"end":1795731362,"start":1795731302,"submission":1795731300,
  "limit":{"set":true,"infinite":false,"number":1}},
 "tres":{"allocated":[{"type":"gres","name":"gpu","count":4}]}},
 {"job_id":8,"association":{},"array":{"job_id":0},"state":{"current":["PENDING"]},
 "time":{"submission":1795731300,"start":0,
 "end":0,"limit":{"set":false,"infinite":true,"number":0}},
 "tres":{"allocated":[],"requested":[{"type":"gres","name":"gpu","count":4}]}}],
 "meta":{},"errors":[],"warnings":[]})");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().jobs[0].name, "7");
  EXPECT_EQ(trace.value().jobs[0].gpus, 4);
  EXPECT_EQ(trace.value().jobs[0].traits->time_limit, FromSeconds(60));
  EXPECT_EQ(trace.value().states.at("TIMEOUT"), 1);
  EXPECT_EQ(trace.value().skipped_rows, 1);  // never started
}

TEST(SacctTraceTest, JsonThatBreaksOffIsRefused) {
  EXPECT_TRUE(Says(ErrorOf(R"({"meta":{},"jobs":[)" + OldJson(1, 0, "null", "x") + ",\n"),
                   ": no JSON from here on; expected the whole of what sacct --json prints"));
}

TEST(SacctTraceTest, RefusesOtherHeadersAndBadValues) {
  const std::string no_header = "t.csv:1: no header with the columns that are needed; expected";
  EXPECT_TRUE(ErrorOf("1|ann|gpu\n", {.format = "sacct"}).starts_with(no_header));
  EXPECT_TRUE(ErrorOf("JobID,Submit,Start\n", {.format = "sacct"}).starts_with(no_header));
  EXPECT_TRUE(ErrorOf("JobID|User\n1|ann\n").starts_with(no_header));
  EXPECT_EQ(ErrorOf(std::string(kSacctHeader) + SacctRow("", "gres/gpu=1")),
            "t.csv:2: field 'JobIDRaw' is ''; expected the id of the job");
  EXPECT_EQ(ErrorOf(std::string(kSacctHeader) + SacctRow("1", "gres/gpu=x")),
            "t.csv:2: field 'AllocTRES' is 'gres/gpu=x'; expected a list such as cpu=4,gres/gpu=2");
}

}  // namespace
}  // namespace trainyard::trace
