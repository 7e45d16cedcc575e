// SPDX-License-Identifier: Apache-2.0
// When the engine decides. Facts have times of their own; a decision happens at an instant.
#pragma once

#include <optional>

#include "model/rules.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::engine {

class InstantClock {
 public:
  explicit InstantClock(const model::ClockRules& rules) : rules_(rules), anchor_(rules.anchor) {}

  // The earliest instant at which something that becomes due at `at` is decided. `lone`: no other
  // fact remains (see PublishedRules::lone_fact).
  [[nodiscard]] TimePoint InstantFor(TimePoint at, bool lone) const;

  // A decision was taken. REQUIRES: not before the last one.
  void Decided(TimePoint now);
  // The first submit, which anchors rounds without an anchor of their own.
  void Anchor(TimePoint first);

  [[nodiscard]] std::optional<TimePoint> last() const { return last_; }
  void Serialize(StateStream& state) { state(anchor_, last_); }
  [[nodiscard]] const model::ClockRules& rules() const { return rules_; }

 private:
  model::ClockRules rules_;
  std::optional<TimePoint> anchor_;
  std::optional<TimePoint> last_;
};

}  // namespace trainyard::engine
