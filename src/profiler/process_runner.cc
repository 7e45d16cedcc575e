// SPDX-License-Identifier: Apache-2.0
#include "profiler/process_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "profiler/pace.h"
#include "supervisor/local_processes.h"

namespace trainyard::profiler {
namespace {

using Clock = std::chrono::steady_clock;
using v1::AttemptReport;

// From the notice on; with it what the script does at notice is measured, or it only has to end.
constexpr Duration kGrace = std::chrono::seconds(30);
constexpr Duration kShortGrace = std::chrono::seconds(3);
constexpr int kKilled = 128 + SIGKILL;
// A script that has ended may not have told of its last iterations: one, or this part of those that
// are measured.
constexpr double kMayLack = 0.1;
// A script does not outlive this program by more.
constexpr Duration kLease = std::chrono::seconds(8);

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double MetricOf(const AttemptReport& report, std::string_view name) {
  const auto found = std::find_if(report.metrics().begin(), report.metrics().end(),
                                  [name](const v1::Metric& m) { return m.name() == name; });
  return found == report.metrics().end() ? 0 : found->value();
}

// By the reports of one attempt.
class Observation {
 public:
  Observation(const Trial& trial, double iterations_done)
      : trial_(trial), done_before_(iterations_done), pace_(trial.burst) {}

  void Note(const AttemptReport& report, Clock::time_point now) {
    if (exited_) {
      return;  // an older one
    }
    if (const double done = report.iterations() - done_before_;
        report.progress_s() > 0 && done >= trial_.warmup) {
      pace_.Note(done, report.progress_s());
    }
    last_ = report;
    if (report.state() == AttemptReport::EXITED) {
      exited_ = now;
    }
  }
  // So many iterations are still to come.
  [[nodiscard]] double lacks() const {
    return trial_.warmup + trial_.iterations - (last_.iterations() - done_before_);
  }
  [[nodiscard]] bool measured() const { return lacks() <= 0; }
  [[nodiscard]] bool exited() const { return exited_.has_value(); }
  [[nodiscard]] const AttemptReport& last() const { return last_; }
  void Notified(Clock::time_point now) { notice_ = now; }
  [[nodiscard]] bool notified() const { return notice_.has_value(); }
  [[nodiscard]] double done_before() const { return done_before_; }

  [[nodiscard]] TrialResult Result() const {
    TrialResult result;
    result.start_s = last_.first_progress_s();
    if (notice_ && exited_) {
      result.stop_s = SecondsBetween(*notice_, *exited_);
    }
    result.iteration_s = pace_.seconds();
    result.loading_share = MetricOf(last_, "loading_share");
    for (const v1::StageSeconds& stage : last_.stages()) {
      const std::size_t at = stage.stage() == v1::COMMUNICATION ? 2
                             : stage.stage() == v1::FORWARD     ? 1
                                                                : 0;
      result.stages_s.at(at) += stage.seconds();
    }
    return result;
  }

 private:
  const Trial& trial_;
  const double done_before_;
  Pace pace_;  // since the end of the warm-up
  AttemptReport last_;
  std::optional<Clock::time_point> notice_;
  std::optional<Clock::time_point> exited_;
};

class ProcessRunner final : public TrialRunner {
 public:
  explicit ProcessRunner(ProcessRunnerOptions options)
      : stop_wanted_(options.stop_wanted),
        master_address_(options.master_address),
        master_port_(options.master_port),
        processes_(supervisor::MakeLocalProcesses(
            {.state_folder = std::move(options.scratch), .program = std::move(options.program)},
            [this] {
              const std::lock_guard lock(mutex_);
              news_.notify_all();
            })) {}

