// SPDX-License-Identifier: Apache-2.0
// Owns who has last changed each job and node by a call, and who holds jobs. What was changed is a
// fact of its own; who did it is a note beside it in the journal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/event.h"
#include "model/touched.h"
#include "trainyard/state.h"

namespace trainyard::live {

// "cancelled by ann (uid 1001, user)", as a fact, of one job or node or of several.
struct ChangeNote {
  // Other notes of the journal begin with other numbers (FailureNote::Kind, EndNote::kMark).
  static constexpr std::uint8_t kMark = 203;
  static constexpr std::uint8_t kFormerMark = 200;  // of one job or node only
  std::uint8_t mark = kMark;
  bool of_node = false;
  JobId job{};
  NodeId node{};
  std::string text{};
  std::vector<JobId> other_jobs{};
  std::vector<NodeId> other_nodes{};

  void Serialize(StateStream& state) {
    state(mark, of_node, job, node, text);
    if (mark == kMark) {
      state(other_jobs, other_nodes);
    }
  }
  template <typename Visit>
  void ForEachJob(Visit visit) const {
    if (!of_node) {
      visit(job);
      std::for_each(other_jobs.begin(), other_jobs.end(), visit);
    }
  }
  [[nodiscard]] model::Event ToEvent(TimePoint at) const;
  // None: the fact is another one.
  [[nodiscard]] static std::optional<ChangeNote> From(const model::Event& event);
};

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
