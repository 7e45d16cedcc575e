// SPDX-License-Identifier: Apache-2.0
#include "world/simulated_world.h"

#include <algorithm>

#include "model/job_order.h"

namespace trainyard::world {

SimulatedWorld::SimulatedWorld(std::shared_ptr<const std::vector<JobSpec>> jobs,
                               const Cluster& cluster, engine::Engine& engine, StopRule stop)
    : jobs_(std::move(jobs)),
      cluster_(cluster),
      engine_(engine),
      stop_(stop),
      order_(model::SubmitOrder(*jobs_)),
      now_(engine.now()) {
  if (stop_.tracked) {
    tracked_left_ = Index(stop_.tracked->second) - Index(stop_.tracked->first) + 1;
  }
}

bool SimulatedWorld::Stopped() const { return stop_.tracked && tracked_left_ == 0; }

model::Batch SimulatedWorld::Next(std::optional<TimePoint> wake_at) {
  TimePoint next = wake_at.value_or(kEndOfTime);
  next =
      std::min(next, (trainings_ ? trainings_->next() : engine_.next_end()).value_or(kEndOfTime));
  if (next_submit_ < order_.size()) {
    next = std::min(next, (*jobs_)[order_[next_submit_]].known_from());
  }
  if (next_change_ < cluster_.changes.size()) {
    next = std::min(next, cluster_.changes[next_change_].at);
  }
  if (next_planned_ < planned_.size()) {
    next = std::min(next, planned_[next_planned_].at);
  }
  if (next == kEndOfTime || Stopped() || (stop_.until && next > *stop_.until)) {
    now_ = stop_.until && next != kEndOfTime ? *stop_.until : now_;
    return {.now = now_, .done = true};
  }
  now_ = std::max(now_, next);
  model::Batch batch{.now = now_};
  batch.events = trainings_ ? trainings_->Advance(now_) : engine_.TakeEnds(now_);
  AddNodeChanges(batch);
  AddSubmits(batch);
  return batch;
}

void SimulatedWorld::AddNodeChanges(model::Batch& batch) {
  for (; next_change_ < cluster_.changes.size(); ++next_change_) {
    const NodeChange& change = cluster_.changes[next_change_];
    if (change.at > batch.now) {
      break;
    }
    batch.events.push_back({.at = change.at});
    if (change.up) {
      batch.events.back().fact = model::fact::NodeUp{change.node};
    } else if (change.how == NodeChange::How::kFinish) {
      batch.events.back().fact = model::fact::NodeCordoned{.node = change.node};
    } else if (change.how == NodeChange::How::kNotice) {
      batch.events.back().fact = model::fact::NodeDrained{change.node};
    } else {
      batch.events.back().fact = model::fact::NodeDown{change.node};
    }
  }
  for (; next_planned_ < planned_.size() && planned_[next_planned_].at <= batch.now;
       ++next_planned_) {
    batch.events.push_back(planned_[next_planned_]);
  }
  std::stable_sort(batch.events.begin(), batch.events.end(),
                   [](const model::Event& a, const model::Event& b) {
                     return model::TakingOrder(a.kind()) < model::TakingOrder(b.kind());
                   });
}

void SimulatedWorld::AddSubmits(model::Batch& batch) {
  const std::size_t before = next_submit_;
  for (; next_submit_ < order_.size(); ++next_submit_) {
    const std::size_t row = order_[next_submit_];
    const JobSpec& job = (*jobs_)[row];
    if (job.known_from() > batch.now) {
      break;
    }
    batch.events.push_back(
        {.at = job.known_from(),
         .fact = model::fact::Submitted{.job = JobAt(row),
                                        .spec = std::shared_ptr<const JobSpec>(jobs_, &job)}});
  }
  if (before != next_submit_ && next_submit_ == order_.size()) {
    batch.events.push_back({.at = batch.now, .fact = model::fact::NoMoreSubmits{}});
  }
}

Status SimulatedWorld::Perform(TimePoint now, std::span<const model::Action> actions) {
  if (trainings_) {
    trainings_->Perform(now, actions);
  }
  const std::size_t before = ended_;
  for (const model::Action& action : actions) {
    const bool ended = action.kind == model::ActionKind::kRelease;
    ended_ += ended ? 1 : 0;
    if (stop_.tracked && (ended || action.kind == model::ActionKind::kReject) &&
        action.job >= stop_.tracked->first && action.job <= stop_.tracked->second) {
      --tracked_left_;
    }
  }
  if (on_progress_ && ended_ > before) {
    on_progress_(ended_);
  }
  return {};
}

}  // namespace trainyard::world
