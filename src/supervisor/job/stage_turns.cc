// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/stage_turns.h"

#include <algorithm>

#include "base/check.h"
#include "supervisor/job/recent_mean.h"

namespace trainyard::supervisor {
namespace {

constexpr int kPhases = 4;

enum Phase : int { kLoading, kPreprocessing, kForward, kCommunication };

Phase PhaseOf(v1::Stage stage) {
  switch (stage) {
    case v1::PREPROCESS:
      return kPreprocessing;
    case v1::FORWARD:
      return kForward;
    case v1::COMMUNICATION:
      return kCommunication;
    default:
      return kLoading;
  }
}

Phase PhaseAt(int slot, int position) {
  return static_cast<Phase>(((slot - position) % kPhases + kPhases) % kPhases);
}

}  // namespace

void StageTurns::Join(const AttemptKey& key, std::uint64_t gpus, const v1::Turns& turns) {
  if (members_.contains(key)) {
    return;
  }
  Group joined{.keys = {key}};
  std::erase_if(groups_, [&](const Group& group) {
    const bool shares = std::any_of(group.keys.begin(), group.keys.end(), [&](const AttemptKey& k) {
      return (members_.at(k).gpus & gpus) != 0;
    });
    if (shares) {
      joined.slot = group.slot;
      joined.keys.insert(joined.keys.end(), group.keys.begin(), group.keys.end());
    }
    return shares;
  });
  std::sort(joined.keys.begin(), joined.keys.end());
  groups_.push_back(std::move(joined));
  members_[key] = {.gpus = gpus, .position = turns.position(), .iteration_s = turns.iteration_s()};
}

StageTurns::Group& StageTurns::GroupOf(const AttemptKey& key) {
  const auto group = std::find_if(groups_.begin(), groups_.end(), [&key](const Group& g) {
    return std::binary_search(g.keys.begin(), g.keys.end(), key);
  });
  CHECK(group != groups_.end());
  return *group;
}

void StageTurns::Leave(const AttemptKey& key, Clock::time_point now) {
  if (members_.erase(key) == 0) {
    return;
  }
  Group& group = GroupOf(key);
  std::erase(group.keys, key);
  if (group.keys.empty()) {
    std::erase_if(groups_, [](const Group& g) { return g.keys.empty(); });
    return;
  }
  Advance(group.keys.front(), now);
}

void StageTurns::Want(const AttemptKey& key, v1::Stage stage, Clock::time_point now) {
  Member& member = members_.at(key);
  if (member.state == State::kApart) {
    member.iteration_from.reset();
  }
  if (std::exchange(member.late, false)) {
    late_.push_back({.key = key, .over = true});
  }
  member.state = State::kWaits;
  member.stage = stage;
  member.since = now;
  member.preprocesses = member.preprocesses || stage == v1::PREPROCESS;
  Advance(key, now);
}

void StageTurns::End(const AttemptKey& key, Clock::time_point now) {
  const auto member = members_.find(key);
  if (member != members_.end() && member->second.state == State::kInStage) {
    member->second.state = State::kBetween;
    member->second.since = now;
    Advance(key, now);
  }
}

bool StageTurns::MayBegin(const Member& member, int slot) const {
  const Phase phase = PhaseAt(slot, member.position);
  const Phase wanted = PhaseOf(member.stage);
  const bool loads_late = wanted == kLoading && phase == kPreprocessing && !member.preprocesses;
  return member.state == State::kWaits && !member.ahead && (phase == wanted || loads_late);
}

// Whether the slot cannot end because of the member.
bool StageTurns::HoldsSlot(const Member& member, int slot) const {
  if (member.ahead) {
    return false;
  }
  switch (member.state) {
    case State::kApart:
    case State::kWaits:
      return false;
    case State::kBetween:
      return true;
    case State::kInStage:
      return PhaseOf(member.stage) != kLoading || member.preprocesses ||
             PhaseAt(slot, member.position) != kLoading;
  }
  return false;
}

void StageTurns::Begin(const AttemptKey& key, Member& member, bool in_company,
                       Clock::time_point now) {
  if (member.stage == v1::LOAD) {
    if (member.iteration_from && in_company) {
      const double seconds = std::chrono::duration<double>(now - *member.iteration_from).count();
      member.mean_s = RecentMean(member.mean_s, seconds);
    }
    member.iteration_from = in_company ? std::optional(now) : std::nullopt;
  }
  member.state = State::kInStage;
  member.since = now;
  goes_.push_back({key, member.stage});
}

// Whether a member computes in another one's slot, as who has come to two members may find it.
bool StageTurns::ComputesAhead(const Group& group) const {
  return std::any_of(group.keys.begin(), group.keys.end(), [this](const AttemptKey& key) {
    const Member& member = members_.at(key);
    return member.ahead && member.state == State::kInStage && member.stage == v1::FORWARD;
  });
}

// Of two members the one in front, if it has loaded while the other communicates.
void StageTurns::BeginAhead(const Group& group, bool in_company, Clock::time_point now) {
  std::vector<std::pair<AttemptKey, Member*>> company;
  for (const AttemptKey& key : group.keys) {
    if (Member& member = members_.at(key); member.state != State::kApart) {
      company.emplace_back(key, &member);
    }
  }
  const auto preprocesses = [](const auto& each) { return each.second->preprocesses; };
  if (company.size() != 2 || std::any_of(company.begin(), company.end(), preprocesses)) {
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [key, member] = company[i];
    const Member& other = *company[1 - i].second;
    const bool in_front = PhaseAt(group.slot, member->position) == kLoading &&
                          PhaseAt(group.slot, other.position) == kCommunication;
    const bool other_communicates =
        other.state == State::kInStage && other.stage == v1::COMMUNICATION;
    if (in_front && other_communicates && member->state == State::kWaits &&
        member->stage == v1::FORWARD && !member->ahead) {
      member->ahead = true;
      Begin(key, *member, in_company, now);
    }
  }
}

// Lets all begin whose turn it is. Goes through at most a cycle of slots, and the first one again:
// within these the turn of each who waits comes.
void StageTurns::Advance(const AttemptKey& of, Clock::time_point now) {
  Group& group = GroupOf(of);
  const auto members_in = [&](State state) {
    return std::count_if(group.keys.begin(), group.keys.end(),
                         [&](const AttemptKey& key) { return members_.at(key).state == state; });
  };
  const bool in_company =
      static_cast<std::ptrdiff_t>(group.keys.size()) - members_in(State::kApart) > 1;
  for (int passed = 0; passed <= kPhases; ++passed) {
    for (const AttemptKey& key : group.keys) {
      Member& member = members_.at(key);
      member.ahead = member.ahead && PhaseAt(group.slot, member.position) != kForward;
      const bool is_free = member.stage != v1::FORWARD || !ComputesAhead(group);
      if (is_free && MayBegin(member, group.slot)) {
        Begin(key, member, in_company, now);
      }
    }
    BeginAhead(group, in_company, now);
    const bool held = std::any_of(group.keys.begin(), group.keys.end(), [&](const AttemptKey& key) {
      return HoldsSlot(members_.at(key), group.slot);
    });
    if (held || members_in(State::kWaits) == 0) {
      return;
    }
    group.slot = (group.slot + 1) % kPhases;
  }
}

// --------------------------------------------------------------------------------------- bounds

StageTurns::Clock::time_point StageTurns::BoundOf(const Member& member) {
  constexpr double kLongest = 1e6;
  switch (member.state) {
    case State::kBetween:
      return member.since + kPauseBound;
    case State::kInStage:
      return member.since + kStageBound +
             std::chrono::ceil<Clock::duration>(
                 std::chrono::duration<double>(2 * std::clamp(member.iteration_s, 0.0, kLongest)));
    case State::kApart:
    case State::kWaits:
      break;
  }
  return Clock::time_point::max();
}

void StageTurns::SetApart(const AttemptKey& key, Member& member) {
  const bool in_stage = member.state == State::kInStage;
  member.late = GroupOf(key).keys.size() > 1;
  late_.push_back({.key = key,
                   .stage = in_stage ? std::optional(member.stage) : std::nullopt,
                   .alone = !member.late});
  member.state = State::kApart;
}

void StageTurns::OnTime(Clock::time_point now) {
  for (auto& [key, member] : members_) {
    if (BoundOf(member) <= now) {
      SetApart(key, member);
      Advance(key, now);
    }
  }
}

std::optional<StageTurns::Clock::time_point> StageTurns::next_due() const {
  std::optional<Clock::time_point> due;
  for (const auto& [key, member] : members_) {
    if (const Clock::time_point bound = BoundOf(member); bound != Clock::time_point::max()) {
      due = due ? std::min(*due, bound) : bound;
    }
  }
  return due;
}

std::optional<double> StageTurns::IterationOf(const AttemptKey& key) const {
  const auto member = members_.find(key);
  return member == members_.end() ? std::nullopt : member->second.mean_s;
}

}  // namespace trainyard::supervisor
