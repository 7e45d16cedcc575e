// SPDX-License-Identifier: Apache-2.0
#include "engine/run.h"

namespace trainyard {

namespace {

Status RunUntilDone(Engine& engine, World& world, Journal& journal) {
  while (true) {
    const Batch batch = world.Next(engine.next_wakeup());
    if (batch.done) {
      return {};
    }
    if (Status status = journal.Append(batch); !status.ok()) {
      return status;
    }
    const Result<std::span<const Action>> actions = engine.Step(batch);
    if (!actions.ok()) {
      return actions.error();
    }
    if (Status status = journal.Append(actions.value()); !status.ok()) {
      return status;
    }
    if (Status status = world.Perform(batch.now, actions.value()); !status.ok()) {
      return status;
    }
  }
}

}  // namespace

Status Run(Engine& engine, World& world, Journal& journal) {
  const Status status = RunUntilDone(engine, world, journal);
  const Status flushed = journal.Flush();  // also what led to an error
  return status.ok() ? flushed : status;
}

}  // namespace trainyard
