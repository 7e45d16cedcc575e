// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <initializer_list>

#include "base/text.h"
#include "base/try.h"
#include "engine/run.h"
#include "loader/loader_execution.h"
#include "loader/measured_loader.h"
#include "loader/reallocation.h"
#include "model/gpu_types.h"
#include "model/job_fields.h"
#include "profile/execution_model.h"
#include "profile/measured_file.h"
#include "profile/sensitivity.h"
#include "results/metrics/allocation_recorder.h"
#include "scenario/assembly.h"
#include "scenario/known_models.h"
#include "trace/clusters/cluster_file.h"
#include "trace/terms.h"

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

// What is wrong with one job; nothing: it is as expected.
using WhatIsWrong = std::optional<std::string>;

// The first job of the trace of which `check` finds something wrong, with file and line.
template <typename Check>
Status CheckJobs(const trace::Trace& trace, const Check& check) {
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (const WhatIsWrong wrong = check(trace.jobs[i])) {
      return BadInput(fmt::format("{}:{}: {}", trace.path, trace.lines[i], *wrong));
    }
  }
  return {};
}

// Formats that state no work for any job can be read and not be run.
Status CheckWorkStated(const trace::Trace& trace) {
  return CheckJobs(trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (job.duration || job.iterations) {
      return std::nullopt;
    }
    return fmt::format(
        "job {} states no work, as no job of format {} does; expected a trace with durations or "
        "iterations",
        job.name, trace.format);
  });
}

void BindProfiles(const profile::ThroughputTable& table, std::vector<JobSpec>& jobs) {
  for (JobSpec& job : jobs) {
    job.profile_row = table.Find(job.model, job.batch_size);
    if (job.profile_row >= 0 && !job.iterations && job.duration) {
      const double rate = table.rows()[static_cast<std::size_t>(job.profile_row)].Rate(job.gpus);
      if (rate > 0) {
        job.iterations = Seconds(*job.duration) * rate;
      }
    }
  }
}

WhatIsWrong NoIterations(const JobSpec& job) {
  return job.iterations
             ? std::nullopt
             : WhatIsWrong(fmt::format("job {} has no iterations; expected some", job.name));
}

// `passed_over`: jobs that need not be in the profiles.
Status CheckIterations(const Inputs& inputs, bool elastic, bool (*passed_over)(const JobSpec&)) {
  const profile::ThroughputTable& table = *inputs.models.throughput;
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (passed_over(job)) {
      return std::nullopt;
    }
    if (job.profile_row < 0) {
      return fmt::format(
          "model '{}'{} is not in the profiles; expected one that {} has", job.model,
          table.HasModel(job.model) ? fmt::format(" with batch size {}", job.batch_size) : "",
          inputs.paths.profiles);
    }
    const profile::ThroughputRow& row = table.rows()[static_cast<std::size_t>(job.profile_row)];
    if (!elastic && row.Rate(job.gpus) <= 0) {
      return fmt::format(
          "job {} asks for {} GPUs, but model '{}' has no throughput on that many; expected a GPU "
          "count of its profile",
          job.name, job.gpus, job.model);
    }
    if (elastic && job.traits && !row.RunsWithin(job.traits->range)) {
      return fmt::format(
          "job {} may have {} GPUs, but model '{}' has no throughput there; expected a range with "
          "a GPU count of its profile",
          job.name, profile::RangeText(job.traits->range), job.model);
    }
    return NoIterations(job);
  });
}

Status CheckSensitivity(const Inputs& inputs, const profile::SensitivityRules& rules) {
  RETURN_IF_ERROR(profile::CheckRatio(*inputs.models.sensitivity, inputs.cluster, rules));
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (job.profile_row < 0) {
      return fmt::format("model '{}' is not in the profiles; expected one that {} has", job.model,
                         inputs.paths.profiles);
    }
    return *job.iterations < 1
               ? WhatIsWrong(fmt::format("job {} has no whole iteration; expected some", job.name))
               : std::nullopt;
  });
}

Status CheckDurations(const Inputs& inputs, bool (*passed_over)(const JobSpec&)) {
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (passed_over(job) || job.duration) {
      return std::nullopt;
    }
    return fmt::format("job {} has no duration; expected one, or profiles (--profiles)", job.name);
  });
}

