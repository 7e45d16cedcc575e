// SPDX-License-Identifier: Apache-2.0
// The requests by which the jobs of a trace are submitted to a controller: one for each array.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"

namespace trainyard::daemon {

class TraceRequests {
 public:
  // All must outlive it. `command`: of the workers; empty: they are emulated.
  TraceRequests(std::span<const JobSpec> jobs, const Cluster& cluster,
                std::span<const std::string> command);

  // How many jobs the request of that row submits: the tasks of an array lie in rows one after the
  // other. 0: the job comes with an earlier row.
  [[nodiscard]] std::size_t CountOf(std::size_t row) const { return counts_[row]; }
  // `numbers`: those that the controller has given, by row. REQUIRES: CountOf(row) > 0; all jobs
  // that it waits for have theirs.
  [[nodiscard]] v1::JobRequest Of(std::size_t row, std::span<const std::uint64_t> numbers) const;

 private:
  std::span<const JobSpec> jobs_;
  const Cluster& cluster_;
  std::span<const std::string> command_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace trainyard::daemon
