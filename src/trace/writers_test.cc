// SPDX-License-Identifier: Apache-2.0
#include "trace/writers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/trace_files.h"

namespace trainyard::trace {
namespace {

// What a file of each format gives back; all else is lost.
const std::map<std::string, std::set<std::string>, std::less<>>& KeptBy() {
  static const std::set<std::string> kAll{
      "job_id",      "submit_time",    "gpus",       "duration",       "iterations",
      "user",        "queue",          "model",      "batch_size",     "deadline",
      "best_effort", "handover_time",  "priority",   "iteration_time", "stage_0",
      "stage_1",     "stage_2",        "data_set",   "data_mib",       "data_home",
      "gpu_types",   "loader_workers", "devices",    "target_times",   "target_values",
      "min_gpus",    "max_gpus",       "time_limit", "begin",          "dependency",
      "array"};
  static const std::map<std::string, std::set<std::string>, std::less<>> kKept{
      {"native", kAll},
      {"jsonl", kAll},
      {"batsim", {"job_id", "submit_time", "gpus", "duration"}},
      {"blox", {"job_id", "submit_time", "gpus", "duration", "handover_time"}},
      {"chronus",
       {"job_id", "submit_time", "gpus", "duration", "iterations", "user", "model", "deadline",
        "best_effort", "target_times", "target_values"}},
      {"elasticflow",
       {"job_id", "submit_time", "gpus", "duration", "iterations", "model", "batch_size",
        "deadline", "best_effort"}},
      {"itp", {"job_id", "submit_time", "gpus", "duration"}},
      {"muri",
       {"job_id", "submit_time", "gpus", "duration", "iterations", "model", "batch_size",
        "priority", "iteration_time", "stage_0", "stage_1", "stage_2"}},
      {"swf", {"submit_time", "gpus", "duration"}},
      {"synergy", {"job_id", "submit_time", "gpus", "iterations", "model"}},
      {"tiresias", {"job_id", "submit_time", "gpus", "duration", "model"}},
      {"torchloader",
       {"submit_time", "gpus", "iterations", "model", "batch_size", "devices", "loader_workers"}},
  };
  return kKept;
}

class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : engine_(seed) {}

  // Jobs that state all that any format needs, and much that most formats cannot say.
  Trace Draw() {
    Trace trace{.path = "t.csv"};
    trace.device_nodes = {{.name = "d1"}, {.name = "d2"}};
    for (int i = 0; i < 40; ++i) {
      trace.jobs.push_back(DrawJob(i));
      trace.lines.push_back(i + 2);
    }
    return trace;
  }

