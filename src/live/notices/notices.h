// SPDX-License-Identifier: Apache-2.0
// What users want to be told of their jobs: follows from the facts and actions of the journal
// alone, so that a controller that goes through its journal says it again.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "live/live_state.h"
#include "live/view/view_writer.h"
#include "model/event.h"
#include "trainyard/state.h"

namespace trainyard::live {

// By their names in LaunchSpec::notify.
inline constexpr const char* kNotifyBegin = "begin";  // its workers run for the first time
inline constexpr const char* kNotifyEnd = "end";      // it has ended, in whatever way
inline constexpr const char* kNotifyFail = "fail";    // it has failed or was rejected
// It has run and lost its GPUs, and not by a resize of its user, and waits again.
inline constexpr const char* kNotifyPreempt = "preempt";

// Empty: the events can be asked for; else what is wrong.
[[nodiscard]] std::string MistakeOfNotify(const v1::LaunchSpec& launch);

struct Notice {
  std::uint64_t job = 0;
  std::string name;
  std::string user;
  std::string event;
  TimePoint at{};   // of the engine: with job and event it names the notice
  double time = 0;  // seconds since 1970
  std::string state;
  std::string reason;
};

class Notices {
 public:
  // Both must outlive it.
  Notices(const LiveState& state, ViewWriter& views) : state_(state), views_(views) {}

  // Whether it is still to be noted that the job's workers have begun to run: who has not begun
  // gives nothing up, either.
  [[nodiscard]] bool AwaitsBegin(JobId job) const {
    return (Wants(job, kNotifyBegin) || Wants(job, kNotifyPreempt)) && !has_begun_.contains(job);
  }
  // Facts and actions of one decision, then Tell: all that is to be told of them.
  void Note(const model::Event& event);
  void Note(const model::Action& action);
  void Tell();
  void Serialize(StateStream& state) { state(has_begun_); }

 private:
  [[nodiscard]] bool Wants(JobId job, const char* event) const;
  void Tell(JobId job, const char* event);
  void TellEnd(JobId job);

  const LiveState& state_;
  ViewWriter& views_;
  std::set<JobId> has_begun_;  // jobs that have not ended and of which that has been noted
  // Of one decision.
  std::set<JobId> begun_;
  std::set<JobId> preempted_;
  std::set<JobId> by_users_;  // their users have taken their GPUs from them
  std::set<JobId> ended_;
};

}  // namespace trainyard::live
