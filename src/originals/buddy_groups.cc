// SPDX-License-Identifier: Apache-2.0
#include "originals/buddy_groups.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "originals/originals.h"
#include "placements/placements.h"

namespace trainyard::originals {
namespace {

// The sizes of jobs that the original groups its nodes by.
constexpr std::array<int, 16> kGroups{1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 88, 128, 256};
constexpr std::size_t kNoGroup = kGroups.size();

// The group of the largest size that divides the free GPUs.
constexpr std::size_t FindGroup(int free) {
  for (std::size_t group = kGroups.size(); group-- > 0;) {
    if (kGroups[group] <= free && free % kGroups[group] == 0) {
      return group;
    }
  }
  return kNoGroup;
}

// Of the numbers that one node can have.
constexpr auto kGroupOf = [] {
  std::array<std::uint8_t, kMaxGpusPerNode + 1> groups{};
  for (std::size_t free = 0; free < groups.size(); ++free) {
    groups[free] = static_cast<std::uint8_t>(FindGroup(static_cast<int>(free)));
  }
  return groups;
}();

std::size_t GroupOf(int free) {
  return free <= kMaxGpusPerNode ? kGroupOf[static_cast<std::size_t>(free)] : FindGroup(free);
}

std::uint64_t Block(int first, int gpus) {
  const std::uint64_t ones =
      gpus == kMaxGpusPerNode ? ~std::uint64_t{0} : (std::uint64_t{1} << gpus) - 1;
  return ones << first;
}

// Nodes that are taken together: several whole ones by one job, or one that small jobs share.
struct TakenNodes {
  std::vector<NodeId> nodes;
  int free = 0;
  int used = 0;
  std::size_t group = kNoGroup;
  std::size_t jobs_before = 0;  // placed anywhere, when the last of its jobs was
};

class Groups {
 public:
  Groups(const FreeGpus& free, NodeOrder& order) : size_(free.largest_node()), order_(order) {
    taken_.reserve(order.free.size());
  }

  // Adds to `slices`, or returns false.
  bool Place(int gpus, Slices& slices) {
    if (gpus < size_) {
      if (const std::optional<std::size_t> shared = Shared(gpus)) {
        Add(*shared, gpus, slices);
        return true;
      }
    }
    const std::size_t nodes = (static_cast<std::size_t>(gpus) + SizeOfNode() - 1) / SizeOfNode();
    if (order_.free.size() < nodes) {
      return false;
    }
    const auto end = order_.free.begin() + static_cast<std::ptrdiff_t>(nodes);
    taken_.push_back(
        {.nodes = {order_.free.begin(), end}, .free = static_cast<int>(nodes) * size_});
    order_.free.erase(order_.free.begin(), end);
    Add(taken_.size() - 1, gpus, slices);
    return true;
  }

  // In the order in which the last of their jobs gives them back.
  void Remember() {
    std::sort(taken_.begin(), taken_.end(), [](const TakenNodes& a, const TakenNodes& b) {
      return a.jobs_before < b.jobs_before;
    });
    order_.taken.clear();
    for (TakenNodes& taken : taken_) {
      order_.taken.push_back(std::move(taken.nodes));
    }
  }

 private:
  [[nodiscard]] std::size_t SizeOfNode() const { return static_cast<std::size_t>(size_); }

  // The oldest node of the group of this very size, else of the largest sizes first.
  [[nodiscard]] std::optional<std::size_t> Shared(int gpus) const {
    const auto fits = [&](std::size_t group) {
      return !groups_[group].empty() && taken_[groups_[group].front()].free >= gpus;
    };
    const auto own =
        static_cast<std::size_t>(std::find(kGroups.begin(), kGroups.end(), gpus) - kGroups.begin());
    if (own != kNoGroup && fits(own)) {
      return groups_[own].front();
    }
    for (std::size_t group = kGroups.size(); group-- > 0 && kGroups[group] > gpus;) {
      if (fits(group)) {
        return groups_[group].front();
      }
    }
    return std::nullopt;
  }

  void Add(std::size_t position, int gpus, Slices& slices) {
    TakenNodes& taken = taken_[position];
    slices.reserve(taken.nodes.size());
    if (taken.nodes.size() == 1) {
      slices.push_back({.node = taken.nodes.front(), .gpus = Block(taken.used, gpus)});
    } else {
      std::vector<NodeId> nodes = taken.nodes;
      std::sort(nodes.begin(), nodes.end());
      int rest = gpus;
      for (const NodeId node : nodes) {
        slices.push_back({.node = node, .gpus = Block(0, std::min(rest, size_))});
        rest -= std::min(rest, size_);
      }
    }
    taken.used += gpus;
    taken.free -= gpus;
    taken.jobs_before = jobs_++;
    if (taken.group != kNoGroup) {
      std::erase(groups_[taken.group], position);
    }
    taken.group = GroupOf(taken.free);
    if (taken.group != kNoGroup) {
      groups_[taken.group].push_back(position);
    }
  }

  const int size_;
  NodeOrder& order_;
  std::vector<TakenNodes> taken_;
  std::size_t jobs_ = 0;                                         // placed so far
  std::array<std::vector<std::size_t>, kGroups.size()> groups_;  // oldest first
};

bool HasSwitches(const std::vector<NodeSpec>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&nodes](const NodeSpec& node) {
    return node.switch_index != nodes.front().switch_index;
  });
}

// The numbers of the nodes within their switches.
std::vector<std::size_t> NumbersOf(const std::vector<NodeSpec>& nodes) {
  std::vector<std::size_t> number(nodes.size(), 0);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const bool same = nodes[i].switch_index == nodes[i - 1].switch_index;
    number[i] = same ? number[i - 1] + 1 : 0;
  }
  return number;
}

