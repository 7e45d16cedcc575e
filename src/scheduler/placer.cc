// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placer.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "model/slices.h"
#include "scheduler/gpu_mask.h"
#include "scheduler/keep_no_requeue.h"
#include "scheduler/walk.h"

namespace trainyard::scheduler {
namespace {

// Of a job that asks for more than GPUs, or is to hold some of its GPUs until it has all: beside
// jobs with requests two might wait for ever for what the other holds. All that it asks for, for
// itself.
Demand WholeAndAlone(const Demand& demand, const JobSpec& job) {
  return {.job = demand.job,
          .gpus = demand.running ? demand.gpus : job.gpus,
          .slices = demand.slices,
          .restart = demand.restart,
          .credit = demand.credit};
}

// Whether the demand, where running jobs are kept, is for what the job holds.
bool KeepsGrant(const Demand& demand, const Grant& held) {
  return held.gpus > 0 && held.gpus == demand.gpus && !demand.restart &&
         demand.credit == Duration{0} && held.sharing == demand.sharing &&
         held.running == demand.running && held.group.empty() && demand.partners.empty() &&
         (demand.slices.empty() || demand.slices == held.slices);
}

// Gives the gang more of that amount, as far as it prefers more and there is any: each of its GPUs
// as much as the others.
void TopUp(std::int64_t Resources::*amount, const Demand& demand, FreeGpus& left, Slices& slices) {
  std::int64_t each = demand.gpus > 0 ? demand.preferred.*amount / demand.gpus : 0;
  for (const Slice& slice : slices) {
    const bool is_stated = left.cluster().nodes[Index(slice.node)].capacity.*amount > 0;
    const std::int64_t more = std::max<std::int64_t>(0, left.resources(slice.node).*amount);
    each = is_stated ? std::min(each, (slice.soft.*amount + more) / std::popcount(slice.gpus)) : 0;
  }
  for (Slice& slice : slices) {
    Resources more;
    more.*amount = each * std::popcount(slice.gpus) - slice.soft.*amount;
    if (more.*amount > 0) {
      slice.soft += more;
      left.Take({{.node = slice.node, .soft = more}});
    }
  }
}

}  // namespace

Placer::Placer(const SchedulerContext& context, const Bundle& bundle, const ProposalCheck& check)
    : context_(context),
      jobs_(context.jobs),
      bundle_(bundle),
      check_(check),
      packing_(context.cluster) {}

void Placer::Reopen() {
  walk_ = bundle_.ordering_walk();
  may_ = bundle_.traits().may;
  memory_ = bundle_.packer != nullptr ? bundle_.packer->NewMemory() : nullptr;
  Refill();
}

void Placer::Refill() {
  ClearPlaced();
  packing_ = bundle_.names_gpus()
                 ? Packing(context_.cluster, bundle_.placement, &context_.data, &context_.choices)
                 : Packing(context_.cluster);
  counting_.reset();
  if (walk_.count_first) {
    counting_.emplace(context_.cluster);
  }
  for (std::size_t node = 0; node < context_.nodes_up.size(); ++node) {
    if (!context_.nodes_up[node]) {
      SetUp(NodeAt(node), false);
    }
  }
  for (const JobId job : jobs_.finishing()) {
    Reserve(job);
  }
  for (const JobId job : jobs_.cpu_finishing()) {
    if (KeepsCpus(jobs_, job)) {
      Reserve(job);
    }
  }
  for (const JobId job : jobs_.running()) {
    const Grant& grant = jobs_[job].grant;
    if (jobs_.IsFinishing(job)) {
      continue;
    }
    if (packs_grants()) {
      packing_.Add(*jobs_[job].spec, grant);
    }
    if (counting_) {
      counting_->AddCount(grant.gpus);
    }
  }
}

void Placer::Reserve(JobId job) {
  const model::JobRecord& record = jobs_[job];
  packing_.Reserve(*record.spec, record.grant);
  if (counting_) {
    counting_->Reserve(*record.spec, record.grant);
  }
}

void Placer::EndFinishing(JobId job) {
  ClearPlaced();
  const model::JobRecord& record = jobs_[job];
  packing_.Unreserve(*record.spec, record.grant);
  if (counting_) {
    counting_->Unreserve(*record.spec, record.grant);
  }
}

void Placer::SetUp(NodeId node, bool up) {
  ClearPlaced();
  packing_.SetUp(node, up);
  if (counting_) {
    counting_->SetUp(node, up);
  }
}

void Placer::NewMark() {
  marked_.resize(jobs_.size(), 0);
  ++mark_;
}

std::vector<JobId> Placer::DroppedBy(const Selection& selection) {
  if (!selection.complete) {
    return selection.dropped;
  }
  NewMark();
  for (const Placed& placed : selection.placed) {
    if (placed.grant.gpus > 0) {
      Mark(placed.job);
    }
  }
  return RunningUnmarked();
}

void Placer::Remove(JobId job) {
  is_as_placed_ = false;
  if (!packs_grants()) {
    return;
  }
  const model::JobRecord& record = jobs_[job];
  packing_.Remove(*record.spec, record.grant);
  if (counting_) {
    counting_->Remove(*record.spec, record.grant);
  }
}

// Adds to an incomplete selection the jobs that hold GPUs and of which it says nothing, as they
// are.
void Placer::AddUnnamedRunning(Selection& selection) const {
  std::vector<bool> named(jobs_.size(), false);
  for (const JobId job : selection.dropped) {
    named[Index(job)] = true;
  }
  for (const Placed& placed : selection.placed) {
    named[Index(placed.job)] = true;
  }
  for (const JobId job : jobs_.running()) {
    if (!named[Index(job)] && !jobs_.IsFinishing(job)) {
      selection.placed.push_back({job, jobs_[job].grant});
    }
  }
}

Result<Selection> Placer::PlaceCounted(Selection selection) {
  // As a whole list, so that it can be placed anew.
  if (!selection.complete) {
    AddUnnamedRunning(selection);
    selection.dropped.clear();
    std::sort(selection.placed.begin(), selection.placed.end(),
              [this](const Placed& a, const Placed& b) {
                return jobs_[a.job].arrival < jobs_[b.job].arrival;
              });
  }
  Result<Selection> placed = bundle_.packs(walk_)
                                 ? PackDemands(LargestFirst(selection))
                                 : PlaceSelected(selection, walk_, context_.views, packing_);
  if (placed.ok()) {
    for (const model::Blocked& blocked : selection.blocked) {
      placed.value().Block(blocked);
    }
    CountPlaced();
  }
  return placed;
}

// What was selected by count and found no place does not count.
void Placer::CountPlaced() {
  counting_->Clear();
  counting_->AddCount(packing_.all_free().total() - packing_.free_gpus());
}

// With counting, of the jobs that fit by count. Where nobody is preempted, running jobs run on.
Result<Selection> Placer::PlaceQueue(std::span<const Ranked> list) {
  const bool run_on = !walk_.preempt && walk_.keep_running;
  if (!counting_ && !walk_.largest_first && !run_on) {
    return PackQueue(list);
  }
  std::vector<Demand> demands = counting_ ? FitByCount(list) : DemandsOf(list);
  if (walk_.largest_first) {
    SortLargestFirst(demands, demands.begin());
  }
  if (run_on) {
    PutRunningFirst(demands, context_.views);
  }
  Result<Selection> selection = PackDemands(std::move(demands));
  if (counting_ && selection.ok()) {
    CountPlaced();
  }
  return selection;
}

// The jobs that find enough free GPUs, wherever these are.
std::vector<Demand> Placer::FitByCount(std::span<const Ranked> list) {
  std::vector<Demand> fitting;
  counting_->Clear();
  if (walk_.misfit == Misfit::kEvictTail) {
    std::vector<Demand> demands = DemandsOf(list);
    for (const Placed& placed : WalkDemands(demands, walk_, context_.views, *counting_).placed) {
      fitting.push_back({.job = placed.job, .gpus = placed.grant.gpus});
    }
    return fitting;
  }
  int left = counting_->free_gpus();
  for (const Ranked& ranked : list) {
    if (ranked.gpus <= left) {
      fitting.push_back({.job = ranked.job, .gpus = ranked.gpus});
      left -= ranked.gpus;
    } else if (left == 0 ||
               (walk_.misfit == Misfit::kStop && ranked.gpus <= counting_->all_free().total())) {
      break;
    }
  }
  return fitting;
}

Result<Selection> Placer::PlaceProposed(std::vector<Demand> demands, const Walk& walk) {
  const bool in_place = walk.keep_running && walk.misfit != Misfit::kEvictTail;
  const bool keeps = in_place && !may_.share;
  const bool finds_others = in_place && may_.name_gpus && bundle_.honours_requests();
  const bool anyone_keeps =
      (may_.share || may_.name_gpus) &&
      KeepNoRequeue(demands, jobs_, context_.cluster.nodes.size(), keeps && finds_others);
  if (bundle_.packs(walk)) {
    if (walk.largest_first) {
      SortLargestFirst(demands, demands.begin());
    }
    return PackDemands(std::move(demands));
  }
  if (finds_others && (AnyoneAsks(demands) || (keeps && (anyone_keeps || NamesTaken(demands))))) {
    return PlaceNearNamed(std::move(demands));
  }
  if (keeps) {
    return may_.name_gpus ? TakeNamed(std::move(demands))
                          : Result<Selection>(PlaceChanging(std::move(demands), walk));
  }
  SortForWalk(demands, walk);
  packing_.Clear();
  Selection selection = WalkDemands(demands, walk, context_.views, packing_);
  if (!packs_grants()) {
    packing_.Clear();
  }
  return selection;
}

// With the GPUs that the policy has named for the jobs that start or move. The engine's book checks
// that no two jobs hold the same.
Result<Selection> Placer::TakeNamed(std::vector<Demand> demands) {
  NewMark();
  Selection selection;
  selection.placed.reserve(demands.size());
  for (Demand& demand : demands) {
    const Grant& held = jobs_[demand.job].grant;
    if (demand.gpus > 0) {
      Mark(demand.job);
    }
    if (KeepsGrant(demand, held)) {
      continue;
    }
    if (demand.slices.empty() && held.gpus == demand.gpus) {
      demand.slices = held.slices;
    }
    RETURN_IF_ERROR(check_.Named(demand));
    Placed& placed = selection.placed.emplace_back();
    placed.job = demand.job;
    placed.grant.gpus = demand.gpus;
    placed.grant.slices = std::move(demand.slices);
    placed.grant.running = demand.running;
    placed.restart = demand.restart;
    placed.credit = demand.credit;
  }
  selection.dropped = RunningUnmarked();
  return selection;
}

bool Placer::AnyoneAsks(std::span<const Demand> demands) const {
  return std::any_of(demands.begin(), demands.end(),
                     [this](const Demand& one) { return Asks(one); });
}

// Whether the policy names GPUs of one job for another, as that has been given others than its own.
// O(nodes + slices).
bool Placer::NamesTaken(std::span<const Demand> demands) const {
  if (std::all_of(demands.begin(), demands.end(),
                  [](const Demand& demand) { return demand.slices.empty(); })) {
    return false;
  }
  GpuMask taken(context_.cluster.nodes.size());
  return std::any_of(demands.begin(), demands.end(), [&](const Demand& demand) {
    const Slices& slices = demand.slices.empty() ? jobs_[demand.job].grant.slices : demand.slices;
    const bool twice = taken.HasAnyOf(slices);
    taken.Add(slices);
    return twice;
  });
}

// The types other than those of the GPUs that are named, as classes of nodes.
model::NodeClassSet Placer::OtherTypes(const Demand& demand, const DemandClass& of) const {
  if (!context_.choices.several()) {
    return 0;
  }
  const model::NodeClasses& classes = context_.choices.classes();
  model::NodeClassSet named = 0;
  for (const Slice& slice : demand.slices) {
    named |= classes.OfType(classes.types().of(slice.node));
  }
  const model::NodeClassSet all = packing_.NodesFor(of);
  return (all & named) == 0 ? 0 : all & ~named;
}

// GPUs that jobs hold in a packing which has no place for several on one: collocated jobs take what
// no other has taken yet.
class Placer::Beside {
 public:
  Beside(Packing& packing, std::size_t nodes) : packing_(packing), shared_(nodes) {}

