// SPDX-License-Identifier: Apache-2.0
// Which job holds which GPUs from when to when, from the actions of an engine, and how fragmented
// the free GPUs are. Costs O(GPUs) per action; runs that write no report go without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/event.h"
#include "results/metrics/run_result.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"

namespace trainyard::results {

class AllocationRecorder {
 public:
  static constexpr std::size_t kHoldingsMax = 2'000'000;  // 80 MB

  // `jobs` are those of the trace, by whose sizes fragmentation is judged. Beyond `holdings_max`
  // nothing more is recorded.
  AllocationRecorder(const Cluster& cluster, std::span<const JobSpec> jobs,
                     std::size_t holdings_max = kHoldingsMax);

  // REQUIRES: time does not go back; actions as the engine gives them.
  void Take(TimePoint now, std::span<const model::Action> actions);

  // Free GPUs that a job cannot use where they are, in the mean over the jobs of the trace: those
  // on a node that is partly held and has fewer free than the job needs of one node.
  [[nodiscard]] double gpus_fragmented() const;

  // What is still held ends at `now`. Call once, at the end.
  [[nodiscard]] Allocations Finish(TimePoint now);

 private:
  struct Open {
    TimePoint since{};
    Slices slices;
  };
  struct Node {
    std::vector<std::uint16_t> holders;  // by GPU
    int free = 0;
  };

  void Begin(JobId job, TimePoint now, const Slices& slices);
  void End(JobId job, TimePoint now);
  void Count(const Slices& slices, int change);
  [[nodiscard]] std::int64_t Fragmented(const Node& node) const;
  void Record(JobId job, const Slice& slice, TimePoint start, TimePoint end);

  Allocations allocations_;
  std::size_t holdings_max_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> jobs_above_;  // by GPUs up to the largest node: jobs that need more
  std::int64_t jobs_ = 0;
  std::map<JobId, Open> open_;
  std::int64_t fragmented_ = 0;  // GPUs times jobs, over all nodes
};

}  // namespace trainyard::results
