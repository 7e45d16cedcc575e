// SPDX-License-Identifier: Apache-2.0
#include "policies/muri/grouping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "profile/execution_model.h"
#include "profile/interleave.h"
#include "solver/matching.h"

namespace trainyard::policies {
namespace {

using Members = std::vector<const RankedJob*>;
using StageProfile = std::vector<double>;

const StageTimes& StagesOf(const RankedJob& job) { return *job.spec->traits->stages; }

// Jobs of one size and number of stages, in order of priority: only they are grouped.
struct Bucket {
  int gpus = 0;
  std::size_t stages = 0;  // 0: stay alone
  std::vector<Members> groups;
};

// Equal groups are one type: those with the same stage profiles.
using GroupType = std::vector<StageProfile>;  // sorted

GroupType TypeOf(const Members& group) {
  GroupType type;
  for (const RankedJob* const job : group) {
    type.push_back(StagesOf(*job).stages);
  }
  std::sort(type.begin(), type.end());
  return type;
}

// Seconds of an iteration of a group.
class GroupPaces {
 public:
  explicit GroupPaces(const Snapshot& snapshot) : rates_(*snapshot.rates) {}

  [[nodiscard]] double Alone(const RankedJob& job) const {
    return rates_.ThroughputUnder(*job.spec, {.gpus = job.spec->gpus}, {}).seconds_per_unit;
  }
  [[nodiscard]] double Of(const Members& group) const {
    std::vector<const JobSpec*> specs;
    specs.reserve(group.size());
    for (const RankedJob* const job : group) {
      specs.push_back(job->spec);
    }
    return rates_
        .ThroughputUnder(*specs.front(),
                         {.gpus = specs.front()->gpus, .sharing = Sharing::kInterleaved},
                         {.group = specs})
        .seconds_per_unit;
  }

 private:
  const ExecutionModel& rates_;
};

bool RunTogether(const Members& a, const Members& b) {
  const auto group_of = [](const RankedJob* job) {
    return job->grant == nullptr || job->grant->group.empty() ? std::optional<JobId>()
                                                              : job->grant->group.front();
  };
  const std::optional<JobId> group = group_of(a.front());
  const auto in_it = [&](const RankedJob* job) { return group_of(job) == group; };
  return group && std::all_of(a.begin(), a.end(), in_it) && std::all_of(b.begin(), b.end(), in_it);
}

// ------------------------------------------------------------------------------------- a matching

constexpr std::size_t kUnpaired = static_cast<std::size_t>(-1);

// The pairs of one round in one bucket, by position among its groups.
class Pairing {
 public:
  Pairing(const std::vector<Members>& groups, const GroupingRules& rules, const GroupPaces& paces,
          std::size_t largest, solver::MatchingMemo& memo)
      : groups_(groups), mates_(groups.size(), kUnpaired) {
    FindTypes();
    const std::vector<solver::TypePairs>& found = memo.Match(counts_, Weights(paces, largest));
    left_.assign(counts_.size(), std::vector<std::int64_t>(counts_.size(), 0));
    for (const solver::TypePairs& pairs : found) {
      left_[pairs.a][pairs.b] = pairs.pairs;
      left_[pairs.b][pairs.a] = pairs.pairs;
    }
    if (rules.keep) {
      PairRunningTogether();
    }
    PairEquals();
    PairRemaining();
  }

  // The group that `group` is merged with; kUnpaired: none.
  [[nodiscard]] std::size_t mate(std::size_t group) const { return mates_[group]; }

 private:
  void FindTypes() {
    std::map<GroupType, std::vector<std::size_t>> known;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      known[TypeOf(groups_[i])].push_back(i);
    }
    types_.resize(groups_.size());
    for (auto& [type, positions] : known) {
      for (const std::size_t i : positions) {
        types_[i] = positions_.size();
      }
      counts_.push_back(static_cast<std::int64_t>(positions.size()));
      positions_.push_back(std::move(positions));
    }
  }

