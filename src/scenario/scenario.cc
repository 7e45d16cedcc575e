// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "base/try.h"
#include "engine/run.h"
#include "loader/reallocation.h"
#include "model/job_fields.h"
#include "model/node_classes.h"
#include "results/metrics/allocation_recorder.h"
#include "scenario/assembly.h"
#include "scenario/planned_configurations.h"
#include "scenario/rates.h"

namespace trainyard::scenario {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

class TimelineObserver final : public engine::DecisionObserver {
 public:
  TimelineObserver(const Inputs& inputs, const RunRequest& request, results::RunResult& run)
      : run_(run) {
    if (request.keep_allocations) {
      recorder_.emplace(inputs.cluster, *inputs.jobs);
    }
  }
  void OnDecision(const engine::DecisionSample& sample) override {
    run_.timeline.push_back({.time = sample.now,
                             .gpus_used = sample.gpus_used,
                             .jobs_running = sample.jobs_running,
                             .jobs_pending = sample.jobs_waiting,
                             .gpus_up = sample.gpus_up});
  }
  void OnChoice(TimePoint now, const Selector::Choice& choice) override {
    run_.choices.push_back({.time = now,
                            .candidate = choice.candidate,
                            .scores = choice.scores,
                            .errors = choice.errors});
  }
  void OnStep(TimePoint now, std::span<const model::Action> actions) override {
    if (!recorder_) {
      return;
    }
    now_ = now;
    recorder_->Take(now, actions);
    if (!run_.timeline.empty() && run_.timeline.back().time == now) {
      run_.timeline.back().gpus_fragmented = recorder_->gpus_fragmented();
    }
  }
  // Once, after the run.
  void Finish() {
    if (recorder_) {
      run_.allocations = recorder_->Finish(now_);
    }
  }

