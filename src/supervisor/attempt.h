// SPDX-License-Identifier: Apache-2.0
// One attempt as the agent's thread carries it along, whether real processes stand behind it or a
// sum over time. Nothing here ever waits.
#pragma once

#include <poll.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class Attempt {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Attempt(AttemptFolder folder) : folder_(std::move(folder)) {
    *report_.mutable_id() = folder_.id();
  }
  virtual ~Attempt() = default;
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Does what there is to do by now.
  virtual void Advance(Clock::time_point now) = 0;
  // When Advance has to be called next: on that, or at that time. No descriptor: -1.
  [[nodiscard]] virtual pollfd Awaited() const = 0;
  [[nodiscard]] virtual Clock::time_point NextDue() const = 0;
  // By `end` nothing may be left of it; later calls can only shorten the time.
  virtual void Stop(Clock::time_point now, Clock::time_point end) = 0;
  // Another share of the node, or another rate, from now on.
  virtual void Tune(Clock::time_point now, const v1::TuneAttempt& tune) = 0;
  // What its workers want of their turns, since the last call; and the answer.
  [[nodiscard]] std::vector<v1::StageTurn> TakeTurns() { return std::exchange(turns_taken_, {}); }
  virtual void Go(v1::Stage /*stage*/) {}
  [[nodiscard]] const v1::Turns& turns() const { return turns_; }
  // Whether the order is on its way to processes that can be attached to; the answers.
  [[nodiscard]] virtual bool Attach(const v1::AttachOrder& /*order*/) { return false; }
  [[nodiscard]] std::vector<v1::AttachAnswer> TakeAnswers() { return std::exchange(answers_, {}); }
  virtual void Signal(int /*signal*/) {}
  // The lease of the attempt is over. A supervisor finds that out by itself.
  virtual void LeaseOver(Clock::time_point /*now*/, Clock::time_point /*end*/) {}
  // The data set of which it uses the copy on this node; empty: none.
  [[nodiscard]] const std::string& data_set() const { return data_set_; }
  [[nodiscard]] const AttemptFolder& folder() const { return folder_; }
  [[nodiscard]] const v1::AttemptReport& report() const { return report_; }
  [[nodiscard]] bool exited() const { return report_.state() == v1::AttemptReport::EXITED; }
  // Reports since the last call.
  [[nodiscard]] std::vector<v1::AttemptReport> TakeUntold() { return std::exchange(untold_, {}); }

 protected:
  static constexpr int kNotStarted = 126;
  static constexpr int kKilled = 137;

  void Tell(v1::AttemptReport report) {
    report_ = std::move(report);
    untold_.push_back(report_);
  }
  // Kept on disk as far as that can be: an agent that is started again tells it again.
  void Exit(v1::AttemptReport report) {
    report.set_state(v1::AttemptReport::EXITED);
    if (const Status written = folder_.WriteReport(report); !written.ok()) {
      report.set_message(report.message() + (report.message().empty() ? "" : "; ") +
                         written.error().message);
    }
    Tell(std::move(report));
  }
  // What the disk says before anything else is known; not told.
  void SetStart(const v1::StartAttempt& start) {
    report_.set_iterations(start.iterations_done());
    report_.set_checkpointed_iterations(start.iterations_done());
    *report_.mutable_gpus() = start.gpus();
    turns_ = start.turns();
    data_set_ = start.data_folder().empty() ? std::string() : start.data_set().name();
  }
  void Want(const v1::StageTurn& turn) { turns_taken_.push_back(turn); }
  void Answer(v1::AttachAnswer answer) { answers_.push_back(std::move(answer)); }
  void SetCheckpoint(double iterations) {
    report_.set_iterations(iterations);
    report_.set_checkpointed_iterations(iterations);
  }

 private:
  AttemptFolder folder_;
  v1::AttemptReport report_;
  std::vector<v1::AttemptReport> untold_;
  v1::Turns turns_;
  std::string data_set_;
  std::vector<v1::StageTurn> turns_taken_;
  std::vector<v1::AttachAnswer> answers_;
};

}  // namespace trainyard::supervisor
