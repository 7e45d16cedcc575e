// SPDX-License-Identifier: Apache-2.0
#include "live/measured/throughput_meter.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace trainyard::live {
namespace {

bool OnSameGpus(const LiveAttempt& a, const LiveAttempt& b) {
  return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const Part& of_a, const Part& of_b) {
                      return of_a.node == of_b.node && of_a.gpus == of_b.gpus;
                    });
}

// As the engine counts it (Grants::Give).
Change ChangeOf(model::ActionKind kind, const std::vector<LiveAttempt>& attempts) {
  if (kind == model::ActionKind::kResize) {
    return Change::kResize;
  }
  if (kind == model::ActionKind::kMigrate) {
    const std::size_t count = attempts.size();
    return count > 1 && OnSameGpus(attempts[count - 2], attempts[count - 1]) ? Change::kRestart
                                                                             : Change::kMigrate;
  }
  return attempts.back().number > 1 ? Change::kRestart : Change::kStart;
}

bool IsAlone(const LiveAttempt& attempt) {
  return attempt.sharing == Sharing::kExclusive && attempt.group.empty();
}

Metric MetricOf(profile::Measure measure, double value) {
  return {.name = std::string(profile::NameOf(measure)), .value = value};
}

profile::Measure MeasureOf(v1::Stage stage) {
  return stage == v1::COMMUNICATION ? profile::Measure::kCommunication
         : stage == v1::FORWARD     ? profile::Measure::kForward
                                    : profile::Measure::kLoad;
}

std::optional<double> MetricIn(const v1::AttemptReport& report, std::string_view name) {
  const auto found = std::find_if(report.metrics().begin(), report.metrics().end(),
                                  [name](const v1::Metric& m) { return m.name() == name; });
  return found == report.metrics().end() ? std::nullopt : std::optional(found->value());
}

// Of all processes of the job: those that its first process says it has, or those that it was
// given.
int LoaderWorkersOf(const LiveAttempt& attempt, const v1::AttemptReport& report) {
  constexpr double kMost = 1 << 16;  // of a process
  if (const std::optional<double> said = MetricIn(report, "loader_workers")) {
    return static_cast<int>(std::clamp(*said, 0.0, kMost)) * attempt.gpus();
  }
  int workers = 0;
  for (const Part& part : attempt.parts) {
    workers += part.loader_workers;
  }
  return workers;
}

// Fewer cores than workers: what one of them does nobody can say.
bool HaveCores(const LiveAttempt& attempt) {
  constexpr std::int64_t kMilli = 1000;
  return std::all_of(attempt.parts.begin(), attempt.parts.end(), [](const Part& part) {
    return part.soft.milli_cpus >= part.loader_workers * kMilli;
  });
}

}  // namespace

bool ThroughputMeter::Measures(JobId job) const {
  return engine_.measured() != nullptr && state_.options.measuring.first_window > Duration{0} &&
         !state_.jobs[job].is_emulated() && !state_.jobs[job].spec->model.empty();
}

void ThroughputMeter::Open(const model::Action& action) {
  const std::vector<LiveAttempt>& attempts = state_.attempts[action.job].list;
  if (!Measures(action.job) || attempts.empty()) {
    return;
  }
  jobs_[action.job] = {.attempt = attempts.back().number,
                       .change = ChangeOf(action.kind, attempts),
                       .opened = state_.now,
                       .window_s = Seconds(state_.options.measuring.first_window)};
}

void ThroughputMeter::Start(JobId job) {
  if (const auto at = jobs_.find(job); at != jobs_.end()) {
    at->second.ordered = state_.now;
  }
}

void ThroughputMeter::Hear(JobId job, const LiveAttempt& attempt, const Part& part,
                           const v1::AttemptReport& report) {
  const auto at = jobs_.find(job);
  if (at == jobs_.end() || at->second.attempt != attempt.number || attempt.stopping ||
      &part != &attempt.parts.front() || !at->second.ordered) {
    return;
  }
  OfJob& measured = at->second;
  if (const int workers = LoaderWorkersOf(attempt, report); workers != measured.loader_workers) {
    measured.loader_workers = workers;  // another rate: a window of its own
    measured.is_warm = false;
    measured.window_s = Seconds(state_.options.measuring.first_window);
  }
  const Mark now{.seconds = report.progress_s(), .iterations = report.iterations()};
  if (!(now.seconds > 0) || now.iterations <= measured.base.iterations) {
    return;
  }
  if (!measured.first) {
    measured.first = state_.now;
    measured.first_iterations = now.iterations - state_.jobs[job].iterations_saved;
    measured.base = now;
    return;
  }
  if (!measured.is_warm) {
    const double since = now.seconds - report.first_progress_s();
    measured.is_warm = since >= Seconds(state_.options.measuring.first_window) / 3;
    measured.base = now;
    return;
  }
  const double took = now.seconds - measured.base.seconds;
  if (took < measured.window_s || took <= 0) {
    return;
  }
  const double rate =
      (now.iterations - measured.base.iterations) / took / state_.options.time_scale;
  measured.base = now;
  measured.window_s =
      std::min(2 * measured.window_s, Seconds(state_.options.measuring.longest_window));
  Tell(job, attempt, measured, rate, report);
}

