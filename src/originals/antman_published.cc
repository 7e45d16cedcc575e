// SPDX-License-Identifier: Apache-2.0
// AntMan as Muri's simulator has it: opportunistic jobs choose GPUs by running sums, whose rounding
// remains (Muri reference 8). No job loses GPUs there, so that those who wait come by submit time.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "model/slices.h"
#include "originals/originals.h"
#include "policies/muri/antman.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

constexpr double kOpportunistic = 0.9;  // load by a job that is not guaranteed

// Sums of what has been added and taken away, with what rounding has left of jobs that are gone.
struct Loads final : Memory {
  struct Holding {
    Slices slices;
    bool guaranteed = false;
    bool running = false;

    void Serialize(StateStream& state) { state(slices, guaranteed, running); }
  };
  std::vector<std::vector<double>> by_gpu;  // by node
  std::map<JobId, Holding> holdings;

  void Add(const Slices& slices, double load) {
    model::ForEachGpu(slices, [&](NodeId node, int gpu) {
      by_gpu[Index(node)][static_cast<std::size_t>(gpu)] += load;
    });
  }
  // Removes the jobs that hold nothing any more.
  void Forget(const Snapshot& snapshot) {
    std::vector<JobId> live(snapshot.jobs->live().begin(), snapshot.jobs->live().end());
    std::sort(live.begin(), live.end());
    for (auto job = holdings.begin(); job != holdings.end();) {
      const auto& [id, holding] = *job;
      if (std::binary_search(live.begin(), live.end(), id) && snapshot.jobs->grant(id).gpus > 0) {
        ++job;
        continue;
      }
      Add(holding.slices, holding.guaranteed
                              ? (holding.running ? -policies::kAntmanRun : -policies::kAntmanHold)
                              : -kOpportunistic);
      job = holdings.erase(job);
    }
  }
  void Take(JobId job, const Slices& more, bool guaranteed, bool complete) {
    Holding& holding = holdings[job];
    holding.guaranteed = guaranteed;
    for (const Slice& slice : more) {
      policies::AddTo(holding.slices, slice.node, slice.gpus);
    }
    Add(more, guaranteed ? policies::kAntmanHold : kOpportunistic);
    if (guaranteed && complete && !holding.running) {
      Add(holding.slices, policies::kAntmanRun - policies::kAntmanHold);
    }
    holding.running = complete;
  }
  void Serialize(StateStream& state) override { state(by_gpu, holdings); }
};

class PublishedAntmanDecision final : public policies::AntmanDecision {
 public:
  PublishedAntmanDecision(const Snapshot& snapshot, Loads& loads)
      : policies::AntmanDecision(snapshot), loads_(loads) {
    const std::vector<NodeSpec>& nodes = snapshot.cluster->nodes;
    for (std::size_t i = loads_.by_gpu.size(); i < nodes.size(); ++i) {
      loads_.by_gpu.emplace_back(static_cast<std::size_t>(nodes[i].gpus), 0.0);
    }
    loads_.Forget(snapshot);
  }

 private:
  [[nodiscard]] double LoadOf(std::size_t node, int gpu) const override {
    return loads_.by_gpu[node][static_cast<std::size_t>(gpu)];
  }
  [[nodiscard]] bool HoldersFirst() const override { return false; }
  void Took(JobId job, const Slices& more, bool guaranteed, bool complete) override {
    loads_.Take(job, more, guaranteed, complete);
  }

  Loads& loads_;
};

class PublishedAntman final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "antman-published"; }
  [[nodiscard]] PolicyTraits traits() const override {
    PolicyTraits traits = policies::AntmanTraits();
    traits.may.take_others = false;
    return traits;
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Loads>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return PublishedAntmanDecision(snapshot, static_cast<Loads&>(*memory)).Take();
  }
};

}  // namespace

ComponentEntry AntmanPublishedEntry() {
  return {ComponentKind::kPolicy,
          "antman-published",
          "antman with the running sums of the published simulator",
          {},
          base::MakeOf<PublishedAntman>,
          {},
          "gandiva",
          false,
          {.stages = true}};
}

}  // namespace trainyard::originals
