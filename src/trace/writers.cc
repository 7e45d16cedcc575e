// SPDX-License-Identifier: Apache-2.0
#include "trace/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "base/check.h"
#include "base/decimal.h"
#include "base/text.h"
#include "base/try.h"
#include "io/csv_field.h"
#include "trace/csv_format.h"
#include "trace/device_list.h"

namespace trainyard::trace {
namespace {

using Missing = std::optional<std::string_view>;

Missing NeedsWork(const JobSpec& job) {
  return job.duration || job.iterations ? Missing() : "a duration or iterations";
}
Missing NeedsDuration(const JobSpec& job) { return job.duration ? Missing() : "a duration"; }
Missing NeedsIterations(const JobSpec& job) { return job.iterations ? Missing() : "iterations"; }
Missing NeedsModel(const JobSpec& job) { return job.model.empty() ? "a model" : Missing(); }
Missing NeedsBatch(const JobSpec& job) { return job.batch_size > 0 ? Missing() : "a batch size"; }
Missing NeedsBatchPerGpu(const JobSpec& job) {
  return job.batch_size > 0 && job.gpus > 0 && job.batch_size % job.gpus == 0
             ? Missing()
             : "a batch size that is a multiple of its GPUs";
}
Missing NeedsStages(const JobSpec& job) {
  return job.traits != nullptr && job.traits->stages ? Missing() : "the times of its stages";
}
Missing HasDeadlineInTime(const JobSpec& job) {
  return !job.deadline || *job.deadline >= job.submit ? Missing() : "a deadline after its submit";
}

template <Missing (*... kNeeds)(const JobSpec& job)>
Missing All(const JobSpec& job) {
  Missing why;
  (void)((why = kNeeds(job), why.has_value()) || ...);
  return why;
}

template <const CsvFormat& kFormat>
std::string ByColumns(const TraceView& trace) {
  return WriteCsvTrace(kFormat, trace);
}

// In the order of handing over; work is iterations of a second each.
std::string WriteBlox(const TraceView& trace) {
  std::string text = "job_id,handover_s,submit_s,num_gpus,iteration_time_s,total_iterations\n";
  for (const JobSpec& job : trace.jobs) {
    CHECK(job.duration.has_value());
    io::AppendCsvField(job.name, text);
    text += ',';
    base::AppendSeconds(job.known_from().time_since_epoch(), text);
    text += ',';
    base::AppendSeconds(job.submit.time_since_epoch(), text);
    fmt::format_to(std::back_inserter(text), ",{},1,", job.gpus);
    base::AppendSeconds(*job.duration, text);
    text += '\n';
  }
  return text;
}

constexpr std::string_view kNothing{};

constexpr std::array kWriters{
    TraceWriter{"native", kNothing, NeedsWork, ByColumns<kNativeFormat>},
    TraceWriter{"batsim", "more than job_id, submit_time, gpus and duration", NeedsDuration,
                WriteBatsim},
    TraceWriter{"blox", "more than job_id, handover_time, submit_time, gpus and duration",
                NeedsDuration, WriteBlox},
    TraceWriter{
        "chronus",
        "queue, batch_size, handover_time, priority, stage times, named GPUs, data sets, GPU types "
        "and GPU ranges",
        All<NeedsIterations, NeedsModel, NeedsDuration, HasDeadlineInTime>,
        ByColumns<kChronusFormat>},
    TraceWriter{
        "elasticflow",
        "user, queue, handover_time, priority, soft deadlines behind the first, stage times, "
        "named GPUs, data sets, GPU types and GPU ranges",
        All<NeedsIterations, NeedsModel, NeedsBatch, NeedsDuration>, ByColumns<kElasticflowFormat>},
    TraceWriter{"itp", "more than job_id, submit_time, gpus and duration", NeedsDuration,
                ByColumns<kItpFormat>},
    TraceWriter{"jsonl", kNothing, NeedsWork, WriteJsonl},
    TraceWriter{"muri",
                "user, queue, deadlines, handover_time, named GPUs, data sets, GPU types and GPU "
                "ranges",
                All<NeedsIterations, NeedsModel, NeedsBatchPerGpu, NeedsDuration, NeedsStages>,
                ByColumns<kMuriFormat>},
    TraceWriter{
        "swf",
        "more than submit_time, gpus and duration; ids, users and queues that are no numbers "
        "are numbered",
        NeedsDuration, WriteSwf},
    TraceWriter{"synergy", "more than job_id, model, submit_time, iterations and gpus",
                All<NeedsIterations, NeedsModel>, ByColumns<kShortSynergyFormat>},
    TraceWriter{"tiresias", "more than job_id, gpus, submit_time, model and duration",
                All<NeedsModel, NeedsDuration>, ByColumns<kTiresiasFormat>},
    TraceWriter{"torchloader",
                "job_id, user, queue, duration, deadlines, handover_time, priority, stages, data "
                "sets, GPU types and GPU ranges",
                MissingForTorchloader, WriteTorchloader},
};

// Whether the value of a field is the same in both traces. GPUs go by the names of their nodes; a
// job that states no handover is handed over at its submit.
template <typename Owner, typename T>
bool IsSame(const model::JobField<Owner, T>& field, const Trace& before, const Trace& after,
            std::size_t job) {
  const T& was = model::ValueOf(field, before.jobs[job]);
  const T& is = model::ValueOf(field, after.jobs[job]);
  if constexpr (std::is_same_v<T, Slices>) {
    return !is.empty() &&
           DeviceListOf(was, before.device_nodes) == DeviceListOf(is, after.device_nodes);
  } else if (field.info.name == "handover_time") {
    return before.jobs[job].known_from() == after.jobs[job].known_from();
  } else {
    return was == is;
  }
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
                                       format, base::Join(known, ", ")));
  }
  return InvalidArgument(base::UnknownName("trace format", format, known));
}

}  // namespace

