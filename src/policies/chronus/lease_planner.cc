// SPDX-License-Identifier: Apache-2.0
#include "policies/chronus/lease_planner.h"
#include "policies/chronus/lease_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace trainyard::policies {
namespace {

constexpr double kSame = 1e-9;

bool HasFirst(const Leases& leases) { return !leases.empty() && leases.front() == 0; }

// A plan without the integer program, and bounds that say how good it is.
class LeaseConstruction {
 public:
  explicit LeaseConstruction(const LeaseProblem& problem) : problem_(problem) {
    demands_.reserve(problem.jobs.size());
  }

  // With the tightest deadlines, or nothing if they do not fit together.
  std::optional<LeasePlan> WithTightest() {
    SetDeadlines(std::vector<int>(problem_.jobs.size(), 0));
    std::optional<LeasePlan> best = Best();
    if (best) {
      best->optimal = IsProven(*best);
    }
    return best;
  }

  // From the loosest deadlines, each in turn tightened as far as the others leave room.
  std::optional<LeasePlan> Tightened() {
    std::vector<int> deadlines;
    for (const LeaseJob& job : problem_.jobs) {
      deadlines.push_back(static_cast<int>(job.deadlines.size()) - 1);
    }
    SetDeadlines(deadlines);
    if (!Packs()) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < deadlines.size(); ++i) {
      const int loosest = deadlines[i];
      for (int d = 0; d < loosest; ++d) {
        SetDeadline(i, d);
        if (Packs()) {
          break;
        }
        SetDeadline(i, loosest);
      }
    }
    return Best();
  }

  // With these deadlines and, in the first lease, these jobs: the later leases by rule.
  std::optional<LeasePlan> Arrange(const std::vector<int>& deadlines,
                                   const std::vector<bool>& first) {
    SetDeadlines(deadlines);
    return WithFirst(first);
  }

 private:
  void SetDeadline(std::size_t i, int deadline) {
    deadlines_[i] = deadline;
    demands_[i].window = problem_.jobs[i].deadlines[static_cast<std::size_t>(deadline)].window;
  }

  [[nodiscard]] bool Packs() const {
    return PackLatestFirst(demands_, problem_.capacity).has_value() ||
           PackLeastSlackFirst(demands_, problem_.capacity).has_value();
  }

  // The better of the plans that the packing rules lead to.
  std::optional<LeasePlan> Best() {
    std::optional<LeasePlan> best;
    for (const auto pack : {PackLatestFirst, PackLeastSlackFirst}) {
      std::optional<LeasePlan> plan = From(pack(demands_, problem_.capacity));
      if (plan && (!best || plan->objective > best->objective + kSame)) {
        best = std::move(plan);
      }
    }
    return best;
  }

  void SetDeadlines(const std::vector<int>& deadlines) {
    deadlines_ = deadlines;
    demands_.clear();
    for (std::size_t i = 0; i < problem_.jobs.size(); ++i) {
      const LeaseJob& job = problem_.jobs[i];
      demands_.push_back({.gpus = job.gpus,
                          .need = job.need,
                          .window = job.deadlines[static_cast<std::size_t>(deadlines[i])].window});
    }
  }

  // A plan with the first lease of the packing, or one that is filled as far as possible.
  std::optional<LeasePlan> From(std::optional<std::vector<Leases>> packed) {
    if (!packed) {
      return std::nullopt;
    }
    std::optional<LeasePlan> plan =
        WithFirst(problem_.fill_first ? EarliestFirst() : FirstOf(*packed));
    return plan ? std::move(plan) : Finish(std::move(*packed));
  }

  [[nodiscard]] static std::vector<bool> FirstOf(const std::vector<Leases>& packed) {
    std::vector<bool> first(packed.size());
    std::transform(packed.begin(), packed.end(), first.begin(), HasFirst);
    return first;
  }

