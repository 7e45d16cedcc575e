// SPDX-License-Identifier: Apache-2.0
#include "live/access/changes.h"

#include <utility>

#include "live/noted.h"

namespace trainyard::live {

model::Event ChangeNote::ToEvent(TimePoint at) const { return NotedFact(*this, at); }

std::optional<ChangeNote> ChangeNote::From(const model::Event& event) {
  std::optional<ChangeNote> note = NoteIn<ChangeNote>(event);
  return event.kind == model::EventKind::kNoted && note && note->mark == kMark ? std::move(note)
                                                                               : std::nullopt;
}

void Changes::Note(const model::Event& event) {
  std::optional<ChangeNote> note = ChangeNote::From(event);
  if (!note) {
    return;
  }
  if (note->of_node) {
    nodes_[note->node] = std::move(note->text);
    return;
  }
  jobs_[note->job] = std::move(note->text);
  if (jobs_.size() > kMost) {
    jobs_.erase(jobs_.begin());
  }
}

std::string Changes::Of(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::string() : found->second;
}

std::string Changes::Of(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::string() : found->second;
}

}  // namespace trainyard::live
