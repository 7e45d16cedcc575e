// SPDX-License-Identifier: Apache-2.0
// What becomes of an attempt: when its workers have to leave, when they are killed, how it has
// ended, and what its agent is told of it. A state machine without clock, process or file; the
// supervisor drives it and does what it says.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cgroup/group.h"
#include "supervisor/job/job_server.h"
#include "supervisor/worker.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class AttemptCourse {
 public:
  using Clock = std::chrono::steady_clock;

  // `start` must outlive it.
  AttemptCourse(const v1::StartAttempt& start, Clock::time_point now)
      : start_(start), start_time_(now) {}

  // All workers run.
  void NoteStarted() { started_ = true; }
  [[nodiscard]] bool has_started() const { return started_; }
  // One could not be started; the others are killed.
  void NoteNotStarted(const StartFailure& failure, double unix_s);
  // A worker has ended. The first exit code that is not 0 counts; `text` is asked how it came
  // about, unless the worker had notice.
  void NoteEnd(int exit_code, double unix_s, const std::function<std::string()>& text);
  // The kernel has killed a process of the attempt for its memory: without it the attempt is of no
  // use, and is killed as a whole.
  void NoteMemoryKill(double unix_s, const cgroup::MemoryUse& memory);

  // What its processes have used by now.
  void SetUse(const v1::ResourceUse& use) { use_ = use; }
  // What is known of its steps; to be told anew.
  using Steps = google::protobuf::RepeatedPtrField<v1::StepRecord>;
  void SetSteps(const Steps& steps) {
    steps_ = steps;
    steps_untold_ = true;
  }

  // What workers are to be told.
  struct Notice {
    Clock::time_point end;  // when they are killed
    bool is_first = false;
    bool has_time = false;  // a grace period
  };
  // The agent, a signal or the end of the lease wants the attempt to leave. None: workers have
  // notice already, and not later. A later notice only shortens the time.
  [[nodiscard]] std::optional<Notice> AskToLeave(std::int64_t grace_ms, Clock::time_point now);
  [[nodiscard]] bool is_asked_to_leave() const { return asked_to_leave_; }
  [[nodiscard]] bool has_failed() const { return exit_code_ != 0; }

  // What is to be done now.
  struct Todo {
    std::optional<Notice> notice{};
    bool kill = false;  // all that is left; again at next_due(), as what forks turns up later
  };
  // `childless`: no process of the attempt is left.
  [[nodiscard]] Todo Decide(bool workers_run, bool childless, const Training& training,
                            Clock::time_point now);
  [[nodiscard]] bool is_killing() const { return killing_; }

  // What the agent is to be told that it has not been told; none: nothing, or not yet (next_due).
  struct Change {
    v1::AttemptReport report;
    bool is_saved = false;  // has another checkpoint: is written down, too
  };
  [[nodiscard]] std::optional<Change> TakeChange(const Training& training,
                                                 const StageDesk::Seconds& stages,
                                                 Clock::time_point now);
  // Once no process is left.
  [[nodiscard]] v1::AttemptReport LastReport(const Training& training,
                                             const StageDesk::Seconds& stages) const;

  // When to call Decide and TakeChange, if nothing happens before. Clock::time_point::max(): never.
  [[nodiscard]] Clock::time_point next_due() const;

 private:
  void NoteFailure(int exit_code, double unix_s);
  [[nodiscard]] std::optional<Notice> GiveNotice(std::int64_t grace_ms, Clock::time_point now);
  void NoteIgnoredNotice(const Training& training, Clock::time_point now);
  [[nodiscard]] v1::AttemptReport Report(v1::AttemptReport::State state, const Training& training,
                                         const StageDesk::Seconds& stages) const;

  const v1::StartAttempt& start_;
  const Clock::time_point start_time_;
  bool started_ = false;
  int exit_code_ = 0;     // the first that is not 0
  double failed_at_ = 0;  // seconds since 1970; 0: no worker has failed
  v1::AttemptReport::Cause cause_ = v1::AttemptReport::CAUSE_UNSPECIFIED;
  std::string message_;
  v1::ResourceUse use_;
  Steps steps_;
  bool steps_untold_ = false;
  std::optional<Clock::time_point> notice_end_;
  Clock::time_point notice_given_;  // the first
  std::string ignored_notice_;      // for people; empty: it has heeded it, so far
  bool asked_to_leave_ = false;
  bool killing_ = false;
  Clock::time_point next_kill_;
  Clock::duration kill_pause_ = std::chrono::milliseconds(5);
  v1::AttemptReport told_;
  bool untold_ = false;
  Clock::time_point next_progress_;
};

}  // namespace trainyard::supervisor
