// SPDX-License-Identifier: Apache-2.0
#include "scheduler/packing.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/request/request_fit.h"
#include "model/resource_amounts.h"
#include "model/slices.h"

namespace trainyard::scheduler {
namespace {

// Placement::Choose: free GPUs in node order. How many they are the engine looks at. O(slices).
bool KeepsContract(const Slices& slices, const FreeGpus& free) {
  const NodeId* last = nullptr;
  for (const Slice& slice : slices) {
    if (Index(slice.node) >= free.cluster().nodes.size() ||
        (last != nullptr && slice.node <= *last) ||
        (free.gpus(slice.node) & slice.gpus) != slice.gpus) {
      return false;
    }
    last = &slice.node;
  }
  return true;
}

// So many GPUs of each node.
Slices LowestOf(const FreeGpus& free, const std::vector<std::pair<NodeId, int>>& parts) {
  Slices slices;
  for (const auto& [node, gpus] : parts) {
    slices.push_back({.node = node, .gpus = free.Lowest(node, gpus)});
  }
  return slices;
}

}  // namespace

Packing::Packing(const Cluster& cluster)
    : names_gpus_(false),
      placement_(nullptr),
      data_(nullptr),
      choices_(nullptr),
      free_(cluster),
      all_free_(free_),
      requests_(cluster),
      reserved_(cluster) {}

Packing::Packing(const Cluster& cluster, const Placement* placement, const DataLocality* data,
                 NodeChoices* choices)
    : names_gpus_(true),
      placement_(placement),
      data_(data),
      choices_(choices),
      free_(cluster, data),
      all_free_(free_),
      requests_(cluster),
      reserved_(cluster) {}

std::optional<Slices> Packing::Find(const JobSpec& job, Demand&& demand, const Grant* former,
                                    model::NodeClassSet but) {
  const auto is_free = [&](const Slices& slices) {
    return free_.AreFree(slices) && requests_.Fits(job, slices);
  };
  if (!demand.slices.empty()) {
    return is_free(demand.slices) ? std::optional(std::move(demand.slices)) : std::nullopt;
  }
  if (former != nullptr && former->gpus == demand.gpus && is_free(former->slices)) {
    return former->slices;
  }
  if (job.traits && job.traits->request && !requests_.HasLicensesFor(*job.traits->request)) {
    return std::nullopt;
  }
  return choices_ != nullptr && choices_->several()
             ? ChooseByType(job, demand, but)
             : Choose(free_, job, demand, KindOf(job, demand.gpus));
}

// The choice of such demands, where it leaves out nodes or asks for more than GPUs; else null.
const NodeChoices::Choice* Packing::RestrictedBy(int kind) const {
  if (choices_ == nullptr || !choices_->several_kinds()) {
    return nullptr;
  }
  const NodeChoices::Choice& choice = choices_->Of(kind);
  return choice.avoided.empty() && choice.rules == nullptr ? nullptr : &choice;
}

std::optional<Slices> Packing::Choose(const FreeGpus& free, const JobSpec& job,
                                      const Demand& demand, int kind) const {
  const NodeChoices::Choice* const choice = RestrictedBy(kind);
  if (choice == nullptr && !requests_.limits()) {
    return ChooseAmong(free, job, demand);
  }
  const FreeGpus seen = SeenBy(free, requests_, demand.gpus, choice);
  return choice != nullptr && choice->rules != nullptr ? ChooseAsked(seen, job, demand, kind)
                                                       : ChooseAmong(seen, job, demand);
}

// As if nothing were free on nodes that the job avoids, and on the others no more GPUs than there
// are CPUs and memory for.
FreeGpus Packing::SeenBy(const FreeGpus& free, const model::RequestBook& book, int gpus,
                         const NodeChoices::Choice* choice) const {
  static const NodeRequest kSilent;
  FreeGpus seen = free;
  if (choice != nullptr) {
    for (const NodeId node : choice->avoided) {
      if (seen.count(node) > 0) {
        seen.Take({{.node = node, .gpus = seen.gpus(node)}});
      }
    }
  }
  const bool asks = choice != nullptr && choice->rules != nullptr;
  if (!asks && !book.limits()) {
    return seen;
  }
  for (std::size_t i = 0; i < cluster().nodes.size(); ++i) {
    const NodeId node = NodeAt(i);
    const int count = seen.count(node);
    if (count == 0) {
      continue;
    }
    // Where all of the gang has room, the placement sees all that is free, to choose well.
    const int most = book.MostGpus(asks ? choice->request : kSilent, gpus, node, count);
    if (most < std::min(gpus, count)) {
      const std::uint64_t rest = most == 0 ? 0 : seen.Lowest(node, most);
      seen.Take({{.node = node, .gpus = seen.gpus(node) & ~rest}});
    }
  }
  return seen;
}

// Where it asks for a number of nodes, on these; else where the placement says. If no node has room
// for what lies on one node elsewhere, on several.
std::optional<Slices> Packing::ChooseAsked(const FreeGpus& seen, const JobSpec& job, Demand demand,
                                           int kind) const {
  const NodeChoices::Choice& choice = choices_->Of(kind);
  std::optional<Slices> chosen;
  if (choice.rules->nodes.least > 0) {
    chosen = LowestOf(seen, model::Spread(*choice.rules, demand.gpus, OffersIn(seen)));
  } else {
    demand.may_split =
        demand.may_split || demand.gpus > largest_node({.gpus = demand.gpus, .kind = kind});
    chosen = ChooseAmong(seen, job, demand);
    if (!chosen && demand.may_split && demand.gpus <= seen.total()) {
      chosen = LowestOf(seen, model::FewestNodes(seen, demand.gpus));
    }
  }
  if (!chosen || chosen->empty()) {
    return std::nullopt;
  }
  for (Slice& slice : *chosen) {
    slice.soft =
        model::Most(slice.soft, model::NeedOn(cluster().nodes[Index(slice.node)], choice.request,
                                              std::popcount(slice.gpus), demand.gpus));
  }
  return chosen;
}

// With its CPUs and memory on nodes where nothing else is.
int Packing::largest_node(const DemandClass& of) const {
  const NodeChoices::Choice* const choice = RestrictedBy(of.kind);
  if (choice == nullptr || choice->rules == nullptr) {
    return several_kinds() ? choices_->Of(of.kind).largest_node : free_.largest_node();
  }
  return choices_->LargestNodeFor(of);
}

model::WaitReason Packing::WhyNot(const DemandClass& of) {
  if (of.gpus <= free_gpus(of)) {
    return model::WaitReason::kLocality;
  }
  const NodeChoices::Choice* const choice = RestrictedBy(of.kind);
  const bool asks = choice != nullptr && choice->rules != nullptr;
  return (asks || requests_.limits()) && of.gpus <= FreeWithoutRequests(of)
             ? model::WaitReason::kResources
             : model::WaitReason::kGpus;
}

// Free GPUs on the nodes where such a demand may lie, whatever CPUs and memory are left there.
int Packing::FreeWithoutRequests(const DemandClass& of) const {
  int total = 0;
  for (std::size_t i = 0; i < cluster().nodes.size(); ++i) {
    total += MayUse(of, NodeAt(i)) && free_.up(NodeAt(i)) ? free_.count(NodeAt(i)) : 0;
  }
  return total;
}

bool Packing::MayUse(const NodeChoices::Choice& choice, NodeId node) const {
  return choices_->classes().Has(choice.all, node) &&
         !std::binary_search(choice.avoided.begin(), choice.avoided.end(), node);
}

int Packing::free_gpus(const DemandClass& of) { return CountFor(of, &Free::now, free_, requests_); }

bool Packing::CanBeMet(const DemandClass& of) {
  const NodeChoices::Choice* const choice = RestrictedBy(of.kind);
  if (choice != nullptr && choice->rules != nullptr) {
    if (!reserved_.HasLicensesFor(choice->request)) {
      return false;
    }
    if (choice->rules->nodes.least > 0) {
      const FreeGpus seen =
          SeenBy(PartFor(*choice, &Free::all, all_free_), reserved_, of.gpus, choice);
      return !model::Spread(*choice->rules, of.gpus, OffersIn(seen)).empty();
    }
  }
  return of.gpus <= CountFor(of, &Free::all, all_free_, reserved_);
}

// The tightest first.
std::vector<model::NodeOffer> Packing::OffersIn(const FreeGpus& seen) const {
  std::vector<model::NodeOffer> offers;
  for (std::size_t i = 0; i < cluster().nodes.size(); ++i) {
    if (const int count = seen.count(NodeAt(i)); count > 0) {
      offers.push_back({.node = NodeAt(i), .most = count, .order = free_.count(NodeAt(i))});
    }
  }
  return offers;
}

const FreeGpus& Packing::PartFor(const NodeChoices::Choice& choice, FreeGpus Free::*part,
                                 const FreeGpus& whole) {
  return choices_->several() ? Of(choice.all).*part : whole;
}

// The GPUs that such a demand may have: of `whole`, or of the part with its GPU types.
int Packing::CountFor(const DemandClass& of, FreeGpus Free::*part, const FreeGpus& whole,
                      const model::RequestBook& book) {
  if (!several_kinds() && !book.limits()) {
    return whole.total();
  }
  if (choices_ == nullptr) {
    return SeenBy(whole, book, of.gpus, nullptr).total();
  }
  const NodeChoices::Choice& choice = choices_->Of(of.kind);
  const FreeGpus& free = PartFor(choice, part, whole);
  if (book.limits() || choice.rules != nullptr) {
    return SeenBy(free, book, of.gpus, &choice).total();
  }
  int total = free.total();
  for (const NodeId node : choice.avoided) {
    total -= free.count(node);
  }
  return total;
}

std::optional<Slices> Packing::ChooseAmong(const FreeGpus& free, const JobSpec& job,
                                           const Demand& demand) const {
  if (demand.gpus > free.total()) {
    return std::nullopt;
  }
  if (placement_ == nullptr) {
    return ChooseTightest(free, demand);
  }
  std::optional<Slices> chosen = placement_->Choose(free, job, demand);
  if (chosen && !KeepsContract(*chosen, free)) {
    std::fprintf(stderr,
                 "placement '%s' gives job %s GPUs that are not free, or not in node order\n",
                 std::string(placement_->name()).c_str(), job.name.c_str());
    CHECK(KeepsContract(*chosen, free));
  }
  return chosen;
}

// Where nothing else chooses: the node with the fewest free GPUs that has room, or as few nodes as
// have it together.
std::optional<Slices> Packing::ChooseTightest(const FreeGpus& free, const Demand& demand) {
  const int tightest = free.SmallestCount(std::min(demand.gpus, kMaxGpusPerNode));
  if (tightest >= demand.gpus) {
    return LowestOf(free, {{*free.NodesWith(tightest).First(), demand.gpus}});
  }
  return demand.may_split ? std::optional(LowestOf(free, model::FewestNodes(free, demand.gpus)))
                          : std::nullopt;
}

bool Packing::IsMixed(const Slices& slices) const {
  const model::GpuTypes& types = choices_->classes().types();
  return std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    return types.of(slice.node) != types.of(slices.front().node);
  });
}

