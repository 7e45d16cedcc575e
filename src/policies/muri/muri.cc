// SPDX-License-Identifier: Apache-2.0
// Muri (SIGCOMM'22): jobs of one size are interleaved in groups whose stages use different
// resources at the same time. muri-s puts the jobs with the least service left first; muri-l, for
// jobs whose work is not known, those with the least attained service.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/try.h"
#include "model/job_order.h"
#include "policies/muri/interleave.h"
#include "policies/orderings/remaining_time.h"
#include "policies/policies.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 6> kMuriOptions{{
    kInterleaveOptions[0],
    kInterleaveOptions[1],
    kInterleaveOptions[2],
    kInterleaveOptions[3],
    kInterleaveOptions[4],
    {"unstarted", OptionSpec::Kind::kChoice, "left",
     "muri-s: a job that has never run is ranked by the work it has left, or by its declared "
     "duration",
     "left|declared"},
}};

enum class MuriRank : std::uint8_t {
  kRemaining,  // service that is left: time on the GPUs alone x GPUs
  kAttained,   // service so far
};

struct MuriSettings {
  MuriRank rank{};
  bool declared = false;  // rank of a job that has never run
  GroupingRules grouping{};
};

struct LastGroups final : Memory {
  // All jobs, larger ones first: equal ranks keep this order, new jobs last.
  std::vector<JobId> jobs;
  solver::MatchingMemo matchings;
  // Without the matchings, which only save work.
  void Serialize(StateStream& state) override { state(jobs); }
};

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
    for (const JobId id : model::InKeptOrder(last.jobs, snapshot.jobs->live())) {
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

template <MuriRank kRank>
Result<Components> MakeMuri(const Options& options, const ComponentContext& /*context*/) {
  const std::string_view name = kRank == MuriRank::kRemaining ? "muri-s" : "muri-l";
  ASSIGN_OR_RETURN(const GroupingRules rules,
                   GroupingRulesOf(options, "policy '" + std::string(name) + "'"));
  return Components{.policy = std::make_unique<Muri>(
                        name, MuriSettings{.rank = kRank,
                                           .declared = options.Text("unstarted") == "declared",
                                           .grouping = rules})};
}

}  // namespace

ComponentEntry MuriLEntry() {
  return {ComponentKind::kPolicy,
          "muri-l",
          "interleaved groups, the least attained service first",
          kMuriOptions,
          MakeMuri<MuriRank::kAttained>,
          {},
          {},
          false,
          {.stages = true}};
}

ComponentEntry MuriSEntry() {
  return {ComponentKind::kPolicy,
          "muri-s",
          "interleaved groups, the least remaining service first",
          kMuriOptions,
          MakeMuri<MuriRank::kRemaining>,
          {},
          {},
          false,
          {.stages = true}};
}

}  // namespace trainyard::policies
