// SPDX-License-Identifier: Apache-2.0
// For policies whose ties keep their order of last time (Synergy's simulator sorts in place).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/state.h"

namespace trainyard {

class FormerOrder {
 public:
  // Jobs that have gone leave the order, new ones join its tail as they come.
  void Meet(std::span<const JobId> live) {
    std::vector<JobId> present(live.begin(), live.end());
    std::sort(present.begin(), present.end());
    std::erase_if(jobs_, [&present](JobId job) {
      return !std::binary_search(present.begin(), present.end(), job);
    });
    std::vector<JobId> known = jobs_;
    std::sort(known.begin(), known.end());
    for (const JobId job : live) {
      if (!std::binary_search(known.begin(), known.end(), job)) {
        jobs_.push_back(job);
      }
    }
  }
  [[nodiscard]] std::vector<JobId>& jobs() { return jobs_; }
  void Serialize(StateStream& state) { state(jobs_); }

 private:
  std::vector<JobId> jobs_;
};

}  // namespace trainyard
