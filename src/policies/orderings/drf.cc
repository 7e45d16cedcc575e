// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness (NSDI'11): GPUs go, job by job, to the user whose largest share of any
// resource is the smallest so far. `by=job` sorts the jobs themselves by that share of their own
// demand, once and for all, as Synergy's simulator does.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 4> kDrfOptions{{
    {"by", OptionSpec::Kind::kChoice, "user",
     "user: the user with the least so far is served next; job: the smallest demand first",
     "user|job"},
    kGuardOption,
    kGuardAgainOption,
    kGuardLateOption,
}};

// The jobs themselves, by their own demand.
class SmallestDemand final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "drf"; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {job.shares.dominant()}};
  }
};

// By JobId: the dominant share that the job's user has before it.
struct SharesBefore final : Memory {
  std::vector<double> before;

  void Serialize(StateStream& state) override { state(before); }
};

// GPUs go job by job to the user with the smallest dominant share so far (DRF, NSDI'11,
// section 4.1).
class ProgressiveFilling {
 public:
  explicit ProgressiveFilling(const Snapshot& snapshot) : left_(snapshot.gpus_up) {
    jobs_.reserve(snapshot.jobs->live().size());
    for (const JobId id : snapshot.jobs->live()) {
      const JobView job = snapshot.jobs->at(id);
      jobs_.push_back({.id = id,
                       .arrival = job.arrival,
                       .gpus = job.spec->gpus,
                       .shares = job.shares,
                       .user = job.spec->user});
    }
    const auto earlier = [](const JobDemand& a, const JobDemand& b) {
      return a.arrival < b.arrival;
    };
    if (!std::is_sorted(jobs_.begin(), jobs_.end(), earlier)) {
      std::sort(jobs_.begin(), jobs_.end(), earlier);
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Add(i);
    }
  }

  void Fill(std::vector<double>& before) {
    // Users who have had their turn, the smallest share on top; the others hold nothing yet, and
    // come by their numbers.
    std::vector<Turn> turns;
    std::size_t untried = 0;
    while (untried < users_.size() || !turns.empty()) {
      Turn turn{0, untried};
      if (untried == users_.size() || (!turns.empty() && turns.front() < turn)) {
        std::pop_heap(turns.begin(), turns.end(), std::greater<>());
        turn = turns.back();
        turns.pop_back();
      } else {
        ++untried;
      }
      User& user = users_[turn.second];
      const JobDemand& job = jobs_[user.next];
      if (before.size() <= Index(job.id)) {
        before.resize(std::max(before.size() * 2, Index(job.id) + 1));
      }
      before[Index(job.id)] = turn.first;
      if (job.gpus <= left_) {
        left_ -= job.gpus;
        user.holds += job.shares;
      }
      user.next = job.next;
      if (user.next != kNone) {
        turns.emplace_back(user.holds.dominant(), turn.second);
        std::push_heap(turns.begin(), turns.end(), std::greater<>());
      }
    }
  }

 private:
  using Turn = std::pair<double, std::size_t>;  // dominant share, user
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct JobDemand {
    JobId id{};
    std::uint64_t arrival = 0;
    int gpus = 0;
    ResourceShares shares{};
    std::string_view user{};
    std::size_t next = kNone;  // of the same user
  };
  struct User {
    std::size_t next = kNone;  // job to be served
    std::size_t last = kNone;
    ResourceShares holds{};
  };

  // A job without a user is a user of its own.
  void Add(std::size_t job) {
    const std::string_view name = jobs_[job].user;
    if (!name.empty()) {
      const auto [at, is_new] = numbers_.emplace(name, users_.size());
      if (!is_new) {
        User& user = users_[at->second];
        jobs_[user.last].next = job;
        user.last = job;
        return;
      }
    }
    users_.push_back({.next = job, .last = job});
  }

  std::int64_t left_;
  std::vector<JobDemand> jobs_;  // by arrival
  std::vector<User> users_;      // by first arrival
  std::map<std::string_view, std::size_t> numbers_;
};

class DominantResourceFairness final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "drf"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<SharesBefore>();
  }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAlways, .moves_with_time = false};  // they follow from who is there
  }
  void BeginDecision(const Snapshot& snapshot, Memory* memory) const override {
    ProgressiveFilling(snapshot).Fill(static_cast<SharesBefore&>(*memory).before);
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* memory) const override {
    const std::vector<double>& before = static_cast<const SharesBefore*>(memory)->before;
    // It stays as long as the lease of Themis.
    return {.key = {Index(job.id) < before.size() ? before[Index(job.id)] : 0},
            .stay = FromSeconds(600)};
  }
};

Result<Components> MakeDrf(const Options& options, const ComponentContext& context) {
  return options.Text("by") == "job" ? MakeGuarded<SmallestDemand>(options, context)
                                     : MakeGuarded<DominantResourceFairness>(options, context);
}

}  // namespace

ComponentEntry DrfEntry() {
  return {ComponentKind::kPolicy, "drf", "dominant resource fairness between users", kDrfOptions,
          MakeDrf};
}

}  // namespace trainyard::policies