// Sorts the nodes that were taken by the latest deadline of the jobs that still hold them; nodes of
// ended jobs come first. Among equals, and among nodes whose jobs have all ended, the last placing
// decides (the original takes the ended jobs by their end).
void SortByDeadline(const JobTable& jobs, std::size_t nodes,
                    std::vector<std::vector<NodeId>>& taken) {
  std::vector<TimePoint> latest(nodes, TimePoint::min());
  for (const JobId id : jobs.live()) {
    const JobTable::Brief job = jobs.brief(id);
    if (job.grant == nullptr) {
      continue;
    }
    const TimePoint deadline =
        job.spec->best_effort ? kEndOfTime : job.spec->deadline.value_or(kEndOfTime);
    for (const Slice& slice : job.grant->slices) {
      TimePoint& of_node = latest[Index(slice.node)];
      of_node = std::max(of_node, deadline);
    }
  }
  std::stable_sort(taken.begin(), taken.end(),
                   [&latest](const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
                     return latest[Index(a.front())] < latest[Index(b.front())];
                   });
}

// Everything is given back, job by job, each time sorted by the number of the node within its
// switch. Until something was taken the nodes are in the order of the switches.
void GiveBack(const PackRequest& ask, GivenBack given_back, NodeOrder& order) {
  const FreeGpus& free = ask.free;
  const std::vector<NodeSpec>& nodes = free.cluster().nodes;
  const bool several = HasSwitches(nodes);
  const bool sorted = several && !order.taken.empty();
  if (!several || order.free.size() + order.taken.size() == 0) {
    order.free.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      order.free[i] = NodeAt(i);
    }
  } else {
    if (given_back == GivenBack::kByDeadline) {
      SortByDeadline(ask.jobs, nodes.size(), order.taken);
    }
    for (const std::vector<NodeId>& taken : order.taken) {
      order.free.insert(order.free.end(), taken.begin(), taken.end());
    }
  }
  std::erase_if(order.free, [&](NodeId node) {
    return !free.up(node) || free.count(node) != free.largest_node();
  });
  if (sorted) {
    const std::vector<std::size_t> number = NumbersOf(nodes);
    std::stable_sort(order.free.begin(), order.free.end(),
                     [&](NodeId a, NodeId b) { return number[Index(a)] < number[Index(b)]; });
  }
}

// Whether the demands are for these numbers of GPUs.
bool AskForThese(std::span<const Demand> demands, const std::vector<int>& gpus) {
  return std::equal(demands.begin(), demands.end(), gpus.begin(), gpus.end(),
                    [](const Demand& demand, int count) { return demand.gpus == count; });
}

}  // namespace

bool PlaceInGroups(const PackRequest& ask, GivenBack given_back, std::vector<Slices>& slices,
                   NodeOrder& order) {
  const std::span<const Demand> demands = ask.demands;
  GiveBack(ask, given_back, order);
  NodeOrder::Last& last = order.last;
  if (last.fitted && slices.size() == demands.size() && order.free == last.nodes &&
      AskForThese(demands, last.gpus)) {
    order.free = last.left;
    return true;
  }
  last.fitted = false;
  last.nodes = order.free;
  Groups groups(ask.free, order);
  slices.resize(demands.size());
  for (std::size_t i = 0; i < demands.size(); ++i) {
    slices[i].clear();
    if (demands[i].gpus > 0 && !groups.Place(demands[i].gpus, slices[i])) {
      return false;
    }
  }
  groups.Remember();
  last.fitted = true;
  last.gpus.clear();
  for (const Demand& demand : demands) {
    last.gpus.push_back(demand.gpus);
  }
  last.left = order.free;
  return true;
}

namespace {

// ElasticFlow's groups of nodes; block by block, as the placement does it, where these have no room
// for all.
class BuddyGroups final : public Packer {
 public:
  explicit BuddyGroups(GivenBack given_back) : given_back_(given_back) {}
  [[nodiscard]] std::string_view name() const override { return "buddy-groups"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<NodeOrder>();
  }
  [[nodiscard]] bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                          Memory* memory) const override {
    if (PlaceInGroups(ask, given_back_, slices, static_cast<NodeOrder&>(*memory))) {
      return true;
    }
    FreeGpus free = ask.free;
    slices.assign(ask.demands.size(), {});
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Demand& demand = ask.demands[i];
      if (demand.gpus == 0 || demand.gpus > free.total()) {
        continue;
      }
      if (std::optional<Slices> chosen = blocks_->Choose(free, ask.jobs.spec(demand.job), demand)) {
        slices[i] = std::move(*chosen);
        free.Take(slices[i]);
      }
    }
    return true;
  }

 private:
  const GivenBack given_back_;
  const std::unique_ptr<Placement> blocks_ = placements::BuddyBlocks("buddy-groups");
};

constexpr std::array<OptionSpec, 1> kBuddyGroupsOptions{{
    {"given_back", OptionSpec::Kind::kChoice, "placed",
     "whose nodes become free first where everything is placed anew; deadline: ended jobs', then "
     "by deadline",
     "placed|deadline"},
}};

Result<Components> MakeBuddyGroups(const Options& options, const ComponentContext& /*context*/) {
  const GivenBack given_back =
      options.Text("given_back") == "deadline" ? GivenBack::kByDeadline : GivenBack::kAsPlaced;
  return Components{.placement = placements::BuddyBlocks("buddy-groups"),
                    .packer = std::make_unique<BuddyGroups>(given_back)};
}

}  // namespace

ComponentEntry BuddyGroupsEntry() {
  return {ComponentKind::kPlacement, "buddy-groups",
          "buddy blocks; where all is placed anew, ElasticFlow's groups of nodes decide",
          kBuddyGroupsOptions, MakeBuddyGroups};
}

}  // namespace trainyard::originals
