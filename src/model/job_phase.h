// SPDX-License-Identifier: Apache-2.0
// The life of a job, with the only transitions there are.
#pragma once

#include <cstdint>
#include <string_view>

#include "trainyard/state.h"

namespace trainyard {

enum class JobPhase : std::uint8_t {
  kUnknown,  // not submitted yet
  kArrived,  // submitted, not yet judged
  kWaiting,  // admitted, without GPUs
  kRunning,  // with GPUs
  kCompleted,
  kRejected,
  kCancelled,
  kFailed,
};

[[nodiscard]] std::string_view Name(JobPhase phase);

// A phase that changes only along the arrows of ARCHITECTURE.md, "Jobs".
class CheckedPhase {
 public:
  // REQUIRES: the transition exists; anything else is an error in the engine.
  void To(JobPhase next);
  [[nodiscard]] JobPhase get() const { return phase_; }
  void Serialize(StateStream& state) { state(phase_); }
  [[nodiscard]] bool live() const {
    return phase_ == JobPhase::kWaiting || phase_ == JobPhase::kRunning;
  }

 private:
  JobPhase phase_ = JobPhase::kUnknown;
};

}  // namespace trainyard
