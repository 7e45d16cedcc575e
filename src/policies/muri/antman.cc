// SPDX-License-Identifier: Apache-2.0
// AntMan (OSDI'20), as Muri's simulator has it (docs/policies/antman.md): jobs of priority 0 are
// guaranteed their GPUs and their pace; the others are opportunistic and use what those leave, at
// most one of each on a GPU. No job is preempted; a guaranteed job that does not fit holds what
// there is and waits.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "model/slices.h"
#include "policies/policies.h"
#include "profile/execution_model.h"
#include "trainyard/state.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kAntmanOptions{{
    {"load", OptionSpec::Kind::kChoice, "present",
     "the load of a GPU, by which opportunistic jobs choose: that of its present jobs, or a "
     "running "
     "sum whose rounding remains",
     "present|summed"},
}};

// What others may use of it besides the job itself.
bool MayShare(const JobSpec& job) { return profile::StatesStages(job); }
bool IsGuaranteed(const JobSpec& job) { return job.priority == 0; }

void AddTo(Slices& slices, NodeId node, std::uint64_t gpus) {
  if (gpus == 0) {
    return;
  }
  const auto place =
      std::lower_bound(slices.begin(), slices.end(), node,
                       [](const Slice& slice, NodeId other) { return slice.node < other; });
  if (place != slices.end() && place->node == node) {
    place->gpus |= gpus;
  } else {
    slices.insert(place, {.node = node, .gpus = gpus});
  }
}

// The use of a node's GPUs, as sets of them.
struct NodeUse {
  std::uint64_t up = 0;
  std::uint64_t guaranteed = 0;     // GPUs with a job that is guaranteed them
  std::uint64_t held = 0;           // with a guaranteed job that waits for more
  std::uint64_t opportunistic = 0;  // with one that is not
  std::uint64_t closed = 0;  // to all other jobs: the job on them does not say how it would share

  [[nodiscard]] std::uint64_t FreeOfGuaranteed() const { return up & ~guaranteed & ~closed; }
};

// Load of a GPU by a job that holds it, by one that is guaranteed it and runs, by another one.
constexpr double kHold = 0.09;
constexpr double kRun = 0.1;
constexpr double kOpportunistic = 0.9;

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
      Add(holding.slices,
          holding.guaranteed ? (holding.running ? -kRun : -kHold) : -kOpportunistic);
      job = holdings.erase(job);
    }
  }
  void Take(JobId job, const Slices& more, bool guaranteed, bool complete) {
    Holding& holding = holdings[job];
    holding.guaranteed = guaranteed;
    for (const Slice& slice : more) {
      AddTo(holding.slices, slice.node, slice.gpus);
    }
    Add(more, guaranteed ? kHold : kOpportunistic);
    if (guaranteed && complete && !holding.running) {
      Add(holding.slices, kRun - kHold);
    }
    holding.running = complete;
  }
  void Serialize(StateStream& state) override { state(by_gpu, holdings); }
};

class AntmanDecision {
 public:
  AntmanDecision(const Snapshot& snapshot, Loads* loads) : snapshot_(snapshot), loads_(loads) {
    for (std::size_t i = 0; i < snapshot.cluster->nodes.size(); ++i) {
      const int gpus = snapshot.cluster->nodes[i].gpus;
      nodes_.push_back({.up = snapshot.up(NodeAt(i)) ? model::AllGpus(gpus) : 0});
    }
  }