// On the fastest types with room. Of equally fast ones the placement chooses as if they were one,
// but not GPUs of several if one of them has room; of types that differ only where none has, and
// then of as few of the fastest as have room together.
std::optional<Slices> Packing::ChooseByType(const JobSpec& job, const Demand& demand,
                                            model::NodeClassSet but) {
  const model::NodeClasses& classes = choices_->classes();
  const int kind = choices_->ClassOf(job, demand.gpus).kind;
  NodeChoices::Choice choice = choices_->Of(kind);
  if (but != 0) {
    for (model::NodeClassSet& pool : choice.pools) {
      pool &= ~but;
    }
    std::erase(choice.pools, model::NodeClassSet{0});
  }
  for (const model::NodeClassSet pool : choice.pools) {
    std::optional<Slices> chosen = Choose(Of(pool).now, job, demand, kind);
    if (chosen && !IsMixed(*chosen)) {
      return chosen;
    }
    std::optional<Slices> pure;
    const model::GpuTypeSet types = classes.TypesOf(pool);
    if (std::has_single_bit(types)) {
      continue;
    }
    model::ForEachOf(types, [&](std::size_t type) {
      if (!pure) {
        pure = Choose(Of(pool & classes.OfType(type)).now, job, demand, kind);
      }
    });
    if (pure) {
      return pure;
    }
  }
  model::NodeClassSet fastest = 0;
  for (const model::NodeClassSet pool : choice.pools) {
    fastest |= pool;
    if (std::optional<Slices> chosen = Choose(Of(fastest).now, job, demand, kind)) {
      return chosen;
    }
  }
  return std::nullopt;
}

