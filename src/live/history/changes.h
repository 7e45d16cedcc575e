// SPDX-License-Identifier: Apache-2.0
// Owns who has last changed each job and node by a call, and who holds jobs. What was changed is a
// fact of its own; who did it is a note beside it in the journal.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "model/event.h"
#include "model/touched.h"
#include "trainyard/state.h"

namespace trainyard::live {

class Changes {
 public:
  // Of jobs; the oldest are forgotten first, the journal has them.
  static constexpr std::size_t kMost = 10'000;

  // Must outlive it.
  explicit Changes(model::Touched& touched) : touched_(touched) {}

  void Note(const model::Event& event);
  // The job has ended.
  void Drop(JobId job) {
    touched_.jobs.Add(job);
    holders_.erase(job);
  }
  // Who holds the job, "ann (uid 1001, user)"; empty: nobody does, or it is not known.
  [[nodiscard]] std::string HolderOf(JobId job) const;
  // Empty: nobody has changed it.
  [[nodiscard]] std::string Of(JobId job) const;
  [[nodiscard]] std::string Of(NodeId node) const;

  void Serialize(StateStream& state) { state(jobs_, nodes_); }
  void SerializeHolders(StateStream& state) { state(holders_); }

 private:
  void NoteOf(JobId job, const std::string& text);

  model::Touched& touched_;
  std::map<JobId, std::string> jobs_;
  std::map<NodeId, std::string> nodes_;
  std::map<JobId, std::string> holders_;
};

}  // namespace trainyard::live
