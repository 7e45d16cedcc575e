// SPDX-License-Identifier: Apache-2.0
// Tells the operator's log of each change that somebody has made by a call, and of nodes that are
// lost and come up: a line when the fact is in the journal.
#pragma once

#include <string>
#include <vector>

#include "live/live_state.h"
#include "live/notes.h"
#include "model/event.h"

namespace trainyard::live {

class ChangeLog {
 public:
  // `state` must outlive it.
  explicit ChangeLog(const LiveState& state) : state_(state) {}

  // A new fact. REQUIRES: the state has noted it.
  void Note(const model::Event& event);
  // The node's lease is over. REQUIRES: the state has not noted it.
  void NoteLost(NodeId node);
  // The node's agent is there, and its lease did not run.
  void NoteUp(NodeId node);
  // What has been noted is in the journal.
  void Tell();

 private:
  [[nodiscard]] std::string SubmitText(JobId job, std::size_t count) const;
  [[nodiscard]] std::string ChangeText(const ChangeNote& note, TimePoint at_time) const;

  const LiveState& state_;
  std::vector<std::string> lines_;  // still to be told
};

}  // namespace trainyard::live