  TrialResult Run(const Trial& trial) override {
    const std::string perf =
        (std::filesystem::path(trial.folder) / fmt::format("PERF_{}.txt", kTrialJobName)).string();
    std::error_code ignored;
    std::filesystem::remove(perf, ignored);

    Job job{.number = ++jobs_};
    double stopped_s = 0;
    for (const Trial& before : trial.before) {
      Observation observed(before, 0);
      const bool in_time = RunAttempt(before, StartOf(before, job), observed);
      std::string failure = FailureOf(before, observed, in_time);
      if (failure.empty()) {
        failure = WhatIsNotSaved(observed);
      }
      if (!failure.empty()) {
        return {.failure = std::move(failure),
                .hopeless = IsHopeless(observed),
                .interrupted = StopWanted()};
      }
      stopped_s = observed.Result().stop_s;
      job.iterations = observed.last().checkpointed_iterations();
      ++job.attempt;
    }
    const v1::StartAttempt start = StartOf(trial, job);
    Observation observed(trial, job.iterations);
    const bool in_time = RunAttempt(trial, start, observed);
    TrialResult result = observed.Result();
    if (result.iteration_s == 0) {
      result.iteration_s = SecondsIn(perf);
    }
    if (!trial.before.empty()) {
      result.stop_s = stopped_s;
      result.change_s = stopped_s + result.start_s;
    }
    std::filesystem::remove(perf, ignored);
    result.failure = FailureOf(trial, observed, in_time);
    if (result.ok()) {
      result.failure = WhatIsNotTold(trial, observed, result);
    }
    result.hopeless = IsHopeless(observed);
    if (result.ok() && WasKilled(observed) && !trial.until_notice) {
      result.note = fmt::format(
          "the script ran on for {:g} s after its last iteration and was killed, in every run; "
          "expected one that ends at {{iterations}}, or at notice",
          Seconds(kShortGrace));
    }
    result.interrupted = StopWanted();
    return result;
  }

 private:
  struct Job {
    std::uint64_t number = 0;
    std::uint32_t attempt = 1;
    double iterations = 0;  // of the last checkpoint
  };

  [[nodiscard]] v1::StartAttempt StartOf(const Trial& trial, const Job& job) const {
    v1::StartAttempt start;
    start.mutable_id()->set_job(job.number);
    start.mutable_id()->set_attempt(job.attempt);
    start.set_job_name(trial.name);
    v1::LaunchSpec& launch = *start.mutable_launch();
    if (trial.cores > 0) {
      for (const std::string& word :
           {std::string("taskset"), std::string("-c"), fmt::format("0-{}", trial.cores - 1)}) {
        launch.add_command(word);
      }
    }
    launch.mutable_command()->Add(trial.command.begin(), trial.command.end());
    launch.set_working_directory(trial.folder);
    if (!trial.container.image.empty()) {
      launch.mutable_container()->set_image(trial.container.image);
      launch.mutable_container()->mutable_mounts()->Add(trial.container.mounts.begin(),
                                                        trial.container.mounts.end());
    }
    for (int gpu = 0; gpu < trial.gpus; ++gpu) {
      start.add_gpus(gpu);
    }
    start.set_world_size(trial.gpus);
    start.add_node_workers(trial.gpus);
    start.set_nodes(1);
    start.set_master_address(master_address_);
    constexpr int kFirstPort = 29500;
    constexpr int kPorts = 1000;
    start.set_master_port(master_port_ > 0
                              ? master_port_
                              : kFirstPort + (getpid() + static_cast<int>(job.number)) % kPorts);
    start.set_grace(std::chrono::duration_cast<std::chrono::milliseconds>(GraceOf(trial)).count());
    start.set_iterations_done(job.iterations);
    start.set_report_every(5);
    if (!trial.until_notice) {
      start.set_iterations(trial.warmup + trial.iterations);
    }
    start.mutable_share()->set_loader_workers(trial.loader_workers * trial.gpus);
    start.mutable_share()->set_milli_cpus(trial.cores * std::int64_t{1000});
    return start;
  }

  [[nodiscard]] bool StopWanted() const { return stop_wanted_ != nullptr && stop_wanted_(); }

  static Duration GraceOf(const Trial& trial) { return trial.until_notice ? kGrace : kShortGrace; }

  // It did not heed its notice.
  static bool WasKilled(const Observation& observed) {
    return observed.notified() && observed.last().exit_code() == kKilled;
  }

  // What is not there will not be there for another run either.
  static bool IsHopeless(const Observation& observed) {
    const AttemptReport::Cause cause = observed.last().cause();
    return cause == AttemptReport::NO_PROGRAM || cause == AttemptReport::NO_FOLDER;
  }

  // False: it was ended since it took too long, or the user wants no more.
  bool RunAttempt(const Trial& trial, const v1::StartAttempt& start, Observation& observed) {
    const Clock::time_point limit = Clock::now() + trial.limit;
    bool in_time = true;
    Clock::time_point next_lease = Clock::now();
    processes_->SetLease(kLease, Duration{0});
    processes_->Start(start);
    while (!observed.exited()) {
      if (Clock::now() >= next_lease) {
        processes_->SetLease(kLease, Duration{0});
        next_lease = Clock::now() + kLease / 4;
      }
      {
        std::unique_lock lock(mutex_);
        news_.wait_for(lock, std::chrono::milliseconds(20));
      }
      const Clock::time_point now = Clock::now();
      for (const AttemptReport& report : processes_->TakeReports()) {
        if (supervisor::KeyOf(report.id()) == supervisor::KeyOf(start.id())) {
          observed.Note(report, now);
        }
      }
      if (!observed.exited() && !observed.notified() && observed.measured()) {
        observed.Notified(now);
        processes_->Stop(start.id(), GraceOf(trial));
      }
      if (!observed.exited() && in_time && (now >= limit || StopWanted())) {
        in_time = false;
        processes_->Stop(start.id(), Duration{0});
      }
    }
    processes_->Forget(start.id());
    return in_time;
  }

