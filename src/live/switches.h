// SPDX-License-Identifier: Apache-2.0
// What operators have switched off: decisions (paused) and submissions (closed).
#pragma once

#include <string>

#include "live/live_options.h"
#include "model/event.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct Switch {
  bool on = false;
  std::string by{};  // who has set it last; empty: it is not known
  std::string reason{};
  TimePoint since{};

  void Serialize(StateStream& state) { state(on, by, reason, since); }
  friend bool operator==(const Switch&, const Switch&) = default;
};

struct Switches {
  Switch paused;
  Switch closed;

  void Note(const model::fact::Switched& fact, TimePoint at);
  void Serialize(StateStream& state) { state(paused, closed); }
  friend bool operator==(const Switches&, const Switches&) = default;
};

[[nodiscard]] v1::Switches MessageOf(const Switches& switches, const LiveOptions& options);
// "paused by ann (uid 1001, operator) since 2026-11-28T03:20:00Z: a new disk". `what`: "paused".
// REQUIRES: it is on.
[[nodiscard]] std::string TextOf(const v1::Switch& one, const std::string& what);

}  // namespace trainyard::live
