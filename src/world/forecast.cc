// SPDX-License-Identifier: Apache-2.0
#include "world/forecast.h"

#include "world/simulated_world.h"

namespace trainyard::world {

Status SimulatedForks::Run(engine::Engine& fork, std::optional<TimePoint> until) const {
  Cluster cluster = fork.cluster();
  cluster.changes.clear();  // failures to come are not known
  fork.EndOverdueJobs();
  const model::Event no_arrivals{.kind = model::EventKind::kNoMoreSubmits, .at = fork.now()};
  if (const auto step = fork.Step({.now = fork.now(), .events = {no_arrivals}}); !step.ok()) {
    return step.error();
  }
  SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(), cluster, fork,
                       {.until = until});
  for (model::Batch batch = world.Next(fork.next_wakeup()); !batch.done;
       batch = world.Next(fork.next_wakeup())) {
    if (const auto step = fork.Step(batch); !step.ok()) {
      return step.error();
    }
  }
  return {};
}

}  // namespace trainyard::world
