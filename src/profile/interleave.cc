// SPDX-License-Identifier: Apache-2.0
#include "profile/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace trainyard::profile {
namespace {

using Positions = std::array<std::uint8_t, kMostInterleaved>;

constexpr std::size_t kCycle = 4;  // phases of an iteration with three stages
constexpr double kSteady = 1e-3;   // relative: two cycles that differ by less are equal
constexpr std::size_t kTwoCycles = 2 * kCycle;

bool NearlyEqual(double a, double b) {
  return std::abs(a - b) <= kSteady * std::max(std::abs(a), std::abs(b));
}

// Three stages in four phases. The end of a phase is when what it must wait for is done: the
// network stage of one position, the GPU stage of the next, and the loading that the one after
// began two phases ago. As in Muri's simulator, nothing makes a phase end after the one before it.
class LoadingOverTwoPhases {
 public:
  LoadingOverTwoPhases(std::span<const StageTimes* const> group, const Positions& positions) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      at_[positions[i]] = group[i]->stages.data();
    }
  }

  [[nodiscard]] double Seconds() const {
    std::array<double, kTwoCycles + 1> end{};
    for (std::size_t i = 0; i < kTwoCycles; ++i) {
      const double before = i > 0 ? end[i - 1] : 0;
      end[i + 1] = std::max({0.0, After(end[i], i + 1, kNetwork), After(end[i], i + 2, kGpu),
                             i > 0 ? After(before, i + 3, kLoading) : 0.0});
      if (i >= kCycle && NearlyEqual(end[i + 1] - end[i - 3], end[i] - end[i - kCycle])) {
        return end[i + 1] - end[i - 3];
      }
    }
    return end[kTwoCycles] - end[kCycle];
  }

 private:
  enum Stage : std::size_t { kLoading, kGpu, kNetwork };

  // When the stage of the job at a position is over, if it starts at `from`; 0: there is no job.
  [[nodiscard]] double After(double from, std::size_t position, Stage stage) const {
    const double* const stages = at_[position % kCycle];
    return stages == nullptr ? 0 : from + stages[stage];
  }

  std::array<const double*, kCycle> at_{};
};

// As many phases as stages: in each of them every member is at another stage, and the longest
// counts.
double OnePhaseEach(std::span<const StageTimes* const> group, const Positions& positions) {
  const std::size_t phases = group.front()->stages.size();
  double sum = 0;
  for (std::size_t phase = 0; phase < phases; ++phase) {
    double longest = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      longest = std::max(longest, group[i]->stages[(phase + phases - positions[i]) % phases]);
    }
    sum += longest;
  }
  return sum;
}

// Two jobs half a cycle apart: one loads while the other computes and communicates.
double HalfACycleApart(const StageTimes& a, const StageTimes& b) {
  return std::max(a.stages[0], b.stages[1] + b.stages[2]) +
         std::max(b.stages[0], a.stages[1] + a.stages[2]);
}

class Search {
 public:
  explicit Search(StageOrder order) : order_(order) {}

  void Try(double seconds, const Positions& positions) {
    const bool better =
        order_ == StageOrder::kBest ? seconds < found_.seconds : seconds > found_.seconds;
    if (first_ || better) {
      found_ = {.seconds = seconds, .positions = positions};
    }
    first_ = false;
  }
  [[nodiscard]] const Interleaving& found() const { return found_; }

 private:
  StageOrder order_;
  bool first_ = true;
  Interleaving found_;
};

}  // namespace

Interleaving Interleave(std::span<const StageTimes* const> group, StageOrder order,
                        bool long_loading) {
  const std::size_t stages = group.front()->stages.size();
  const bool two_phases = long_loading && stages == 3;
  CHECK(group.size() >= 2 && group.size() <= kMostInterleaved);
  CHECK(group.size() <= (two_phases ? kCycle : stages));
  CHECK(std::all_of(group.begin(), group.end(),
                    [stages](const StageTimes* job) { return job->stages.size() == stages; }));
  Search search(order);
  Positions members{};  // members[m] is who is at position m
  std::iota(members.begin(), members.end(), std::uint8_t{0});
  const auto end = members.begin() + static_cast<std::ptrdiff_t>(group.size());
  do {
    Positions positions{};
    for (std::size_t m = 0; m < group.size(); ++m) {
      positions[members[m]] = static_cast<std::uint8_t>(m);
    }
    search.Try(two_phases ? LoadingOverTwoPhases(group, positions).Seconds()
                          : OnePhaseEach(group, positions),
               positions);
  } while (std::next_permutation(members.begin(), end));
  if (two_phases && group.size() == 2) {
    search.Try(HalfACycleApart(*group[0], *group[1]), {0, 2});
  }
  return search.found();
}

std::uint32_t GroupTimes::ProfileOf(const StageTimes& job) {
  const auto next = static_cast<std::uint32_t>(profiles_.size());
  return profiles_.try_emplace(job.stages, next).first->second;
}

double GroupTimes::Of(std::span<const StageTimes* const> group) {
  if (group.size() == 1) {
    return group.front()->iteration * rules_.slowdown[0];
  }
  CHECK(group.size() <= kMostInterleaved);
  Profiles profiles{};
  profiles.fill(static_cast<std::uint32_t>(-1));
  std::transform(group.begin(), group.end(), profiles.begin(),
                 [this](const StageTimes* job) { return ProfileOf(*job); });
  std::sort(profiles.begin(), profiles.end());
  const auto known = seconds_.find(profiles);
  if (known != seconds_.end()) {
    return known->second;
  }
  const double seconds = Interleave(group, rules_.order, rules_.long_loading).seconds *
                         rules_.slowdown[group.size() - 1];
  seconds_.emplace(profiles, seconds);
  return seconds;
}

}  // namespace trainyard::profile
