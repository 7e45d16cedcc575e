// SPDX-License-Identifier: Apache-2.0
// docs/placements.md describes the mechanisms.
#include "placements/synergy_round.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "model/resource_amounts.h"
#include "placements/placements.h"
#include "placements/synergy_books.h"

namespace trainyard::placements {
namespace {

// Without the slices that lend CPUs or memory and have no GPU.
Slices WithGpus(Slices slices) {
  std::erase_if(slices, [](const Slice& slice) { return slice.gpus == 0; });
  return slices;
}

}  // namespace

class SynergyRound::Turn {
 public:
  Turn(const SynergyRules& rules, const PackRequest& ask, SynergyRound& round)
      : rules_(rules),
        demands_(ask.demands),
        jobs_(ask.jobs),
        round_(round),
        books_(*round.books_) {}

  void Take(std::vector<Slices>& slices) {
    if (rules_.keep) {
      KeepRunning();
    }
    for (std::size_t i = round_.first_;
         i < demands_.size() && (rules_.keep || books_.free().total() > 0); ++i) {
      const int gpus = demands_[i].gpus;
      if (!books_.gang(i).slices.empty()) {
        Raise(i);
      } else if (gpus > 0 && gpus <= books_.free().total()) {
        at_ = i;
        Open(i);
        Try(i);
      }
    }
    if (rules_.mechanism == Mechanism::kFill) {
      HandOutRest();
    }
    slices.resize(demands_.size());
    for (std::size_t i = round_.first_; i < demands_.size(); ++i) {
      slices[i] = books_.gang(i).slices;
    }
    for (const std::size_t gang : round_.gave_) {
      slices[gang] = books_.gang(gang).slices;
    }
    if (rules_.mechanism == Mechanism::kLend) {
      Lend(slices);
    }
  }

 private:
  // The GPUs that the job holds, if they are as many as it asks for now and their nodes are up.
  [[nodiscard]] Slices HeldAsAsked(const Demand& demand) const {
    const Grant& held = jobs_.grant(demand.job);
    Slices gpus = held.gpus == demand.gpus ? WithGpus(held.slices) : Slices();
    return AreUp(gpus) ? gpus : Slices();
  }

  // For each GPU.
  [[nodiscard]] Resources BestOf(const Demand& demand) const {
    return books_.Stated(model::DividedBy(demand.preferred, demand.gpus));
  }

  // With what the gang is tried first.
  void Open(std::size_t number) {
    const Demand& demand = demands_[number];
    Gang& gang = books_.gang(number);
    gang.gpus = demand.gpus;
    switch (rules_.mechanism) {
      case Mechanism::kProportional:
        gang.wants = books_.share();
        return;
      case Mechanism::kGreedy:
      case Mechanism::kTune:
        gang.wants = BestOf(demand);
        return;
      case Mechanism::kLend:
        gang.wants = {};  // GPUs first
        return;
      case Mechanism::kFill:
        gang.wants = model::Least(BestOf(demand), books_.share());
        return;
    }
  }

  // Places the gangs that fit by count, in order, and hold as many GPUs already. Of what a gang may
  // get beyond its share the others get their part first (Raise), but under kGreedy, whose gangs
  // hold their whole demand or no GPU.
  void KeepRunning() {
    int left = books_.free().total();
    for (std::size_t i = 0; i < demands_.size(); ++i) {
      const Demand& demand = demands_[i];
      if (demand.gpus <= 0 || demand.gpus > left) {
        continue;
      }
      left -= demand.gpus;
      if (Slices held = HeldAsAsked(demand); !held.empty()) {
        Open(i);
        if (rules_.mechanism == Mechanism::kTune) {
          (void)CutToShare(i);
        } else if (rules_.mechanism == Mechanism::kGreedy && !HasRoomOn(i, held)) {
          continue;
        }
        books_.PlaceOn(i, std::move(held));
      }
    }
  }

  // A kept gang of kTune gets its whole demand, if there is room for it where the gang lies.
  void Raise(std::size_t number) {
    if (!rules_.keep || rules_.mechanism != Mechanism::kTune) {
      return;
    }
    Gang& gang = books_.gang(number);
    const Resources best = BestOf(demands_[number]);
    if (best == gang.wants) {
      return;
    }
    Slices gpus = books_.Remove(number);
    const Resources least = gang.wants;
    gang.wants = best;
    if (!HasRoomOn(number, gpus)) {
      gang.wants = least;
    }
    books_.PlaceOn(number, std::move(gpus));
  }

