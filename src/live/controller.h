// SPDX-License-Identifier: Apache-2.0
// Engine, live world and journal put together: what a controller is, less its clock, its threads,
// its sockets and its disk, which are given. The fault simulator runs this very code.
#pragma once

#include <memory>
#include <optional>

#include "engine/engine.h"
#include "engine/journal.h"
#include "live/live_world.h"
#include "store/store.h"

namespace trainyard {

struct ControllerSetup {
  EngineSetup engine{};
  LiveOptions live{};
  const ThroughputTable* profiles = nullptr;  // may be null
};

class Controller {
 public:
  // Goes through the store's journal and is then where the last controller was: each decision is
  // made again and compared with what is written. Everything must outlive the controller. Errors:
  // the store's; a journal that another version or set-up has written, with the time of the first
  // difference.
  [[nodiscard]] static Result<std::unique_ptr<Controller>> Open(ControllerSetup setup, Store& store,
                                                                LiveOutput& output, TimePoint now);

  // Where calls and messages go.
  [[nodiscard]] LiveWorld& world() { return world_; }
  // Deals with everything that has come in by `now` (a time before the last is taken for the last).
  // What is said to clients and agents is on disk before. An error is final: the disk has failed or
  // a policy has proposed something illegal.
  [[nodiscard]] Status Step(TimePoint now);
  // When Step must be called at the latest.
  [[nodiscard]] std::optional<TimePoint> next_wakeup() const;
  [[nodiscard]] const Engine& engine() const { return engine_; }
  // Of all that has happened; the same after a restart.
  [[nodiscard]] std::string digest() const { return journal_.digest(); }

 private:
  class Restorer;
  Controller(ControllerSetup setup, Store& store, LiveOutput& output);
  [[nodiscard]] Status Restore(TimePoint now);

  Store& store_;
  Engine engine_;
  LiveWorld world_;
  bool restoring_ = true;
  Journal journal_;
  TimePoint now_{};
};

}  // namespace trainyard
