// SPDX-License-Identifier: Apache-2.0
#include "world/forecast.h"

#include "world/simulated_world.h"

namespace trainyard::world {

void SimulatedForks::Run(engine::Engine& fork, std::optional<TimePoint> until) const {
  Cluster cluster = fork.cluster();
  cluster.changes.clear();  // failures to come are not known
  fork.EndOverdueJobs();
  const model::Event no_arrivals{.kind = model::EventKind::kNoMoreSubmits, .at = fork.now()};
  if (!fork.Step({.now = fork.now(), .events = {no_arrivals}}).ok()) {
    return;
  }
  SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(), cluster, fork,
                       {.until = until});
  for (model::Batch batch = world.Next(fork.next_wakeup()); !batch.done;
       batch = world.Next(fork.next_wakeup())) {
    if (!fork.Step(batch).ok()) {
      return;  // the choice would be refused, too: no outlook
    }
  }
}

}  // namespace trainyard::world
