// SPDX-License-Identifier: Apache-2.0
#include "daemon/stepping_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/try.h"

namespace trainyard::daemon {
namespace {

// Workers of a program that is gone end after this.
constexpr Duration kLease = std::chrono::seconds(60);
constexpr std::chrono::milliseconds kBetweenSteps(5);

}  // namespace

void StepGauge::Begin(const v1::AttemptId& attempt) {
  attempts_[supervisor::KeyOf(attempt)].base = most_[attempt.job()];
}

void StepGauge::See(const v1::AttemptReport& report) {
  Attempt& attempt = attempts_[supervisor::KeyOf(report.id())];
  if (attempt.most == 0 && report.iterations() > 0) {
    attempt.base = std::min(attempt.base, report.iterations());  // it may have begun anew
  }
  attempt.most = std::max(attempt.most, report.iterations());
  double& most = most_[report.id().job()];
  most = std::max(most, report.iterations());
  attempt.runs = attempt.runs || report.state() == v1::AttemptReport::RUNNING;
  if (report.state() == v1::AttemptReport::EXITED) {
    attempt.ended = true;
    if (report.exit_code() != 0 || !report.message().empty()) {
      attempt.status = Failed(
          fmt::format("a worker of job {} ended with exit status {} while time stood still{}{}",
                      report.id().job(), report.exit_code(), report.message().empty() ? "" : ": ",
                      report.message()));
    }
  }
}

Result<bool> StepGauge::IsThere(supervisor::AttemptKey key) const {
  const Attempt& attempt = attempts_.at(key);
  RETURN_IF_ERROR(attempt.status);
  return attempt.ended ||
         (steps_.iterations == 0 ? attempt.runs : attempt.most >= attempt.base + steps_.iterations);
}

// ------------------------------------------------------------------------------------------- node

SteppingProcesses::SteppingProcesses(supervisor::LocalProcessesOptions options,
                                     const std::string& checkpoints, StepGauge& gauge)
    : gauge_(gauge) {
  // What cannot be made is told when an attempt is started.
  static_cast<void>(supervisor::LinkCheckpoints(options.state_folder, checkpoints).ok());
  real_ = supervisor::MakeLocalProcesses(std::move(options), [] {});
}

SteppingProcesses::~SteppingProcesses() {
  for (const auto& [key, report] : present_) {
    Stop(report.id(), Duration{0});
  }
  AwaitStops({this});
}

void SteppingProcesses::Tell(const v1::AttemptReport& real, v1::AttemptReport::State state) {
  v1::AttemptReport& report = reports_.emplace_back();
  *report.mutable_id() = real.id();
  *report.mutable_gpus() = real.gpus();
  report.set_state(state);
}

void SteppingProcesses::Start(const v1::StartAttempt& start) {
  v1::AttemptReport& report = present_[supervisor::KeyOf(start.id())];
  *report.mutable_id() = start.id();
  *report.mutable_gpus() = start.gpus();
  gauge_.Begin(start.id());
  RenewLease();
  real_->Start(start);
  Tell(report, v1::AttemptReport::RUNNING);
}

void SteppingProcesses::Stop(const v1::AttemptId& attempt, Duration grace) {
  if (present_.contains(supervisor::KeyOf(attempt))) {
    real_->Stop(attempt, grace);
    stopping_.insert(supervisor::KeyOf(attempt));
  }
}

// Not at each call: the lease is a file, and Look is called often.
void SteppingProcesses::RenewLease() {
  if (const auto now = std::chrono::steady_clock::now(); now >= renew_from_) {
    real_->SetLease(kLease, Duration{0});
    renew_from_ = now + kLease / 6;
  }
}

void SteppingProcesses::Look() {
  RenewLease();
  for (v1::AttemptReport& report : real_->TakeReports()) {
    if (const auto at = present_.find(supervisor::KeyOf(report.id())); at != present_.end()) {
      gauge_.See(report);
      at->second = std::move(report);
    }
  }
  for (auto key = stopping_.begin(); key != stopping_.end();) {
    const auto at = present_.find(*key);
    if (at->second.state() != v1::AttemptReport::EXITED) {
      ++key;
      continue;
    }
    real_->Forget(at->second.id());
    Tell(at->second, v1::AttemptReport::EXITED);
    present_.erase(at);
    key = stopping_.erase(key);
  }
}

// ------------------------------------------------------------------------------------------ nodes

void AwaitStops(const std::vector<SteppingProcesses*>& nodes) {
  const auto is_stopping = [](const SteppingProcesses* node) { return node->stopping(); };
  while (std::any_of(nodes.begin(), nodes.end(), is_stopping)) {
    for (SteppingProcesses* node : nodes) {
      node->Look();
    }
    std::this_thread::sleep_for(kBetweenSteps);
  }
}

namespace {

// An attempt that is not there yet. Error: one has failed.
Result<std::optional<supervisor::AttemptKey>> FindLacking(
    const StepGauge& gauge, const std::vector<SteppingProcesses*>& nodes) {
  std::optional<supervisor::AttemptKey> lacking;
  for (const SteppingProcesses* node : nodes) {
    for (const auto& [key, report] : node->present()) {
      ASSIGN_OR_RETURN(const bool there, gauge.IsThere(key));
      if (!there) {
        lacking = key;
      }
    }
  }
  return lacking;
}

}  // namespace

Status AwaitSteps(const StepGauge& gauge, const std::vector<SteppingProcesses*>& nodes) {
  const Steps& steps = gauge.steps();
  const auto latest = std::chrono::steady_clock::now() + steps.patience;
  for (;;) {
    const bool late = std::chrono::steady_clock::now() > latest;
    for (SteppingProcesses* node : nodes) {
      node->Look();
    }
    ASSIGN_OR_RETURN(const std::optional<supervisor::AttemptKey> lacking,
                     FindLacking(gauge, nodes));
    if (steps.stop_wanted && steps.stop_wanted()) {
      return Failed("interrupted; the workers have been stopped");
    }
    if (!lacking) {
      return {};
    }
    if (late) {
      return Failed(
          fmt::format("job {} has not told of {} iterations within {} s; expected a command that "
                      "speaks the job protocol, or --steps 0",
                      lacking->first, steps.iterations, Seconds(steps.patience)));
    }
    std::this_thread::sleep_for(kBetweenSteps);
  }
}

}  // namespace trainyard::daemon