Status CheckStages(const Inputs& inputs) {
  return CheckJobs(*inputs.trace, [](const JobSpec& job) -> WhatIsWrong {
    if (profile::StatesStages(job)) {
      return std::nullopt;
    }
    return fmt::format("job {} has no stage times; expected some, as in traces of format muri",
                       job.name);
  });
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

void Collect(const engine::Engine& engine, std::span<const JobId> ids, const Inputs& inputs,
             results::RunResult& run) {
  run.jobs_of_trace = inputs.jobs;
  run.jobs.reserve(inputs.jobs->size());
  for (std::size_t i = 0; i < inputs.jobs->size(); ++i) {
    const std::size_t id = ids.empty() ? i : Index(ids[i]);
    run.jobs.push_back(ResultOf((*inputs.jobs)[i],
                                id < engine.records().size() ? &engine.records()[id] : nullptr));
  }
  run.decisions = engine.decisions();
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

// What a policy wants against what the preset counts.
Status CheckWork(const Assembly& parts, bool iterations) {
  const May may = parts.traits().may;
  const WorkUnit work = parts.preset.work;
  if (may.resize && !iterations) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' sets GPU counts, but the preset counts durations");
  }
  if (may.share && (work == WorkUnit::kIterations || work == WorkUnit::kDuration)) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' lets jobs share GPUs, but the preset counts no stage times");
  }
  return {};
}

Status MakeSensitiveRates(const Inputs& inputs, Assembly& parts) {
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.sensitivity) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs sensitivity profiles; expected --profiles DIR with "
                           "model_profiles.csv");
  }
  if (parts.traits().may.resize) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' sets GPU counts; expected throughput profiles, which have some");
  }
  RETURN_IF_ERROR(trace::CheckFits(*inputs.trace, inputs.cluster));
  RETURN_IF_ERROR(CheckSensitivity(inputs, parts.preset.sensitivity));
  parts.rates = profile::MakeSensitivityModel(*inputs.models.sensitivity, inputs.cluster,
                                              parts.preset.sensitivity);
  return {};
}

// A run of loader workers: every job has iterations and a known model.
Status CheckLoaderJobs(const Inputs& inputs) {
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) -> WhatIsWrong {
    const Status known = inputs.models.loader->Check(job);
    return !job.iterations || known.ok() ? NoIterations(job) : known.error().message;
  });
}

Status MakeLoaderRates(const Inputs& inputs, Assembly& parts) {
  if (!inputs.models.loader) {
    return InvalidArgument(
        "the preset counts what loader workers deliver; expected --profiles FILE with a model "
        "catalogue (columns model, params and flops)");
  }
  RETURN_IF_ERROR(CheckLoaderJobs(inputs));
  const loader::WorkersFrom from =
      parts.divides_cores() ? loader::WorkersFrom::kGrant : loader::WorkersFrom::kRequest;
  parts.corrector = loader::RefinedBy(*inputs.models.loader, from);
  parts.rates = loader::MakeLoaderModel(*inputs.models.loader, from);
  return trace::CheckFits(*inputs.trace, inputs.cluster);
}

Status MakeStagedRates(const Inputs& inputs, Assembly& parts) {
  parts.rates = profile::MakeStageModel(parts.preset.stages);
  const Status fits = trace::CheckFits(*inputs.trace, inputs.cluster);
  return fits.ok() ? CheckStages(inputs) : fits;
}

Status CheckProfiles(const Inputs& inputs, const Assembly& parts, bool iterations) {
  if (!iterations && !parts.traits().may.resize) {
    return {};
  }
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.throughput) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs throughput profiles; expected --profiles DIR");
  }
  return {};
}

// Iterations by throughput profiles, or durations; stages for jobs that state some.
Status MakePlainRates(const Inputs& inputs, Assembly& parts) {
  const bool elastic = parts.traits().may.resize;
  const WorkUnit work = parts.preset.work;
  const bool iterations =
      work == WorkUnit::kIterations ||
      (work == WorkUnit::kAuto && !inputs.paths.profiles.empty() && !inputs.models.stages);
  RETURN_IF_ERROR(CheckProfiles(inputs, parts, iterations));
  RETURN_IF_ERROR(CheckWork(parts, iterations));
  RETURN_IF_ERROR(elastic ? Status() : trace::CheckFits(*inputs.trace, inputs.cluster));
  const bool mixed = work == WorkUnit::kAuto && !elastic &&
                     std::any_of(inputs.jobs->begin(), inputs.jobs->end(), profile::StatesStages);
  const auto passed_over = mixed ? profile::StatesStages : [](const JobSpec&) { return false; };
  RETURN_IF_ERROR(iterations ? CheckIterations(inputs, elastic, passed_over)
                             : CheckDurations(inputs, passed_over));
  if (mixed) {
    parts.rates = profile::MakeMixedModel(iterations ? &*inputs.models.throughput : nullptr,
                                          parts.preset.stages);
    return {};
  }
  parts.rates = iterations ? profile::MakeProfileModel(*inputs.models.throughput)
                           : profile::MakeDurationModel(parts.preset.rate_factor);
  return {};
}

