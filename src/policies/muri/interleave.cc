// SPDX-License-Identifier: Apache-2.0
#include "policies/muri/interleave.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/try.h"
#include "policies/policies.h"
#include "profile/interleave.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

// In the order of their stages, from one on that holds GPUs, so that the group may stay there. A
// group that runs keeps its order: nothing has changed for it.
std::vector<JobId> InStageOrder(const std::vector<const RankedJob*>& members) {
  std::vector<JobId> ids;
  ids.reserve(members.size());
  for (const RankedJob* const job : members) {
    ids.push_back(job->id);
  }
  if (const Grant* const held = members.front()->grant; held != nullptr) {
    const std::vector<JobId>& group = held->group;
    if (group.size() == ids.size() &&
        std::is_permutation(group.begin(), group.end(), ids.begin())) {
      return group;
    }
  }
  std::vector<const StageTimes*> stages;
  stages.reserve(members.size());
  for (const RankedJob* const job : members) {
    stages.push_back(&*job->spec->traits->stages);
  }
  const profile::Interleaving best = profile::Interleave(stages, profile::StageOrder::kBest);
  std::vector<std::pair<std::uint8_t, JobId>> at;  // there may be phases without anybody
  for (std::size_t i = 0; i < members.size(); ++i) {
    at.emplace_back(best.positions[i], members[i]->id);
  }
  std::sort(at.begin(), at.end());
  std::transform(at.begin(), at.end(), ids.begin(), [](const auto& one) { return one.second; });
  const auto holder = std::find_if(members.begin(), members.end(),
                                   [](const RankedJob* job) { return job->grant != nullptr; });
  if (holder != members.end()) {
    std::rotate(ids.begin(), std::find(ids.begin(), ids.end(), (*holder)->id), ids.end());
  }
  return ids;
}

Demand DemandOf(const JobGroup& group) {
  Demand demand{.job = group.members.front()->id, .gpus = group.gpus()};
  if (group.members.size() > 1) {
    const std::vector<JobId> ids = InStageOrder(group.members);
    demand.job = ids.front();
    demand.sharing = Sharing::kInterleaved;
    demand.partners.assign(ids.begin() + 1, ids.end());
  }
  return demand;
}

// The live jobs of the job's running group, in the order of their stages.
std::vector<JobId> RunningMembers(const RankedJob& job, std::span<const JobId> live) {
  std::vector<JobId> members;
  std::copy_if(job.grant->group.begin(), job.grant->group.end(), std::back_inserter(members),
               [&live](JobId id) { return std::binary_search(live.begin(), live.end(), id); });
  return members.empty() ? std::vector<JobId>{job.id} : members;
}

// The matchings of earlier decisions.
struct Matchings final : Memory {
  solver::MatchingMemo memo;
  // Not written: they only save work.
  void Serialize(StateStream& /*state*/) override {}
};

class InterleavedGroups final : public Grouping {
 public:
  explicit InterleavedGroups(const GroupingRules& rules) : rules_(rules) {}
  [[nodiscard]] std::string_view name() const override { return "interleave"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Matchings>();
  }

  [[nodiscard]] std::vector<Demand> Group(const Snapshot& snapshot, std::span<const RankedJob> jobs,
                                          const Walk& walk, Memory* memory) const override {
    solver::MatchingMemo& memo = static_cast<Matchings&>(*memory).memo;
    GroupingRules rules = rules_;
    rules.strict = walk.misfit == Misfit::kStop || walk.misfit == Misfit::kReserve;
    if (walk.preempt) {
      return GroupedDemands(rules, snapshot, jobs, NodeRoom(snapshot), memo);
    }
    NodeRoom room(snapshot);
    std::vector<Demand> demands = Running(jobs, room);
    std::vector<RankedJob> waiting;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(waiting),
                 [](const RankedJob& job) { return job.grant == nullptr; });
    for (Demand& demand : GroupedDemands(rules, snapshot, waiting, std::move(room), memo)) {
      demands.push_back(std::move(demand));
    }
    return demands;
  }

 private:
  // The groups that run, as they are, without the members that have ended.
  static std::vector<Demand> Running(std::span<const RankedJob> jobs, NodeRoom& room) {
    std::vector<JobId> live;
    for (const RankedJob& job : jobs) {
      if (job.grant != nullptr) {
        live.push_back(job.id);
      }
    }
    std::sort(live.begin(), live.end());
    std::vector<Demand> demands;
    for (const RankedJob& job : jobs) {
      if (job.grant == nullptr) {
        continue;
      }
      const std::vector<JobId> members = RunningMembers(job, live);
      if (members.front() != job.id) {
        continue;
      }
      room.Take(job.grant->slices);
      demands.push_back({.job = job.id, .gpus = job.grant->gpus});
      if (members.size() > 1) {
        demands.back().sharing = Sharing::kInterleaved;
        demands.back().partners.assign(members.begin() + 1, members.end());
      }
    }
    return demands;
  }

  const GroupingRules rules_;
};

Result<Components> MakeInterleave(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const GroupingRules rules, GroupingRulesOf(options, "grouping 'interleave'"));
  return Components{.grouping = std::make_unique<InterleavedGroups>(rules)};
}

}  // namespace

Result<GroupingRules> GroupingRulesOf(const Options& options, const std::string& owner) {
  const double size = options.Number("size");
  if (size < 1 || size > static_cast<double>(profile::kMostInterleaved) ||
      size != static_cast<double>(static_cast<int>(size))) {
    return InvalidArgument(owner + ": size is " + options.Text("size") + "; expected 1, 2, 3 or 4");
  }
  return GroupingRules{.largest = static_cast<std::size_t>(size),
                       .matched = options.Flag("match"),
                       .keep = options.Flag("keep"),
                       .split = options.Flag("split"),
                       .judge_by_best = options.Text("judge") == "best"};
}

std::vector<Demand> GroupedDemands(const GroupingRules& rules, const Snapshot& snapshot,
                                   std::span<const RankedJob> jobs, NodeRoom room,
                                   solver::MatchingMemo& memo) {
  std::vector<Demand> demands;
  for (const JobGroup& group : GroupJobs(rules, snapshot, jobs, std::move(room), memo)) {
    demands.push_back(DemandOf(group));
  }
  return demands;
}

ComponentEntry InterleaveEntry() {
  return {ComponentKind::kGrouping,
          "interleave",
          "Muri's groups: jobs of one size whose stages take turns on their GPUs",
          kInterleaveOptions,
          MakeInterleave,
          {},
          {},
          false,
          {.stages = true}};
}

}  // namespace trainyard::policies