  // Whether the job may have exactly these.
  [[nodiscard]] bool HasRoom(const JobSpec& job, const Grant& grant) const {
    if (grant.sharing != Sharing::kCollocated) {
      return packing_.IsFree(job, grant);
    }
    const Grant free = packing_.FreePartOf(grant);
    return free.gpus + shared_.CountOf(grant.slices) == grant.gpus && packing_.IsFree(job, free);
  }
  // As the policy has named it; nothing if that has no room.
  [[nodiscard]] std::optional<Grant> TryAdd(const JobSpec& job, const Demand& demand) {
    Grant grant{.gpus = demand.gpus,
                .slices = demand.slices,
                .sharing = demand.sharing,
                .running = demand.running};
    if (!HasRoom(job, grant)) {
      return std::nullopt;
    }
    Add(job, grant);
    return grant;
  }
  // REQUIRES: HasRoom.
  void Add(const JobSpec& job, const Grant& grant) {
    if (grant.sharing != Sharing::kCollocated) {
      return packing_.Add(job, grant);
    }
    packing_.Add(job, packing_.FreePartOf(grant));
    shared_.Add(grant.slices);
  }

 private:
  Packing& packing_;
  GpuMask shared_;  // of collocated jobs
};

// On the GPUs that the policy has named where the job asks for nothing else and these are still
// free, else on others of the same types that meet what it asks for. Jobs that keep what they have
// come first.
Result<Selection> Placer::PlaceNearNamed(std::vector<Demand> demands) {
  NewMark();
  packing_.Clear();
  Beside beside(packing_, context_.cluster.nodes.size());
  std::erase_if(demands, [&](const Demand& demand) {
    const model::JobRecord& job = jobs_[demand.job];
    const bool keeps = demand.running && KeepsGrant(demand, job.grant);
    if (keeps) {
      Mark(demand.job);
      beside.Add(*job.spec, job.grant);
    }
    return keeps;
  });
  Selection selection;
  for (Demand& named : demands) {
    const model::JobRecord& job = jobs_[named.job];
    if (named.slices.empty() && job.grant.gpus == named.gpus) {
      named.slices = job.grant.slices;
    }
    RETURN_IF_ERROR(check_.Named(named));
    const bool alone = Asks(named) || !named.running;
    const Demand demand = alone ? WholeAndAlone(named, *job.spec) : std::move(named);
    const DemandClass of = packing_.ClassOf(*job.spec, demand.gpus);
    std::optional<Grant> grant = alone ? std::nullopt : beside.TryAdd(*job.spec, demand);
    if (!grant) {
      grant = FindOthers(demand, of);
    }
    if (!grant) {
      selection.Block({demand.job, demand.gpus, packing_.WhyNot(of), of.kind});
      continue;
    }
    if (demand.gpus > 0) {
      Mark(demand.job);
      std::for_each(demand.partners.begin(), demand.partners.end(),
                    [this](JobId partner) { Mark(partner); });
    }
    AddGroup(selection,
             {.job = demand.job,
              .grant = *std::move(grant),
              .restart = demand.restart,
              .credit = demand.credit},
             demand.partners);
  }
  packing_.Clear();
  selection.dropped = RunningUnmarked();
  return selection;
}

// Of the types that the policy has named, for the job alone or with its partners.
std::optional<Grant> Placer::FindOthers(const Demand& demand, const DemandClass& of) {
  const model::JobRecord& job = jobs_[demand.job];
  const model::NodeClassSet but = OtherTypes(demand, of);
  const bool may_stay =
      job.grant.sharing == Sharing::kExclusive &&
      std::none_of(job.grant.slices.begin(), job.grant.slices.end(), [&](const Slice& slice) {
        return but != 0 && context_.choices.classes().Has(but, slice.node);
      });
  Demand anywhere{.job = demand.job, .gpus = demand.gpus};
  anywhere.sharing = demand.partners.empty() ? Sharing::kExclusive : Sharing::kInterleaved;
  anywhere.may_split = true;
  return packing_.TryAdd(*job.spec, std::move(anywhere), may_stay ? &job.grant : nullptr, but);
}

// Places the demands whose grants do not stay as they are; the other jobs are not touched.
Selection Placer::PlaceChanging(std::vector<Demand> demands, const Walk& walk) {
  NewMark();
  std::erase_if(demands, [this](const Demand& demand) {
    const bool stays = KeepsGrant(demand, jobs_[demand.job].grant);
    if (stays) {
      Mark(demand.job);
    }
    return stays;
  });
  RemoveUnmarked();
  SortForWalk(demands, walk);
  Selection selection = WalkDemands(demands, walk, context_.views, packing_);
  selection.complete = false;
  for (const Placed& placed : selection.placed) {
    if (placed.grant.gpus > 0) {
      Mark(placed.job);
    }
  }
  selection.dropped = RunningUnmarked();
  return selection;
}

// Ascending.
std::vector<JobId> Placer::RunningUnmarked() const {
  std::vector<JobId> unseen(jobs_.running().size());
  unseen.erase(std::copy_if(jobs_.running().begin(), jobs_.running().end(), unseen.begin(),
                            [this](JobId job) {
                              return marked_[Index(job)] != mark_ && !jobs_.IsFinishing(job);
                            }),
               unseen.end());
  std::sort(unseen.begin(), unseen.end());
  return unseen;
}

// Takes the running jobs without a mark out of the packing.
std::vector<JobId> Placer::RemoveUnmarked() {
  std::vector<JobId> removed = RunningUnmarked();
  for (const JobId job : removed) {
    packing_.Remove(*jobs_[job].spec, jobs_[job].grant);
  }
  return removed;
}

// Into the order in which demands are tried: a job that keeps its GPU count keeps its slices.
void Placer::SortForWalk(std::vector<Demand>& demands, const Walk& walk) {
  const auto rest = walk.keep_running ? PutSameSizeFirst(demands) : demands.begin();
  if (walk.largest_first) {
    SortLargestFirst(demands, rest);
  }
}

// Moves demands whose job holds as many GPUs already to the front; returns where the others begin.
std::vector<Demand>::iterator Placer::PutSameSizeFirst(std::vector<Demand>& demands) {
  std::vector<Demand>& others = scratch_demands_;
  auto end = demands.begin();
  const auto holds_as_many = [this](const Demand& demand) {
    return demand.gpus > 0 && jobs_[demand.job].grant.gpus == demand.gpus;
  };
  if (std::none_of(demands.begin(), demands.end(), holds_as_many)) {
    return end;
  }
  for (auto demand = demands.begin(); demand != demands.end(); ++demand) {
    if (!holds_as_many(*demand)) {
      others.push_back(std::move(*demand));
    } else if (end++ != demand) {
      *(end - 1) = std::move(*demand);
    }
  }
  std::move(others.begin(), others.end(), end);
  others.clear();
  return end;
}

// By the packer, which also says how much CPU, memory and storage bandwidth each job gets.
Result<Selection> Placer::PackDemands(std::vector<Demand> demands) {
  for (Demand& demand : demands) {
    if (demand.preferred == Resources{}) {
      demand.preferred = jobs_[demand.job].preferred;
    }
  }
  return PackList(
      demands,
      [](const Demand& a, const Demand& b) {
        return a.job == b.job && a.gpus == b.gpus && a.preferred == b.preferred && !a.restart &&
               a.credit == b.credit;
      },
      [](Demand& demand) { return std::move(demand); });
}

// Likewise, the jobs of the queue in its order.
Result<Selection> Placer::PackQueue(std::span<const Ranked> list) {
  return PackList(
      list, [](const Ranked& a, const Demand& b) { return a.job == b.job && a.gpus == b.gpus; },
      [this](const Ranked& ranked) -> Demand {
        return {.job = ranked.job, .gpus = ranked.gpus, .preferred = jobs_[ranked.job].preferred};
      });
}

// Packs the demands that `demand_of` makes of the list. Those at its beginning that are the `same`
// as last time are not made anew.
template <typename List, typename Same, typename DemandOf>
Result<Selection> Placer::PackList(List& list, Same same, DemandOf demand_of) {
  const auto first =
      std::mismatch(list.begin(), list.end(), placed_.begin(), placed_.end(), same).first;
  const auto count = static_cast<std::size_t>(first - list.begin());
  placed_.resize(count);
  placed_.reserve(list.size());
  std::transform(first, list.end(), std::back_inserter(placed_), demand_of);
  return Pack(count);
}

// So that all is placed as if for the first time.
void Placer::ClearPlaced() {
  placed_.clear();
  placed_slices_.clear();
  is_as_placed_ = false;
}

// The demands of `placed_`, of which the first `same` were the first ones last time, too.
Result<Selection> Placer::Pack(std::size_t same) {
  const bool changed =
      std::any_of(placed_.begin(), placed_.end(), [this](const Demand& one) { return Asks(one); })
          ? PackAround()
          : bundle_.packer->Pack({packing_.all_free(), placed_, context_.views, same},
                                 placed_slices_, memory_.get());
  CHECK(placed_slices_.size() == placed_.size());
  if (!changed && is_as_placed_) {
    return Selection{.blocked = placed_blocked_};
  }
  Selection selection;
  if (packs_grants()) {
    TakeMoved(selection);
  } else {
    TakeAll(selection);
  }
  if (const std::optional<NodeId> node = packing_.Overcommitted()) {
    return Failed("placement '" + std::string(bundle_.packer->name()) + "' gives more of node " +
                  context_.cluster.nodes[Index(*node)].name + " than it has");
  }
  BlockUnplaced(selection);
  placed_blocked_ = selection.blocked;
  is_as_placed_ = true;
  return selection;
}

// For more than GPUs, which no packer looks at.
bool Placer::Asks(const Demand& demand) const {
  const JobSpec& job = *jobs_[demand.job].spec;
  return demand.gpus > 0 && job.traits && job.traits->request;
}

// The jobs that ask for more than GPUs are placed first, in their order, and the others packed
// around them. What is then left of CPUs and memory goes to the first ones, up to what they would
// have best.
bool Placer::PackAround() {
  Packing around = packing_;
  around.Clear();
  std::vector<Slices> slices(placed_.size());
  std::vector<Demand> others;
  std::vector<std::size_t> numbers;  // of the others
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    if (!Asks(placed_[i])) {
      others.push_back(placed_[i]);
      numbers.push_back(i);
      continue;
    }
    const model::JobRecord& job = jobs_[placed_[i].job];
    if (std::optional<Grant> grant = around.TryAdd(*job.spec, Demand(placed_[i]), &job.grant)) {
      slices[i] = std::move(grant->slices);
    }
  }
  std::vector<Slices> of_others;
  FreeGpus left = around.LeftToSilent();
  (void)bundle_.packer->Pack({left, others, context_.views, 0}, of_others, memory_.get());
  CHECK(of_others.size() == others.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    left.Take(of_others[i]);
    slices[numbers[i]] = std::move(of_others[i]);
  }
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    if (Asks(placed_[i])) {
      TopUp(&Resources::milli_cpus, placed_[i], left, slices[i]);
      TopUp(&Resources::memory_mib, placed_[i], left, slices[i]);
    }
  }
  placed_slices_ = std::move(slices);
  return true;
}

