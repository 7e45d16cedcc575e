// SPDX-License-Identifier: Apache-2.0
#include "solver/matching_memo.h"

#include <algorithm>
#include <utility>

namespace trainyard {

const std::vector<TypePairs>& MatchingMemo::Match(const std::vector<std::int64_t>& counts,
                                                  const std::vector<std::vector<double>>& weights) {
  constexpr std::size_t kMost = 32;
  const auto known = std::find_if(answers_.begin(), answers_.end(), [&](const Answer& answer) {
    return answer.counts == counts && answer.weights == weights;
  });
  if (known != answers_.end()) {
    return known->pairs;
  }
  Answer answer{.counts = counts, .weights = weights, .pairs = MatchByType(counts, weights)};
  if (answers_.size() < kMost) {
    answers_.push_back(std::move(answer));
    return answers_.back().pairs;
  }
  Answer& oldest = answers_[next_];
  next_ = (next_ + 1) % kMost;
  oldest = std::move(answer);
  return oldest.pairs;
}

}  // namespace trainyard
