// SPDX-License-Identifier: Apache-2.0
#include "engine/decision_clock.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard {

TimePoint NextMultiple(TimePoint anchor, Duration length, TimePoint at) {
  CHECK(length.count() > 0);
  if (at <= anchor) {
    return anchor;
  }
  const std::int64_t lengths = (at - anchor + length - Duration{1}) / length;
  return anchor + lengths * length;
}

TimePoint InstantClock::InstantFor(TimePoint at, bool lone) const {
  switch (rules_.mode) {
    case DecisionClock::Mode::kEveryEvent:
      return at;
    case DecisionClock::Mode::kSpacing:
    case DecisionClock::Mode::kArrivals:
      return last_ && !lone ? std::max(at, *last_ + rules_.length) : at;
    case DecisionClock::Mode::kRounds: {
      const TimePoint from = last_ ? std::max(at, *last_ + Duration{1}) : at;
      return anchor_ ? NextMultiple(*anchor_, rules_.length, from) : from;
    }
  }
  return at;
}

void InstantClock::Decided(TimePoint now) {
  CHECK(!last_ || *last_ <= now);
  last_ = now;
}

void InstantClock::Anchor(TimePoint first) {
  if (!anchor_) {
    anchor_ = first;
  }
}

}  // namespace trainyard