 private:
  std::int64_t Below(std::int64_t most) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most));
  }
  bool Chance() { return Below(2) == 0; }
  Duration Micros() { return Duration{Below(Chance() ? 9'000'000'000'000 : 100) + 1}; }
  std::string Word() {
    static const std::vector<std::string> kWords{"ann", "bob, jr", "c \"d\"", "7", "\xC3\xA9", ""};
    return kWords.at(static_cast<std::size_t>(Below(std::ssize(kWords))));
  }

  Slices DrawDevices() {
    Slices slices{{.node = NodeAt(0), .gpus = 0b101}};
    if (Chance()) {
      slices.push_back({.node = NodeAt(1), .gpus = std::uint64_t{1} << 63U});
    }
    return slices;
  }

  JobSpec DrawJob(int number) {
    JobTraits traits{.devices = DrawDevices(), .loader_workers = static_cast<int>(Below(3))};
    JobSpec job{.name = Word() + "-" + std::to_string(number),
                .user = Word(),
                .queue = Word(),
                .model = "vgg" + std::to_string(Below(30)),
                .gpus = 0};
    for (const Slice& slice : traits.devices) {
      job.gpus += std::popcount(slice.gpus);
    }
    job.batch_size = job.gpus * (1 + Below(256));
    job.submit = TimePoint{Micros()};
    job.duration = Micros();
    job.iterations = static_cast<double>(1 + Below(1'000'000));
    job.priority = static_cast<int>(Below(3));
    if (Chance()) {
      job.handover = TimePoint{Micros()};
    }
    job.best_effort = Below(4) == 0;
    if (!job.best_effort && Chance()) {
      DrawDeadlines(job, traits);
    }
    traits.stages = StageTimes{.iteration = static_cast<double>(1 + Below(9999)) / 1000,
                               .stages = {static_cast<double>(Below(9999)) / 1000, 0.5,
                                          static_cast<double>(Below(9)) / 8}};
    if (Chance()) {
      traits.data_set = DataSet{.name = "d", .mib = 5, .home = "n3"};
      traits.gpu_types = {"A100", "V100"};
      traits.time_limit = Micros();
      traits.begin = job.submit + Micros();
      traits.dependency = "afterok:a:b_3,singleton";
      traits.array = "0-9%3";
    }
    traits.range = {.least = static_cast<int>(Below(job.gpus + 1)),
                    .most = Chance() ? job.gpus + static_cast<int>(Below(9)) : 0};
    job.traits = std::make_shared<JobTraits>(std::move(traits));
    return job;
  }

  void DrawDeadlines(JobSpec& job, JobTraits& traits) {
    job.deadline = job.submit + Micros();
    if (Chance()) {
      traits.deadlines = {{*job.deadline, 10},
                          {*job.deadline + Duration{1}, 1.0 / 3},
                          {*job.deadline + Duration{7'000'000}, 0}};
    }
  }

  std::mt19937_64 engine_;
};

std::string TextOf(const Trace& trace, std::string_view format) {
  const Result<std::string> text = WriteTrace(trace, format);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? text.value() : "";
}

Trace Read(const std::string& text, const TraceOptions& options = {}) {
  const Result<Trace> trace = ReadText(text, options);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? trace.value() : Trace{};
}

TEST(TraceWritersTest, EachHasAReader) {
  for (const TraceWriter& writer : TraceWriters()) {
    EXPECT_TRUE(std::any_of(TraceFormats().begin(), TraceFormats().end(),
                            [&](const TraceFormat& one) { return one.name == writer.name; }))
        << writer.name;
    EXPECT_TRUE(KeptBy().contains(writer.name)) << writer.name;
  }
}

TEST(TraceWritersTest, WhatAFormatHasIsReadBack) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Trace trace = RandomJobs(seed).Draw();
    for (const TraceWriter& writer : TraceWriters()) {
      SCOPED_TRACE(std::string(writer.name) + ", seed " + std::to_string(seed));
      const Trace back = Read(TextOf(trace, writer.name));
      EXPECT_EQ(back.format, writer.name);  // recognised by its content
      const auto lost = LostBetween(trace, back);
      ASSERT_TRUE(lost.ok()) << lost.error().message;
      for (const std::string& part : lost.value()) {
        EXPECT_FALSE(KeptBy().at(std::string(writer.name)).contains(part)) << part;
      }
      if (KeptBy().at(std::string(writer.name)).size() == KeptBy().at("native").size()) {
        EXPECT_TRUE(lost.value().empty());
      }
    }
  }
}

TEST(TraceWritersTest, EveryFormatGoesToTheNativeOneAndBack) {
  const Trace trace = RandomJobs(1).Draw();
  for (const TraceWriter& writer : TraceWriters()) {
    SCOPED_TRACE(writer.name);
    const std::string text = TextOf(trace, writer.name);
    const Trace there = Read(text);
    for (const std::string_view own : {"native", "jsonl"}) {
      if (!there.jobs.empty() && (there.jobs.front().duration || there.jobs.front().iterations)) {
        const Trace back = Read(TextOf(there, own));
        const Result<std::string> again = WriteTrace(back, writer.name);
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(again.value(), text);
      }
    }
  }
}

