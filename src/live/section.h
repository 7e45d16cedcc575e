// SPDX-License-Identifier: Apache-2.0
// The parts of a snapshot.
#pragma once

#include <functional>
#include <limits>

#include "trainyard/state.h"

namespace trainyard::live {

// Snapshots of format 12 name each of their parts, so that a program with more or other parts can
// still read the rest; what a snapshot does not have stays as it is in a controller that has just
// been made. In earlier formats the parts follow one another without names, those that the format
// has.
struct Section {
  // Of no other part, ever.
  const char* name;
  std::function<void(StateStream&)> serialize;
  // For reading formats 6 to 11, whose parts follow one another in the order of `since`: the first
  // and the last format that has it. 0: all have it, and each snapshot must; 12: none of them.
  int since = 0;
  int until = std::numeric_limits<int>::max();
};

}  // namespace trainyard::live
