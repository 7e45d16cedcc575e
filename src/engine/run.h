// SPDX-License-Identifier: Apache-2.0
// The one event loop: facts from a world, through the engine, actions back to the world.
#pragma once

#include "engine/engine.h"
#include "engine/journal.h"
#include "trainyard/world.h"

namespace trainyard {

[[nodiscard]] Status Run(Engine& engine, World& world, Journal& journal);

}  // namespace trainyard
