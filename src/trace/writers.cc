// SPDX-License-Identifier: Apache-2.0
#include "trace/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"
#include "trace/csv_format.h"
#include "trace/device_list.h"
#include "trace/jsonl.h"

namespace trainyard {
namespace {

using WhyNot = std::optional<std::string_view>;

WhyNot NeedsWork(const JobSpec& job) {
  return job.duration || job.iterations ? WhyNot() : "a duration or iterations";
}
WhyNot NeedsDuration(const JobSpec& job) { return job.duration ? WhyNot() : "a duration"; }
WhyNot NeedsIterations(const JobSpec& job) { return job.iterations ? WhyNot() : "iterations"; }
WhyNot NeedsModel(const JobSpec& job) { return job.model.empty() ? "a model" : WhyNot(); }
WhyNot NeedsBatch(const JobSpec& job) { return job.batch_size > 0 ? WhyNot() : "a batch size"; }
WhyNot NeedsBatchPerGpu(const JobSpec& job) {
  return job.batch_size > 0 && job.batch_size % job.gpus == 0
             ? WhyNot()
             : "a batch size that is a multiple of its GPUs";
}
WhyNot NeedsStages(const JobSpec& job) {
  return job.traits != nullptr && job.traits->stages ? WhyNot() : "the times of its stages";
}
WhyNot HasDeadlineInTime(const JobSpec& job) {
  return !job.deadline || *job.deadline >= job.submit ? WhyNot() : "a deadline after its submit";
}

template <WhyNot (*... kNeeds)(const JobSpec& job)>
WhyNot All(const JobSpec& job) {
  WhyNot why;
  (void)((why = kNeeds(job), why.has_value()) || ...);
  return why;
}

template <const CsvFormat& (*kFormat)()>
std::string ByColumns(const TraceView& trace) {
  return WriteCsvTrace(kFormat(), trace);
}

constexpr std::string_view kNothing{};

constexpr std::array kWriters{
    TraceWriter{"native", kNothing, NeedsWork, ByColumns<NativeFormat>},
    TraceWriter{"batsim", "more than job_id, submit_time, gpus and duration", NeedsDuration,
                WriteBatsim},
    TraceWriter{"blox", "more than job_id, handover_time, submit_time, gpus and duration",
                NeedsDuration, WriteBlox},
    TraceWriter{
        "chronus",
        "queue, batch_size, handover_time, priority, stage times, named GPUs, data sets, GPU types "
        "and GPU ranges",
        All<NeedsIterations, NeedsModel, NeedsDuration, HasDeadlineInTime>,
        ByColumns<ChronusFormat>},
    TraceWriter{
        "elasticflow",
        "user, queue, handover_time, priority, soft deadlines behind the first, stage times, "
        "named GPUs, data sets, GPU types and GPU ranges",
        All<NeedsIterations, NeedsModel, NeedsBatch, NeedsDuration>, ByColumns<ElasticflowFormat>},
    TraceWriter{"itp", "more than job_id, submit_time, gpus and duration", NeedsDuration,
                ByColumns<ItpFormat>},
    TraceWriter{"jsonl", kNothing, NeedsWork, WriteJsonl},
    TraceWriter{"muri",
                "user, queue, deadlines, handover_time, named GPUs, data sets, GPU types and GPU "
                "ranges",
                All<NeedsIterations, NeedsModel, NeedsBatchPerGpu, NeedsDuration, NeedsStages>,
                ByColumns<MuriFormat>},
    TraceWriter{
        "swf",
        "more than submit_time, gpus and duration; ids, users and queues that are no numbers "
        "are numbered",
        NeedsDuration, WriteSwf},
    TraceWriter{"synergy", "more than job_id, model, submit_time, iterations and gpus",
                All<NeedsIterations, NeedsModel>, WriteSynergy},
    TraceWriter{"tiresias", "more than job_id, gpus, submit_time, model and duration",
                All<NeedsModel, NeedsDuration>, ByColumns<TiresiasFormat>},
    TraceWriter{"torchloader",
                "job_id, user, queue, duration, deadlines, handover_time, priority, stages, data "
                "sets, GPU types and GPU ranges",
                WhyNotTorchloader, WriteTorchloader},
};

// A part of what a job states, as users know it.
struct Part {
  std::string_view name;
  bool (*is_stated)(const JobSpec& job);
  bool (*is_same)(const JobSpec& a, const JobSpec& b);
};

const JobTraits& TraitsOf(const JobSpec& job) {
  static const JobTraits kNone;
  return job.traits == nullptr ? kNone : *job.traits;
}

bool SameTargets(const JobSpec& a, const JobSpec& b) {
  const auto same = [](const SoftDeadline& one, const SoftDeadline& other) {
    return one.at == other.at && one.value == other.value;
  };
  const std::vector<SoftDeadline>& of_a = TraitsOf(a).deadlines;
  const std::vector<SoftDeadline>& of_b = TraitsOf(b).deadlines;
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same);
}

bool SameStages(const JobSpec& a, const JobSpec& b) {
  const std::optional<StageTimes>& of_a = TraitsOf(a).stages;
  const std::optional<StageTimes>& of_b = TraitsOf(b).stages;
  return of_a.has_value() == of_b.has_value() &&
         (!of_a || (of_a->iteration == of_b->iteration && of_a->stages == of_b->stages));
}

bool Always(const JobSpec& /*job*/) { return true; }

constexpr std::array kParts{
    Part{"job_id", Always, [](const JobSpec& a, const JobSpec& b) { return a.name == b.name; }},
    Part{"submit_time", Always,
         [](const JobSpec& a, const JobSpec& b) { return a.submit == b.submit; }},
    Part{"gpus", Always, [](const JobSpec& a, const JobSpec& b) { return a.gpus == b.gpus; }},
    Part{"duration", [](const JobSpec& job) { return job.duration.has_value(); },
         [](const JobSpec& a, const JobSpec& b) { return a.duration == b.duration; }},
    Part{"iterations", [](const JobSpec& job) { return job.iterations.has_value(); },
         [](const JobSpec& a, const JobSpec& b) { return a.iterations == b.iterations; }},
    Part{"user", [](const JobSpec& job) { return !job.user.empty(); },
         [](const JobSpec& a, const JobSpec& b) { return a.user == b.user; }},
    Part{"queue", [](const JobSpec& job) { return !job.queue.empty(); },
         [](const JobSpec& a, const JobSpec& b) { return a.queue == b.queue; }},
    Part{"model", [](const JobSpec& job) { return !job.model.empty(); },
         [](const JobSpec& a, const JobSpec& b) { return a.model == b.model; }},
    Part{"batch_size", [](const JobSpec& job) { return job.batch_size > 0; },
         [](const JobSpec& a, const JobSpec& b) { return a.batch_size == b.batch_size; }},
    Part{"deadline", [](const JobSpec& job) { return job.deadline.has_value(); },
         [](const JobSpec& a, const JobSpec& b) { return a.deadline == b.deadline; }},
    Part{"best_effort", [](const JobSpec& job) { return job.best_effort; },
         [](const JobSpec& a, const JobSpec& b) { return a.best_effort == b.best_effort; }},
    Part{"handover_time", [](const JobSpec& job) { return job.handover.has_value(); },
         [](const JobSpec& a, const JobSpec& b) { return a.known_from() == b.known_from(); }},
    Part{"priority", [](const JobSpec& job) { return job.priority != 0; },
         [](const JobSpec& a, const JobSpec& b) { return a.priority == b.priority; }},
    Part{"soft deadlines", [](const JobSpec& job) { return !TraitsOf(job).deadlines.empty(); },
         SameTargets},
    Part{"stage times", [](const JobSpec& job) { return TraitsOf(job).stages.has_value(); },
         SameStages},
    Part{"loader_workers", [](const JobSpec& job) { return TraitsOf(job).loader_workers > 0; },
         [](const JobSpec& a, const JobSpec& b) {
           return TraitsOf(a).loader_workers == TraitsOf(b).loader_workers;
         }},
    Part{"data_set", HasDataSet,
         [](const JobSpec& a, const JobSpec& b) {
           return TraitsOf(a).data_set == TraitsOf(b).data_set;
         }},
    Part{"gpu_types", HasGpuTypes,
         [](const JobSpec& a, const JobSpec& b) {
           return TraitsOf(a).gpu_types == TraitsOf(b).gpu_types;
         }},
    Part{"min_gpus and max_gpus",
         [](const JobSpec& job) { return TraitsOf(job).range != GpuRange{}; },
         [](const JobSpec& a, const JobSpec& b) { return TraitsOf(a).range == TraitsOf(b).range; }},
};

bool LosesDevices(const Trace& before, const Trace& after) {
  for (std::size_t i = 0; i < before.jobs.size(); ++i) {
    const Slices& was = TraitsOf(before.jobs[i]).devices;
    const Slices& is = TraitsOf(after.jobs[i]).devices;
    if (!was.empty() && (is.empty() || DeviceListOf(was, before.device_nodes) !=
                                           DeviceListOf(is, after.device_nodes))) {
      return true;
    }
  }
  return false;
}

Result<TraceWriter> FindWriter(std::string_view format) {
  std::vector<std::string_view> known;
  for (const TraceWriter& writer : kWriters) {
    if (writer.name == format) {
      return writer;
    }
    known.push_back(writer.name);
  }
  const std::span<const TraceFormat> read = TraceFormats();
  if (std::any_of(read.begin(), read.end(),
                  [&](const TraceFormat& one) { return one.name == format; })) {
    return InvalidArgument(fmt::format("format '{}' is read and not written; expected one of: {}",
                                       format, Join(known, ", ")));
  }
  return InvalidArgument(UnknownName("trace format", format, known));
}

}  // namespace

