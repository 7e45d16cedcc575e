// SPDX-License-Identifier: Apache-2.0
#include "model/job_order.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace trainyard::model {

std::vector<std::uint32_t> SubmitOrder(const std::vector<JobSpec>& jobs) {
  std::vector<std::uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&jobs](std::uint32_t a, std::uint32_t b) {
    return jobs[a].known_from() < jobs[b].known_from();
  });
  return order;
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

}  // namespace trainyard::model