  Proposal Decide() {
    if (loads_ != nullptr) {
      for (std::size_t i = loads_->by_gpu.size(); i < nodes_.size(); ++i) {
        loads_->by_gpu.emplace_back(static_cast<std::size_t>(snapshot_.cluster->nodes[i].gpus),
                                    0.0);
      }
      loads_->Forget(snapshot_);
    }
    std::vector<JobId> waiting;
    for (const JobId id : snapshot_.jobs->live()) {
      const Grant& held = snapshot_.jobs->grant(id);
      if (held.gpus > 0) {
        Use(snapshot_.jobs->spec(id), held.slices, held.running);
      }
      if (held.gpus > 0 && held.running) {
        proposal_.demands.push_back(Kept(id, held));
      } else {
        waiting.push_back(id);
      }
    }
    // A job that has lost its GPUs comes behind those that hold some already: it could take what
    // one of them waits for, and both would wait for ever. No job loses any in the
    // published program.
    const auto rank = [this](JobId id) {
      const JobSpec& job = snapshot_.jobs->spec(id);
      const bool holds = loads_ == nullptr && snapshot_.jobs->grant(id).gpus > 0;
      return std::tuple(job.priority, !holds, job.submit);
    };
    std::stable_sort(waiting.begin(), waiting.end(),
                     [&rank](JobId a, JobId b) { return rank(a) < rank(b); });
    for (const JobId id : waiting) {
      Try(id);
    }
    return std::move(proposal_);
  }

 private:
  [[nodiscard]] Demand Kept(JobId id, const Grant& held) const {
    return {.job = id,
            .gpus = held.gpus,
            .slices = held.slices,
            .sharing = held.sharing,
            .running = held.running};
  }

  void Use(const JobSpec& job, const Slices& slices, bool running) {
    for (const Slice& slice : slices) {
      NodeUse& node = nodes_[Index(slice.node)];
      node.held = running ? node.held & ~slice.gpus : node.held | slice.gpus;
      (IsGuaranteed(job) ? node.guaranteed : node.opportunistic) |= slice.gpus;
      node.closed |= MayShare(job) ? 0 : slice.gpus;
    }
  }

  void Try(JobId id) {
    const JobSpec& job = snapshot_.jobs->spec(id);
    Slices slices = snapshot_.jobs->grant(id).slices;
    const Slices more = IsGuaranteed(job) ? Guaranteed(job, slices) : Opportunistic(job);
    for (const Slice& slice : more) {
      AddTo(slices, slice.node, slice.gpus);
    }
    const int gpus = model::CountGpus(slices);
    Use(job, slices, gpus == job.gpus);
    if (loads_ != nullptr && gpus > 0) {
      loads_->Take(id, more, IsGuaranteed(job), gpus == job.gpus);
    }
    if (gpus > 0) {
      proposal_.demands.push_back({.job = id,
                                   .gpus = gpus,
                                   .slices = std::move(slices),
                                   .sharing = Sharing::kCollocated,
                                   .running = gpus == job.gpus});
    }
  }

  // GPUs that a guaranteed job can take now, besides those it holds already.
  [[nodiscard]] Slices Guaranteed(const JobSpec& job, const Slices& held) const {
    const int largest = snapshot_.cluster->largest_node();
    if (job.gpus <= largest) {
      return held.empty() ? OnANode(job, job.gpus, {}) : OnThisNode(job, held, job.gpus);
    }
    return OnNodes(job, held, largest);
  }

  // GPUs of a node on which this job may run.
  [[nodiscard]] std::uint64_t Usable(const JobSpec& job, const NodeUse& node) const {
    return MayShare(job) ? node.FreeOfGuaranteed() : node.FreeOfGuaranteed() & ~node.opportunistic;
  }

