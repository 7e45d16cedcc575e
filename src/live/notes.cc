// SPDX-License-Identifier: Apache-2.0
#include "live/notes.h"

namespace trainyard::live {
namespace {

// What the bytes of a note begin with, in the journal for ever: FailureNote::Kind, or one of these.
constexpr std::uint8_t kChangeOfOne = 200;  // up to 0.2.0
constexpr std::uint8_t kEnd = 201;
constexpr std::uint8_t kBegin = 202;
constexpr std::uint8_t kChange = 203;
constexpr std::uint8_t kUse = 204;
constexpr std::uint8_t kSteps = 205;

struct Unmarked {
  std::uint8_t mark = 0;
  StateStream& state;

  void operator()(FailureNote& note) const {
    auto kind = mark;
    state(note.job, note.node, note.nodes, note.cause, note.key, note.text, note.agent, note.soon,
          note.avoids);
    note.kind = static_cast<FailureNote::Kind>(kind);
  }
  void operator()(ChangeNote& note) const {
    state(note.of_node, note.job, note.node, note.text);
    if (mark != kChangeOfOne) {
      state(note.other_jobs, note.other_nodes);
    }
  }
  void operator()(EndNote& note) const {
    NodeId means_nothing{};
    state(note.job, means_nothing, note.text);
  }
  void operator()(BeginNote& note) const {
    NodeId means_nothing{};
    state(note.job, means_nothing);
  }
  void operator()(UseNote& note) const {
    state(note.job, note.node, note.attempt, note.use, note.memory_mib);
  }
  void operator()(StepsNote& note) const { state(note.job, note.attempt, note.steps); }
};

std::uint8_t MarkOf(const Note& note) {
  if (const auto* const failure = std::get_if<FailureNote>(&note)) {
    return static_cast<std::uint8_t>(failure->kind);
  }
  return std::holds_alternative<ChangeNote>(note)  ? kChange
         : std::holds_alternative<EndNote>(note)   ? kEnd
         : std::holds_alternative<UseNote>(note)   ? kUse
         : std::holds_alternative<StepsNote>(note) ? kSteps
                                                   : kBegin;
}

// As notes of that mark are before they are read; none: there are no such notes.
std::optional<Note> Unread(std::uint8_t mark) {
  switch (mark) {
    case kChangeOfOne:
    case kChange:
      return ChangeNote();
    case kEnd:
      return EndNote();
    case kBegin:
      return BeginNote();
    case kUse:
      return UseNote();
    case kSteps:
      return StepsNote();
    default:
      return mark <= static_cast<std::uint8_t>(FailureNote::Kind::kDrained)
                 ? std::optional<Note>(FailureNote())
                 : std::nullopt;
  }
}

NodeId NodeOf(const Note& note) {
  if (const auto* const failure = std::get_if<FailureNote>(&note)) {
    return failure->node;
  }
  if (const auto* const use = std::get_if<UseNote>(&note)) {
    return use->node;
  }
  const auto* const change = std::get_if<ChangeNote>(&note);
  return change == nullptr ? NodeId{} : change->node;
}

}  // namespace

model::Event FactOf(Note note, TimePoint at) {
  StateStream state;
  std::uint8_t mark = MarkOf(note);
  state(mark);
  std::visit(Unmarked{mark, state}, note);
  return {
      .at = at,
      .fact = model::fact::Noted{.job = std::visit([](const auto& one) { return one.job; }, note),
                                 .node = NodeOf(note),
                                 .bytes = state.TakeBytes()}};
}

std::optional<Note> NoteOf(const model::Event& event) {
  if (event.kind() != model::EventKind::kNoted) {
    return std::nullopt;
  }
  StateStream state(event.As<model::fact::Noted>().bytes);
  std::uint8_t mark = 0;
  state(mark);
  std::optional<Note> note = Unread(mark);
  if (!note) {
    return std::nullopt;
  }
  std::visit(Unmarked{mark, state}, *note);
  return state.complete() ? std::move(note) : std::nullopt;
}

}  // namespace trainyard::live
