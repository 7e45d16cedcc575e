// SPDX-License-Identifier: Apache-2.0
#include "live/view/cluster_view.h"

#include <algorithm>

#include "engine/books/ledger.h"
#include "model/conditions.h"

namespace trainyard::live {

const LiveAttempt* ClusterView::Find(const supervisor::AttemptKey& key) const {
  const std::optional<JobId> job = Find(key.first);
  if (!job) {
    return nullptr;
  }
  return this->job(*job).attempts.Find(key.second);
}

std::string ClusterView::TextOf(JobId id) const { return job(id).live.TextOf(id, *numbers); }

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
  engine::Deferral deferral = model::WaitsByTask(*entry.record.spec)
                                  ? entry.terms
                                  : job(entry.live.array.value_or(id)).terms;
  deferral.held = entry.held;
  return deferral;
}

model::Progress ClusterView::ProgressOf(JobId id, TimePoint at) const {
  return engine::Ledger(configuration->rules, *configuration->rates).ProgressOf(job(id).record, at);
}

bool ClusterView::IsSilent(NodeId id, TimePoint at) const {
  const NodeEntry& entry = node(id);
  return entry.alive &&
         (!entry.connected || at - entry.heard > options->Scaled(2 * options->heartbeat));
}

}  // namespace trainyard::live