  // Where it runs, if it may and there is room.
  bool StaysPut(std::size_t number) {
    Slices held = rules_.keep ? HeldAsAsked(demands_[number]) : Slices();
    if (held.empty() || !HasRoomOn(number, held)) {
      return false;
    }
    books_.PlaceOn(number, std::move(held));
    return true;
  }

  // What the gang wants is left beside these GPUs.
  [[nodiscard]] bool HasRoomOn(std::size_t number, const Slices& slices) {
    const Resources& wants = books_.gang(number).wants;
    return std::all_of(slices.begin(), slices.end(), [&](const Slice& slice) {
      return books_.Left(slice.node).Covers(model::Times(wants, std::popcount(slice.gpus)));
    });
  }

  // Kept gangs of lower rank make room, the last one first, until the gang finds a place; those
  // that still fit where they were stay. False: it finds none even so, and all of them stay.
  bool Displace(std::size_t number) {
    std::vector<std::pair<std::size_t, Slices>> displaced;
    bool placed = false;
    for (std::size_t i = demands_.size(); i-- > number + 1 && !placed;) {
      if (!books_.gang(i).slices.empty()) {
        displaced.emplace_back(i, books_.Remove(i));
        placed = books_.Place(number);
      }
    }
    std::reverse(displaced.begin(), displaced.end());
    for (auto& [gang, slices] : displaced) {
      if (AreUp(slices) && HasRoomOn(gang, slices)) {
        books_.PlaceOn(gang, std::move(slices));
      }
    }
    if (placed) {
      hopeless_.clear();
    }
    return placed;
  }