Status MakeRates(const Inputs& inputs, Assembly& parts) {
  const PolicyTraits traits = parts.traits();
  const WorkUnit work = parts.preset.work;
  const bool sensitive =
      work == WorkUnit::kSensitivity || (work == WorkUnit::kAuto && inputs.models.sensitivity);
  const bool loaded = work == WorkUnit::kLoader || traits.needs.named_devices ||
                      (work == WorkUnit::kAuto && inputs.models.loader && !traits.may.resize);
  if (parts.grouping.grouping && (sensitive || loaded)) {
    return NeedsStages(parts);
  }
  if (sensitive) {
    return MakeSensitiveRates(inputs, parts);
  }
  if (work == WorkUnit::kStages) {
    return MakeStagedRates(inputs, parts);
  }
  if (loaded) {
    return MakeLoaderRates(inputs, parts);
  }
  return MakePlainRates(inputs, parts);
}

// Where types matter.
Status CheckAllGpuTypes(const Inputs& inputs, const Assembly& parts) {
  const bool several = model::GpuTypes(inputs.cluster).several();
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (!several && model::PartOf<JobTraits>(job).gpu_types.empty()) {
      return std::nullopt;
    }
    const Status fits = CheckGpuTypes(parts, inputs.cluster, job);
    return fits.ok() ? std::nullopt
                     : WhatIsWrong(fmt::format("job {}: {}", job.name, fits.error().message));
  });
}

Result<Assembly> Assemble(const Inputs& inputs, const PresetRequest& names) {
  Result<Assembly> parts =
      AssembleComponents(names, inputs.cluster, inputs.paths.profiles,
                         inputs.models.loader ? &*inputs.models.loader : nullptr);
  if (parts.ok()) {
    RETURN_IF_ERROR(MakeRates(inputs, parts.value()));
    parts.value().rates = profile::OnTypesOf(inputs.cluster, std::move(parts.value().rates));
    RETURN_IF_ERROR(CheckAllGpuTypes(inputs, parts.value()));
  }
  return parts;
}

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
  run.cluster_name = inputs.cluster.name;
  run.nodes = static_cast<std::int64_t>(inputs.cluster.nodes.size());
  run.gpus = inputs.cluster.total_gpus();
  run.uses_logged_end = parts.preset.uses_logged_end;
  run.stops_early = request.stop.until || request.stop.tracked || !parts.preset.track.empty();
  run.exact_deadlines = parts.preset.exact_deadlines;
}

bool IsEarly(const JobSpec& job) { return job.known_from() < job.submit; }

// The same jobs, handed over at the starts of windows or, without windows, not before the submit.
Inputs HandedOver(const Inputs& inputs, Duration window) {
  Inputs handed_over = inputs;
  handed_over.trace = std::make_shared<trace::Trace>(*inputs.trace);
  for (JobSpec& job : handed_over.trace->jobs) {
    if (window > Duration{0}) {
      job.handover = loader::HandoverOf(job.submit, window);
    } else if (IsEarly(job)) {
      job.handover.reset();
    }
  }
  handed_over.jobs =
      std::shared_ptr<const std::vector<JobSpec>>(handed_over.trace, &handed_over.trace->jobs);
  return handed_over;
}

