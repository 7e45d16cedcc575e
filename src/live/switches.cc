// SPDX-License-Identifier: Apache-2.0
#include "live/switches.h"

#include "base/text.h"

namespace trainyard::live {

void Switches::Note(const model::fact::Switched& fact, TimePoint at) {
  const auto set = [&](Switch& one, bool on) {
    if (one.on != on) {
      one = {.on = on, .by = fact.by, .reason = fact.reason, .since = at};
    }
  };
  set(paused, fact.paused);
  set(closed, fact.closed);
}

v1::Switches MessageOf(const Switches& switches, const LiveOptions& options) {
  v1::Switches message;
  const auto put = [&options](const Switch& one, v1::Switch& to) {
    to.set_on(one.on);
    to.set_by(one.by);
    to.set_reason(one.reason);
    if (one.on || one.since != TimePoint{}) {
      to.set_since(options.UnixSeconds(one.since));
    }
  };
  put(switches.paused, *message.mutable_paused());
  put(switches.closed, *message.mutable_closed());
  return message;
}

std::string TextOf(const v1::Switch& one, const std::string& what) {
  return what + (one.by().empty() ? "" : " by " + one.by()) + " since " +
         base::UtcText(one.since()) + (one.reason().empty() ? "" : ": " + one.reason());
}

}  // namespace trainyard::live
