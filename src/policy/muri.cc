// SPDX-License-Identifier: Apache-2.0
#include "policy/muri.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/try.h"
#include "policy/interleave.h"
#include "policy/remaining_time.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

struct MuriSettings {
  MuriRank rank{};
  bool declared = false;  // rank of a job that has never run
  GroupingRules grouping{};
};

struct LastGroups final : Memory {
  // All jobs, larger ones first: equal ranks keep this order, new jobs last.
  std::vector<JobId> jobs;
  MatchingMemo matchings;
  // Without the matchings, which only save work.
  void Serialize(StateStream& state) override { state(jobs); }
};

// The former order without those who have gone, then those who have come.
std::vector<JobId> Met(const std::vector<JobId>& former, std::span<const JobId> live) {
  std::vector<JobId> present(live.begin(), live.end());
  std::sort(present.begin(), present.end());
  std::vector<JobId> order;
  order.reserve(live.size());
  std::copy_if(former.begin(), former.end(), std::back_inserter(order), [&present](JobId job) {
    return std::binary_search(present.begin(), present.end(), job);
  });
  std::vector<JobId> known = order;
  std::sort(known.begin(), known.end());
  std::copy_if(live.begin(), live.end(), std::back_inserter(order), [&known](JobId job) {
    return !std::binary_search(known.begin(), known.end(), job);
  });
  return order;
}

class Muri final : public Policy {
 public:
  Muri(std::string_view name, const MuriSettings& settings) : name_(name), settings_(settings) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<LastGroups>();
  }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = settings_.rank == MuriRank::kRemaining}, .may = {.share = true}};
  }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    auto& last = static_cast<LastGroups&>(*memory);
    std::vector<RankedJob> jobs;
    for (const JobId id : Met(last.jobs, snapshot.jobs->live())) {
      const JobView view = snapshot.jobs->at(id);
      jobs.push_back({.id = id, .spec = view.spec, .grant = view.grant, .rank = RankOf(view)});
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const RankedJob& a, const RankedJob& b) { return a.rank < b.rank; });
    Proposal proposal;
    proposal.demands =
        GroupedDemands(settings_.grouping, snapshot, jobs, NodeRoom(snapshot), last.matchings);
    for (Demand& demand : proposal.demands) {
      demand.may_split = true;
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const RankedJob& a, const RankedJob& b) {
      return a.spec->gpus > b.spec->gpus;
    });
    last.jobs.clear();
    for (const RankedJob& job : jobs) {
      last.jobs.push_back(job.id);
    }
    return proposal;
  }

 private:
  [[nodiscard]] double RankOf(const JobView& job) const {
    if (settings_.rank == MuriRank::kAttained) {
      return job.stay_left > Duration{0} ? -1 : job.gpu_seconds;  // equal jobs take turns
    }
    const bool declared = settings_.declared && !job.started && job.spec->duration;
    const Duration left = declared ? *job.spec->duration : ComparedTimeLeft(job);
    return Seconds(left) * job.spec->gpus;
  }

  const std::string_view name_;
  const MuriSettings settings_;
};

}  // namespace

Result<Components> MakeMuri(std::string_view name, MuriRank rank, const Options& options) {
  ASSIGN_OR_RETURN(const GroupingRules rules,
                   GroupingRulesOf(options, "policy '" + std::string(name) + "'"));
  return Components{.policy = std::make_unique<Muri>(
                        name, MuriSettings{.rank = rank,
                                           .declared = options.Text("unstarted") == "declared",
                                           .grouping = rules})};
}

}  // namespace trainyard
