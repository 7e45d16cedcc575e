// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/start_queue.h"

#include <algorithm>
#include <vector>

namespace trainyard::live {

bool StartQueue::MayStart(JobId job) const {
  const std::vector<LiveAttempt>& list = attempts_[job].list;
  if (list.size() != 1) {
    return false;
  }
  const LiveAttempt& attempt = list.back();
  return std::all_of(attempt.parts.begin(), attempt.parts.end(), [&](const Part& part) {
    return part.state != PartState::kUnknown &&
           (part.state != PartState::kQueued || MayEnter(attempt, part));
  });
}

bool StartQueue::MayEnter(const LiveAttempt& attempt, const Part& part) const {
  if (!nodes_[part.node].connection) {
    return false;
  }
  const std::vector<supervisor::AttemptKey> others = occupancy_.On(part.node, part.gpus);
  return std::all_of(others.begin(), others.end(), [&](const supervisor::AttemptKey& key) {
    const LiveAttempt* const other = attempts_.Find(key);
    return other != nullptr && attempt.MayShareWith(*other);
  });
}

}  // namespace trainyard::live
