// SPDX-License-Identifier: Apache-2.0
#include "policy/elastic_jobs.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace trainyard {

int PublishedCap(const JobSpec& job) {
  constexpr std::int64_t kMostGpus = 64;
  return static_cast<int>(job.batch_size > 0 ? std::min(job.batch_size, kMostGpus) : kMostGpus);
}

std::vector<JobId> InKeptOrder(std::span<const JobId> kept, std::span<const JobId> live) {
  std::set<JobId> left(live.begin(), live.end());
  std::vector<JobId> order;
  order.reserve(live.size());
  for (const JobId job : kept) {
    if (left.erase(job) > 0) {
      order.push_back(job);
    }
  }
  for (const JobId job : live) {
    if (left.count(job) > 0) {
      order.push_back(job);
    }
  }
  return order;
}

}  // namespace trainyard
