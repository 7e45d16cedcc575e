// SPDX-License-Identifier: Apache-2.0
// What only the live world must remember, as facts of kind kNoted: a note's own bytes.
#pragma once

#include <optional>
#include <utility>

#include "model/event.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::live {

// `Note` has a job, a node and Serialize.
template <typename Note>
[[nodiscard]] model::Event NotedFact(Note note, TimePoint at) {
  StateStream state;
  state(note);
  return {.kind = model::EventKind::kNoted,
          .at = at,
          .job = note.job,
          .node = note.node,
          .note = state.TakeBytes()};
}

// None: the bytes are not of such a note. The caller looks whether it is one of its own.
template <typename Note>
[[nodiscard]] std::optional<Note> NoteIn(const model::Event& event) {
  Note note;
  StateStream state(event.note);
  state(note);
  return state.complete() ? std::optional(std::move(note)) : std::nullopt;
}

}  // namespace trainyard::live
