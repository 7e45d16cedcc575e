// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/time_sharing.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <tuple>

#include "model/slices.h"
#include "policies/gavel/pair_book.h"

namespace trainyard::policies {
namespace {

constexpr double kMostRoundsAhead = 2;  // that a unit may have been served more than its share
constexpr double kStay = 10;            // a change pays if a job then trains so many times its cost
constexpr double kNoShare = 1e-9;

// What the allocation gives of types on which the unit cannot run goes to the others.
std::vector<double> SharesWhereItRuns(const AllocationUnit& unit,
                                      const std::vector<AllocationJob>& jobs) {
  std::vector<double> shares = unit.shares;
  double lost = 0;
  double kept = 0;
  for (std::size_t j = 0; j < shares.size(); ++j) {
    const bool runs = jobs[unit.first].rates[j] > 0 && jobs[unit.second].rates[j] > 0;
    (runs ? kept : lost) += shares[j];
    shares[j] = runs ? shares[j] : 0;
  }
  if (lost > 0 && kept > 0) {
    for (double& share : shares) {
      share *= (kept + lost) / kept;
    }
  }
  return shares;
}

}  // namespace

TimeSharing::TimeSharing(const Snapshot& snapshot, const ProblemOf& of, Duration round,
                         TimeSharingMemory& memory)
    : snapshot_(snapshot), of_(of), round_(round), memory_(memory) {
  for (std::size_t i = 0; i < of.problem().jobs.size(); ++i) {
    index_[of.problem().jobs[i].id] = i;
  }
  for (std::size_t i = 0; i < snapshot.cluster->nodes.size(); ++i) {
    free_.push_back(snapshot.up(NodeAt(i)) ? model::AllGpus(snapshot.cluster->nodes[i].gpus) : 0);
  }
  ForgetUnplaced();
  CountTime();
}

std::vector<JobId> TimeSharing::MembersOf(const SharingUnit& unit) {
  return unit.first == unit.second ? std::vector<JobId>{unit.first}
                                   : std::vector<JobId>{unit.first, unit.second};
}

std::size_t TimeSharing::IndexOf(JobId job) const { return index_.at(job); }

bool TimeSharing::RoundIsOver() const {
  return !memory_.round_end || snapshot_.now >= *memory_.round_end;
}

bool TimeSharing::NeedsAllocation() const {
  std::vector<JobId> jobs;
  for (const auto& [job, at] : index_) {
    jobs.push_back(job);
  }
  const bool changed = jobs != memory_.solved_for || !snapshot_.resized.empty() ||
                       memory_.node_changes != snapshot_.node_changes;
  return changed && (RoundIsOver() || memory_.claims.empty());
}

// Who has left, and who was named GPUs and found no place for what it asks for beside them
// (May::take_others).
void TimeSharing::ForgetUnplaced() {
  const auto is_gone = [this](const auto& unit) {
    return !index_.contains(unit.first.first) || !index_.contains(unit.first.second);
  };
  std::erase_if(memory_.claims, is_gone);
  std::erase_if(memory_.places, [&](const auto& place) {
    if (is_gone(place)) {
      return true;
    }
    const JobId job = place.first.first;
    const JobSpec& spec = snapshot_.jobs->spec(job);
    return spec.traits != nullptr && spec.traits->request &&
           snapshot_.jobs->grant(job).slices.empty();
  });
}

// What each unit has been owed and has had since the last decision.
void TimeSharing::CountTime() {
  const double passed = Seconds(snapshot_.now - memory_.last);
  const double least = -kMostRoundsAhead * Seconds(round_);
  for (auto& [unit, claim] : memory_.claims) {
    const auto place = memory_.places.find(unit);
    for (std::size_t j = 0; j < claim.owed.size(); ++j) {
      const bool had = place != memory_.places.end() && place->second.type == j;
      claim.owed[j] += passed * (claim.shares[j] - (had ? 1 : 0));
      claim.owed[j] = std::max(claim.owed[j], least);
    }
  }
  memory_.last = snapshot_.now;
}

void TimeSharing::Take(const Allocation& allocation) {
  std::map<SharingUnit, TimeSharingMemory::Claim> claims;
  const std::vector<AllocationJob>& jobs = of_.problem().jobs;
  for (const AllocationUnit& unit : allocation.units) {
    const SharingUnit ids{jobs[unit.first].id, jobs[unit.second].id};
    TimeSharingMemory::Claim claim{SharesWhereItRuns(unit, jobs),
                                   std::vector<double>(unit.shares.size(), 0.0)};
    const auto before = memory_.claims.find(ids);
    for (std::size_t j = 0; j < claim.shares.size(); ++j) {
      if (before != memory_.claims.end() && claim.shares[j] > kNoShare) {
        claim.owed[j] = before->second.owed[j];
      }
    }
    claims[ids] = std::move(claim);
  }
  memory_.claims = std::move(claims);
  memory_.solved_for.clear();
  for (const auto& [job, at] : index_) {
    memory_.solved_for.push_back(job);
  }
  memory_.node_changes = snapshot_.node_changes;
}

bool TimeSharing::MayLie(JobId job, NodeId node) const {
  const JobSpec& spec = *of_.views()[IndexOf(job)].spec;
  if (!of_.classes().Has(of_.classes().Accepted(spec), node) && of_.classes().several()) {
    return false;
  }
  return spec.traits == nullptr ||
         !std::binary_search(spec.traits->avoided.begin(), spec.traits->avoided.end(), node);
}

bool TimeSharing::Holds(const SharingUnit& unit, const TimeSharingMemory::Place& place) const {
  const std::vector<JobId> members = MembersOf(unit);
  return std::all_of(members.begin(), members.end(), [&](JobId job) {
    return snapshot_.jobs->grant(job).slices == place.slices &&
           snapshot_.jobs->spec(job).gpus == snapshot_.jobs->grant(job).gpus;
  });
}

void TimeSharing::Occupy(const Slices& slices, bool taken) {
  for (const Slice& slice : slices) {
    std::uint64_t& free = free_[Index(slice.node)];
    free = taken ? free & ~slice.gpus : free | slice.gpus;
  }
}

// A pair of which one has left goes on alone where it is; so does who holds GPUs of which nothing
// is remembered, and who was given others of the type that was named (May::take_others).
void TimeSharing::KeepHolders() {
  for (auto& [unit, place] : memory_.places) {
    if (unit.first == unit.second) {
      const Grant& grant = snapshot_.jobs->grant(unit.first);
      if (!grant.slices.empty() &&
          of_.classes().types().of(grant.slices.front().node) == place.type) {
        place.slices = grant.slices;
      }
    }
  }
  std::erase_if(memory_.places,
                [this](const auto& place) { return !Holds(place.first, place.second); });
  std::set<JobId> known;
  std::vector<std::uint64_t> held(free_.size(), 0);
  const auto hold = [&held](const Slices& slices) {
    for (const Slice& slice : slices) {
      held[Index(slice.node)] |= slice.gpus;
    }
  };
  for (const auto& [unit, place] : memory_.places) {
    known.insert(unit.first);
    known.insert(unit.second);
    hold(place.slices);
  }
  for (const auto& [id, at] : index_) {
    const Grant& grant = snapshot_.jobs->grant(id);
    const bool is_free = std::none_of(
        grant.slices.begin(), grant.slices.end(),
        [&held](const Slice& slice) { return (held[Index(slice.node)] & slice.gpus) != 0; });
    if (grant.gpus == of_.problem().jobs[at].gpus && !grant.slices.empty() && is_free &&
        !known.contains(id)) {
      memory_.places[{id, id}] = {of_.classes().types().of(grant.slices.front().node), grant.slices,
                                  snapshot_.now};
      hold(grant.slices);
    }
  }
}

double TimeSharing::WorthOf(const SharingUnit& unit, std::size_t type) const {
  const std::size_t first = IndexOf(unit.first);
  const std::vector<double>& rates = of_.problem().jobs[first].rates;
  return rates[type] / *std::max_element(rates.begin(), rates.end());
}

double TimeSharing::CostOf(const SharingUnit& unit) const {
  double cost = 0;
  for (const JobId job : MembersOf(unit)) {
    const JobView& view = of_.views()[IndexOf(job)];
    cost = std::max(
        cost, Seconds(snapshot_.costs->Of(
                  *view.spec, view.started ? Change::kRestart : Change::kStart, view.spec->gpus)));
  }
  return cost;
}

void TimeSharing::AddCandidates(const SharingUnit& unit, const std::vector<double>& shares,
                                const std::vector<double>& owed,
                                std::vector<Candidate>& candidates) const {
  const auto place = memory_.places.find(unit);
  const bool alone = unit.first == unit.second;
  std::uint64_t arrival = of_.views()[IndexOf(unit.first)].arrival;
  arrival = std::max(arrival, of_.views()[IndexOf(unit.second)].arrival);
  for (std::size_t j = 0; j < shares.size(); ++j) {
    const bool has_share = shares[j] > kNoShare;
    const bool runs = has_share || (alone && of_.problem().jobs[IndexOf(unit.first)].rates[j] > 0);
    if (!runs) {
      continue;
    }
    Candidate candidate{.unit = unit,
                        .type = j,
                        // By the end of a round in which it waits.
                        .rank = has_share ? owed[j] + shares[j] * Seconds(round_)
                                          : -std::numeric_limits<double>::infinity(),
                        .has_share = has_share,
                        .is_there = place != memory_.places.end() && place->second.type == j,
                        .rate = WorthOf(unit, j),
                        .arrival = arrival};
    if (candidate.is_there && has_share) {
      // Another one pays for its start, and this one for the next.
      const double cost = CostOf(unit);
      const double trained = Seconds(snapshot_.now - place->second.since) - cost;
      candidate.rank += 2 * cost;
      if (trained < kStay * cost) {
        candidate.rank = std::numeric_limits<double>::infinity();
      }
    }
    candidates.push_back(candidate);
  }
}

std::vector<TimeSharing::Candidate> TimeSharing::Candidates(bool round_is_over) const {
  std::vector<Candidate> candidates;
  const std::vector<double> nothing(of_.problem().types(), 0.0);
  for (const auto& [unit, claim] : memory_.claims) {
    AddCandidates(unit, claim.shares, claim.owed, candidates);
  }
  for (const auto& [job, at] : index_) {
    if (!memory_.claims.contains({job, job})) {  // it has come since the last allocation
      AddCandidates({job, job}, nothing, nothing, candidates);
    }
  }
  const auto key = [round_is_over](const Candidate& one) {
    const bool stays = !round_is_over && one.is_there;
    return std::tuple(!stays, !one.has_share, -one.rank, !one.is_there, -one.rate, one.arrival,
                      one.unit, one.type);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&key](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
  return candidates;
}

std::optional<Slices> TimeSharing::FindPlace(const SharingUnit& unit, std::size_t type) const {
  const int gpus = of_.problem().jobs[IndexOf(unit.first)].gpus;
  std::vector<std::pair<int, NodeId>> nodes;  // free GPUs
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const NodeId node = NodeAt(i);
    if (free_[i] != 0 && of_.classes().types().of(node) == type && MayLie(unit.first, node) &&
        MayLie(unit.second, node)) {
      nodes.emplace_back(std::popcount(free_[i]), node);
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second) < std::pair(b.first, b.second);
  });
  const auto one = std::find_if(nodes.begin(), nodes.end(),
                                [gpus](const auto& node) { return node.first >= gpus; });
  if (one != nodes.end()) {
    return Slices{
        {.node = one->second, .gpus = model::LowestGpus(free_[Index(one->second)], gpus)}};
  }
  Slices slices;
  int left = gpus;
  for (auto node = nodes.rbegin(); node != nodes.rend() && left > 0; ++node) {
    const int taken = std::min(left, node->first);
    slices.push_back(
        {.node = node->second, .gpus = model::LowestGpus(free_[Index(node->second)], taken)});
    left -= taken;
  }
  if (left > 0) {
    return std::nullopt;
  }
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.node < b.node; });
  return slices;
}