  [[nodiscard]] bool AreUp(const Slices& slices) const {
    return std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
      return (books_.free().gpus(slice.node) & slice.gpus) == slice.gpus;
    });
  }

  void Try(std::size_t number) {
    if (StaysPut(number)) {
      return;
    }
    const std::size_t hopeless = hopeless_.size();
    if (Search(number)) {
      return;
    }
    if (rules_.mechanism == Mechanism::kTune) {
      Tune(number);
    } else if (rules_.keep && rules_.mechanism == Mechanism::kGreedy &&
               hopeless_.size() > hopeless) {  // no gang like it has failed before
      (void)Displace(number);
    }
  }

  // False at once where a gang like this has found no place since anything was given back.
  bool Search(std::size_t number) {
    const Gang& gang = books_.gang(number);
    const std::tuple like{gang.gpus, gang.wants.milli_cpus, gang.wants.memory_mib,
                          gang.wants.storage_kbps};
    if (hopeless_.contains(like)) {
      return false;
    }
    if (!books_.Place(number)) {
      hopeless_.insert(like);
      return false;
    }
    round_.steps_.push_back({.demand = number, .gang = number});
    return true;
  }

  // The gang gets its share instead (Synergy-Tune, OSDI'22).
  void Tune(std::size_t number) {
    if (CutToShare(number) && Search(number)) {
      return;
    }
    Reclaim(number);
    (void)Search(number);
  }

  // Amounts beyond the share are given up; amounts below it stay. True: there were some.
  bool CutToShare(std::size_t number) {
    Resources& wants = books_.gang(number).wants;
    const Resources cut = model::Least(wants, books_.share());
    return std::exchange(wants, cut) != cut;
  }

  void Reclaim(std::size_t number) {
    const Gang& gang = books_.gang(number);
    for (const auto& [node, gpus] : NodesFor(gang.gpus)) {
      Resources need = model::Beyond(model::Times(gang.wants, gpus), books_.Left(node));
      if (need == Resources{}) {
        continue;
      }
      std::vector<std::size_t> givers;
      for (const std::size_t peer : PeersOn(node)) {
        givers.push_back(peer);
        need = model::Beyond(need, Excess(peer, node));
        if (need == Resources{}) {
          break;
        }
      }
      for (const std::size_t giver : givers) {
        GiveBack(giver);
      }
    }
  }

  void GiveBack(std::size_t giver) {
    Step step{.demand = at_, .gang = giver, .wants = books_.gang(giver).wants};
    for (const Slice& slice : books_.gang(giver).slices) {
      step.on.emplace_back(slice.node, books_.On(slice.node));
    }
    round_.steps_.push_back(std::move(step));
    round_.gave_.push_back(giver);
    Slices gpus = books_.Remove(giver);
    (void)CutToShare(giver);
    books_.PlaceOn(giver, std::move(gpus));
    hopeless_.clear();
  }

  // Where a gang may lie once its neighbours have given back: the first node that has all the GPUs,
  // or the fullest ones.
  [[nodiscard]] std::vector<std::pair<NodeId, int>> NodesFor(int gpus) const {
    const FreeGpus& free = books_.free();
    if (gpus > 1 && gpus <= free.largest_node()) {
      if (const std::optional<NodeId> node = FirstNodeWith(free, gpus)) {
        return {{*node, gpus}};
      }
    }
    std::vector<std::pair<NodeId, int>> nodes;
    for (int count = 1; count <= free.largest_node() && gpus > 0; ++count) {
      for (std::optional<NodeId> node = free.NodesWith(count).First(); node && gpus > 0;
           node = free.NodesWith(count).First(NodeAt(Index(*node) + 1))) {
        nodes.emplace_back(*node, std::min(count, gpus));
        gpus -= nodes.back().second;
      }
    }
    return nodes;
  }

  // Gangs on the fewest nodes first, then by CPUs and memory for each GPU, the most first.
  [[nodiscard]] std::vector<std::size_t> PeersOn(NodeId node) {
    std::vector<std::size_t> peers = books_.On(node);
    std::stable_sort(peers.begin(), peers.end(), [this](std::size_t a, std::size_t b) {
      const Gang& one = books_.gang(a);
      const Gang& other = books_.gang(b);
      return std::tuple(one.slices.size(), -one.wants.milli_cpus, -one.wants.memory_mib) <
             std::tuple(other.slices.size(), -other.wants.milli_cpus, -other.wants.memory_mib);
    });
    return peers;
  }

  // What the gang has on the node beyond the share of its GPUs there.
  [[nodiscard]] Resources Excess(std::size_t number, NodeId node) {
    for (const Slice& slice : books_.gang(number).slices) {
      if (slice.node == node) {
        return model::Beyond(slice.soft, model::Times(books_.share(), std::popcount(slice.gpus)));
      }
    }
    return {};
  }

  // What no gang holds goes to gangs that want more than their share, in the order of the demands.
  // All GPUs of a gang get the same, as the slowest would hold up the others.
  void HandOutRest() {
    for (std::size_t i = 0; i < demands_.size(); ++i) {
      Gang& gang = books_.gang(i);
      if (gang.slices.empty()) {
        continue;
      }
      Resources more = model::Beyond(BestOf(demands_[i]), gang.wants);
      for (const Slice& slice : gang.slices) {
        more = model::Least(more,
                            model::DividedBy(books_.Left(slice.node), std::popcount(slice.gpus)));
      }
      if (more != Resources{}) {
        Slices gpus = books_.Remove(i);
        gang.wants += more;
        books_.PlaceOn(i, std::move(gpus));
      }
    }
  }

  // Each gang takes from its own nodes first, then from the first ones that have something left.
  void Lend(std::vector<Slices>& placed) const {
    std::vector<Resources> left;
    for (std::size_t i = 0; i < books_.free().cluster().nodes.size(); ++i) {
      left.push_back(books_.free().up(NodeAt(i)) ? books_.free().resources(NodeAt(i))
                                                 : Resources{});
    }
    std::vector<Resources> lacking(placed.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (!placed[i].empty()) {
        lacking[i] = books_.Stated(demands_[i].preferred);
      }
      for (Slice& slice : placed[i]) {
        slice.soft = TakeFrom(left[Index(slice.node)], lacking[i]);
      }
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
      for (std::size_t node = 0; node < left.size() && lacking[i] != Resources{}; ++node) {
        AddTo(placed[i], NodeAt(node), TakeFrom(left[node], lacking[i]));
      }
    }
  }

  // As much of what is lacking as there is.
  static Resources TakeFrom(Resources& left, Resources& lacking) {
    const Resources taken = model::Least(lacking, left);
    left -= taken;
    lacking -= taken;
    return taken;
  }

  // More for the gang on a node where it may have no GPU.
  static void AddTo(Slices& slices, NodeId node, const Resources& more) {
    if (more == Resources{}) {
      return;
    }
    auto at = std::find_if(slices.begin(), slices.end(),
                           [node](const Slice& slice) { return slice.node >= node; });
    if (at == slices.end() || at->node != node) {
      at = slices.insert(at, {.node = node});
    }
    at->soft += more;
  }

  const SynergyRules& rules_;
  const std::span<const Demand> demands_;
  const JobTable& jobs_;
  SynergyRound& round_;
  SynergyBooks& books_;
  std::size_t at_ = 0;  // whose turn it is
  std::set<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> hopeless_;
};

