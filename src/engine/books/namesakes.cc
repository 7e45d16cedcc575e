// SPDX-License-Identifier: Apache-2.0
#include "engine/books/namesakes.h"

namespace trainyard::engine {

void Namesakes::Put(JobId job, const std::string& user, const std::string& name) {
  Remove(job);
  const auto at = jobs_.try_emplace(Key(user, name)).first;
  at->second.insert(job);
  places_[job] = at;
}

void Namesakes::Remove(JobId job) {
  const auto place = places_.find(job);
  if (place == places_.end()) {
    return;
  }
  const auto at = place->second;
  at->second.erase(job);
  if (at->second.empty()) {
    jobs_.erase(at);
  }
  places_.erase(place);
}

std::vector<JobId> Namesakes::Before(JobId job, const std::string& user,
                                     const std::string& name) const {
  const auto at = jobs_.find(Key(user, name));
  return at == jobs_.end() ? std::vector<JobId>()
                           : std::vector<JobId>(at->second.begin(), at->second.lower_bound(job));
}

}  // namespace trainyard::engine
