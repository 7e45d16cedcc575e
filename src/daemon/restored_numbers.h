// SPDX-License-Identifier: Apache-2.0
// How jobs are numbered after a copy of a controller's state has been put back: no controller can
// know what the one after the copy has given, so numbers go on from one that comes of the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "model/job_numbers.h"
#include "store/store.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

// Lies in each copy of a state folder, and so in one that has been put back.
inline constexpr const char* kCopyMark = "copy";

// Rises by 2,000 a second, more than any controller gives in the long run. So it is above all that
// was given after an earlier restore, of whatever copy.
[[nodiscard]] std::uint64_t FirstNumberAt(double unix_now);

// As the store says.
[[nodiscard]] Result<model::JobNumbers> KeptNumbers(const store::Store& store);

// A state that a controller goes on with.
struct RestoredState {
  std::string folder;
  std::size_t jobs = 0;  // that it has
  double unix_now = 0;
};
// Where the state folder is a copy: jobs after those that the state has are numbered anew, which
// the store keeps, and the folder is a copy no more. REQUIRES: `numbers` are those that the store
// keeps.
[[nodiscard]] Status RenumberCopy(const RestoredState& state, store::Store& store,
                                  model::JobNumbers& numbers,
                                  const std::function<void(const std::string&)>& log);

}  // namespace trainyard::daemon
