// SPDX-License-Identifier: Apache-2.0
#include "live/view/view_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine.h"
#include "live/measured/measured_profiles.h"
#include "model/conditions.h"

namespace trainyard::live {

void ViewWriter::TouchAll() { all_ = true; }

// Those of which the failure book says something else now.
void ViewWriter::TouchFailing() {
  for (const JobId job : failing_) {
    const JobEntry* const entry = draft_.jobs.Find(Index(job));
    if (entry == nullptr || !(entry->failures == state_.failures.EffectOn(job))) {
      touched_.jobs.Add(job);
    }
  }
}

void ViewWriter::RefreshJob(JobId id) {
  const model::JobRecord& record = engine_.records()[Index(id)];
  const Attempts::Current& attempts = state_.attempts[id];
  auto entry = std::make_shared<JobEntry>(JobEntry{.changed = draft_.number + 1,
                                                   .live = state_.jobs[id],
                                                   .record = record,
                                                   .attempts = attempts,
                                                   .metrics = state_.metrics.Of(id),
                                                   .history = state_.history.Of(id),
                                                   .usage = state_.usage.HeldBy(id),
                                                   .use = state_.usage.UseOf(id),
                                                   .steps = state_.steps.Of(id),
                                                   .changed_by = state_.changes.Of(id),
                                                   .holder = state_.changes.HolderOf(id),
                                                   .failures = state_.failures.EffectOn(id),
                                                   .terms = {},
                                                   .kind = engine_.DemandKindOf(id)});
  if (entry->live.array.value_or(id) == id || model::WaitsByTask(*record.spec)) {
    entry->terms = engine_.TermsOf(id);
  }
  entry->deferred = engine_.IsDeferred(id);
  entry->held = engine_.IsHeld(id);
  entry->overrun = engine_.HasOverrun(id);
  entry->queued = state_.start_queue.jobs().contains(id);
  entry->holding = state_.occupancy.holding().contains(id);
  if (!entry->kind && record.phase.get() < model::JobPhase::kCompleted) {
    unclassed_.insert(id);
  } else {
    unclassed_.erase(id);
  }
  const bool is_holder = entry->holding || !entry->attempts.list.empty();
  holders_changed_ |= is_holder ? holders_.insert(id).second : holders_.erase(id) > 0;
  draft_.jobs.Set(Index(id), std::move(entry), draft_.number + 1);
}

void ViewWriter::RefreshNode(NodeId id) {
  const LiveNode& node = state_.nodes[id];
  const NodeEntry* const former = draft_.nodes.Find(Index(id));
  auto entry = std::make_shared<NodeEntry>(NodeEntry{.connected = node.connection.has_value(),
                                                     .alive = node.alive,
                                                     .drained = node.drained,
                                                     .available = node.available,
                                                     .finish_until = node.finish_until,
                                                     .heard = node.heard,
                                                     .why_drained = state_.failures.WhyDrained(id),
                                                     .changed_by = state_.changes.Of(id),
                                                     .holders = state_.occupancy.HoldersOf(id)});
  entry->reported_version = node.version;
  entry->reported =
      former != nullptr && former->reported_version == node.version
          ? former->reported
          : std::make_shared<const ReportedByAgent>(ReportedByAgent{node.hello, node.data});
  draft_.nodes.Set(Index(id), std::move(entry), draft_.number + 1);
}

void ViewWriter::RefreshAll() {
  all_ = false;
  draft_.options = &state_.options;
  draft_.numbers = &state_.numbers;
  if (draft_.configuration != state_.configuration) {
    draft_.configuration = state_.configuration;
    draft_.classes = std::make_shared<const model::NodeClasses>(draft_.cluster());
  }
  draft_.profiles = nullptr;
  draft_.blocked = nullptr;
  decided_by_ = engine_.shared_configuration();
  draft_.jobs.Clear();
  draft_.nodes.Clear();
  holders_.clear();
  unclassed_.clear();
  failing_.clear();
  for (std::size_t i = 0; i < state_.jobs.size(); ++i) {
    touched_.jobs.Add(JobAt(i));
  }
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    touched_.nodes.Add(NodeAt(i));
  }
}