void Placer::BlockUnplaced(Selection& selection) {
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Demand& demand = placed_[i];
    if (demand.gpus > 0 && placed_slices_[i].empty()) {
      const DemandClass of = packing_.ClassOf(*jobs_[demand.job].spec, demand.gpus);
      if (!selection.Blocks(of)) {
        selection.blocked.push_back({demand.job, demand.gpus, packing_.WhyNot(of), of.kind});
      }
    }
  }
}

// Brings the packing, which holds what the jobs hold, up to date; the selection says what changes.
void Placer::TakeMoved(Selection& selection) {
  std::vector<std::size_t> moved;
  std::size_t holders = 0;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Grant& held = jobs_[placed_[i].job].grant;
    const Slices& slices = placed_slices_[i];
    const int gpus = slices.empty() ? 0 : placed_[i].gpus;
    holders += held.gpus > 0 ? 1 : 0;
    if (held.gpus == gpus && held.slices == slices) {
      if (placed_[i].gpus == 0 && !jobs_[placed_[i].job].started) {
        moved.push_back(i);
      }
      continue;
    }
    if (held.gpus > 0) {
      packing_.Remove(*jobs_[placed_[i].job].spec, held);
    }
    if (gpus > 0) {
      moved.push_back(i);
    } else {
      selection.dropped.push_back(placed_[i].job);
    }
  }
  if (holders + jobs_.finishing().size() < jobs_.running().size()) {
    DropUndemanded(selection);
  }
  std::sort(selection.dropped.begin(), selection.dropped.end());
  selection.placed.reserve(moved.size());
  for (const std::size_t i : moved) {
    AddPlaced(i, selection);
  }
}