  // The first node with room for all, or what the node with the most room has.
  [[nodiscard]] Slices OnANode(const JobSpec& job, int gpus, const Slices& not_these) const {
    Slices most;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (model::LieOn(not_these, NodeAt(i))) {
        continue;
      }
      const std::uint64_t free = Usable(job, nodes_[i]);
      if (std::popcount(free) >= gpus) {
        return {{.node = NodeAt(i), .gpus = model::LowestGpus(free, gpus)}};
      }
      if (std::popcount(free) > model::CountGpus(most)) {
        most = {{.node = NodeAt(i), .gpus = free}};
      }
    }
    return most;
  }

  // More of the node on which it waits.
  [[nodiscard]] Slices OnThisNode(const JobSpec& job, const Slices& held, int gpus) const {
    const NodeId node = held.back().node;
    const std::uint64_t usable = Usable(job, nodes_[Index(node)]);
    const int more = std::min(gpus - std::popcount(held.back().gpus), std::popcount(usable));
    return more <= 0 ? Slices() : Slices{{.node = node, .gpus = model::LowestGpus(usable, more)}};
  }

  // Whole nodes, then a part of another one.
  [[nodiscard]] Slices OnNodes(const JobSpec& job, const Slices& held, int largest) const {
    int whole = job.gpus / largest;
    const int rest = job.gpus % largest;
    Slices part;
    for (const Slice& slice : held) {
      const bool is_whole = std::popcount(slice.gpus) == largest;
      whole -= is_whole ? 1 : 0;
      if (!is_whole) {
        part = {slice};
      }
    }
    Slices more;
    for (std::size_t i = 0; i < nodes_.size() && whole > 0; ++i) {
      if (const std::uint64_t free = Usable(job, nodes_[i]); std::popcount(free) == largest) {
        AddTo(more, NodeAt(i), free);
        --whole;
      }
    }
    if (rest == 0) {
      return more;
    }
    Slices taken = held;
    for (const Slice& slice : more) {
      AddTo(taken, slice.node, slice.gpus);
    }
    for (const Slice& slice :
         part.empty() ? OnANode(job, rest, taken) : OnThisNode(job, part, rest)) {
      AddTo(more, slice.node, slice.gpus);
    }
    return more;
  }

  struct Gpu {
    double load = 0;
    NodeId node{};
    std::uint64_t mask = 0;
  };
  // GPUs without another opportunistic job, those with the least load first; all or none.
  [[nodiscard]] Slices Opportunistic(const JobSpec& job) const {
    std::vector<Gpu> gpus;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const NodeUse& node = nodes_[i];
      std::uint64_t usable = node.up & ~node.opportunistic & ~node.closed;
      usable &= MayShare(job) ? usable : ~node.guaranteed;
      for (; usable != 0; usable &= usable - 1) {
        gpus.push_back({.load = LoadOf(i, std::countr_zero(usable)),
                        .node = NodeAt(i),
                        .mask = model::LowestGpus(usable, 1)});
      }
    }
    Slices slices;
    if (std::ssize(gpus) >= job.gpus) {
      std::stable_sort(gpus.begin(), gpus.end(),
                       [](const Gpu& x, const Gpu& y) { return x.load < y.load; });
      for (int n = 0; n < job.gpus; ++n) {
        AddTo(slices, gpus[static_cast<std::size_t>(n)].node,
              gpus[static_cast<std::size_t>(n)].mask);
      }
    }
    return slices;
  }

  [[nodiscard]] double LoadOf(std::size_t node, int gpu) const {
    if (loads_ != nullptr) {
      return loads_->by_gpu[node][static_cast<std::size_t>(gpu)];
    }
    const std::uint64_t bit = std::uint64_t{1} << gpu;
    return (nodes_[node].guaranteed & bit) == 0 ? 0 : (nodes_[node].held & bit) != 0 ? kHold : kRun;
  }

  const Snapshot& snapshot_;
  Loads* const loads_;  // null: as the present state says
  std::vector<NodeUse> nodes_;
  Proposal proposal_;
};

class AntMan final : public Policy {
 public:
  explicit AntMan(const Options& options) : summed_(options.Text("load") == "summed") {}
  [[nodiscard]] std::string_view name() const override { return "antman"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return summed_ ? std::make_unique<Loads>() : nullptr;
  }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.gpu_types = TypeSupport::kOne, .priorities = true},
            .may = {.share = true, .name_gpus = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return AntmanDecision(snapshot, static_cast<Loads*>(memory)).Decide();
  }

 private:
  const bool summed_;
};

}  // namespace

ComponentEntry AntManEntry() {
  return {ComponentKind::kPolicy,
          "antman",
          "guaranteed jobs, and opportunistic ones on the same GPUs; no preemption",
          kAntmanOptions,
          base::MakeOf<AntMan>,
          {},
          "gandiva"};
}

}  // namespace trainyard::policies
