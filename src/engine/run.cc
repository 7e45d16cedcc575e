// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

namespace trainyard {

Result<bool> Turn(Engine& engine, World& world, Journal& journal) {
  const Batch batch = world.Next(engine.next_wakeup());
  if (batch.done) {
    return false;
  }
  journal.Append(batch);
  const Result<std::span<const Action>> actions = engine.Step(batch);
  if (!actions.ok()) {
    return actions.error();
  }
  journal.Append(actions.value());
  if (Status status = journal.Commit(); !status.ok()) {
    return status.error();
  }
  if (Status status = world.Perform(batch.now, actions.value()); !status.ok()) {
    return status.error();
  }
  return true;
}

Status Run(Engine& engine, World& world, Journal& journal) {
  Result<bool> more = true;
  while (more.ok() && more.value()) {
    more = Turn(engine, world, journal);
  }
  const Status flushed = journal.Flush();  // also what led to an error
  return more.ok() ? flushed : more.error();
}

}  // namespace trainyard