  // The utilization of the resources if two groups of these types become one.
  [[nodiscard]] std::vector<std::vector<double>> Weights(const GroupPaces& paces,
                                                         std::size_t largest) const {
    std::vector<std::vector<double>> weights(counts_.size(),
                                             std::vector<double>(counts_.size(), 0));
    for (std::size_t a = 0; a < counts_.size(); ++a) {
      for (std::size_t b = a; b < counts_.size(); ++b) {
        Members both = groups_[positions_[a].front()];
        const Members& more = groups_[positions_[b].front()];
        both.insert(both.end(), more.begin(), more.end());
        if (both.size() <= largest) {
          weights[a][b] = weights[b][a] = Utilization(both, paces);
        }
      }
    }
    return weights;
  }

  // Stage time per time: the sum over the resources of the share of time for which each is used.
  // (Muri divides it by the number of resources, which changes no matching.)
  static double Utilization(const Members& group, const GroupPaces& paces) {
    double used = 0;
    for (const RankedJob* const job : group) {
      const std::vector<double>& stages = StagesOf(*job).stages;
      used += std::accumulate(stages.begin(), stages.end(), 0.0);
    }
    return used / paces.Of(group);
  }

  void Pair(std::size_t a, std::size_t b) {
    mates_[a] = b;
    mates_[b] = a;
    --left_[types_[a]][types_[b]];
    if (types_[a] != types_[b]) {
      --left_[types_[b]][types_[a]];
    }
  }

  void PairRunningTogether() {
    std::map<JobId, std::vector<std::size_t>> running_groups;  // by the first of the group
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Grant* const grant = groups_[i].front()->grant;
      if (grant != nullptr && !grant->group.empty()) {
        running_groups[grant->group.front()].push_back(i);
      }
    }
    for (const auto& [first, group] : running_groups) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        for (std::size_t j = i + 1; j < group.size(); ++j) {
          const std::size_t a = group[i];
          const std::size_t b = group[j];
          if (mates_[a] == kUnpaired && mates_[b] == kUnpaired && left_[types_[a]][types_[b]] > 0 &&
              RunTogether(groups_[a], groups_[b])) {
            Pair(a, b);
          }
        }
      }
    }
  }

  // The first two of a type, the next two ...
  void PairEquals() {
    for (std::size_t type = 0; type < counts_.size(); ++type) {
      std::size_t last = kUnpaired;
      for (const std::size_t i : positions_[type]) {
        if (mates_[i] != kUnpaired || left_[type][type] == 0) {
          continue;
        }
        if (last == kUnpaired) {
          last = i;
        } else {
          Pair(last, i);
          last = kUnpaired;
        }
      }
    }
  }

  // Each in its turn with the first that the pairs of types allow. Whoever has a pair left finds
  // one: of each type at least as many are alone as there are pairs to make.
  void PairRemaining() {
    std::vector<std::size_t> next(counts_.size(), 0);  // by type: those before are paired
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (mates_[i] != kUnpaired) {
        continue;
      }
      std::size_t best = kUnpaired;
      for (std::size_t type = 0; type < counts_.size(); ++type) {
        if (left_[types_[i]][type] > 0) {
          best = std::min(best, NextAlone(type, i, next[type]));
        }
      }
      if (best != kUnpaired) {
        Pair(i, best);
      }
    }
  }

  [[nodiscard]] std::size_t NextAlone(std::size_t type, std::size_t after,
                                      std::size_t& next) const {
    const std::vector<std::size_t>& of_type = positions_[type];
    while (next < of_type.size() &&
           (of_type[next] <= after || mates_[of_type[next]] != kUnpaired)) {
      ++next;
    }
    return next < of_type.size() ? of_type[next] : kUnpaired;
  }

  const std::vector<Members>& groups_;
  std::vector<std::size_t> types_;                   // by group
  std::vector<std::vector<std::size_t>> positions_;  // by type, ascending
  std::vector<std::int64_t> counts_;                 // by type
  std::vector<std::vector<std::int64_t>> left_;      // by two types: pairs still to be made
  std::vector<std::size_t> mates_;
};

