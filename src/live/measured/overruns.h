// SPDX-License-Identifier: Apache-2.0
// Finds jobs that run on though they should have ended, by what is known of them: kOverrun.
#pragma once

#include <optional>
#include <vector>

#include "live/live_state.h"
#include "model/event.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine

namespace trainyard::live {

class Overruns {
 public:
  // Both must outlive it.
  Overruns(const LiveState& state, const engine::Engine& engine) : state_(state), engine_(engine) {}

  // When to ask again though nothing comes in.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;
  // The facts that are to be told now. O(running), once a second at most.
  [[nodiscard]] std::vector<model::Event> TakeFacts();

 private:
  const LiveState& state_;
  const engine::Engine& engine_;
  TimePoint looked_{};  // the last time
};

}  // namespace trainyard::live
