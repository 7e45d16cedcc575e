// SPDX-License-Identifier: Apache-2.0
#include "scenario/scenario.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "engine/run.h"
#include "profile/execution_model.h"
#include "scenario/assembly.h"
#include "trace/cluster_file.h"

namespace trainyard {
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

Error AtJob(const Trace& trace, std::size_t job, const std::string& what) {
  return BadInput(trace.path + ":" + std::to_string(trace.lines[job]) + ": " + what);
}

void BindProfiles(const ThroughputTable& table, std::vector<JobSpec>& jobs) {
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

std::string JobName(const JobSpec& job) { return "job " + job.name; }

Status CheckIterations(const Inputs& inputs, bool elastic) {
  const ThroughputTable& table = *inputs.profiles;
  for (std::size_t i = 0; i < inputs.jobs->size(); ++i) {
    const JobSpec& job = (*inputs.jobs)[i];
    if (job.profile_row < 0) {
      const std::string batch = " with batch size " + std::to_string(job.batch_size);
      return AtJob(*inputs.trace, i,
                   "model '" + job.model + "'" + (table.HasModel(job.model) ? batch : "") +
                       " is not in the profiles; expected one that " + inputs.paths.profiles +
                       " has");
    }
    const double rate = table.rows()[static_cast<std::size_t>(job.profile_row)].Rate(job.gpus);
    if (!elastic && rate <= 0) {
      return AtJob(*inputs.trace, i,
                   JobName(job) + " asks for " + std::to_string(job.gpus) + " GPUs, but model '" +
                       job.model + "' has no throughput on that many; expected a GPU count of " +
                       "its profile");
    }
    if (!job.iterations) {
      return AtJob(*inputs.trace, i, JobName(job) + " has no iterations; expected some");
    }
  }
  return {};
}

Status CheckDurations(const Inputs& inputs) {
  for (std::size_t i = 0; i < inputs.jobs->size(); ++i) {
    if (!(*inputs.jobs)[i].duration) {
      return AtJob(
          *inputs.trace, i,
          JobName((*inputs.jobs)[i]) + " has no duration; expected one, or profiles (--profiles)");
    }
  }
  return {};
}

class TimelineObserver final : public DecisionObserver {
 public:
  explicit TimelineObserver(std::vector<TimelineSample>& samples) : samples_(samples) {}
  void OnDecision(const DecisionSample& sample) override {
    samples_.push_back({.time = sample.now,
                        .gpus_used = sample.gpus_used,
                        .jobs_running = sample.jobs_running,
                        .jobs_pending = sample.jobs_waiting,
                        .gpus_up = sample.gpus_up});
  }

 private:
  std::vector<TimelineSample>& samples_;
};

Outcome OutcomeOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kCompleted:
      return Outcome::kCompleted;
    case JobPhase::kRejected:
      return Outcome::kRejected;
    case JobPhase::kCancelled:
      return Outcome::kCancelled;
    case JobPhase::kFailed:
      return Outcome::kFailed;
    case JobPhase::kUnknown:
    case JobPhase::kArrived:
    case JobPhase::kWaiting:
    case JobPhase::kRunning:
      return Outcome::kUnfinished;
  }
  return Outcome::kUnfinished;
}

JobResult ResultOf(const JobSpec& spec, const JobRecord* record) {
  JobResult result{.spec = &spec};
  if (record == nullptr || record->phase.get() == JobPhase::kUnknown) {
    return result;  // never submitted: the run was stopped before
  }
  result.outcome = OutcomeOf(record->phase.get());
  if (record->started) {
    result.start = record->first_start;
  }
  if (result.outcome == Outcome::kCompleted) {
    result.end = record->done;
    result.logged = record->logged;
  }
  result.waited = record->progress.waited;
  result.attained_service = static_cast<double>(record->progress.gpu_micros) / 1e6;
  result.useful_service = static_cast<double>(record->progress.useful_gpu_micros) / 1e6;
  result.preemptions = record->preemptions;
  result.migrations = record->migrations;
  result.resizes = record->resizes;
  return result;
}

