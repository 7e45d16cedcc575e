// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: jobs that share GPUs of a node so that their stages interleave (Muri,
// SIGCOMM'22, section 4) go through the phases of a cycle together, each member at another place in
// it, with a barrier after each phase. A deterministic state machine without clock or socket; the
// agent of the node owns it, the fault simulator drives it, too.
//
// The cycle has four phases: loading, preprocessing, forward (all that is done on the GPU) and
// communication. A member at position p is in phase (slot - p) mod 4 of its iteration. In a slot
// each member may go through the stage of its phase; the slot ends when all have done so, or
// wait for another stage. Loading may go on through the slot of preprocessing in jobs that have no
// such stage, beside that of the next member, as in Muri's testbed. So nobody is more than one
// stage ahead, and no two members compute, or communicate, at a time.
//
// Two members in neighbouring places leave phases empty: the one in front, when it has loaded,
// computes without waiting for the end of the other's communication. The slots go on without it
// until that of its forward stage. So the time of a group is the one that profile::Interleave has.
//
// Nobody waits for ever: a member that has been in a stage for longer than kStageBound and twice
// the group's iteration, or between two stages for longer than kPauseBound, is not waited for until
// it asks for a stage again.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/processes.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class StageTurns {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kStageBound = std::chrono::seconds(5);
  static constexpr Clock::duration kPauseBound = std::chrono::seconds(1);

  // The attempt may take turns with those that hold one of `gpus` (a bit each), from the first
  // stage on that it asks for.
  void Join(const AttemptKey& key, std::uint64_t gpus, const v1::Turns& turns);
  // Nobody waits for it any more. Nothing where it has not joined.
  void Leave(const AttemptKey& key, Clock::time_point now);

  // The attempt wants to begin a stage, and has ended the one before. REQUIRES: has joined.
  void Want(const AttemptKey& key, v1::Stage stage, Clock::time_point now);
  // Nothing where it is in no stage.
  void End(const AttemptKey& key, Clock::time_point now);
  // The bounds. When to call it next, if nothing happens.
  void OnTime(Clock::time_point now);
  [[nodiscard]] std::optional<Clock::time_point> next_due() const;

  // Who may begin, since the last call.
  struct Go {
    AttemptKey key;
    v1::Stage stage;
  };
  [[nodiscard]] std::vector<Go> TakeGoes() { return std::exchange(goes_, {}); }
  // Members that are waited for no longer, or that take part again after others have waited for
  // them, since the last call.
  struct Late {
    AttemptKey key;
    std::optional<v1::Stage> stage{};  // in which it is; none: between two
    bool alone = false;                // nobody has waited
    bool over = false;                 // it takes part again
  };
  [[nodiscard]] std::vector<Late> TakeLate() { return std::exchange(late_, {}); }
  // Seconds from one iteration of the member to the next, a mean of the last ones that it has gone
  // through in company. None: there were fewer than two.
  [[nodiscard]] std::optional<double> IterationOf(const AttemptKey& key) const;

 private:
  enum class State : std::uint8_t {
    kApart,    // is not waited for: has asked for no stage yet, or is late
    kBetween,  // two stages
    kWaits,
    kInStage,
  };
  struct Member {
    std::uint64_t gpus = 0;
    int position = 0;
    double iteration_s = 0;
    bool preprocesses = false;
    bool ahead = false;  // computes, or has computed, before the slot of its forward stage
    State state = State::kApart;
    bool late = false;                        // kApart: others have waited for it
    v1::Stage stage = v1::STAGE_UNSPECIFIED;  // kWaits, kInStage
    Clock::time_point since{};
    std::optional<Clock::time_point> iteration_from{};  // since when it is in company
    std::optional<double> mean_s{};
  };
  // Members that share GPUs, be it by way of others, and the slot that they are in.
  struct Group {
    std::vector<AttemptKey> keys;
    int slot = 0;
  };

  [[nodiscard]] Group& GroupOf(const AttemptKey& key);
  void Advance(const AttemptKey& of, Clock::time_point now);
  [[nodiscard]] bool ComputesAhead(const Group& group) const;
  void BeginAhead(const Group& group, bool in_company, Clock::time_point now);
  [[nodiscard]] bool MayBegin(const Member& member, int slot) const;
  [[nodiscard]] bool HoldsSlot(const Member& member, int slot) const;
  void Begin(const AttemptKey& key, Member& member, bool in_company, Clock::time_point now);
  void SetApart(const AttemptKey& key, Member& member);
  [[nodiscard]] static Clock::time_point BoundOf(const Member& member);

  std::map<AttemptKey, Member> members_;
  std::vector<Group> groups_;
  std::vector<Go> goes_;
  std::vector<Late> late_;
};

}  // namespace trainyard::supervisor
