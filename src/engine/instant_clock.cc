// SPDX-License-Identifier: Apache-2.0
#include "engine/instant_clock.h"

#include <algorithm>

#include "base/check.h"
#include "base/rounding.h"

namespace trainyard::engine {

TimePoint InstantClock::InstantFor(TimePoint at, bool lone) const {
  switch (rules_.mode) {
    case model::ClockRules::Mode::kEveryEvent:
      return at;
    case model::ClockRules::Mode::kSpacing:
    case model::ClockRules::Mode::kArrivals:
      return last_ && !lone ? std::max(at, *last_ + rules_.length) : at;
    case model::ClockRules::Mode::kRounds: {
      const TimePoint from = last_ ? std::max(at, *last_ + Duration{1}) : at;
      return anchor_ ? base::NextMultiple(*anchor_, rules_.length, from) : from;
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

}  // namespace trainyard::engine
