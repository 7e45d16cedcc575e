// SPDX-License-Identifier: Apache-2.0
// Tells the operator's log and the audit trail of each change that somebody has made, and the log
// of nodes that are lost and come up: once the fact is in the journal.
#pragma once

#include <cstdint>
#include <span>
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

  // The facts of a batch, as they are in the journal. REQUIRES: the state has noted them.
  void Note(std::span<const model::Event> batch);
  // `next` is in force from now on.
  void NoteConfigured(const engine::Configuration& next, TimePoint at);
  // The node's lease is over. REQUIRES: the state has not noted it.
  void NoteLost(NodeId node);
  void NoteSilent(NodeId node);
  // The node's agent is there, and its lease did not run.
  void NoteUp(NodeId node);
  // What has been noted is in the journal: its next entry. `again`: it was there before, so that
  // the log has been told.
  void Tell(bool again);
  // The entry of the journal with which the state ends.
  [[nodiscard]] std::uint64_t entry() const { return entry_; }
  void SetEntry(std::uint64_t entry) { entry_ = entry; }

 private:
  struct Change {
    TimePoint at{};
    std::string line{};  // for the log; empty: nothing
    std::string by{};
    std::string what{};  // empty: nothing for the trail
    std::vector<JobId> jobs{};
    std::vector<NodeId> nodes{};
  };
  [[nodiscard]] bool IsHeard() const;
  void NoteSubmit(const model::Event& event);
  void NoteOther(const model::Event& event);
  void NoteChange(const ChangeNote& note, TimePoint at);
  void Put(const Change& change) const;
  [[nodiscard]] std::string UpdateText(JobId job, TimePoint at) const;

  const LiveState& state_;
  std::vector<Change> changes_;  // still to be told
  std::uint64_t entry_ = 0;
};

}  // namespace trainyard::live
