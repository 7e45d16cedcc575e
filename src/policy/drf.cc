// SPDX-License-Identifier: Apache-2.0
// Dominant resource fairness (NSDI'11): GPUs go, job by job, to the user whose largest share of any
// resource is the smallest so far. `by=job` sorts the jobs themselves by that share of their own
// demand, once and for all, as Synergy's simulator does.
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "policy/dominant_share.h"
#include "policy/keyed_jobs.h"
#include "policy/policies.h"
#include "policy/starvation_guard.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 3> kOptions{{
    {"by", OptionSpec::Kind::kChoice, "user",
     "user: the user with the least so far is served next; job: the smallest demand first",
     "user|job"},
    kNamesOption,
    kGuardOption,
}};

// Whose turn it is, while jobs are handed out one by one.
class Turns {
 public:
  Turns(const Snapshot& snapshot, const ClusterTotals& totals)
      : snapshot_(snapshot), totals_(totals) {}

  // In order of arrival within a user. A job without a user is a user of its own.
  void Add(const JobView& job) {
    const std::string& user = job.spec->user;
    const auto [at, is_new] = numbers_.emplace(user, users_.size());
    if (is_new || user.empty()) {
      at->second = users_.size();
      users_.emplace_back();
    }
    users_[at->second].jobs.push_back(job.id);
  }

  [[nodiscard]] std::vector<Demand> HandOut() {
    std::vector<Demand> demands;
    std::vector<Demand> misfits;
    std::set<std::pair<double, std::size_t>> by_share;
    for (std::size_t i = 0; i < users_.size(); ++i) {
      by_share.emplace(0, i);
    }
    std::int64_t left = snapshot_.gpus_up;
    while (!by_share.empty()) {
      const std::size_t number = by_share.begin()->second;
      by_share.erase(by_share.begin());
      User& user = users_[number];
      const JobSpec& job = snapshot_.jobs->spec(user.jobs[user.next]);
      const Demand demand{.job = user.jobs[user.next++], .gpus = job.gpus};
      if (job.gpus <= left) {
        left -= job.gpus;
        user.holds += totals_.SharesOf(job, *snapshot_.rates);
        demands.push_back(demand);
      } else {
        misfits.push_back(demand);
      }
      if (user.next < user.jobs.size()) {
        by_share.emplace(user.holds.dominant(), number);
      }
    }
    demands.insert(demands.end(), misfits.begin(), misfits.end());
    return demands;
  }

 private:
  struct User {
    std::vector<JobId> jobs;
    std::size_t next = 0;
    ResourceShares holds{};
  };

  const Snapshot& snapshot_;
  const ClusterTotals& totals_;
  std::vector<User> users_;  // by first arrival
  std::map<std::string, std::size_t> numbers_;
};

class DominantResourceFairness final : public Policy {
 public:
  explicit DominantResourceFairness(const Options& options)
      : by_job_(options.Text("by") == "job"),
        names_all_(options.Text(kNamesOption.key) == "all"),
        guard_(FromSeconds(options.Number(kGuardOption.key))) {}

  [[nodiscard]] std::string_view name() const override { return "drf"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<KeyedJobs>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    const ClusterTotals totals(*snapshot.cluster);
    const auto key = [&](const JobView& job) {
      return by_job_ ? totals.SharesOf(*job.spec, *snapshot.rates).dominant() : 0;
    };
    Proposal proposal{.demands =
                          DemandsByKey(snapshot, key, guard_, static_cast<KeyedJobs&>(*memory))};
    if (!by_job_) {
      Turns turns(snapshot, totals);
      for (const Demand& demand : proposal.demands) {
        turns.Add(snapshot.jobs->at(demand.job));
      }
      proposal.demands = turns.HandOut();
    }
    if (!names_all_) {
      proposal.demands = FittingByCount(std::move(proposal.demands), snapshot.gpus_up);
    }
    return proposal;
  }

 private:
  const bool by_job_;
  const bool names_all_;
  const Duration guard_;
};

Result<PolicyComponent> Make(const Options& options, const PolicyContext& /*context*/) {
  return PolicyComponent{.policy = std::make_unique<DominantResourceFairness>(options)};
}

}  // namespace

PolicyEntry DrfEntry() {
  return {"drf", "dominant resource fairness between users", kOptions, Make};
}

}  // namespace trainyard
