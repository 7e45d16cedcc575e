// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness (NSDI'11): GPUs go, job by job, to the user whose largest share of any
// resource is the smallest so far. `by=job` sorts the jobs themselves by that share of their own
// demand, once and for all, as Synergy's simulator does.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policy/policies.h"
#include "policy/starvation_guard.h"
#include "trainyard/state.h"

namespace trainyard {
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

// Whose turn it is, while jobs are handed out one by one.
class Turns {
 public:
  explicit Turns(const Snapshot& snapshot) : left_(snapshot.gpus_up) {
    std::vector<JobView> jobs;
    for (const JobId job : snapshot.jobs->live()) {
      jobs.push_back(snapshot.jobs->at(job));
    }
    std::sort(jobs.begin(), jobs.end(),
              [](const JobView& a, const JobView& b) { return a.arrival < b.arrival; });
    for (const JobView& job : jobs) {
      Add(job);
    }
  }

  void HandOut(std::vector<double>& before) {
    std::set<std::pair<double, std::size_t>> by_share;
    for (std::size_t i = 0; i < users_.size(); ++i) {
      by_share.emplace(0, i);
    }
    while (!by_share.empty()) {
      const auto [share, number] = *by_share.begin();
      by_share.erase(by_share.begin());
      User& user = users_[number];
      const Asked& job = user.jobs[user.next++];
      if (before.size() <= Index(job.id)) {
        before.resize(std::max(before.size() * 2, Index(job.id) + 1));
      }
      before[Index(job.id)] = share;
      if (job.gpus <= left_) {
        left_ -= job.gpus;
        user.holds += job.shares;
      }
      if (user.next < user.jobs.size()) {
        by_share.emplace(user.holds.dominant(), number);
      }
    }
  }

 private:
  struct Asked {
    JobId id{};
    int gpus = 0;
    ResourceShares shares{};
  };
  struct User {
    std::vector<Asked> jobs;
    std::size_t next = 0;
    ResourceShares holds{};
  };

  // A job without a user is a user of its own.
  void Add(const JobView& job) {
    const std::string& user = job.spec->user;
    const auto [at, is_new] = numbers_.emplace(user, users_.size());
    if (is_new || user.empty()) {
      at->second = users_.size();
      users_.emplace_back();
    }
    users_[at->second].jobs.push_back({job.id, job.spec->gpus, job.shares});
  }

  std::int64_t left_;
  std::vector<User> users_;  // by first arrival
  std::map<std::string, std::size_t> numbers_;
};

class DominantResourceFairness final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "drf"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<SharesBefore>();
  }
  [[nodiscard]] OrderingTraits traits() const override { return {.moves = kAlways}; }
  void BeginDecision(const Snapshot& snapshot, Memory* memory) const override {
    Turns(snapshot).HandOut(static_cast<SharesBefore&>(*memory).before);
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* memory) const override {
    const std::vector<double>& before = static_cast<const SharesBefore*>(memory)->before;
    // It stays as long as the lease of Themis.
    return {.key = {Index(job.id) < before.size() ? before[Index(job.id)] : 0},
            .stay = FromSeconds(600)};
  }
};

Result<Components> MakeDrf(const Options& options, const ComponentContext& /*context*/) {
  std::unique_ptr<Ordering> ordering;
  if (options.Text("by") == "job") {
    ordering = std::make_unique<SmallestDemand>();
  } else {
    ordering = std::make_unique<DominantResourceFairness>();
  }
  return Components{.ordering = Guarded(std::move(ordering), options)};
}

}  // namespace

ComponentEntry DrfEntry() {
  return {ComponentKind::kPolicy, "drf", "dominant resource fairness between users", kDrfOptions,
          MakeDrf};
}

}  // namespace trainyard