void Collect(const Engine& engine, const Inputs& inputs, RunResult& run) {
  run.jobs_of_trace = inputs.jobs;
  run.jobs.reserve(inputs.jobs->size());
  for (std::size_t i = 0; i < inputs.jobs->size(); ++i) {
    run.jobs.push_back(
        ResultOf((*inputs.jobs)[i], i < engine.records().size() ? &engine.records()[i] : nullptr));
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

Status MakeRates(const Inputs& inputs, Assembly& parts) {
  const Needs needs = parts.bundle().needs();
  const bool iterations = parts.preset.work == WorkUnit::kIterations ||
                          (parts.preset.work == WorkUnit::kAuto && !inputs.paths.profiles.empty());
  if ((iterations || needs.elastic) && inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if ((iterations || needs.elastic) && !inputs.profiles) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs throughput profiles; expected --profiles DIR");
  }
  if (needs.elastic && !iterations) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' sets GPU counts, but the preset counts durations");
  }
  if (!needs.elastic) {
    if (Status status = CheckFits(*inputs.trace, inputs.cluster); !status.ok()) {
      return status;
    }
  }
  if (Status status = iterations ? CheckIterations(inputs, needs.elastic) : CheckDurations(inputs);
      !status.ok()) {
    return status;
  }
  parts.rates = iterations ? MakeProfileModel(*inputs.profiles) : MakeDurationModel();
  return {};
}

Result<Assembly> Assemble(const Inputs& inputs, const PresetRequest& names) {
  Result<Assembly> parts = AssembleComponents(names, inputs.cluster, inputs.paths.profiles);
  if (parts.ok()) {
    if (Status status = MakeRates(inputs, parts.value()); !status.ok()) {
      return status.error();
    }
  }
  return parts;
}

EngineSetup SetupOf(const Inputs& inputs, const Assembly& parts, const RunRequest& request,
                    DecisionObserver* observer) {
  Bundle bundle = parts.bundle();
  bundle.plain_walk = request.plain_walk;
  return {.rules = parts.preset.rules,
          .cluster = inputs.cluster,
          .bundle = bundle,
          .rates = parts.rates.get(),
          .overheads = parts.preset.overheads,
          .observer = observer};
}

void Describe(const Inputs& inputs, const RunRequest& request, const Assembly& parts,
              RunResult& run) {
  run.policy = request.names.policy.empty() ? parts.preset.policy.name : request.names.policy;
  run.placement = parts.preset.placement.name;
  run.admission = parts.preset.admission.name;
  run.preset = request.names.preset;
  run.label = request.label.empty() ? run.policy : request.label;
  run.seed = request.seed;
  run.trace_path = inputs.paths.trace;
  run.trace_sha256 = inputs.trace->sha256;
  run.cluster_name = inputs.cluster.name;
  run.nodes = static_cast<std::int64_t>(inputs.cluster.nodes.size());
  run.gpus = inputs.cluster.total_gpus();
  run.uses_logged_end = parts.preset.uses_logged_end;
  run.exact_deadlines = parts.preset.exact_deadlines;
}

// In a simulated world.
Result<std::string> Simulate(const Inputs& inputs, const RunRequest& request, EngineSetup setup,
                             const CollectFrom& collect) {
  Engine engine(std::move(setup));
  SimulatedWorld world(inputs.jobs, inputs.cluster, engine, request.stop);
  if (request.on_progress) {
    world.OnProgress([&](std::size_t ended) { request.on_progress(ended, inputs.jobs->size()); });
  }
  JournalFile file;
  Journal::Sink sink;
  if (!request.journal_path.empty()) {
    if (Status status = file.Open(request.journal_path); !status.ok()) {
      return status.error();
    }
    sink = [&file](std::string_view bytes) { return file.Write(bytes); };
  }
  Journal journal(std::move(sink));
  if (Status status = Run(engine, world, journal); !status.ok()) {
    return status.error();
  }
  engine.Settle(world.now());
  collect(engine);
  return journal.digest();
}

}  // namespace

Result<Inputs> ReadInputs(const InputPaths& paths) {
  Result<Cluster> cluster = ReadCluster(paths.cluster);
  if (!cluster.ok()) {
    return cluster.error();
  }
  Result<Trace> trace =
      ReadTrace(paths.trace, {.format = paths.format, .skip_bad_rows = paths.skip_bad_rows});
  if (!trace.ok()) {
    return trace.error();
  }
  Inputs inputs{.paths = paths,
                .trace = std::make_shared<Trace>(std::move(trace).value()),
                .jobs = nullptr,
                .cluster = std::move(cluster).value(),
                .profiles = std::nullopt};
  inputs.jobs = std::shared_ptr<const std::vector<JobSpec>>(inputs.trace, &inputs.trace->jobs);
  if (!paths.profiles.empty()) {
    Result<ThroughputTable> profiles = ThroughputTable::Read(paths.profiles);
    if (profiles.ok()) {
      inputs.profiles = std::move(profiles).value();
      BindProfiles(*inputs.profiles, inputs.trace->jobs);
    } else {
      inputs.profiles_error = profiles.error();
    }
  }
  return inputs;
}

Result<RunResult> RunScenario(const Inputs& inputs, const RunRequest& request) {
  return RunScenario(inputs, request,
                     [&](const Assembly& /*parts*/, EngineSetup setup, const CollectFrom& collect) {
                       return Simulate(inputs, request, std::move(setup), collect);
                     });
}

Result<RunResult> RunScenario(const Inputs& inputs, const RunRequest& request, const Drive& drive) {
  const auto wall_start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  const Result<Assembly> assembled = Assemble(inputs, request.names);
  if (!assembled.ok()) {
    return assembled.error();
  }
  const Assembly& parts = assembled.value();
  RunResult run;
  Describe(inputs, request, parts, run);
  TimelineObserver observer(run.timeline);
  const Result<std::string> digest =
      drive(parts, SetupOf(inputs, parts, request, request.keep_timeline ? &observer : nullptr),
            [&](const Engine& engine) { Collect(engine, inputs, run); });
  if (!digest.ok()) {
    return digest.error();
  }
  run.journal_digest = digest.value();
  run.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  run.cpu_seconds = CpuSeconds() - cpu_start;
  run.peak_rss_mb = PeakMegabytes();
  return run;
}

}  // namespace trainyard
