// SPDX-License-Identifier: Apache-2.0
// Gandiva with the rules of ElasticFlow's simulator: sets are added and dissolved by formulas that
// deal running jobs out anew, one place of a set stays empty, and jobs take turns only at decisions
// that fall on a multiple of the quantum.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/try.h"
#include "originals/originals.h"
#include "policies/decision_policy.h"
#include "policies/gandiva/gandiva.h"

namespace trainyard::originals {
namespace {

constexpr std::array<OptionSpec, 4> kPublishedGandivaOptions{{
    {"quantum", OptionSpec::Kind::kNumber, "60",
     "seconds after which jobs that share a set of nodes take turns"},
    {"rotate", OptionSpec::Kind::kChoice, "multiples",
     "they take turns when a quantum is over, or only at decisions that happen to fall on a "
     "multiple of it",
     "quantum|multiples"},
    {"spare", OptionSpec::Kind::kNumber, "1",
     "places of a set that stay empty as long as there are free nodes"},
    {"groups", OptionSpec::Kind::kChoice, "published",
     "published: by the formulas and in the orders of the published program; balanced: as gandiva",
     "balanced|published"},
}};

struct PublishedGandivaSettings {
  Duration quantum{};
  bool at_multiples = false;
  double spare = 0;
  bool published_groups = false;
};

std::size_t JobsIn(const policies::SizeGroup& group) {
  std::size_t jobs = 0;
  for (const policies::SharedNodes& set : group) {
    jobs += set.load();
  }
  return jobs;
}

// In which the jobs of a group are dealt out anew: set by set. The sets are empty afterwards.
std::vector<JobId> TakeJobsToSpread(policies::SizeGroup& group) {
  std::vector<JobId> jobs;
  jobs.reserve(JobsIn(group));
  for (policies::SharedNodes& set : group) {
    jobs.insert(jobs.end(), set.jobs.begin(), set.jobs.end());
    set.jobs.clear();
    set.joined = 0;
  }
  return jobs;
}

// Each job joins the first set, which then goes behind those with fewer jobs: as SortByLoad has
// it, but the sets themselves move only once, at the end.
void Deal(const std::vector<JobId>& jobs, policies::SizeGroup& group) {
  if (jobs.empty()) {
    return;
  }
  std::vector<std::size_t> order(group.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less_loaded = [&group](std::size_t a, std::size_t b) {
    return policies::LessLoaded(group[a], group[b]);
  };
  auto job = jobs.begin();
  if (!std::is_sorted(order.begin() + 1, order.end(), less_loaded)) {
    group.front().Join(*job++);
    std::stable_sort(order.begin(), order.end(), less_loaded);
  }
  for (; job != jobs.end(); ++job) {
    const std::size_t first = order.front();
    group[first].Join(*job);
    const auto behind = std::lower_bound(order.begin() + 1, order.end(), first, less_loaded);
    *std::move(order.begin() + 1, behind, order.begin()) = first;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t set = order[i];
    while (set < i) {  // it has changed places with another one
      set = order[set];
    }
    if (set != i) {
      std::swap(group[i], group[set]);
    }
  }
}

// The first set goes behind all others, and is the one to be tried.
policies::SharedNodes& NextInTurn(policies::SizeGroup& group) {
  std::rotate(group.begin(), group.begin() + 1, group.end());
  return group.back();
}

// Growth and shrinking by the published formulas. They count GPUs where sets are meant: what lacks
// for two jobs adds two sets, whatever their capacity. A group never gives up its last set.
class PublishedAdjustment {
 public:
  PublishedAdjustment(policies::NodePool& pool, policies::GandivaMemory& memory)
      : pool_(pool), memory_(memory) {}

  void Make() {
    std::vector<std::pair<int, int>> demands;  // in GPUs, by those of a job
    demands.reserve(memory_.groups.size());
    int total = 0;
    for (const auto& [gpus, group] : memory_.groups) {
      demands.emplace_back(gpus, static_cast<int>(JobsIn(group)) * gpus);
      total += demands.back().second;
    }
    for (const auto& [gpus, demand] : demands) {
      policies::SizeGroup& group = memory_.groups.at(gpus);
      if (group.empty() || total == 0) {
        continue;
      }
      const double share = std::floor(static_cast<double>(demand) / total * pool_.gpus());
      const int held =
          static_cast<int>(group.size() * pool_.NodesFor(gpus)) * pool_.gpus_per_node();
      const int missing = std::min(demand, static_cast<int>(share)) - held;
      if (missing > 0) {
        Grow(gpus, group, (missing + gpus - 1) / gpus);
      } else if (missing < 0) {
        Shrink(group, static_cast<std::size_t>((gpus - 1 - missing) / gpus));
      }
    }
  }

 private:
  // Where all sets asked for could be added and have one node each, the jobs stay where they are
  // and the new sets empty.
  void Grow(int gpus, policies::SizeGroup& group, int count) {
    bool all_added = true;
    for (int i = 0; i < count && all_added; ++i) {
      all_added = pool_.AddSet(gpus, group);
    }
    if (!all_added || pool_.NodesFor(gpus) > 1) {
      Deal(TakeJobsToSpread(group), group);
    }
  }

  // The first sets go; one stays.
  void Shrink(policies::SizeGroup& group, std::size_t count) {
    std::vector<JobId> homeless;
    homeless.reserve(JobsIn(group));
    const auto end = group.begin() + static_cast<std::ptrdiff_t>(std::min(count, group.size() - 1));
    for (auto set = group.begin(); set != end; ++set) {
      homeless.insert(homeless.end(), set->jobs.begin(), set->jobs.end());
      pool_.Free(*set);
    }
    group.erase(group.begin(), end);
    Deal(homeless, group);
  }

  policies::NodePool& pool_;
  policies::GandivaMemory& memory_;
};

class PublishedGandivaDecision final : public policies::GandivaDecision {
 public:
  PublishedGandivaDecision(const PublishedGandivaSettings& settings, const Snapshot& snapshot,
                           policies::GandivaMemory& memory)
      : policies::GandivaDecision(settings.quantum, snapshot, memory), settings_(settings) {}

 private:
  [[nodiscard]] bool SliceIsOver() const override {
    return settings_.at_multiples
               ? snapshot().now.time_since_epoch() % settings_.quantum == Duration{0}
               : policies::GandivaDecision::SliceIsOver();
  }
  [[nodiscard]] std::optional<TimePoint> SliceEnd() const override {
    return settings_.at_multiples ? std::nullopt : policies::GandivaDecision::SliceEnd();
  }
  // Jobs that have ended still count.
  void NoteLeft(policies::SharedNodes& set) override {
    if (!settings_.published_groups) {
      policies::GandivaDecision::NoteLeft(set);
    }
  }
  [[nodiscard]] policies::SharedNodes* Tried(policies::SizeGroup& group) override {
    return !settings_.published_groups ? policies::GandivaDecision::Tried(group)
           : group.empty()             ? nullptr
                                       : &NextInTurn(group);
  }
  [[nodiscard]] bool HasRoom(const policies::SharedNodes& set) const override {
    return static_cast<double>(set.joined) + 1 + settings_.spare <=
           static_cast<double>(set.capacity);
  }

  // The list of those that wait is walked while jobs are taken out of it.
  void PlaceAll(const std::vector<policies::PendingJob>& arrivals) override {
    if (!settings_.published_groups) {
      return policies::GandivaDecision::PlaceAll(arrivals);
    }
    std::vector<policies::PendingJob>& pending = memory().pending;
    for (const policies::PendingJob& job : arrivals) {
      if (!Place(job)) {
        pending.push_back(job);
      }
    }
    for (std::size_t i = 0; memory().nodes_freed && i < pending.size(); ++i) {
      if (Place(pending[i])) {
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  // What a group gives up is no reason to try those that wait.
  void Adjust() override {
    if (!settings_.published_groups) {
      return policies::GandivaDecision::Adjust();
    }
    PublishedAdjustment(pool(), memory()).Make();
    memory().nodes_freed = false;
  }

  const PublishedGandivaSettings& settings_;
};

Result<Components> MakePublishedGandiva(const Options& options,
                                        const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const Duration quantum, policies::QuantumOf(options, "gandiva-published"));
  const PublishedGandivaSettings settings{
      .quantum = quantum,
      .at_multiples = options.Text("rotate") == "multiples",
      .spare = options.Number("spare"),
      .published_groups = options.Text("groups") == "published"};
  return policies::PolicyOf<PublishedGandivaDecision, policies::GandivaMemory>(
      "gandiva-published", {.needs = {.gpu_types = TypeSupport::kOne}, .may = {.name_gpus = true}},
      settings);
}

}  // namespace

ComponentEntry GandivaPublishedEntry() {
  return {ComponentKind::kPolicy,
          "gandiva-published",
          "Gandiva as published with ElasticFlow: sets grow and shrink by its formulas",
          kPublishedGandivaOptions,
          MakePublishedGandiva,
          {},
          "gandiva"};
}

}  // namespace trainyard::originals
