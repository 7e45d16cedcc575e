// SPDX-License-Identifier: Apache-2.0
#include "live/controller.h"

#include <algorithm>
#include <utility>

#include "engine/run.h"

namespace trainyard {

// Tells the journal to the engine and the live world alike.
class Controller::Restorer final : public World {
 public:
  Restorer(std::string_view records, LiveWorld& world) : replay_(records), world_(world) {}
  Batch Next(std::optional<TimePoint> wake_at) override {
    Batch batch = replay_.Next(wake_at);
    if (!batch.done) {
      status_ = world_.Restore(batch);
      batch.done = !status_.ok();
    }
    last_ = batch.now;
    return batch;
  }
  Status Perform(TimePoint now, std::span<const Action> actions) override {
    Status status = replay_.Perform(now, actions);
    if (status.ok()) {
      world_.Restore(actions);
    }
    return status;
  }
  [[nodiscard]] const Status& status() const { return status_.ok() ? replay_.status() : status_; }
  [[nodiscard]] TimePoint last() const { return last_; }

 private:
  ReplayWorld replay_;
  LiveWorld& world_;
  TimePoint last_{};
  Status status_;
};

Controller::Controller(ControllerSetup setup, Store& store, LiveOutput& output)
    : store_(store),
      engine_(setup.engine),
      world_(std::move(setup.live), engine_.cluster(), engine_, setup.profiles, output),
      journal_(
          [this](std::string_view block) {
            return restoring_ || block.empty() ? Status() : store_.Append(block);
          },
          Journal::Write::kEveryStep) {}

Result<std::unique_ptr<Controller>> Controller::Open(ControllerSetup setup, Store& store,
                                                     LiveOutput& output, TimePoint now) {
  std::unique_ptr<Controller> controller(new Controller(std::move(setup), store, output));
  if (Status status = controller->Restore(now); !status.ok()) {
    return status.error();
  }
  return controller;
}

Status Controller::Restore(TimePoint now) {
  std::string records;
  Status status = store_.Read([&records](std::string_view block) {
    records += block;
    return Status();
  });
  if (!status.ok()) {
    return status;
  }
  Restorer restorer(records, world_);
  status = Run(engine_, restorer, journal_);
  if (status.ok()) {
    status = restorer.status();
  }
  if (!status.ok()) {
    return status;
  }
  now_ = std::max(now, restorer.last());
  world_.Restored(now_);
  restoring_ = false;
  return {};
}

Status Controller::Step(TimePoint now) {
  now_ = std::max(now, now_);
  world_.SetNow(now_);
  const bool facts = world_.Absorb();
  if (const std::optional<TimePoint> wake = engine_.next_wakeup();
      !facts && !(wake && *wake <= now_)) {
    world_.Answer();
    return {};
  }
  const Result<bool> more = Turn(engine_, world_, journal_);
  return more.ok() ? Status() : more.error();
}

std::optional<TimePoint> Controller::next_wakeup() const {
  const std::optional<TimePoint> decision = engine_.next_wakeup();
  const std::optional<TimePoint> timer = world_.next_timer();
  if (!decision || !timer) {
    return decision ? decision : timer;
  }
  return std::min(*decision, *timer);
}

}  // namespace trainyard
