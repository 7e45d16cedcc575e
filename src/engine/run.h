// SPDX-License-Identifier: Apache-2.0
// The one event loop: facts from a world, through the engine, actions back to the world.
#pragma once

#include "engine/engine.h"
#include "engine/journal.h"
#include "engine/world.h"

namespace trainyard::engine {

// One pass of the loop; whether there is more to come. What is acted upon is in the journal before.
// `journal`: null where nobody reads it, as of a fork.
[[nodiscard]] Result<bool> Turn(Engine& engine, World& world, Journal* journal);

// Passes until the world is done.
[[nodiscard]] Status Run(Engine& engine, World& world, Journal* journal);

}  // namespace trainyard::engine
