// SPDX-License-Identifier: Apache-2.0
#include "policy/elastic_jobs.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace trainyard {

int PublishedCap(const JobSpec& job) {
  constexpr std::int64_t kMostGpus = 64;
  return static_cast<int>(job.batch_size > 0 ? std::min(job.batch_size, kMostGpus) : kMostGpus);
}

std::vector<JobId> InKeptOrder(std::span<const JobId> kept, std::span<const JobId> live) {
  std::vector<JobId> sorted(live.begin(), live.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<JobId> order;
  order.reserve(live.size());
  std::copy_if(kept.begin(), kept.end(), std::back_inserter(order), [&sorted](JobId job) {
    return std::binary_search(sorted.begin(), sorted.end(), job);
  });
  sorted.assign(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  std::copy_if(live.begin(), live.end(), std::back_inserter(order), [&sorted](JobId job) {
    return !std::binary_search(sorted.begin(), sorted.end(), job);
  });
  return order;
}

}  // namespace trainyard
