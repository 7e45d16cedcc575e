// SPDX-License-Identifier: Apache-2.0
#include "faults/company_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace trainyard {
namespace {

constexpr std::size_t kKinds = 3;
constexpr int kMostOnAGpu = 2;
constexpr int kWorkersOfANode = 8;

// One job, or a pair that is interleaved.
struct Gang {
  JobId job{};
  std::optional<JobId> partner;
  int gpus = 0;
  Sharing sharing{};
  Slices slices;  // empty: no place yet
  bool running = true;
};

class Placing {
 public:
  explicit Placing(const Snapshot& snapshot)
      : snapshot_(snapshot), holders_(snapshot.cluster->nodes.size()) {
    for (std::size_t i = 0; i < holders_.size(); ++i) {
      holders_[i].resize(static_cast<std::size_t>(snapshot.cluster->nodes[i].gpus), 0);
    }
  }

  void Keep(Gang& gang) {
    const Grant& held = snapshot_.jobs->grant(gang.job);
    const bool same_pair =
        gang.sharing != Sharing::kInterleaved ||
        held.group == (gang.partner ? std::vector{gang.job, *gang.partner} : std::vector<JobId>());
    if (held.gpus == gang.gpus && held.sharing == gang.sharing && same_pair && held.running &&
        IsUp(held.slices)) {
      gang.slices = held.slices;
      Take(gang);
    }
  }
  // Free ones, or, for those who like company, those with one like them.
  void Place(Gang& gang) {
    if (gang.sharing == Sharing::kCollocated) {
      Choose(gang, 1);
    }
    Choose(gang, 0);
    if (Count(gang.slices) == gang.gpus) {
      return Take(gang);
    }
    const bool holds = gang.sharing == Sharing::kExclusive && !someone_holds_;
    if (!holds) {
      return gang.slices.clear();
    }
    someone_holds_ = true;
    gang.running = false;
    gang.gpus = Count(gang.slices);
    Take(gang);
  }

 private:
  [[nodiscard]] bool IsUp(const Slices& slices) const {
    return std::all_of(slices.begin(), slices.end(),
                       [this](const Slice& slice) { return snapshot_.up(slice.node); });
  }
  static int Count(const Slices& slices) {
    int count = 0;
    for (const Slice& slice : slices) {
      count += std::popcount(slice.gpus);
    }
    return count;
  }
  void Choose(Gang& gang, int holders) {
    for (std::size_t i = 0; i < holders_.size(); ++i) {
      std::uint64_t mask = 0;
      for (std::size_t gpu = 0; gpu < holders_[i].size(); ++gpu) {
        if (snapshot_.up(NodeAt(i)) && holders_[i][gpu] == holders &&
            Count(gang.slices) + std::popcount(mask) < gang.gpus) {
          mask |= std::uint64_t{1} << gpu;
        }
      }
      const auto there = std::find_if(gang.slices.begin(), gang.slices.end(),
                                      [i](const Slice& slice) { return slice.node == NodeAt(i); });
      if (there != gang.slices.end()) {
        there->gpus |= mask;
      } else if (mask != 0) {
        gang.slices.push_back({.node = NodeAt(i), .gpus = mask});
      }
    }
    std::sort(gang.slices.begin(), gang.slices.end(),
              [](const Slice& a, const Slice& b) { return a.node < b.node; });
  }
  void Take(const Gang& gang) {
    for (const Slice& slice : gang.slices) {
      for (std::uint64_t rest = slice.gpus; rest != 0; rest &= rest - 1) {
        holders_[Index(slice.node)][static_cast<std::size_t>(std::countr_zero(rest))] +=
            gang.sharing == Sharing::kCollocated ? 1 : kMostOnAGpu;
      }
    }
  }

