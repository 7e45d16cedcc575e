// SPDX-License-Identifier: Apache-2.0
// What lies under the engine: simulated, live, or a replay of a journal.
#pragma once

#include <optional>
#include <span>

#include "model/event.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard {

class World {
 public:
  virtual ~World() = default;
  // The next facts, or an empty batch at `wake_at` if nothing happens before. Blocks in a live
  // world. Facts of one instant come in one batch.
  [[nodiscard]] virtual Batch Next(std::optional<TimePoint> wake_at) = 0;
  [[nodiscard]] virtual Status Perform(TimePoint now, std::span<const Action> actions) = 0;
};

}  // namespace trainyard