  // The most GPUs that fit into the first lease: of jobs that must have it, then in order of
  // deadlines.
  [[nodiscard]] std::vector<bool> EarliestFirst() const {
    std::vector<bool> first(demands_.size());
    int free = problem_.capacity.front();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < demands_.size(); ++i) {
      if (demands_[i].need >= demands_[i].window) {
        first[i] = true;
        free -= demands_[i].gpus;
      } else {
        order.push_back(i);
      }
    }
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return demands_[a].window < demands_[b].window;
    });
    for (const std::size_t i : BestFill(order, free)) {
      first[i] = true;
    }
    return first;
  }

  // The jobs that fill `free` GPUs best: the first ones that fit, if no others fill more.
  [[nodiscard]] std::vector<std::size_t> BestFill(const std::vector<std::size_t>& order,
                                                  int free) const {
    std::vector<std::size_t> fitting;
    int left = free;
    for (const std::size_t i : order) {
      if (demands_[i].gpus <= left) {
        left -= demands_[i].gpus;
        fitting.push_back(i);
      }
    }
    if (left <= 0 || fitting.size() == order.size()) {
      return fitting;
    }
    std::vector<std::size_t> exact = ExactFill(order, free);
    int filled = 0;
    for (const std::size_t i : exact) {
      filled += demands_[i].gpus;
    }
    return filled > free - left ? exact : fitting;
  }

  // The largest sum of GPUs that fits, as a knapsack; the earlier jobs of equal sums.
  [[nodiscard]] std::vector<std::size_t> ExactFill(const std::vector<std::size_t>& order,
                                                   int free) const {
    constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
    // By sum: the last job that reached it first; sums without a job are not reached.
    std::vector<std::size_t> last(static_cast<std::size_t>(free) + 1, kNobody);
    for (const std::size_t i : order) {
      const auto gpus = static_cast<std::size_t>(demands_[i].gpus);
      for (std::size_t sum = last.size() - 1; sum >= gpus; --sum) {
        if (last[sum] == kNobody && (sum == gpus || last[sum - gpus] != kNobody)) {
          last[sum] = i;
        }
      }
    }
    std::vector<std::size_t> chosen;
    std::size_t sum = last.size() - 1;
    while (sum > 0 && last[sum] == kNobody) {
      --sum;
    }
    for (; sum > 0; sum -= static_cast<std::size_t>(demands_[chosen.back()].gpus)) {
      chosen.push_back(last[sum]);
    }
    return chosen;
  }

  // `first` get the first lease; the others are arranged by rule, if they can be.
  std::optional<LeasePlan> WithFirst(const std::vector<bool>& first) {
    int used = 0;
    std::vector<LeaseDemand> rest = demands_;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      used += first[i] ? rest[i].gpus : 0;
      rest[i].need -= first[i] ? 1 : 0;
      --rest[i].window;
    }
    if (used > problem_.capacity.front()) {
      return std::nullopt;
    }
    LeaseCapacity later(problem_.capacity.begin() + (problem_.capacity.size() > 1 ? 1 : 0),
                        problem_.capacity.end());
    std::optional<std::vector<Leases>> packed = PackEvenly(rest, later);
    packed = packed ? std::move(packed) : PackLatestFirst(rest, later);
    packed = packed ? std::move(packed) : PackLeastSlackFirst(rest, later);
    if (!packed) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < packed->size(); ++i) {
      Leases& leases = (*packed)[i];
      std::transform(leases.begin(), leases.end(), leases.begin(), [](int l) { return l + 1; });
      if (first[i]) {
        leases.insert(leases.begin(), 0);
      }
    }
    return Finish(std::move(*packed));
  }

  [[nodiscard]] int MostCapacity() const {
    return *std::max_element(problem_.capacity.begin(), problem_.capacity.end());
  }

  [[nodiscard]] LeasePlan Finish(std::vector<Leases> packed) const {
    LeasePlan plan;
    int first = 0;
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const LeaseJob& job = problem_.jobs[i];
      plan.objective += job.deadlines[static_cast<std::size_t>(deadlines_[i])].value;
      first += HasFirst(packed[i]) ? job.gpus : 0;
      plan.jobs.push_back({.deadline = deadlines_[i], .leases = std::move(packed[i])});
    }
    plan.objective += (problem_.fill_first ? 1.0 : -1.0) * first / std::max(1, MostCapacity());
    return plan;
  }

  // No other plan has a better first lease, or not by as much as a looser deadline costs.
  [[nodiscard]] bool IsProven(const LeasePlan& plan) const {
    int first = 0;
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
      first += HasFirst(plan.jobs[i].leases) ? problem_.jobs[i].gpus : 0;
    }
    if (problem_.fill_first) {
      return first >= MostInFirst();
    }
    return first <= LeastInFirst() && first <= LeastLoss() * MostCapacity() + kSame;
  }

  [[nodiscard]] int MostInFirst() const {
    std::vector<std::size_t> all(demands_.size());
    std::iota(all.begin(), all.end(), 0);
    int most = 0;
    for (const std::size_t i : BestFill(all, problem_.capacity.front())) {
      most += demands_[i].gpus;
    }
    return most;
  }

  // What the later leases cannot hold: by the end of lease w, a job has used all that it needs but
  // what lies between w and its deadline. A sum of slopes, summed up twice.
  [[nodiscard]] int LeastInFirst() const {
    const int horizon = std::max(1, Horizon(demands_));
    std::vector<std::int64_t> slope(static_cast<std::size_t>(horizon) + 2);
    for (const LeaseDemand& demand : demands_) {
      slope[static_cast<std::size_t>(demand.window - demand.need) + 1] += demand.gpus;
      slope[static_cast<std::size_t>(demand.window) + 1] -= demand.gpus;
    }
    std::int64_t least = 0;
    std::int64_t rise = 0;
    std::int64_t used = 0;
    std::int64_t later = 0;  // GPUs of leases 1 to w - 1
    for (int w = 1; w <= horizon; ++w) {
      rise += slope[static_cast<std::size_t>(w)];
      used += rise;
      least = std::max(least, used - later);
      const auto next = std::min(static_cast<std::size_t>(w), problem_.capacity.size() - 1);
      later += problem_.capacity[next];
    }
    return static_cast<int>(least);
  }

  // The least that a plan loses by a looser deadline.
  [[nodiscard]] double LeastLoss() const {
    double least = std::numeric_limits<double>::infinity();
    for (const LeaseJob& job : problem_.jobs) {
      for (std::size_t d = 1; d < job.deadlines.size(); ++d) {
        least = std::min(least, job.deadlines.front().value - job.deadlines[d].value);
      }
    }
    return least;
  }

  const LeaseProblem& problem_;
  std::vector<LeaseDemand> demands_;  // with the deadlines at hand
  std::vector<int> deadlines_;
};