// The jobs of a native file.
std::string WriteFrom(const std::string& rows, std::string_view format) {
  const Trace trace = Read("job_id,submit_time,gpus,duration,iterations,model,batch_size\n" + rows);
  const Result<std::string> text = WriteTrace(trace, format);
  return text.ok() ? text.value() : text.error().message.substr(text.error().message.find("t.csv"));
}

TEST(TraceWritersTest, NamesTheJobThatAFormatCannotExpress) {
  EXPECT_EQ(WriteFrom("a,0,1,5,,m,\nb,0,1,,5,m,\n", "tiresias"),
            "t.csv:3: job 'b' lacks something; expected a duration, which format tiresias needs");
  EXPECT_EQ(WriteFrom("a,0,1,5,,,\n", "tiresias"),
            "t.csv:2: job 'a' lacks something; expected a model, which format tiresias needs");
  EXPECT_EQ(WriteFrom("a,0,1,5,7,m,\n", "elasticflow"),
            "t.csv:2: job 'a' lacks something; expected a batch size, which format elasticflow "
            "needs");
  EXPECT_EQ(WriteFrom("a,0,2,5,7,m,3\n", "muri"),
            "t.csv:2: job 'a' lacks something; expected a batch size that is a multiple of its "
            "GPUs, which format muri needs");
  EXPECT_EQ(WriteFrom("a,0,1,5,7,m,3\n", "muri"),
            "t.csv:2: job 'a' lacks something; expected the times of its stages, which format muri "
            "needs");
  EXPECT_EQ(WriteFrom("a,0,1,5,7.5,vgg13,3\n", "torchloader"),
            "t.csv:2: job 'a' lacks something; expected a whole number of iterations, at most "
            "1000000000, which format torchloader needs");
  EXPECT_EQ(WriteFrom("a,0,1,5,7,vgg13,3\n", "torchloader"),
            "t.csv:2: job 'a' lacks something; expected the GPUs that the job is to run on, which "
            "format torchloader needs");
}

TEST(TraceWritersTest, KnowsWhatIsOnlyRead) {
  const Trace trace = RandomJobs(0).Draw();
  EXPECT_EQ(WriteTrace(trace, "gavel").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(
      WriteTrace(trace, "gavel")
          .error()
          .message.starts_with("format 'gavel' is read and not written; expected one of: native,"));
  EXPECT_TRUE(WriteTrace(trace, "batsin")
                  .error()
                  .message.starts_with("unknown trace format 'batsin'; did you mean 'batsim'?"));
}

TEST(TraceWritersTest, ALogHasNumbers) {
  const Trace named = Read(
      "job_id,submit_time,gpus,duration,user,queue\na,0,1,5,ann,7\nb,1.5,2,6,bob,9\nc,2,1,7,ann,"
      "\n");
  EXPECT_EQ(TextOf(named, "swf"),
            "; Version: 2.2\n; Note: processors are GPUs\n; MaxJobs: 3\n; MaxProcs: 2\n"
            "1 0 -1 5 1 -1 -1 1 -1 -1 1 1 -1 -1 7 -1 -1 -1\n"
            "2 1.5 -1 6 2 -1 -1 2 -1 -1 1 2 -1 -1 9 -1 -1 -1\n"
            "3 2 -1 7 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n");
  EXPECT_EQ(LostBetween(named, Read(TextOf(named, "swf"))).value(),
            (std::vector<std::string>{"job_id", "user"}));
}

TEST(TraceWritersTest, JobsWithoutDeadlineAreBestEffortInChronus) {
  const Trace trace = Read(
      "job_id,submit_time,gpus,duration,iterations,model,deadline\na,60,1,90,7,m,\nb,60,1,90,7,m,"
      "180\n");
  EXPECT_EQ(TextOf(trace, "chronus"),
            "job_id,user,num_gpu,submit_time,iterations,model_name,duration,expect_time_list,"
            "expect_value_list,best_effort,job_type\n"
            "a,,1,1,7,m,1.5,1,10,1,best\nb,,1,1,7,m,1.5,2,10,0,strict\n");
}

}  // namespace
}  // namespace trainyard::trace