std::span<const TraceWriter> TraceWriters() { return kWriters; }

Result<std::string> WriteTrace(const Trace& trace, std::string_view format) {
  const Result<TraceWriter> writer = FindWriter(format);
  if (!writer.ok()) {
    return writer.error();
  }
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (const WhyNot missing = writer.value().why_not(trace.jobs[i])) {
      return BadInput(
          fmt::format("{}:{}: job '{}' lacks something; expected {}, which format {} needs",
                      trace.path, trace.lines[i], trace.jobs[i].name, *missing, format));
    }
  }
  return writer.value().write({.jobs = trace.jobs, .nodes = trace.device_nodes});
}

Result<std::vector<std::string>> LostBetween(const Trace& before, const Trace& after) {
  if (before.jobs.size() != after.jobs.size()) {
    return Failed(fmt::format("{}: {} jobs of {} are read back; expected all of them", after.path,
                              after.jobs.size(), before.jobs.size()));
  }
  std::vector<std::string> lost;
  for (const Part& part : kParts) {
    const bool kept = std::equal(before.jobs.begin(), before.jobs.end(), after.jobs.begin(),
                                 [&](const JobSpec& was, const JobSpec& is) {
                                   return !part.is_stated(was) || part.is_same(was, is);
                                 });
    if (!kept) {
      lost.emplace_back(part.name);
    }
  }
  if (LosesDevices(before, after)) {
    lost.emplace_back("devices");
  }
  return lost;
}

std::string WriteNativeTrace(std::span<const JobSpec> jobs) {
  return WriteCsvTrace(NativeFormat(), {.jobs = jobs});
}
std::string WriteJsonlTrace(std::span<const JobSpec> jobs) { return WriteJsonl({.jobs = jobs}); }
std::string WriteElasticflowTrace(std::span<const JobSpec> jobs) {
  return WriteCsvTrace(ElasticflowFormat(), {.jobs = jobs});
}
std::string WriteBloxTrace(std::span<const JobSpec> jobs) { return WriteBlox({.jobs = jobs}); }
std::string WriteSynergyTrace(std::span<const JobSpec> jobs) {
  return WriteSynergy({.jobs = jobs});
}

}  // namespace trainyard
