// SPDX-License-Identifier: Apache-2.0
// By which numbers people know the jobs of a live cluster, and dependencies name them. Submissions
// are counted from 1. After a copy of the controller's state has been put back they go on from a
// number that no controller has given (docs/operations.md): the gap has no jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/status.h"

namespace trainyard::model {

class JobNumbers {
 public:
  // Without a gap.
  [[nodiscard]] static const JobNumbers& Counted();
  // As ToText has written it.
  [[nodiscard]] static Result<JobNumbers> From(std::string_view text);
  // "1200:57031838421": job 1200 and those after it are counted from there. Empty: there is no gap.
  [[nodiscard]] std::string ToText() const;

  [[nodiscard]] std::uint64_t Of(JobId job) const;
  // The job of that number among the first `known` ones.
  [[nodiscard]] std::optional<JobId> Find(std::uint64_t number, std::size_t known) const;
  // `first` and the jobs after it are counted from `number`. False: it has been given already, and
  // nothing changes. REQUIRES: no job from `first` on has been told its number.
  [[nodiscard]] bool Continue(JobId first, std::uint64_t number);

 private:
  struct Block {
    JobId first{};
    std::uint64_t number = 1;  // of `first`
  };
  std::vector<Block> blocks_{Block{}};  // both rise
};

}  // namespace trainyard::model
