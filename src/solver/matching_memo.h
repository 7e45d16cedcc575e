// SPDX-License-Identifier: Apache-2.0
// Matchings that have been found before.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/matching.h"

namespace trainyard {

// Remembers questions and their answers: from one decision to the next most stay the same.
class MatchingMemo {
 public:
  // As MatchByType; valid until the next call.
  [[nodiscard]] const std::vector<TypePairs>& Match(
      const std::vector<std::int64_t>& counts, const std::vector<std::vector<double>>& weights);

 private:
  struct Answer {
    std::vector<std::int64_t> counts;
    std::vector<std::vector<double>> weights;
    std::vector<TypePairs> pairs;
  };
  std::vector<Answer> answers_;  // a ring
  std::size_t next_ = 0;
};

}  // namespace trainyard
