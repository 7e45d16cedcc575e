// SPDX-License-Identifier: Apache-2.0
#include "model/submit_order.h"

#include <algorithm>
#include <numeric>

namespace trainyard {

std::vector<std::uint32_t> SubmitOrder(const std::vector<JobSpec>& jobs) {
  std::vector<std::uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&jobs](std::uint32_t a, std::uint32_t b) {
    return jobs[a].known_from() < jobs[b].known_from();
  });
  return order;
}

}  // namespace trainyard
