// SPDX-License-Identifier: Apache-2.0
#include "live/view/cluster_view.h"

#include <algorithm>

#include "engine/ledger.h"
#include "model/conditions.h"

namespace trainyard::live {

const LiveAttempt* ClusterView::Find(const supervisor::AttemptKey& key) const {
  const std::optional<JobId> job = Find(key.first);
  if (!job) {
    return nullptr;
  }
  const std::vector<LiveAttempt>& list = this->job(*job).attempts;
  const auto at = std::find_if(list.begin(), list.end(), [&key](const LiveAttempt& attempt) {
    return attempt.number == key.second;
  });
  return at == list.end() ? nullptr : &*at;
}

std::string ClusterView::TextOf(JobId id) const {
  const LiveJob& live = job(id).live;
  return live.array ? model::TextOf({.job = numbers->Of(*live.array), .task = live.array_index})
                    : model::TextOf({.job = numbers->Of(id)});
}

const model::Blocked* ClusterView::BlockedOf(JobId id) const {
  const JobEntry& entry = job(id);
  const auto found =
      std::find_if(blocked->begin(), blocked->end(), [&entry](const model::Blocked& one) {
        return one.gpus == entry.record.spec->gpus && one.kind == entry.kind;
      });
  return found == blocked->end() ? nullptr : &*found;
}

std::optional<engine::Deferral> ClusterView::DeferralOf(JobId id) const {
  const JobEntry& entry = job(id);
  if (!entry.deferred) {
    return std::nullopt;
  }
  engine::Deferral deferral = job(entry.live.array.value_or(id)).terms;
  deferral.held = entry.held;
  return deferral;
}

model::Progress ClusterView::ProgressOf(JobId id, TimePoint at) const {
  const model::JobRecord& record = job(id).record;
  return record.phase.get() >= model::JobPhase::kCompleted
             ? record.progress
             : engine::Ledger(configuration->rules, *configuration->rates)
                   .ProgressAt(record, std::max(at, record.progress.as_of));
}

bool ClusterView::IsSilent(NodeId id, TimePoint at) const {
  const NodeEntry& entry = node(id);
  return entry.alive &&
         (!entry.connected || at - entry.heard > options->Scaled(2 * options->heartbeat));
}

Duration ClusterView::GraceOf(JobId id) const {
  const Duration own = FromMilliseconds(job(id).live.request->launch().grace());
  return own.count() > 0 ? std::min(own, options->grace) : options->grace;
}

}  // namespace trainyard::live