// ----------------------------------------------------------------------------------- all together

class Grouper {
 public:
  Grouper(const GroupingRules& rules, const Snapshot& snapshot, std::span<const RankedJob> jobs,
          NodeRoom room, solver::MatchingMemo& memo)
      : rules_(rules),
        jobs_(jobs),
        paces_(snapshot),
        room_(std::move(room)),
        gpus_(room_.free()),
        memo_(memo) {}

  std::vector<JobGroup> Groups() {
    ChooseCandidates();
    if (rules_.matched) {
      for (std::size_t round = 0; round < rules_.largest; ++round) {
        MatchOnce();
        if (asked_ <= gpus_) {
          break;
        }
      }
    } else {
      GroupNeighbours();
    }
    return Fitting(Split());
  }

 private:
  // As many jobs of a size for each place as can share it: a job that fits and those that follow
  // it in its bucket.
  void ChooseCandidates() {
    // By GPUs, stages and accepted types.
    std::map<std::tuple<int, std::size_t, std::vector<std::string>>, std::size_t> bucket_of;
    std::vector<std::vector<std::size_t>> waiting;  // by bucket: positions in the order
    std::vector<std::size_t> buckets(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const JobSpec& job = *jobs_[i].spec;
      const std::size_t stages = StagesToShareBy(jobs_[i]);
      const auto [place, is_new] = bucket_of.try_emplace(
          {job.gpus, stages, job.traits ? job.traits->gpu_types : std::vector<std::string>()},
          buckets_.size());
      if (is_new) {
        buckets_.push_back({.gpus = job.gpus, .stages = stages, .groups = {}});
        waiting.emplace_back();
      }
      buckets[i] = place->second;
      waiting[buckets[i]].push_back(i);
    }
    NodeRoom room = room_;
    std::vector<bool> chosen(jobs_.size(), false);
    std::vector<std::size_t> next(buckets_.size(), 0);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Bucket& bucket = buckets_[buckets[i]];
      if (chosen[i]) {
        continue;
      }
      if (bucket.gpus > gpus_ || !room.Add(bucket.gpus)) {
        if (rules_.strict) {
          break;
        }
        continue;
      }
      std::size_t& at = next[buckets[i]];
      for (std::size_t n = 0; n < LargestIn(bucket) && at < waiting[buckets[i]].size(); ++n, ++at) {
        const std::size_t job = waiting[buckets[i]][at];
        chosen[job] = true;
        bucket.groups.push_back({&jobs_[job]});
        asked_ += bucket.gpus;
      }
    }
  }

  // How many stages the job has; 0: it states none, or asks for more than GPUs, and runs alone.
  [[nodiscard]] static std::size_t StagesToShareBy(const RankedJob& job) {
    const bool asks = job.spec->traits && job.spec->traits->request;
    return profile::StatesStages(*job.spec) && !asks ? StagesOf(job).stages.size() : 0;
  }

  [[nodiscard]] std::size_t LargestIn(const Bucket& bucket) const {
    if (bucket.stages == 0) {
      return 1;
    }
    return std::min(rules_.largest, bucket.stages == 3 ? profile::kMostInterleaved : bucket.stages);
  }

  // Pairs become groups as long as not everybody fits; the rest stay as they are.
  void MatchOnce() {
    for (Bucket& bucket : buckets_) {
      const std::size_t largest = LargestIn(bucket);
      if (largest == 1) {
        continue;
      }
      const Pairing pairs(bucket.groups, rules_, paces_, largest, memo_);
      std::vector<Members> merged;
      for (std::size_t i = 0; i < bucket.groups.size(); ++i) {
        const std::size_t mate = pairs.mate(i);
        if (mate == kUnpaired) {
          merged.push_back(std::move(bucket.groups[i]));
        } else if (mate < i) {
          Merge(bucket, mate, i, merged);
        }
      }
      bucket.groups = std::move(merged);
    }
  }

  void Merge(Bucket& bucket, std::size_t first, std::size_t second, std::vector<Members>& merged) {
    Members& group = bucket.groups[first];
    Members& more = bucket.groups[second];
    if (asked_ <= gpus_) {
      merged.push_back(std::move(group));
      merged.push_back(std::move(more));
      return;
    }
    group.insert(group.end(), more.begin(), more.end());
    asked_ -= bucket.gpus;
    merged.push_back(std::move(group));
  }

  // Runs of jobs next to one another, without looking at their stages.
  void GroupNeighbours() {
    for (Bucket& bucket : buckets_) {
      const std::size_t largest = LargestIn(bucket);
      std::vector<Members> merged;
      for (std::size_t i = 0; i < bucket.groups.size(); i += largest) {
        Members group = std::move(bucket.groups[i]);
        const std::size_t end = std::min(bucket.groups.size(), i + largest);
        for (std::size_t j = i + 1; j < end; ++j) {
          if (asked_ > gpus_) {
            group.push_back(bucket.groups[j].front());
            asked_ -= bucket.gpus;
          } else {
            merged.push_back(std::move(bucket.groups[j]));
          }
        }
        merged.push_back(std::move(group));
      }
      bucket.groups = std::move(merged);
    }
  }

  [[nodiscard]] std::vector<JobGroup> Split() const {
    std::vector<JobGroup> groups;
    for (const Bucket& bucket : buckets_) {
      for (const Members& members : bucket.groups) {
        if (members.size() > 1 && rules_.split && IsSlowerThanOneByOne(members)) {
          for (const RankedJob* const job : members) {
            groups.push_back({.members = {job}, .rank = job->rank});
          }
          continue;
        }
        const auto first = std::min_element(
            members.begin(), members.end(),
            [](const RankedJob* a, const RankedJob* b) { return a->rank < b->rank; });
        groups.push_back({.members = members, .rank = (*first)->rank});
      }
    }
    return groups;
  }

  [[nodiscard]] bool IsSlowerThanOneByOne(const Members& group) const {
    double one_by_one = 0;
    for (const RankedJob* const job : group) {
      one_by_one += paces_.Alone(*job);
    }
    double together = paces_.Of(group);
    if (rules_.judge_by_best) {
      std::vector<const StageTimes*> stages;
      for (const RankedJob* const job : group) {
        stages.push_back(&StagesOf(*job));
      }
      together *= profile::Interleave(stages, profile::StageOrder::kBest).seconds /
                  profile::Interleave(stages, profile::StageOrder::kWorst).seconds;
    }
    return together > one_by_one;
  }

  [[nodiscard]] std::vector<JobGroup> Fitting(std::vector<JobGroup> groups) const {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const JobGroup& a, const JobGroup& b) { return a.rank < b.rank; });
    NodeRoom room = room_;
    bool stopped = false;
    std::erase_if(groups, [&](const JobGroup& group) {
      const bool fits = !stopped && room.Add(group.gpus());
      stopped = stopped || (rules_.strict && !fits);
      return !fits;
    });
    return groups;
  }

  const GroupingRules& rules_;
  const std::span<const RankedJob> jobs_;
  const GroupPaces paces_;
  const NodeRoom room_;
  const std::int64_t gpus_;  // free ones, before anybody has taken any
  solver::MatchingMemo& memo_;
  std::vector<Bucket> buckets_;
  std::int64_t asked_ = 0;  // GPUs, by all groups together
};

}  // namespace

std::vector<JobGroup> GroupJobs(const GroupingRules& rules, const Snapshot& snapshot,
                                std::span<const RankedJob> jobs, NodeRoom room,
                                solver::MatchingMemo& memo) {
  return Grouper(rules, snapshot, jobs, std::move(room), memo).Groups();
}

}  // namespace trainyard::policies
