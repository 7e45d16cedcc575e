// SPDX-License-Identifier: Apache-2.0
#include "policies/muri/antman.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <tuple>
#include <utility>

#include "model/slices.h"
#include "policies/policies.h"
#include "profile/execution_model.h"

namespace trainyard::policies {
namespace {

// Whether others may use its GPUs beside it, and it theirs.
bool MayShare(const JobSpec& job) {
  return profile::StatesStages(job) && !(job.traits && job.traits->request);
}
bool IsGuaranteed(const JobSpec& job) { return job.priority == 0; }

Demand Kept(JobId id, const Grant& held) {
  return {.job = id,
          .gpus = held.gpus,
          .slices = held.slices,
          .sharing = held.sharing,
          .running = held.running};
}

struct Gpu {
  double load = 0;
  NodeId node{};
  std::uint64_t mask = 0;
};

class AntMan final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "antman"; }
  [[nodiscard]] PolicyTraits traits() const override { return AntmanTraits(); }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    return AntmanDecision(snapshot).Take();
  }
};

}  // namespace

PolicyTraits AntmanTraits() {
  return {.needs = {.gpu_types = TypeSupport::kOne, .priorities = true},
          .may = {.share = true, .name_gpus = true, .take_others = true}};
}

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

AntmanDecision::AntmanDecision(const Snapshot& snapshot) : snapshot_(snapshot) {
  for (std::size_t i = 0; i < snapshot.cluster->nodes.size(); ++i) {
    const int gpus = snapshot.cluster->nodes[i].gpus;
    nodes_.push_back({.up = snapshot.up(NodeAt(i)) ? model::AllGpus(gpus) : 0});
  }
}

Proposal AntmanDecision::Take() {
  std::vector<JobId> waiting;
  for (const JobId id : snapshot_.jobs->live()) {
    const Grant& held = snapshot_.jobs->grant(id);
    if (held.gpus > 0) {
      CloseFull(snapshot_.jobs->spec(id), held.slices, held.running);
      Use(snapshot_.jobs->spec(id), held.slices, held.running);
      if (held.sharing != Sharing::kCollocated) {  // from a policy before this one
        Close(held.slices);
      }
    }
    if (held.gpus > 0 && held.running) {
      proposal_.demands.push_back(Kept(id, held));
    } else {
      waiting.push_back(id);
    }
  }
  // A job that has lost its GPUs comes behind those that hold some already: it could take what
  // one of them waits for, and both would wait for ever. Their priority may be another one by now.
  const auto rank = [this](JobId id) {
    const JobSpec& job = snapshot_.jobs->spec(id);
    const bool holds = HoldersFirst() && snapshot_.jobs->grant(id).gpus > 0;
    return std::tuple(holds ? 0 : job.priority, !holds, job.submit);
  };
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&rank](JobId a, JobId b) { return rank(a) < rank(b); });
  for (const JobId id : waiting) {
    Try(id);
  }
  return std::move(proposal_);
}

void AntmanDecision::Use(const JobSpec& job, const Slices& slices, bool running) {
  for (const Slice& slice : slices) {
    NodeUse& node = nodes_[Index(slice.node)];
    node.held = running ? node.held & ~slice.gpus : node.held | slice.gpus;
    // Who holds GPUs and waits for more was guaranteed them, whatever its priority is now.
    (IsGuaranteed(job) || !running ? node.guaranteed : node.opportunistic) |= slice.gpus;
    node.closed |= MayShare(job) ? 0 : slice.gpus;
  }
}

// Two jobs of a kind, as one of them has another priority now, leave nothing to a third one.
void AntmanDecision::CloseFull(const JobSpec& job, const Slices& slices, bool running) {
  for (const Slice& slice : slices) {
    NodeUse& node = nodes_[Index(slice.node)];
    node.closed |=
        slice.gpus & (IsGuaranteed(job) || !running ? node.guaranteed : node.opportunistic);
  }
}

void AntmanDecision::Close(const Slices& slices) {
  for (const Slice& slice : slices) {
    nodes_[Index(slice.node)].closed |= slice.gpus;
  }
}

void AntmanDecision::Try(JobId id) {
  const JobSpec& job = snapshot_.jobs->spec(id);
  Slices slices = snapshot_.jobs->grant(id).slices;
  const bool guaranteed = IsGuaranteed(job) || !slices.empty();
  const Slices more = guaranteed ? Guaranteed(job, slices) : Opportunistic(job);
  for (const Slice& slice : more) {
    AddTo(slices, slice.node, slice.gpus);
  }
  const int gpus = model::CountGpus(slices);
  Use(job, slices, gpus == job.gpus);
  if (gpus > 0) {
    Took(id, more, guaranteed, gpus == job.gpus);
    proposal_.demands.push_back({.job = id,
                                 .gpus = gpus,
                                 .slices = std::move(slices),
                                 .sharing = Sharing::kCollocated,
                                 .running = gpus == job.gpus});
  }
}

Slices AntmanDecision::Guaranteed(const JobSpec& job, const Slices& held) const {
  const int largest = snapshot_.cluster->largest_node();
  if (job.gpus <= largest) {
    return held.empty() ? OnANode(job, job.gpus, {}) : OnThisNode(job, held, job.gpus);
  }
  return OnNodes(job, held, largest);
}

std::uint64_t AntmanDecision::Usable(const JobSpec& job, const NodeUse& node) {
  return MayShare(job) ? node.FreeOfGuaranteed() : node.FreeOfGuaranteed() & ~node.opportunistic;
}

Slices AntmanDecision::OnANode(const JobSpec& job, int gpus, const Slices& not_these) const {
  Slices most;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (model::LieOn(not_these, NodeAt(i))) {
      continue;
    }
    const std::uint64_t free = Usable(job, nodes_[i]);
    if (std::popcount(free) >= gpus) {
      return {{.node = NodeAt(i), .gpus = model::LowestGpus(free, gpus)}};
    }
    // What it held of a node that is too small it would hold for ever.
    if (std::popcount(free) > model::CountGpus(most) && std::popcount(nodes_[i].up) >= gpus) {
      most = {{.node = NodeAt(i), .gpus = free}};
    }
  }
  return most;
}

Slices AntmanDecision::OnThisNode(const JobSpec& job, const Slices& held, int gpus) const {
  const NodeId node = held.back().node;
  const std::uint64_t usable = Usable(job, nodes_[Index(node)]);
  const int more = std::min(gpus - std::popcount(held.back().gpus), std::popcount(usable));
  return more <= 0 ? Slices() : Slices{{.node = node, .gpus = model::LowestGpus(usable, more)}};
}

Slices AntmanDecision::OnNodes(const JobSpec& job, const Slices& held, int largest) const {
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

Slices AntmanDecision::Opportunistic(const JobSpec& job) const {
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
      AddTo(slices, gpus[static_cast<std::size_t>(n)].node, gpus[static_cast<std::size_t>(n)].mask);
    }
  }
  return slices;
}

double AntmanDecision::LoadOf(std::size_t node, int gpu) const {
  const std::uint64_t bit = std::uint64_t{1} << gpu;
  return (nodes_[node].guaranteed & bit) == 0 ? 0
         : (nodes_[node].held & bit) != 0     ? kAntmanHold
                                              : kAntmanRun;
}

ComponentEntry AntManEntry() {
  return {ComponentKind::kPolicy,
          "antman",
          "guaranteed jobs, and opportunistic ones on the same GPUs; no preemption",
          {},
          base::MakeOf<AntMan>,
          {},
          "gandiva",
          false,
          {.stages = true}};
}

}  // namespace trainyard::policies
