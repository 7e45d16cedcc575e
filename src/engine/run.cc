// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"
#include "base/try.h"

namespace trainyard::engine {

Result<bool> Turn(Engine& engine, World& world, Journal* journal) {
  const model::Batch batch = world.Next(engine.next_wakeup());
  if (batch.done) {
    return false;
  }
  if (journal != nullptr) {
    journal->Append(batch);
  }
  ASSIGN_OR_RETURN(const std::span<const model::Action> actions, engine.Step(batch));
  if (journal != nullptr) {
    journal->Append(actions);
    RETURN_IF_ERROR(journal->Commit());
  }
  RETURN_IF_ERROR(world.Perform(batch.now, actions));
  return true;
}

Status Run(Engine& engine, World& world, Journal* journal) {
  Result<bool> more = true;
  while (more.ok() && more.value()) {
    more = Turn(engine, world, journal);
  }
  // Also what led to an error.
  const Status flushed = journal == nullptr ? Status() : journal->Flush();
  return more.ok() ? flushed : more.error();
}

}  // namespace trainyard::engine