std::span<const TraceWriter> TraceWriters() { return kWriters; }

Result<std::string> WriteTrace(const Trace& trace, std::string_view format) {
  ASSIGN_OR_RETURN(const TraceWriter writer, FindWriter(format));
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const bool needs_gpus = writer.name != "native" && writer.name != "jsonl";
    const Missing missing = needs_gpus && trace.jobs[i].gpus == 0 ? Missing("a GPU at least")
                                                                  : writer.why_not(trace.jobs[i]);
    if (missing) {
      return BadInput(
          fmt::format("{}:{}: job '{}' lacks something; expected {}, which format {} needs",
                      trace.path, trace.lines[i], trace.jobs[i].name, *missing, format));
    }
  }
  return writer.write({.jobs = trace.jobs, .nodes = trace.device_nodes});
}

std::vector<std::pair<std::string, std::size_t>> StatedIn(const Trace& trace) {
  std::vector<std::pair<std::string, std::size_t>> stated;
  model::ForEachJobField<model::IsInTraces>([&](const auto& field) {
    const auto jobs = static_cast<std::size_t>(std::count_if(
        trace.jobs.begin(), trace.jobs.end(),
        [&field](const JobSpec& job) { return field.info.required || model::States(job, field); }));
    if (jobs > 0) {
      stated.emplace_back(field.info.columns.front(), jobs);
    }
  });
  return stated;
}

Result<std::vector<std::string>> LostBetween(const Trace& before, const Trace& after) {
  if (before.jobs.size() != after.jobs.size()) {
    return Failed(fmt::format("{}: {} jobs of {} are read back; expected all of them", after.path,
                              after.jobs.size(), before.jobs.size()));
  }
  std::vector<std::string> lost;
  model::ForEachJobField<model::IsInTraces>([&](const auto& field) {
    for (std::size_t job = 0; job < before.jobs.size(); ++job) {
      if ((field.info.required || model::States(before.jobs[job], field)) &&
          !IsSame(field, before, after, job)) {
        lost.insert(lost.end(), field.info.columns.begin(),
                    field.info.columns.begin() + field.columns());
        return;
      }
    }
  });
  return lost;
}

std::string WriteNativeTrace(std::span<const JobSpec> jobs) {
  return WriteCsvTrace(kNativeFormat, {.jobs = jobs});
}
std::string WriteJsonlTrace(std::span<const JobSpec> jobs) { return WriteJsonl({.jobs = jobs}); }
std::string WriteElasticflowTrace(std::span<const JobSpec> jobs) {
  return WriteCsvTrace(kElasticflowFormat, {.jobs = jobs});
}
std::string WriteBloxTrace(std::span<const JobSpec> jobs) { return WriteBlox({.jobs = jobs}); }
std::string WriteSynergyTrace(std::span<const JobSpec> jobs) {
  return WriteCsvTrace(kShortSynergyFormat, {.jobs = jobs});
}

}  // namespace trainyard::trace