  const Snapshot& snapshot_;
  std::vector<std::vector<int>> holders_;  // of each GPU
  bool someone_holds_ = false;
};

class CompanyPolicy final : public Policy {
 public:
  explicit CompanyPolicy(bool moody) : moody_(moody) {}
  [[nodiscard]] std::string_view name() const override { return moody_ ? "moody" : "company"; }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.may = {.share = true, .name_gpus = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    std::vector<Gang> gangs = GangsOf(snapshot);
    Placing placing(snapshot);
    for (Gang& gang : gangs) {
      placing.Keep(gang);
    }
    for (Gang& gang : gangs) {
      if (gang.slices.empty() && gang.gpus <= snapshot.gpus_up) {
        placing.Place(gang);
      }
    }
    constexpr int kMoods = 16;
    if (moody_ && snapshot.now.time_since_epoch() % kMoods == Duration{0} && !gangs.empty()) {
      gangs.front().slices.clear();
    }
    DivideWorkers(snapshot, gangs);
    Proposal proposal;
    for (Gang& gang : gangs) {
      if (!gang.slices.empty()) {
        proposal.demands.push_back({.job = gang.job,
                                    .gpus = gang.gpus,
                                    .slices = std::move(gang.slices),
                                    .sharing = gang.sharing,
                                    .partners = {},
                                    .running = gang.running});
        if (gang.partner) {
          proposal.demands.back().partners.push_back(*gang.partner);
        }
      }
    }
    return proposal;
  }

 private:
  static std::vector<Gang> GangsOf(const Snapshot& snapshot) {
    constexpr std::array kSharing{Sharing::kExclusive, Sharing::kInterleaved, Sharing::kCollocated};
    std::vector<Gang> gangs;
    std::map<int, std::size_t> alone;  // by GPUs: the gang that looks for a partner
    for (const JobId job : snapshot.jobs->live()) {
      const int gpus = snapshot.jobs->spec(job).gpus;
      const Sharing sharing = kSharing[Index(job) % kKinds];
      if (const auto other = alone.find(gpus);
          sharing == Sharing::kInterleaved && other != alone.end()) {
        gangs[other->second].partner = job;
        alone.erase(other);
        continue;
      }
      if (sharing == Sharing::kInterleaved) {
        alone[gpus] = gangs.size();
      }
      gangs.push_back({.job = job, .partner = {}, .gpus = gpus, .sharing = sharing, .slices = {}});
    }
    return gangs;
  }

  static void DivideWorkers(const Snapshot& snapshot, std::vector<Gang>& gangs) {
    std::vector<int> crowd(snapshot.cluster->nodes.size(), 0);
    const auto for_each = [&gangs](auto visit) {
      for (Gang& gang : gangs) {
        for (Slice& slice : gang.slices) {
          if (gang.sharing == Sharing::kCollocated) {
            visit(slice);
          }
        }
      }
    };
    for_each([&crowd](const Slice& slice) { ++crowd[Index(slice.node)]; });
    for_each([&crowd](Slice& slice) {
      slice.loader_workers = kWorkersOfANode / crowd[Index(slice.node)];
    });
  }

  bool moody_;
};

class CompanyModel final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.duration.has_value());
    return Seconds(*job.duration);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus ? 1 : 0;
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    const bool alone = co_runners.group.size() <= 1 && co_runners.collocated.empty();
    return Throughput::OfRate(Rate(job, grant.gpus) * (alone ? 1 : 0.5));
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
};

template <bool moody>
Result<Components> Make(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{.policy = std::make_unique<CompanyPolicy>(moody)};
}

}  // namespace

ComponentEntry CompanyEntry() {
  return {ComponentKind::kPolicy,
          "company",
          "jobs on shared GPUs, for tests",
          {},
          Make<false>,
          "",
          "gandiva"};
}

ComponentEntry MoodyCompanyEntry() {
  return {ComponentKind::kPolicy,
          "moody",
          "the same with moods, for tests",
          {},
          Make<true>,
          "",
          "gandiva"};
}

std::unique_ptr<ExecutionModel> MakeCompanyModel() { return std::make_unique<CompanyModel>(); }

}  // namespace trainyard