// Brings the entries up to date whose jobs and nodes have been touched.
void ViewWriter::Refresh() {
  if (all_ || draft_.configuration != state_.configuration ||
      decided_by_ != engine_.shared_configuration()) {
    RefreshAll();
  }
  if (failures_ != state_.failures.changes()) {
    failures_ = state_.failures.changes();
    TouchFailing();
    failing_ = state_.failures.JobsWithRecord();
    TouchFailing();
  }
  if (kinds_ != engine_.demand_kinds()) {
    kinds_ = engine_.demand_kinds();
    for (const JobId job : unclassed_) {
      touched_.jobs.Add(job);
    }
  }
  for (const JobId job : touched_.jobs.Take()) {
    if (Index(job) < engine_.records().size()) {  // otherwise the engine will touch it
      RefreshJob(job);
    }
  }
  for (const NodeId node : touched_.nodes.Take()) {
    RefreshNode(node);
  }
  if (draft_.blocked == nullptr || decisions_ != engine_.decisions()) {
    decisions_ = engine_.decisions();
    const std::span<const model::Blocked> blocked = engine_.blocked();
    draft_.blocked =
        std::make_shared<const std::vector<model::Blocked>>(blocked.begin(), blocked.end());
  }
  if (holders_changed_) {
    holders_changed_ = false;
    draft_.holders = std::make_shared<const std::vector<JobId>>(holders_.begin(), holders_.end());
  }
  draft_.now = state_.now;
  draft_.switches = state_.switches;
  draft_.configurations = state_.configurations;
  draft_.usage = state_.usage.days();
  draft_.next_wakeup = engine_.next_wakeup();
  draft_.starts_from = state_.failures.starts_from(state_.now);
  draft_.why_starts_wait = draft_.starts_from ? state_.failures.why_starts_wait() : std::string();
}

// The order of all jobs that wait costs a look at each of them: that of a large queue is made anew
// after some views only, and Statuses leaves out the jobs that do not wait any more.
void ViewWriter::RefreshOrder() {
  constexpr std::uint64_t kJobsAView = 100;
  // Of a step of the engine: jobs become eligible with time, too, without a fact or a decision.
  const std::tuple step(engine_.now(), engine_.events(), engine_.decisions());
  const std::size_t waiting = draft_.order == nullptr ? 0 : draft_.order->size();
  ++since_order_;
  if (draft_.order == nullptr || (ordered_at_ != step && since_order_ > waiting / kJobsAView)) {
    since_order_ = 0;
    ordered_at_ = step;
    draft_.order = std::make_shared<const std::vector<JobId>>(engine_.WaitingInOrder());
  }
}

Statuses ViewWriter::Now() {
  Refresh();
  if (draft_.order == nullptr) {
    RefreshOrder();
  }
  return Statuses(draft_, state_.now);
}

void ViewWriter::Publish() {
  Refresh();
  RefreshOrder();
  if (draft_.profiles == nullptr || measured_ != state_.measured_facts) {
    measured_ = state_.measured_facts;
    draft_.profiles = std::make_shared<const v1::ProfilesReply>(
        MeasuredProfiles(engine_, state_.configuration->profiles));
  }
  ++draft_.number;
  auto view = std::make_shared<const ClusterView>(draft_);
  draft_.jobs.Seal();
  draft_.nodes.Seal();
  const std::lock_guard lock(mutex_);
  published_ = std::move(view);
}

std::shared_ptr<const ClusterView> ViewWriter::Published() const {
  const std::lock_guard lock(mutex_);
  CHECK(published_ != nullptr);
  return published_;
}

std::string ViewWriter::WhyStale() {
  const std::shared_ptr<const ClusterView> view = Published();
  const model::Touched touched = touched_;
  ViewWriter anew(state_, touched_, engine_);
  const Statuses is = anew.Now();
  touched_ = touched;
  const Statuses was(*view, state_.now);
  for (std::size_t i = 0; i < engine_.records().size(); ++i) {
    const std::string before = was.StatusOf(JobAt(i)).ShortDebugString();
    const std::string after = is.StatusOf(JobAt(i)).ShortDebugString();
    if (before != after) {
      return fmt::format("job {}: {}\nanew: {}", i, before, after);
    }
  }
  const std::vector<v1::NodeStatus> before = was.OfNodes();
  const std::vector<v1::NodeStatus> after = is.OfNodes();
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i].ShortDebugString() != after[i].ShortDebugString()) {
      return fmt::format("node {}: {}\nanew: {}", i, before[i].ShortDebugString(),
                         after[i].ShortDebugString());
    }
  }
  return {};
}

}  // namespace trainyard::live
