// SPDX-License-Identifier: Apache-2.0
// What only the live world must remember, as facts of kind kNoted: the engine passes over them, the
// journal keeps them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "live/history/steps.h"
#include "live/measured/process_use.h"
#include "model/event.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::live {

// A failure of an attempt, its opposite, or what follows from failures (failures/failure_book.h).
struct FailureNote {
  enum class Kind : std::uint8_t {
    kNodeFailed,  // an attempt of `job` has failed by the fault of `node`
    kJobFailed,   // by its own, on `node` first
    kRanWell,     // the job's attempt has run for a while, or has finished, on `nodes`
    kAgentLost,   // `node` is not heard of, or has come back without what it ran
    kRenewed,     // another agent speaks for `node`: jobs may try it again
    kDrained,     // `node` is drained by the controller, for `text`
  };
  Kind kind{};
  JobId job{};
  NodeId node{};
  std::vector<NodeId> nodes{};
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
  std::string key{};    // ReasonKey; of a vanished attempt with the job's user
  std::string text{};   // for people
  std::string agent{};  // Hello::start of the agent that said so
  bool soon = false;    // kJobFailed: within FailureRules::soon
  bool avoids = true;   // kNodeFailed: false where the policy does not keep jobs away from nodes
};

// "cancelled by ann (uid 1001, user)": who has made a change, of one job or node or of several.
struct ChangeNote {
  bool of_node = false;
  JobId job{};
  NodeId node{};
  std::string text{};
  std::vector<JobId> other_jobs{};
  std::vector<NodeId> other_nodes{};

  template <typename Visit>
  void ForEachJob(Visit visit) const {
    if (!of_node) {
      visit(job);
      std::for_each(other_jobs.begin(), other_jobs.end(), visit);
    }
  }
};

// Why a job has failed, as its agent says, beside the fact that it has.
struct EndNote {
  JobId job{};
  std::string text{};
};

// The workers of the job run, or have run.
struct BeginNote {
  JobId job{};
};

// What the processes of an attempt have used of a node, from their start until then.
struct UseNote {
  JobId job{};
  NodeId node{};
  std::uint32_t attempt = 0;
  ProcessUse use{};
  std::int64_t memory_mib = 0;  // that the job has of the node; 0: nobody has said
};

using Note = std::variant<FailureNote, ChangeNote, EndNote, BeginNote, UseNote, StepsNote>;

[[nodiscard]] model::Event FactOf(Note note, TimePoint at);
// None: the fact is of another kind, or its bytes are no note.
[[nodiscard]] std::optional<Note> NoteOf(const model::Event& event);
// None: it is not such a note.
template <typename One>
[[nodiscard]] std::optional<One> NoteAs(const model::Event& event) {
  std::optional<Note> note = NoteOf(event);
  One* const one = note ? std::get_if<One>(&*note) : nullptr;
  return one == nullptr ? std::nullopt : std::optional(std::move(*one));
}

}  // namespace trainyard::live
