// SPDX-License-Identifier: Apache-2.0
// Whose fault it is that an attempt has ended before its work was done. Pure functions of what
// agents report; docs/live.md, "Failures".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainyard/live.pb.h"

namespace trainyard {

enum class FailureOwner : std::uint8_t {
  kNobody,    // notice, an expired lease, a machine that goes down: the job just waits again
  kNode,      // the command could not be run there, or not to its end
  kDoubtful,  // the node's, unless other nodes say the same of the job
  kJob,       // the command was started and left with a code other than 0, or by a signal
};

// What a part of an attempt has said of its failure.
struct PartFailure {
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
  int exit_code = 0;
  bool lost = false;     // as AttemptReport::lost
  double failed_at = 0;  // as AttemptReport::failed_at
  std::string message{};

  // Whether it is one, or an end of which the controller knows no reason.
  [[nodiscard]] bool has_failed() const {
    return lost || exit_code != 0 || cause != v1::AttemptReport::CAUSE_UNSPECIFIED;
  }
};

[[nodiscard]] PartFailure FailureOf(const v1::AttemptReport& report);
[[nodiscard]] FailureOwner OwnerOf(const PartFailure& failure);

// The part that a gang's end is blamed on: the one that failed first. One that never ran, or whose
// supervisor has gone, knows no time and comes before all that do. REQUIRES: one has failed.
[[nodiscard]] std::size_t FirstFailed(std::span<const PartFailure> parts);

// What failures of several nodes must have in common to be one and the same: the cause and what the
// system said, without the names of files.
[[nodiscard]] std::string ReasonKey(const PartFailure& failure);

// For people, in one line of at most 200 bytes.
[[nodiscard]] std::string Describe(const PartFailure& failure);

}  // namespace trainyard