// In a simulated world.
Result<std::string> Simulate(const Inputs& inputs, const RunRequest& request, const Assembly& parts,
                             engine::EngineSetup setup, const CollectFrom& collect) {
  engine::Engine engine(std::move(setup));
  world::StopRule stop = request.stop;
  if (!stop.tracked && !parts.preset.track.empty()) {
    ASSIGN_OR_RETURN(
        world::TrackedJobs tracked,
        ParseTracked(parts.preset.track, "option 'track' of the preset", inputs.jobs->size()));
    stop.tracked = tracked;
  }
  world::SimulatedWorld world(inputs.jobs, inputs.cluster, engine, stop);
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

Result<std::vector<std::string>> UnstatedInputs(const PresetRequest& names,
                                                std::span<const JobSpec> jobs) {
  ASSIGN_OR_RETURN(const ResolvedPreset preset, ResolvePreset(names));
  const auto is_one_of = [](std::string_view name, std::initializer_list<std::string_view> all) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  const auto without = [&](bool (*states)(const JobSpec&)) {
    return jobs.size() - static_cast<std::size_t>(std::count_if(jobs.begin(), jobs.end(), states));
  };
  std::vector<std::string> unstated;
  const std::size_t no_deadline =
      without([](const JobSpec& job) { return job.deadline.has_value(); });
  const std::string& policy = preset.policy.name;
  if (is_one_of(policy, {"edf", "elastic-edf", "elasticflow", "chronus"}) &&
      no_deadline == jobs.size()) {
    unstated.push_back("policy '" + policy +
                       "' goes by deadlines, but no job states one: there is none to keep");
  }
  const std::size_t no_stages = without(profile::StatesStages);
  const bool groups = preset.grouping.has_value();
  if ((groups || is_one_of(policy, {"muri-s", "muri-l", "antman", "antman-published"})) &&
      no_stages > 0) {
    unstated.push_back((groups ? "grouping '" + preset.grouping->name : "policy '" + policy) +
                       "' lets jobs share GPUs by the times of their stages, but " +
                       (no_stages == jobs.size()
                            ? "no job states them"
                            : std::to_string(no_stages) + " of " + std::to_string(jobs.size()) +
                                  " jobs do not state them") +
                       ": jobs without stage times run alone");
  }
  return unstated;
}

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

Result<Inputs> ReadInputs(const InputPaths& paths) {
  ASSIGN_OR_RETURN(Cluster cluster, trace::ReadCluster(paths.cluster));
  ASSIGN_OR_RETURN(trace::Trace trace,
                   trace::ReadTrace(paths.trace, {.format = paths.format,
                                                  .skip_bad_rows = paths.skip_bad_rows,
                                                  .unit = paths.time_unit,
                                                  .procs_per_gpu = paths.procs_per_gpu,
                                                  .columns = paths.columns}));
  RETURN_IF_ERROR(CheckWorkStated(trace));
  for (std::size_t i = 0; paths.at_once && i < trace.jobs.size(); ++i) {
    trace.jobs[i].submit = TimePoint{};
  }
  RETURN_IF_ERROR(trace::ResolveTerms(trace));
  Inputs inputs{.paths = paths,
                .trace = std::make_shared<trace::Trace>(std::move(trace)),
                .jobs = nullptr,
                .cluster = std::move(cluster),
                .models = {},
                .profiles_error = std::nullopt};
  inputs.jobs = std::shared_ptr<const std::vector<JobSpec>>(inputs.trace, &inputs.trace->jobs);
  RETURN_IF_ERROR(trace::BindDevices(*inputs.trace, inputs.cluster));
  if (!paths.measured.empty()) {
    ASSIGN_OR_RETURN(inputs.measured, profile::ReadMeasured(paths.measured));
  }
  Result<KnownModels> models = KnownModels::Read(paths.profiles, inputs.cluster);
  if (!models.ok() && loader::LoaderProfiles::AreAt(paths.profiles)) {
    return models.error();
  }
  if (!models.ok()) {
    inputs.profiles_error = models.error();
    return inputs;
  }
  inputs.models = std::move(models).value();
  if (inputs.models.sensitivity) {
    for (JobSpec& job : inputs.trace->jobs) {
      BindSensitivity(*inputs.models.sensitivity, inputs.cluster, job);
    }
  }
  if (inputs.models.stages) {
    for (JobSpec& job : inputs.trace->jobs) {
      profile::BindStages(*inputs.models.stages, job);
    }
  }
  if (inputs.models.loader && inputs.measured) {
    for (JobSpec& job : inputs.trace->jobs) {  // as on a live cluster: what is measured counts
      job.profile_row = inputs.models.loader->Check(job).ok() ? 0 : -1;
    }
  }
  if (inputs.models.throughput) {
    BindProfiles(*inputs.models.throughput, inputs.trace->jobs);
  }
  return inputs;
}

Result<results::RunResult> RunScenario(const Inputs& inputs, const RunRequest& request) {
  ASSIGN_OR_RETURN(const ResolvedPreset preset, ResolvePreset(request.names));
  const Duration window = preset.handover_window;
  const bool too_early =
      !preset.early_handover && std::any_of(inputs.jobs->begin(), inputs.jobs->end(), IsEarly);
  const bool in_windows = window > Duration{0} && !inputs.jobs->front().handover;
  std::optional<Inputs> handed_over;
  if (too_early || in_windows) {
    handed_over = HandedOver(inputs, in_windows ? window : Duration{0});
  }
  const Inputs& given = handed_over ? *handed_over : inputs;
  return RunScenario(
      given, request,
      [&](const Assembly& parts, engine::EngineSetup setup, const CollectFrom& collect) {
        return Simulate(given, request, parts, std::move(setup), collect);
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
