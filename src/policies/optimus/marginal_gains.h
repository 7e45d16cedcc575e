// SPDX-License-Identifier: Apache-2.0
// GPUs one step after the other to whoever gains most by them (Optimus, EuroSys'18, section 4.1).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard::policies {

// What a job would make of a number of GPUs.
struct Prospect {
  int gpus = 0;
  double seconds = 0;  // until it is done
};

// The prospect that each job comes to have. All begin with their first; then, as long as a job
// gains, the job that gains most seconds for each GPU more goes on to the prospect that gives it
// this, the nearest one of equals; the first job of equals. A step may pass over prospects that
// gain less, or nothing. No more than `free` GPUs are added. O((jobs x prospects + free) x
// log(jobs)) times the prospects of a job.
// REQUIRES: each job has at least one prospect, in ascending order of GPUs; free >= 0.
[[nodiscard]] std::vector<std::size_t> ChooseByGain(std::span<const std::vector<Prospect>> jobs,
                                                    int free);

}  // namespace trainyard::policies
