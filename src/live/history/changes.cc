// SPDX-License-Identifier: Apache-2.0
#include "live/history/changes.h"

#include <string_view>
#include <utility>

#include "live/notes.h"

namespace trainyard::live {
namespace {

constexpr std::string_view kHeldBy = "held by ";
constexpr std::string_view kRequeuedAndHeldBy = "requeued and held by ";

}  // namespace

void Changes::Note(const model::Event& event) {
  const std::optional<ChangeNote> note = NoteAs<ChangeNote>(event);
  if (!note) {
    return;
  }
  if (note->of_node) {
    std::vector<NodeId> nodes = note->other_nodes;
    nodes.push_back(note->node);
    for (const NodeId node : nodes) {
      nodes_[node] = note->text;
      touched_.nodes.Add(node);
    }
  }
  note->ForEachJob([this, &note](JobId job) { NoteOf(job, note->text); });
}

void Changes::NoteOf(JobId job, const std::string& text) {
  for (const std::string_view held : {kHeldBy, kRequeuedAndHeldBy}) {
    if (text.starts_with(held)) {
      holders_[job] = text.substr(held.size());
    }
  }
  if (text.starts_with("released by ")) {
    Drop(job);
  }
  jobs_[job] = text;
  touched_.jobs.Add(job);
  if (jobs_.size() > kMost) {
    touched_.jobs.Add(jobs_.begin()->first);
    jobs_.erase(jobs_.begin());
  }
}

// Snapshots before format 9 have only the last change of each job.
std::string Changes::HolderOf(JobId job) const {
  if (const auto found = holders_.find(job); found != holders_.end()) {
    return found->second;
  }
  const std::string last = Of(job);
  return last.starts_with(kHeldBy) ? last.substr(kHeldBy.size()) : std::string();
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
