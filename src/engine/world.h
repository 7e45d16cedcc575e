// SPDX-License-Identifier: Apache-2.0
// What lies under the engine: simulated, live, or a replay of a journal.
#pragma once

#include <optional>
#include <span>

#include "model/event.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::engine {

class World {
 public:
  virtual ~World() = default;
  // The next facts, or an empty batch at `wake_at` if nothing happens before. Facts of one instant
  // come in one batch. Never blocks: a live world is asked when it has facts or `wake_at` has come,
  // and a replay has its batches, the empty ones too, from the journal.
  [[nodiscard]] virtual model::Batch Next(std::optional<TimePoint> wake_at) = 0;
  [[nodiscard]] virtual Status Perform(TimePoint now, std::span<const model::Action> actions) = 0;
};

}  // namespace trainyard::engine
