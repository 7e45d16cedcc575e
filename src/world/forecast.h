// SPDX-License-Identifier: Apache-2.0
// The future of an engine by simulation: forks of it run in a world without arrivals.
#pragma once

#include "engine/engine.h"

namespace trainyard::world {

class SimulatedForks final : public engine::ForkRunner {
 public:
  [[nodiscard]] Status Run(engine::Engine& fork, std::optional<TimePoint> until) const override;
};

}  // namespace trainyard::world