const Packing::Free& Packing::Of(model::NodeClassSet classes) {
  const auto known = by_class_.find(classes);
  if (known != by_class_.end()) {
    return known->second;
  }
  const std::vector<NodeSpec>& nodes = cluster().nodes;
  std::vector<bool> part(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    part[i] = choices_->classes().Has(classes, NodeAt(i));
  }
  Free free{.now = FreeGpus(cluster(), data_, part), .all = {}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    free.now.SetUp(NodeAt(i), free_.up(NodeAt(i)));
  }
  const auto as_in = [&](FreeGpus& part_of, const FreeGpus& whole) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (part[i] && free_.up(NodeAt(i))) {
        Resources taken = part_of.resources(NodeAt(i));
        taken -= whole.resources(NodeAt(i));
        part_of.Take({{.node = NodeAt(i),
                       .gpus = part_of.gpus(NodeAt(i)) & ~whole.gpus(NodeAt(i)),
                       .soft = taken}});
      }
    }
  };
  as_in(free.now, all_free_);
  free.all = free.now;
  as_in(free.now, free_);
  return by_class_.emplace(classes, std::move(free)).first->second;
}

std::optional<Grant> Packing::TryAdd(const JobSpec& job, Demand&& demand, const Grant* former,
                                     model::NodeClassSet but) {
  Grant grant{.gpus = demand.gpus, .sharing = demand.sharing, .running = demand.running};
  if (demand.sharing == Sharing::kCollocated) {
    grant.slices = std::move(demand.slices);  // collocated jobs are in no other's way
    return grant;
  }
  if (demand.gpus > free_.total()) {
    return std::nullopt;
  }
  if (demand.gpus > 0 && names_gpus()) {
    std::optional<Slices> slices = Find(job, std::move(demand), former, but);
    if (!slices) {
      return std::nullopt;
    }
    grant.slices = std::move(*slices);
  }
  Add(job, grant);
  return grant;
}

