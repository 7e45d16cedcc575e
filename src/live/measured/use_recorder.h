// SPDX-License-Identifier: Apache-2.0
// Takes what agents tell of the CPU time and memory that processes use, and makes facts of it, so
// that it outlasts the attempt and the controller: at the end of a part of an attempt, and once an
// hour.
#pragma once

#include "live/live_state.h"

namespace trainyard::live {

class UseRecorder {
 public:
  static constexpr Duration kPause = std::chrono::hours(1);

  // `state` must outlive it.
  UseRecorder(const LiveState& state, AddFact add) : state_(state), add_(std::move(add)) {}

  // A report of the part; what is known of one that has exited does not change.
  void Hear(JobId job, const LiveAttempt& attempt, Part& part, const v1::AttemptReport& report);
  // The part has gone without a word: what was heard of it last is what it has used.
  void NoteMissing(JobId job, const LiveAttempt& attempt, const Part& part);
  // Likewise all parts on the node. O(present).
  void NoteNodeGone(NodeId node);
  // The last report of an attempt that the controller does not know any more, of a job that goes
  // on: what is known of one that is over does not change any more.
  void HearStray(NodeId node, const v1::AttemptReport& report);

 private:
  const LiveState& state_;
  AddFact add_;
};

}  // namespace trainyard::live
