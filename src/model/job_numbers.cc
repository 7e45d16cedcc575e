// SPDX-License-Identifier: Apache-2.0
#include "model/job_numbers.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace trainyard::model {

const JobNumbers& JobNumbers::Counted() {
  static const JobNumbers kCounted;
  return kCounted;
}

Result<JobNumbers> JobNumbers::From(std::string_view text) {
  JobNumbers numbers;
  for (const std::string_view part :
       text.empty() ? std::vector<std::string_view>() : base::Split(text, ",")) {
    const std::size_t colon = std::min(part.find(':'), part.size() - 1);
    const auto first = base::ToInteger<std::uint64_t>(part.substr(0, colon));
    const auto number = base::ToInteger<std::uint64_t>(part.substr(colon + 1));
    if (!first || !number || !numbers.Continue(JobAt(*first), *number)) {
      return BadInput("'" + std::string(text) +
                      "' says nothing of how jobs are numbered; expected JOB:NUMBER,...");
    }
  }
  return numbers;
}

std::string JobNumbers::ToText() const {
  std::string text;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (i > 0 || block.number != 1) {
      text += (text.empty() ? "" : ",") + std::to_string(Index(block.first)) + ":" +
              std::to_string(block.number);
    }
  }
  return text;
}

std::uint64_t JobNumbers::Of(JobId job) const {
  auto block = std::prev(blocks_.end());
  while (job < block->first) {
    --block;
  }
  return block->number + (Index(job) - Index(block->first));
}

std::optional<JobId> JobNumbers::Find(std::uint64_t number, std::size_t known) const {
  const auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), number,
                       [](std::uint64_t of, const Block& block) { return of < block.number; });
  if (after == blocks_.begin()) {
    return std::nullopt;
  }
  const std::uint64_t place = number - std::prev(after)->number;  // in its block
  const std::size_t begin = Index(std::prev(after)->first);
  const std::size_t end = after == blocks_.end() ? known : std::min(known, Index(after->first));
  return begin < end && place < end - begin ? std::optional(JobAt(begin + place)) : std::nullopt;
}

bool JobNumbers::Continue(JobId first, std::uint64_t number) {
  if (number < Of(first)) {
    return false;
  }
  std::erase_if(blocks_, [first](const Block& block) { return block.first >= first; });
  blocks_.push_back({.first = first, .number = number});
  return true;
}

}  // namespace trainyard::model
