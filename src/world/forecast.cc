// SPDX-License-Identifier: Apache-2.0
#include "world/forecast.h"

#include "engine/run.h"
#include "world/simulated_world.h"

namespace trainyard::world {
namespace {

// A fork's future: no job arrives any more.
class WithoutArrivals final : public engine::World {
 public:
  WithoutArrivals(const Cluster& cluster, engine::Engine& fork, std::optional<TimePoint> until)
      : begin_(fork.now()),
        world_(std::make_shared<const std::vector<JobSpec>>(), cluster, fork, {.until = until}) {}

  [[nodiscard]] model::Batch Next(std::optional<TimePoint> wake_at) override {
    if (!said_) {
      said_ = true;
      return {.now = begin_, .events = {{.at = begin_, .fact = model::fact::NoMoreSubmits{}}}};
    }
    return world_.Next(wake_at);
  }
  [[nodiscard]] Status Perform(TimePoint now, std::span<const model::Action> actions) override {
    return world_.Perform(now, actions);
  }

 private:
  const TimePoint begin_;
  SimulatedWorld world_;
  bool said_ = false;
};

}  // namespace

Status SimulatedForks::Run(engine::Engine& fork, std::optional<TimePoint> until) const {
  Cluster cluster = fork.cluster();
  cluster.changes.clear();  // failures to come are not known
  fork.EndOverdueJobs();
  WithoutArrivals world(cluster, fork, until);
  return engine::Run(fork, world, nullptr);
}

}  // namespace trainyard::world