void ThroughputMeter::Tell(JobId job, const LiveAttempt& attempt, OfJob& measured, double rate,
                           const v1::AttemptReport& report) {
  model::fact::Measured fact{.job = job, .gpus = attempt.gpus()};
  const std::optional<double> waits = WaitsOf(job, report);
  Slices slices;
  for (const Part& part : attempt.parts) {
    slices.push_back({.node = part.node, .gpus = part.gpus});
  }
  if (const GpuType* const type = engine_.measured()->TypeOf(slices)) {
    fact.gpu_type = type->name;
    const double full = waits ? rate / (1 - *waits) : FullRate(job, attempt, rate, *type);
    if (full > 0 && IsAlone(attempt)) {
      fact.metrics.push_back(MetricOf(profile::Measure::kRate, full));
    }
    std::map<profile::Measure, double> stages;
    for (const v1::StageSeconds& stage : report.stages()) {
      stages[MeasureOf(stage.stage())] += stage.seconds() * state_.options.time_scale;
    }
    for (const auto& [measure, seconds] : stages) {
      fact.metrics.push_back(MetricOf(measure, seconds));
    }
  }
  if (!measured.has_told_cost) {
    measured.has_told_cost = true;
    fact.metrics.push_back(
        MetricOf(profile::MeasureOf(measured.change), Seconds(CostOf(job, measured, rate))));
  }
  std::erase_if(fact.metrics, [](const Metric& metric) { return !(metric.value > 0); });
  if (!fact.metrics.empty()) {
    facts_.push_back(std::move(fact));
  }
  if (waits) {
    TellOfLoader(job, attempt, measured.loader_workers, rate, *waits);
  }
}

std::optional<double> ThroughputMeter::WaitsOf(JobId job, const v1::AttemptReport& report) const {
  constexpr double kMost = 0.95;  // little is known of GPUs that wait still longer
  const JobSpec& spec = *state_.jobs[job].spec;
  const std::optional<double> waits = MetricIn(report, "loading_share");
  const bool known = waits && spec.profile_row >= 0 && spec.batch_size > 0 &&
                     engine_.measured()->LoaderSeconds(spec.model, 1);
  return known ? std::optional(std::clamp(*waits, 0.0, kMost)) : std::nullopt;
}

void ThroughputMeter::TellOfLoader(JobId job, const LiveAttempt& attempt, int workers, double rate,
                                   double waits) {
  constexpr double kLimited = 0.05;  // as of the runs that a loader model is fitted to
  if (waits < kLimited || !attempt.group.empty() || (workers > 0 && !HaveCores(attempt))) {
    return;
  }
  // Without workers each process loads for itself, while its GPU waits.
  const double iteration_s = (workers > 0 ? 1 : waits) / rate;
  const double seconds = iteration_s / static_cast<double>(state_.jobs[job].spec->batch_size);
  facts_.push_back(
      model::fact::Measured{.job = job,
                            .gpus = workers > 0 ? workers : attempt.gpus(),
                            .metrics = {MetricOf(profile::Measure::kLoader, seconds)}});
}

// The rate that the job would have with all that it can use: what its share of CPUs, memory or
// loader workers takes away, the model says. 0: nobody can say.
double ThroughputMeter::FullRate(JobId job, const LiveAttempt& attempt, double rate,
                                 const GpuType& type) const {
  if (attempt.rate <= 0) {
    return 0;
  }
  const double full =
      engine_.rates().RateOn(*engine_.records()[Index(job)].spec, attempt.gpus(), type);
  return rate * (full / attempt.rate);
}

// From the grant to the first work, without the fetch of a data set: for that the job is charged
// besides. While data was on its way, only the end of the attempt before counts.
Duration ThroughputMeter::CostOf(JobId job, const OfJob& measured, double rate) const {
  Duration before = *measured.ordered - measured.opened;
  if (state_.jobs[job].data_set() != nullptr) {
    before = std::min(before, state_.attempts[job].stop_took.value_or(Duration{0}));
  }
  const Duration worked = FromSeconds(std::max(0.0, measured.first_iterations / rate));
  return before + (*measured.first - *measured.ordered) - worked;
}

void ThroughputMeter::NoteStopped(JobId job, int gpus, Duration took) {
  if (Measures(job) && took > Duration{0}) {
    facts_.push_back(model::fact::Measured{
        .job = job, .gpus = gpus, .metrics = {MetricOf(profile::Measure::kStop, Seconds(took))}});
  }
}

}  // namespace trainyard::live