void SynergyRound::Place(const SynergyRules& rules, const PackRequest& ask,
                         std::vector<Slices>& slices) {
  Begin(rules, ask);
  Turn(rules, ask, *this).Take(slices);
}

// Undoes what was placed for others than the first demands, or begins anew where that is less.
void SynergyRound::Begin(const SynergyRules& rules, const PackRequest& ask) {
  const bool each_alone =
      rules.mechanism != Mechanism::kFill && rules.mechanism != Mechanism::kLend;
  first_ = each_alone && books_ && !rules.keep ? ask.same : 0;
  const auto undone = std::count_if(steps_.begin(), steps_.end(),
                                    [this](const Step& step) { return step.demand >= first_; });
  gave_.clear();
  if (first_ == 0 || 2 * static_cast<std::size_t>(undone) > steps_.size()) {
    first_ = 0;
    steps_.clear();
    books_.emplace(ask.free, rules.consolidate);
  } else {
    UndoFrom(first_);
  }
  books_->SetGangs(ask.demands.size());
}

void SynergyRound::UndoFrom(std::size_t demand) {
  while (!steps_.empty() && steps_.back().demand >= demand) {
    Step step = std::move(steps_.back());
    steps_.pop_back();
    Slices gpus = books_->Remove(step.gang);
    if (step.on.empty()) {
      continue;
    }
    books_->gang(step.gang).wants = step.wants;
    books_->PlaceOn(step.gang, std::move(gpus));
    for (auto& [node, gangs] : step.on) {
      books_->Reorder(node, std::move(gangs));
    }
    if (step.gang < demand) {
      gave_.push_back(step.gang);
    }
  }
}

// ---------------------------------------------------------------------------------- the component

namespace {

constexpr std::array<OptionSpec, 3> kSynergyOptions{{
    {"mechanism", OptionSpec::Kind::kChoice, "fill",
     "fill: demands up to the proportional share, then what is left; tune: the whole demand or the "
     "share, taken back from neighbours; greedy: the whole demand or nothing; proportional; lend: "
     "the demand, where need be "
     "from other nodes",
     "fill|tune|greedy|proportional|lend"},
    {"consolidate", OptionSpec::Kind::kNumber, "1",
     "1: in one node if possible, the fullest; 0: the first GPUs in node order"},
    {"keep", OptionSpec::Kind::kNumber, "1",
     "1: running jobs that still fit keep their GPUs; 0: all are placed anew"},
}};

// Saves work only: a memory that is read begins afresh.
struct LastRound final : Memory {
  SynergyRound round;

  void Serialize(StateStream& /*state*/) override {}
};

class Synergy final : public Packer {
 public:
  explicit Synergy(const SynergyRules& rules) : rules_(rules) {}
  [[nodiscard]] std::string_view name() const override { return "synergy"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<LastRound>();
  }
  [[nodiscard]] bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                          Memory* memory) const override {
    // Without `keep`, places depend on nothing but the free GPUs and the demands.
    if (!rules_.keep && ask.same == ask.demands.size() && ask.same == slices.size()) {
      return false;
    }
    static_cast<LastRound&>(*memory).round.Place(rules_, ask, slices);
    return true;
  }

 private:
  const SynergyRules rules_;
};

Mechanism MechanismOf(const std::string& name) {
  return name == "proportional" ? Mechanism::kProportional
         : name == "greedy"     ? Mechanism::kGreedy
         : name == "tune"       ? Mechanism::kTune
         : name == "lend"       ? Mechanism::kLend
                                : Mechanism::kFill;
}

Result<Components> MakeSynergy(const Options& options, const ComponentContext& /*context*/) {
  const Mechanism mechanism = MechanismOf(options.Text("mechanism"));
  return Components{
      .packer = std::make_unique<Synergy>(SynergyRules{.mechanism = mechanism,
                                                       .consolidate = options.Flag("consolidate"),
                                                       .keep = options.Flag("keep")})};
}

}  // namespace

ComponentEntry SynergyEntry() {
  return {ComponentKind::kPlacement, "synergy", "with CPUs and memory where they make jobs faster",
          kSynergyOptions, MakeSynergy};
}

}  // namespace trainyard::placements
