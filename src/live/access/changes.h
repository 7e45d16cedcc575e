// SPDX-License-Identifier: Apache-2.0
// Owns who has last changed each job and node by a call. What was changed is a fact of its own; who
// did it is a note beside it in the journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/event.h"
#include "trainyard/state.h"

namespace trainyard::live {

// "cancelled by ann (uid 1001, user)", as a fact.
struct ChangeNote {
  // Other notes of the journal begin with a smaller number (FailureNote::Kind).
  static constexpr std::uint8_t kMark = 200;
  std::uint8_t mark = kMark;
  bool of_node = false;
  JobId job{};
  NodeId node{};
  std::string text{};

  void Serialize(StateStream& state) { state(mark, of_node, job, node, text); }
  [[nodiscard]] model::Event ToEvent(TimePoint at) const;
  // None: the fact is another one.
  [[nodiscard]] static std::optional<ChangeNote> From(const model::Event& event);
};

class Changes {
 public:
  // Of jobs; the oldest are forgotten first, the journal has them.
  static constexpr std::size_t kMost = 10'000;

  void Note(const model::Event& event);
  // Empty: nobody has changed it.
  [[nodiscard]] std::string Of(JobId job) const;
  [[nodiscard]] std::string Of(NodeId node) const;

  void Serialize(StateStream& state) { state(jobs_, nodes_); }

 private:
  std::map<JobId, std::string> jobs_;
  std::map<NodeId, std::string> nodes_;
};

}  // namespace trainyard::live
