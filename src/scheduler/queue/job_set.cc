// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/job_set.h"

namespace trainyard::scheduler {

void JobSet::Compact() {
  std::erase_if(inserted_, [this](JobId job) { return !Holds(job); });
  std::sort(inserted_.begin(), inserted_.end());
  inserted_.erase(std::unique(inserted_.begin(), inserted_.end()), inserted_.end());
}

std::vector<JobId> JobSet::TakeAll() {
  Compact();
  for (const JobId job : inserted_) {
    Erase(job);
  }
  return std::exchange(inserted_, {});
}

void JobSet::Serialize(StateStream& state) {
  Compact();
  std::set<JobId> jobs(inserted_.begin(), inserted_.end());
  state(jobs);
  if (state.reading()) {
    *this = {};
    for (const JobId job : jobs) {
      Insert(job);
    }
  }
}

}  // namespace trainyard::scheduler
