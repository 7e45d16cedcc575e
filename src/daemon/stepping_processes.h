// SPDX-License-Identifier: Apache-2.0
// Real workers in a time that jumps: they are started and stopped like any others, and while time
// stands still each attempt gets as far as a few iterations. What they have done does not count;
// the engine knows how far a job would be.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "supervisor/local_processes.h"

namespace trainyard::daemon {

struct Steps {
  double iterations = 3;  // of each attempt; 0: its processes have been started
  // Real time for one attempt to get there.
  Duration patience = std::chrono::seconds(60);
  std::function<bool()> stop_wanted;  // asked while waiting; empty: never
};

// Which attempts have got as far as they shall.
class StepGauge {
 public:
  explicit StepGauge(Steps steps) : steps_(std::move(steps)) {}

  [[nodiscard]] const Steps& steps() const { return steps_; }
  void Begin(const v1::AttemptId& attempt);  // for each of its parts
  // What a part of an attempt says. What one of them says is enough.
  void See(const v1::AttemptReport& report);
  // Whether the attempt has done its steps, or has ended well. Error: it has failed.
  [[nodiscard]] Result<bool> IsThere(supervisor::AttemptKey attempt) const;

 private:
  struct Attempt {
    double base = 0;  // iterations of the job before
    double most = 0;
    bool runs = false;
    bool ended = false;
    Status status{};
  };
  const Steps steps_;
  std::map<supervisor::AttemptKey, Attempt> attempts_;
  std::map<std::uint64_t, double> most_;  // iterations, by job
};

// The attempts of one node.
class SteppingProcesses final : public supervisor::Processes {
 public:
  // The state folder is made; its attempts' checkpoints lie in `checkpoints`. `gauge` is all
  // nodes'.
  SteppingProcesses(supervisor::LocalProcessesOptions options, const std::string& checkpoints,
                    StepGauge& gauge);
  ~SteppingProcesses() override;  // kills what is left
  SteppingProcesses(const SteppingProcesses&) = delete;
  SteppingProcesses& operator=(const SteppingProcesses&) = delete;

  std::vector<v1::AttemptReport> Recover() override { return {}; }
  void Start(const v1::StartAttempt& start) override;
  void Stop(const v1::AttemptId& attempt, Duration grace) override;
  void Tune(const v1::TuneAttempt& tune) override { real_->Tune(tune); }
  void SetLease(Duration /*from_now*/, Duration /*grace*/) override {}
  void Forget(const v1::AttemptId& /*attempt*/) override {}
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& attempt, int rank,
                                std::uint64_t offset) override {
    return real_->ReadLog(attempt, rank, offset);
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

  // Takes what the workers have said: tells the gauge, and reports those that have been stopped and
  // are gone.
  void Look();
  [[nodiscard]] bool stopping() const { return !stopping_.empty(); }
  // The attempts that were started and have not exited.
  [[nodiscard]] const std::map<supervisor::AttemptKey, v1::AttemptReport>& present() const {
    return present_;
  }

 private:
  void RenewLease();
  void Tell(const v1::AttemptReport& real, v1::AttemptReport::State state);

  StepGauge& gauge_;
  std::unique_ptr<supervisor::Processes> real_;
  std::map<supervisor::AttemptKey, v1::AttemptReport> present_;  // and what was said last
  std::set<supervisor::AttemptKey> stopping_;                    // of these
  std::vector<v1::AttemptReport> reports_;
  std::chrono::steady_clock::time_point renew_from_{};  // the lease
};

// Waits until those that were told to stop are gone. A gang leaves together: all its parts have
// notice by then.
void AwaitStops(const std::vector<SteppingProcesses*>& nodes);

// Waits until all attempts of all nodes are there. Error: one has failed, or took too long.
[[nodiscard]] Status AwaitSteps(const StepGauge& gauge,
                                const std::vector<SteppingProcesses*>& nodes);

}  // namespace trainyard::daemon