// The fall-back: job by job, each as planned before or else at the tightest deadline that still
// fits, the latest leases first.
class GreedyPlan {
 public:
  explicit GreedyPlan(const LeaseProblem& problem)
      : problem_(problem), capacity_(problem.capacity) {
    plan_.jobs.resize(problem.jobs.size());
  }

  LeasePlan Make() {
    for (std::size_t i = 0; i < problem_.jobs.size(); ++i) {
      KeepKnown(i);
    }
    for (const std::size_t i : Order()) {
      for (std::size_t d = 0; d < problem_.jobs[i].deadlines.size(); ++d) {
        if (plan_.jobs[i].deadline < 0) {
          TryDeadline(i, d);
        }
      }
    }
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> Order() const {
    std::vector<std::size_t> order(problem_.jobs.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [this](std::size_t i) {
      const LeaseJob& job = problem_.jobs[i];
      const LeaseDeadline& tightest = job.deadlines.front();
      return std::tuple(-tightest.value, -job.gpus, tightest.window - job.need, -tightest.window);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }

  void KeepKnown(std::size_t i) {
    const LeaseJob& job = problem_.jobs[i];
    if (static_cast<int>(job.known.size()) == job.need &&
        std::all_of(job.known.begin(), job.known.end(),
                    [&](int lease) { return Free(lease) >= job.gpus; })) {
      Take(i, job.known_deadline, job.known);
    }
  }

  void TryDeadline(std::size_t i, std::size_t d) {
    const LeaseJob& job = problem_.jobs[i];
    const LeaseDemand demand{.gpus = job.gpus, .need = job.need, .window = job.deadlines[d].window};
    if (std::optional<std::vector<Leases>> packed = PackLatestFirst({&demand, 1}, capacity_)) {
      Take(i, static_cast<int>(d), std::move(packed->front()));
    }
  }

  void Take(std::size_t i, int deadline, Leases leases) {
    const LeaseJob& job = problem_.jobs[i];
    for (const int lease : leases) {
      Free(lease) -= job.gpus;
    }
    plan_.objective += job.deadlines[static_cast<std::size_t>(deadline)].value;
    plan_.jobs[i] = {.deadline = deadline, .leases = std::move(leases)};
  }

  // The last entry stands for all later leases and is never taken from.
  [[nodiscard]] int& Free(int lease) {
    const std::size_t least = static_cast<std::size_t>(lease) + 2;
    if (capacity_.size() < least) {
      capacity_.resize(least, capacity_.back());
    }
    return capacity_[static_cast<std::size_t>(lease)];
  }

  const LeaseProblem& problem_;
  LeaseCapacity capacity_;
  LeasePlan plan_;
};

// The solver's choice of deadlines and of the first lease, the rest by rule if it can be had so.
LeasePlan Rearranged(LeaseConstruction& construction, LeasePlan solved) {
  std::vector<int> deadlines;
  std::vector<bool> first;
  for (const PlannedLeases& job : solved.jobs) {
    deadlines.push_back(job.deadline);
    first.push_back(HasFirst(job.leases));
  }
  if (std::optional<LeasePlan> plan = construction.Arrange(deadlines, first)) {
    solved.jobs = std::move(plan->jobs);
  }
  return solved;
}

}  // namespace

LeasePlan PlanLeases(const LeaseProblem& problem, const LeasePlannerOptions& options) {
  CHECK(!problem.capacity.empty());
  LeaseConstruction construction(problem);
  std::optional<LeasePlan> constructed = construction.WithTightest();
  if (!constructed) {
    constructed = construction.Tightened();
  }
  if (constructed && (constructed->optimal || options.solver != SolverUse::kImprove)) {
    return std::move(*constructed);
  }
  if (options.solver != SolverUse::kNever) {
    std::optional<LeasePlan> solved = SolveLeaseProgram(problem, options);
    if (solved && (!constructed || solved->objective > constructed->objective + kSame)) {
      return Rearranged(construction, std::move(*solved));
    }
    if (solved && constructed) {  // the program proves it, or knows no better
      constructed->optimal = solved->optimal;
      constructed->solved = true;
    }
  }
  return constructed ? std::move(*constructed) : GreedyPlan(problem).Make();
}

}  // namespace trainyard::policies