  // Of the first line; 0: there is none.
  static double SecondsIn(const std::string& path) {
    const Result<std::string> text = io::ReadFile(path);
    return text.ok() ? base::ToNumber(base::Trim(text.value().substr(0, text.value().find('\n'))))
                           .value_or(0)
                     : 0;
  }

  [[nodiscard]] std::string FailureOf(const Trial& trial, const Observation& observed,
                                      bool in_time) const {
    const AttemptReport& last = observed.last();
    if (!in_time) {
      return fmt::format(
          "hangs: it has not done {:g} iterations within {:g} s, but {:g}; expected a greater "
          "--limit, or fewer --iterations{}",
          trial.warmup + trial.iterations, Seconds(trial.limit), last.iterations(),
          LastWords(last.id()));
    }
    if (last.exit_code() != 0 && !observed.notified()) {
      // That of a worker names its log, which will not be there.
      const bool of_a_worker = last.cause() == AttemptReport::CAUSE_UNSPECIFIED;
      return fmt::format("fails: {}{}",
                         of_a_worker || last.message().empty()
                             ? fmt::format("exit status {}", last.exit_code())
                             : last.message(),
                         LastWords(last.id()));
    }
    if (const double did = last.iterations() - observed.done_before();
        did > 0 && !observed.notified() &&
        observed.lacks() > std::max(1.0, kMayLack * trial.iterations)) {
      return fmt::format(
          "ends early: it did {:g} of {:g} iterations; expected one that trains for as many{}", did,
          trial.warmup + trial.iterations, LastWords(last.id()));
    }
    return {};
  }

  // Of an attempt that another one is to go on from.
  [[nodiscard]] std::string WhatIsNotSaved(const Observation& observed) const {
    const AttemptReport& last = observed.last();
    if (WasKilled(observed)) {
      return fmt::format(
          "does not stop: it was killed {:g} s after its notice; expected a script "
          "that saves a checkpoint then, and ends{}",
          Seconds(kGrace), LastWords(last.id()));
    }
    if (last.checkpointed_iterations() > 0) {
      return {};
    }
    return fmt::format(
        "does not go on: it left no checkpoint when it was given notice, and ended with exit "
        "status {}; expected a script that calls Checkpoint.save(), or job.checkpointed(), of "
        "trainyard.train{}",
        last.exit_code(), LastWords(last.id()));
  }

  // Where the run itself went well.
  [[nodiscard]] std::string WhatIsNotTold(const Trial& trial, const Observation& observed,
                                          const TrialResult& result) const {
    const AttemptReport& last = observed.last();
    if (result.iteration_s <= 0) {
      return fmt::format(
          "tells nothing: after {:g} iterations of warm-up it told of {:g} in all, and wrote no "
          "PERF_{}.txt; expected a script that calls progress() of trainyard.train, or writes that "
          "file, and trains for {:g} iterations{}",
          trial.warmup, last.iterations(), kTrialJobName, trial.warmup + trial.iterations,
          LastWords(last.id()));
    }
    return {};
  }

  [[nodiscard]] std::string LastWords(const v1::AttemptId& id) const {
    const Result<v1::LogsReply> log = processes_->ReadLog(id, 0, 0);
    std::string text = log.ok() ? log.value().data() : std::string();
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text.empty() ? text : "; its last line: " + text.substr(text.rfind('\n') + 1);
  }

  std::mutex mutex_;
  std::condition_variable news_;
  std::uint64_t jobs_ = 0;
  bool (*const stop_wanted_)();
  const std::string master_address_;
  const int master_port_;
  std::unique_ptr<supervisor::Processes> processes_;  // last: it calls
};

}  // namespace

std::unique_ptr<TrialRunner> MakeProcessRunner(ProcessRunnerOptions options) {
  return std::make_unique<ProcessRunner>(std::move(options));
}

}  // namespace trainyard::profiler