std::optional<NodeId> Packing::Overcommitted() const {
  const std::vector<NodeSpec>& nodes = cluster().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Resources& left = free_.resources(NodeAt(i));
    if ((nodes[i].capacity.milli_cpus > 0 && left.milli_cpus < 0) ||
        (nodes[i].capacity.memory_mib > 0 && left.memory_mib < 0)) {
      return NodeAt(i);
    }
  }
  return std::nullopt;
}

void Packing::Take(const Slices& slices) {
  free_.Take(slices);
  for (auto& [classes, free] : by_class_) {
    free.now.Take(slices);
  }
}

void Packing::Return(const Slices& slices) {
  free_.Return(slices);
  for (auto& [classes, free] : by_class_) {
    free.now.Return(slices);
  }
}

void Packing::Add(const JobSpec& job, const Grant& grant) {
  if (names_gpus()) {
    Take(grant.slices);
    requests_.Add(job, grant.slices);
  } else {
    free_.Take(grant.gpus);
  }
}

void Packing::Remove(const JobSpec& job, const Grant& grant) {
  if (names_gpus()) {
    Return(grant.slices);
    requests_.Remove(job, grant.slices);
  } else {
    free_.Return(grant.gpus);
  }
}

void Packing::Replace(const Slices& before, const Slices& after) {
  if (before != after) {
    Return(before);
    Take(after);
  }
}

void Packing::SetUp(NodeId node, bool up) {
  free_.SetUp(node, up);
  all_free_.SetUp(node, up);
  for (auto& [classes, free] : by_class_) {
    free.now.SetUp(node, up);
    free.all.SetUp(node, up);
  }
}

Grant Packing::OnNodesUp(const Grant& grant) const {
  if (grant.slices.empty()) {
    return {.gpus = grant.gpus};
  }
  Grant up;
  std::copy_if(grant.slices.begin(), grant.slices.end(), std::back_inserter(up.slices),
               [this](const Slice& slice) { return free_.up(slice.node); });
  up.gpus = model::CountGpus(up.slices);
  return up;
}

void Packing::Reserve(const JobSpec& job, const Grant& grant) {
  const Grant up = OnNodesUp(grant);
  Add(job, up);
  if (!names_gpus()) {
    return all_free_.Take(up.gpus);
  }
  reserved_.Add(job, up.slices);
  all_free_.Take(up.slices);
  for (auto& [classes, free] : by_class_) {
    free.all.Take(up.slices);
  }
}

void Packing::Unreserve(const JobSpec& job, const Grant& grant) {
  const Grant up = OnNodesUp(grant);
  Remove(job, up);
  if (!names_gpus()) {
    return all_free_.Return(up.gpus);
  }
  reserved_.Remove(job, up.slices);
  all_free_.Return(up.slices);
  for (auto& [classes, free] : by_class_) {
    free.all.Return(up.slices);
  }
}

bool Packing::IsFree(const JobSpec& job, const Grant& grant) const {
  return names_gpus() ? free_.AreFree(grant.slices) && requests_.Fits(job, grant.slices)
                      : grant.gpus <= free_.total();
}

Grant Packing::FreePartOf(const Grant& grant) const {
  Grant part;
  for (const Slice& slice : grant.slices) {
    if (const std::uint64_t gpus = slice.gpus & free_.gpus(slice.node); gpus != 0) {
      part.slices.push_back({.node = slice.node, .gpus = gpus});
    }
  }
  part.gpus = model::CountGpus(part.slices);
  return part;
}

void Packing::Clear() {
  free_ = all_free_;
  requests_ = reserved_;
  for (auto& [classes, free] : by_class_) {
    free.now = free.all;
  }
}

}  // namespace trainyard::scheduler