// First who runs by number of GPUs, then where: those that stay on a type keep their GPUs.
void TimeSharing::Choose(const std::vector<Candidate>& candidates) {
  std::vector<double> left = of_.problem().gpus;
  std::set<JobId> taken;
  std::vector<const Candidate*> coming;
  for (const Candidate& candidate : candidates) {
    const int gpus = of_.problem().jobs[IndexOf(candidate.unit.first)].gpus;
    if (left[candidate.type] < gpus || taken.contains(candidate.unit.first) ||
        taken.contains(candidate.unit.second)) {
      continue;
    }
    left[candidate.type] -= gpus;
    taken.insert(candidate.unit.first);
    taken.insert(candidate.unit.second);
    if (candidate.is_there) {
      const TimeSharingMemory::Place& place = memory_.places.at(candidate.unit);
      Occupy(place.slices, true);
      chosen_[candidate.unit] = place;
    } else {
      coming.push_back(&candidate);
    }
  }
  for (const Candidate* const candidate : coming) {
    if (std::optional<Slices> slices = FindPlace(candidate->unit, candidate->type)) {
      Occupy(*slices, true);
      chosen_[candidate->unit] = {candidate->type, *std::move(slices), snapshot_.now};
    }
  }
}

Proposal TimeSharing::Decide() {
  const bool is_over = RoundIsOver();
  KeepHolders();
  Choose(Candidates(is_over));
  memory_.places = std::move(chosen_);
  Proposal proposal;
  for (const auto& [unit, place] : memory_.places) {
    const bool alone = unit.first == unit.second;
    for (const JobId job : MembersOf(unit)) {
      proposal.demands.push_back({.job = job,
                                  .gpus = of_.problem().jobs[IndexOf(job)].gpus,
                                  .slices = place.slices,
                                  .sharing = alone ? Sharing::kExclusive : Sharing::kCollocated});
    }
  }
  if (is_over) {
    memory_.round_end = snapshot_.now + round_;
  }
  if (!index_.empty()) {
    proposal.wake_at = memory_.round_end;
  }
  return proposal;
}

}  // namespace trainyard::policies