// Drops the jobs that hold GPUs and for which none are demanded.
void Placer::DropUndemanded(Selection& selection) {
  NewMark();
  for (const Demand& demand : placed_) {
    Mark(demand.job);
  }
  const std::vector<JobId> removed = RemoveUnmarked();
  selection.dropped.insert(selection.dropped.end(), removed.begin(), removed.end());
}

void Placer::TakeAll(Selection& selection) {
  packing_.Clear();
  selection.complete = true;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    if (placed_[i].gpus == 0 || !placed_slices_[i].empty()) {
      AddPlaced(i, selection);
    }
  }
}

void Placer::AddPlaced(std::size_t number, Selection& selection) {
  selection.placed.push_back(
      {placed_[number].job, {.gpus = placed_[number].gpus, .slices = placed_slices_[number]}});
  packing_.Add(*jobs_[placed_[number].job].spec, selection.placed.back().grant);
}

void Placer::Tune(Selection& selection, const Snapshot& snapshot) {
  if (!selection.complete) {
    AddUnnamedRunning(selection);
  }
  std::vector<Tuning::Tuned> jobs;
  std::vector<Slices> packed;  // as the packing has them, in the order of `placed`
  for (Placed& placed : selection.placed) {
    packed.push_back(placed.grant.slices);
    if (placed.grant.gpus == 0) {
      continue;
    }
    const Grant& held = jobs_[placed.job].grant;
    const bool settled = OnlyTuned(held, placed.grant);
    if (settled) {
      placed.grant.slices = held.slices;
    }
    jobs.push_back({placed.job, jobs_[placed.job].spec.get(), &placed.grant.slices, settled});
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const Tuning::Tuned& a, const Tuning::Tuned& b) { return a.job < b.job; });
  bundle_.tuning->Tune(snapshot, jobs);
  if (!packs_grants()) {
    return;
  }
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packing_.Replace(packed[i], selection.placed[i].grant.slices);
  }
}

}  // namespace trainyard::scheduler