 private:
  results::RunResult& run_;
  std::optional<results::AllocationRecorder> recorder_;
  TimePoint now_{};
};

results::Outcome OutcomeOf(model::JobPhase phase) {
  switch (phase) {
    case model::JobPhase::kCompleted:
      return results::Outcome::kCompleted;
    case model::JobPhase::kRejected:
      return results::Outcome::kRejected;
    case model::JobPhase::kCancelled:
      return results::Outcome::kCancelled;
    case model::JobPhase::kFailed:
      return results::Outcome::kFailed;
    case model::JobPhase::kUnknown:
    case model::JobPhase::kArrived:
    case model::JobPhase::kWaiting:
    case model::JobPhase::kRunning:
      return results::Outcome::kUnfinished;
  }
  return results::Outcome::kUnfinished;
}

results::JobResult ResultOf(const JobSpec& spec, const model::JobRecord* record) {
  results::JobResult result{.spec = &spec};
  if (record == nullptr || record->phase.get() == model::JobPhase::kUnknown) {
    return result;  // never submitted: the run was stopped before
  }
  result.outcome = OutcomeOf(record->phase.get());
  if (record->started) {
    result.start = record->first_start;
  }
  if (result.outcome == results::Outcome::kCompleted) {
    result.end = record->done;
    result.logged = record->logged;
  }
  result.waited = record->progress.waited;
  result.productive = record->progress.productive_time;
  result.overhead = record->progress.run_time - record->progress.productive_time;
  result.attained_service = static_cast<double>(record->progress.gpu_micros) / 1e6;
  result.useful_service = static_cast<double>(record->progress.useful_gpu_micros) / 1e6;
  result.preemptions = record->preemptions;
  result.migrations = record->migrations;
  result.resizes = record->resizes;
  if (record->full_rate > 0) {
    result.alone = FromSeconds(record->total_work / record->full_rate);
  }
  return result;
}

// Of a job that runs on several types of GPU: on the fastest that it accepts.
std::optional<Duration> AloneOnTypes(const model::JobRecord& record, const model::GpuTypes& types,
                                     const ExecutionModel& rates) {
  if (types.types().size() < 2 || record.spec->gpus == 0) {
    return std::nullopt;
  }
  const std::vector<std::string>& accepted = model::PartOf<JobTraits>(*record.spec).gpu_types;
  double fastest = 0;
  for (const GpuType& type : types.types()) {
    if (accepted.empty() || model::NamesType(accepted, type.name)) {
      fastest = std::max(fastest, rates.RateOn(*record.spec, record.spec->gpus, type));
    }
  }
  return fastest > 0 ? std::optional(FromSeconds(record.total_work / fastest)) : std::nullopt;
}

void Collect(const engine::Engine& engine, std::span<const JobId> ids, const Inputs& inputs,
             results::RunResult& run) {
  run.jobs_of_trace = inputs.jobs;
  run.jobs.reserve(inputs.jobs->size());
  const model::GpuTypes types(engine.cluster());
  for (std::size_t i = 0; i < inputs.jobs->size(); ++i) {
    const std::size_t id = ids.empty() ? i : Index(ids[i]);
    const model::JobRecord* const record =
        id < engine.records().size() ? &engine.records()[id] : nullptr;
    run.jobs.push_back(ResultOf((*inputs.jobs)[i], record));
    if (results::JobResult& job = run.jobs.back(); job.alone && record->total_work > 0) {
      job.alone = AloneOnTypes(*record, types, *engine.configuration().rates).value_or(*job.alone);
    }
  }
  run.decisions = engine.decisions();
  run.bounded_decisions = engine.bounded_decisions();
  run.events = engine.events();
}

// A journal file that is written as the run goes on.
class JournalFile {
 public:
  ~JournalFile() {
    if (file_ != nullptr) {
      std::fclose(file_);
    }
  }
  Status Open(const std::string& path) {
    path_ = path;
    file_ = std::fopen(path.c_str(), "wb");
    return file_ != nullptr ? Status() : Failed(path + ": cannot be written");
  }
  Status Write(std::string_view bytes) {
    const bool good = std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    return good ? Status() : Failed(path_ + ": writing failed (disk full?)");
  }

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

engine::EngineSetup SetupOf(const Inputs& inputs, const Assembly& parts, const RunRequest& request,
                            engine::DecisionObserver* observer) {
  const std::shared_ptr<engine::Configuration> configuration = parts.Configure(inputs.cluster);
  configuration->bundle.plain_walk = request.plain_walk;
  return {.configuration = configuration, .measured = inputs.measured, .observer = observer};
}

void Describe(const Inputs& inputs, const RunRequest& request, const Assembly& parts,
              results::RunResult& run) {
  run.policy = request.names.policy.empty() ? parts.preset.policy.name : request.names.policy;
  run.placement = parts.preset.placement.name;
  run.admission = parts.preset.admission.name;
  run.grouping = request.names.grouping;
  run.tuning = request.names.tuning;
  run.preset = request.names.preset;
  run.preset_sha256 = parts.preset.file_sha256;
  for (const Assembly& candidate : parts.candidates) {
    run.candidates.push_back(candidate.label);
  }
  run.label = request.label.empty() ? run.policy : request.label;
  run.seed = request.seed;
  run.trace_path = inputs.paths.trace;
  run.trace_sha256 = inputs.trace->sha256;
  run.changes_path = inputs.paths.changes;
  run.changes_sha256 = inputs.changes_sha256;
  run.cluster_name = inputs.cluster.name;
  run.nodes = static_cast<std::int64_t>(inputs.cluster.nodes.size());
  run.gpus = inputs.cluster.total_gpus();
  run.uses_logged_end = parts.preset.uses_logged_end;
  run.stops_early = request.stop.until || request.stop.tracked || !parts.preset.track.empty();
  run.exact_deadlines = parts.preset.exact_deadlines;
}

bool IsEarly(const JobSpec& job) { return job.known_from() < job.submit; }

using SharedJobs = PlannedConfigurations::SharedJobs;

// The jobs as the preset hands them over to the scheduler: at the starts of windows or, without
// windows, not before the submit. The same ones where that changes nothing.
SharedJobs HandedOver(const SharedJobs& jobs, const ResolvedPreset& preset) {
  const bool too_early = !preset.early_handover && std::any_of(jobs->begin(), jobs->end(), IsEarly);
  const bool in_windows = preset.handover_window > Duration{0} && !jobs->front().handover;
  if (!too_early && !in_windows) {
    return jobs;
  }
  auto handed_over = std::make_shared<std::vector<JobSpec>>(*jobs);
  for (JobSpec& job : *handed_over) {
    if (in_windows) {
      job.handover = loader::HandoverOf(job.submit, preset.handover_window);
    } else if (IsEarly(job)) {
      job.handover.reset();
    }
  }
  return handed_over;
}

// In a simulated world.
Result<std::string> Simulate(const Inputs& inputs, const RunRequest& request, const Assembly& parts,
                             engine::EngineSetup setup, const CollectFrom& collect) {
  PlannedConfigurations configurations;
  RETURN_IF_ERROR(configurations.Plan(inputs, request.names));
  setup.configurations = &configurations;
  engine::Engine engine(std::move(setup));
  world::StopRule stop = request.stop;
  if (!stop.tracked && !parts.preset.track.empty()) {
    ASSIGN_OR_RETURN(
        world::TrackedJobs tracked,
        ParseTracked(parts.preset.track, "option 'track' of the preset", inputs.jobs->size()));
    stop.tracked = tracked;
  }
  world::SimulatedWorld world(configurations.WithTheirRows(HandedOver(inputs.jobs, parts.preset)),
                              inputs.cluster, engine, stop);
  world.Plan(configurations.facts());
  if (inputs.models.applications) {
    world.TrainBy(std::make_unique<world::SimulatedTrainings>(
        *inputs.models.applications, parts.preset.trainings, inputs.cluster, inputs.jobs));
  }
  if (request.on_progress) {
    world.OnProgress([&](std::size_t ended) { request.on_progress(ended, inputs.jobs->size()); });
  }
  JournalFile file;
  engine::Journal::Sink sink;
  if (!request.journal_path.empty()) {
    RETURN_IF_ERROR(file.Open(request.journal_path));
    sink = [&file](std::string_view bytes) { return file.Write(bytes); };
  }
  engine::Journal journal(std::move(sink));
  RETURN_IF_ERROR(engine::Run(engine, world, &journal));
  engine.Settle(world.now());
  collect(engine, {});
  return journal.digest();
}

}  // namespace

Result<world::TrackedJobs> ParseTracked(std::string_view text, std::string_view what,
                                        std::size_t jobs) {
  const std::vector<std::string_view> ends = base::Split(text, "-");
  const auto first = base::ToNumber(ends.front());
  const auto last = base::ToNumber(ends.back());
  const auto count = static_cast<double>(jobs);
  if (ends.size() != 2 || !first || !last || *first < 0 || *last < *first || *last >= count) {
    return InvalidArgument(std::string(what) + " is '" + std::string(text) +
                           "'; expected FIRST-LAST with rows from 0 to " +
                           std::to_string(jobs - 1));
  }
  return world::TrackedJobs{JobAt(static_cast<std::size_t>(*first)),
                            JobAt(static_cast<std::size_t>(*last))};
}

Result<results::RunResult> RunScenario(const Inputs& inputs, const RunRequest& request) {
  return RunScenario(
      inputs, request,
      [&](const Assembly& parts, engine::EngineSetup setup, const CollectFrom& collect) {
        return Simulate(inputs, request, parts, std::move(setup), collect);
      });
}

Result<results::RunResult> RunScenario(const Inputs& inputs, const RunRequest& request,
                                       const Drive& drive) {
  const auto wall_start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  ASSIGN_OR_RETURN(const Assembly parts, Assemble(inputs, request.names));
  results::RunResult run;
  Describe(inputs, request, parts, run);
  TimelineObserver observer(inputs, request, run);
  ASSIGN_OR_RETURN(
      const std::string digest,
      drive(parts, SetupOf(inputs, parts, request, request.keep_timeline ? &observer : nullptr),
            [&](const engine::Engine& engine, std::span<const JobId> ids) {
              Collect(engine, ids, inputs, run);
            }));
  observer.Finish();
  run.journal_digest = digest;
  run.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  run.cpu_seconds = CpuSeconds() - cpu_start;
  run.peak_rss_mb = PeakMegabytes();
  return run;
}

}  // namespace trainyard::scenario
