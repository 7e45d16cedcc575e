// SPDX-License-Identifier: Apache-2.0
// What users want to be told of their jobs: follows from the facts and actions of the journal
// alone, so that a controller that goes through its journal says it again.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "live/live_state.h"
#include "live/live_statuses.h"
#include "model/event.h"

namespace trainyard::live {

// By their names in LaunchSpec::notify.
inline constexpr const char* kNotifyBegin = "begin";      // it gets GPUs for the first time
inline constexpr const char* kNotifyEnd = "end";          // it has ended, in whatever way
inline constexpr const char* kNotifyFail = "fail";        // it has failed or was rejected
inline constexpr const char* kNotifyPreempt = "preempt";  // it has lost its GPUs and waits again

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
  Notices(const LiveState& state, const LiveStatuses& statuses)
      : state_(state), statuses_(statuses) {}

  // Facts and actions of one decision, then Tell: all that is to be told of them.
  void Note(const model::Event& event);
  void Note(const model::Action& action);
  void Tell();

 private:
  [[nodiscard]] bool Wants(JobId job, const char* event) const;
  void Tell(JobId job, const char* event);
  void TellEnd(JobId job);

  const LiveState& state_;
  const LiveStatuses& statuses_;
  std::vector<model::Action> begun_;  // launches and preemptions, in their order
  std::set<JobId> ended_;
};

}  // namespace trainyard::live
