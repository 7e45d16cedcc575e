// SPDX-License-Identifier: Apache-2.0
// Synergy's upper bound (OSDI'22, OPT): the jobs that fit by count, in the order of arrival or of
// remaining time, share the CPUs and memory of the whole cluster as an integer program says. What
// it demands may not be found beside the GPUs: placement `synergy:mechanism=lend` takes it from
// anywhere.
#include <algorithm>
#include <array>
#include <tuple>

#include "model/job_order.h"
#include "policies/orderings/remaining_time.h"
#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"
#include "policies/synergy/resource_split.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 6> kSynergyOptOptions{{
    {"order", OptionSpec::Kind::kChoice, "srtf",
     "srtf: shortest remaining time first; fifo: by submission", "srtf|fifo"},
    {"weigh", OptionSpec::Kind::kChoice, "gpus",
     "a job's rate counts once for each of its GPUs, or once", "gpus|jobs"},
    {"cpus", OptionSpec::Kind::kNumbers, "1/2/3/4/5/6/9/12/24",
     "what a job may get for each GPU, besides its proportional share"},
    {"memory_gb", OptionSpec::Kind::kNumbers, "20.83/62.5/125/187.5/250", "likewise"},
    kSpeedOption,
    kGuardOption,
}};

struct LastSplits final : Memory {
  std::vector<JobId> order;  // of the last decision: equal jobs stay in it
  std::vector<bool> first;   // by JobId: has waited too long
  // What was divided, among whom, and how: while these stay, the program is the same.
  Resources total{};
  std::vector<JobId> jobs;
  ResourceSplit split;

  void Serialize(StateStream& state) override {
    state(total, jobs, split.amounts, split.objective, order, first);
  }
};

class SynergyOpt final : public Policy {
 public:
  explicit SynergyOpt(const Options& options)
      : rules_{.cpus = options.Numbers("cpus"),
               .memory_gb = options.Numbers("memory_gb"),
               .weigh_by_gpus = options.Text("weigh") == "gpus"},
        by_remaining_time_(options.Text("order") == "srtf"),
        last_speed_(options.Text("speed") == "last"),
        guard_(FromSeconds(options.Number(kGuardOption.key))) {}

  [[nodiscard]] std::string_view name() const override { return "synergy-opt"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<LastSplits>();
  }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.work_left = true, .gpu_types = TypeSupport::kOne}};
  }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    auto& last = static_cast<LastSplits&>(*memory);
    RankAll(snapshot, last);
    std::vector<Demand> fitting;
    std::vector<Demand> others;
    std::vector<JobId> jobs;
    int left = snapshot.gpus_up;
    for (const JobId job : last.order) {
      const Demand demand{.job = job, .gpus = snapshot.jobs->spec(job).gpus};
      const bool fits = demand.gpus <= left;
      (fits ? fitting : others).push_back(demand);
      if (fits) {
        left -= demand.gpus;
        jobs.push_back(job);
      }
    }
    const bool bounded = !Divide(snapshot, std::move(jobs), last);
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      fitting[i].preferred = last.split.amounts[i];
    }
    fitting.insert(fitting.end(), others.begin(), others.end());
    return {.demands = std::move(fitting), .bounded = bounded};
  }

 private:
  // All live jobs into `last.order`: those that have waited longer than the guard first (from the
  // next decision on; zero: none), then by key, submit time and their order of last time.
  void RankAll(const Snapshot& snapshot, LastSplits& last) const {
    using Rank = std::tuple<bool, double, TimePoint>;
    std::vector<std::pair<Rank, JobId>> ranked;
    for (const JobId id : model::InKeptOrder(last.order, snapshot.jobs->live())) {
      const JobView job = snapshot.jobs->at(id);
      if (last.first.size() <= Index(id)) {
        last.first.resize(std::max(last.first.size() * 2, Index(id) + 1), false);
      }
      const double key = by_remaining_time_ ? RemainingSeconds(job, last_speed_) : 0;
      ranked.emplace_back(Rank{!last.first[Index(id)], key, job.spec->submit}, id);
      if (guard_ > Duration{0} && job.waiting > guard_) {
        last.first[Index(id)] = true;
      }
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    last.order.clear();
    for (const auto& [rank, id] : ranked) {
      last.order.push_back(id);
    }
  }

  // False: the solver has reached a limit.
  bool Divide(const Snapshot& snapshot, std::vector<JobId> jobs, LastSplits& last) const {
    const auto [total, share] = Heap(snapshot);
    if (jobs == last.jobs && total == last.total && snapshot.resized.empty()) {
      return true;
    }
    std::vector<const JobSpec*> specs;
    specs.reserve(jobs.size());
    for (const JobId job : jobs) {
      specs.push_back(&snapshot.jobs->spec(job));
    }
    last.split = SplitResources(rules_, specs, *snapshot.rates, total, share);
    last.jobs = std::move(jobs);
    last.total = total;
    return last.split.optimal;
  }

  // All CPUs and memory of the nodes that are up, and what that makes for each GPU.
  static std::pair<Resources, Resources> Heap(const Snapshot& snapshot) {
    Resources total;
    for (std::size_t i = 0; i < snapshot.cluster->nodes.size(); ++i) {
      if (snapshot.up(NodeAt(i))) {
        total += snapshot.cluster->nodes[i].capacity;
      }
    }
    const std::int64_t gpus = std::max(snapshot.gpus_up, 1);
    return {total, {.milli_cpus = total.milli_cpus / gpus, .memory_mib = total.memory_mib / gpus}};
  }

  const SplitRules rules_;
  const bool by_remaining_time_;
  const bool last_speed_;
  const Duration guard_;
};

}  // namespace

ComponentEntry SynergyOptEntry() {
  return {ComponentKind::kPolicy,
          "synergy-opt",
          "upper bound: the cluster's CPUs and memory divided for the most speed",
          kSynergyOptOptions,
          base::MakeOf<SynergyOpt>,
          {},
          "synergy:mechanism=lend"};
}

}  // namespace trainyard::policies
