// SPDX-License-Identifier: Apache-2.0
#include "faults/witness.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::faults {

std::string Witness::Begin(int node, const AttemptKey& attempt, const std::vector<int>& gpus,
                           const MayShare& may_share) {
  ++begun_;
  std::string wrong;
  for (const auto& [where, held] : present_) {
    const auto& [other_node, other] = where;
    if (other.first == attempt.first && other.second != attempt.second) {
      wrong = fmt::format("job {} runs twice: attempt {} on n{}, attempt {} on n{}", other.first,
                          other.second, other_node, attempt.second, node);
    }
    if (other_node != node || other == attempt || may_share(other, attempt)) {
      continue;
    }
    for (const int gpu : gpus) {
      if (std::find(held.begin(), held.end(), gpu) != held.end()) {
        wrong = wrong.empty() ? fmt::format("GPU {} of n{} is held by job {} and given to job {}",
                                            gpu, node, other.first, attempt.first)
                              : wrong;
      }
    }
  }
  present_[{node, attempt}] = gpus;
  return wrong;
}

void Witness::End(int node, const AttemptKey& attempt) { present_.erase({node, attempt}); }

bool Witness::IsOn(int node, std::uint64_t job) const {
  const auto at = present_.lower_bound({node, AttemptKey{job, 0}});
  return at != present_.end() && at->first.first == node && at->first.second.first == job;
}

void Accounts::OnStep(TimePoint now, std::span<const model::Action> actions) {
  steps_.push_back({.at = now, .actions = {actions.begin(), actions.end()}});
  if (forgetful_) {
    std::erase_if(steps_.back().actions, [](const model::Action& action) {
      return action.kind == model::ActionKind::kPreempt;
    });
  }
}

std::vector<Accounts::Step> Accounts::Commit() {
  std::vector<Step> steps;
  for (const Decided& decided : steps_) {
    steps.emplace_back().at = decided.at;
    Take(decided, steps.back());
  }
  steps_.clear();
  return steps;
}

void Accounts::Take(const Decided& decided, Step& step) {
  for (const model::Action& action : decided.actions) {
    switch (action.kind) {
      case model::ActionKind::kPreempt:
        if (Index(action.job) < holdings_.size()) {
          step.victims.push_back({action.job, holdings_[Index(action.job)].grant});
        }
        Hold(action.job, {}, decided.at);
        break;
      case model::ActionKind::kRelease:
        Hold(action.job, {}, decided.at);
        break;
      case model::ActionKind::kLaunch:
      case model::ActionKind::kResize:
      case model::ActionKind::kMigrate:
        step.beneficiaries.insert(action.job);
        NoteNewcomer(action, step);
        Hold(action.job, action.grant, decided.at);
        break;
      case model::ActionKind::kTune:
        Hold(action.job, action.grant, decided.at);
        break;
      default:
        break;
    }
  }
  last_ = std::max(last_, decided.at);
}

void Accounts::NoteNewcomer(const model::Action& action, Step& step) const {
  for (const Slice& slice : action.grant.slices) {
    const bool was_there = Index(action.job) < holdings_.size() &&
                           std::any_of(holdings_[Index(action.job)].grant.slices.begin(),
                                       holdings_[Index(action.job)].grant.slices.end(),
                                       [&](const Slice& held) { return held.node == slice.node; });
    if (!was_there) {
      step.newcomers.emplace_back(action.job, slice.node);
    }
  }
}

void Accounts::Hold(JobId job, const Grant& grant, TimePoint now) {
  if (holdings_.size() <= Index(job)) {
    holdings_.resize(Index(job) + 1);
  }
  Holding& holding = holdings_[Index(job)];
  holding.gpu_micros += (now - holding.since).count() * holding.grant.gpus;
  holding.held = HeldBy(job, now);
  holding.grant = grant;
  holding.since = now;
}

Duration Accounts::HeldBy(JobId job, TimePoint now) const {
  if (Index(job) >= holdings_.size()) {
    return Duration{0};
  }
  const Holding& holding = holdings_[Index(job)];
  const bool runs = holding.grant.holds() && holding.grant.running;
  return holding.held + (runs ? now - holding.since : Duration{0});
}

std::vector<std::pair<JobId, Duration>> Accounts::Holders(TimePoint now) const {
  std::vector<std::pair<JobId, Duration>> holders;
  for (std::size_t i = 0; i < holdings_.size(); ++i) {
    if (holdings_[i].grant.holds()) {
      holders.emplace_back(JobAt(i), HeldBy(JobAt(i), now));
    }
  }
  return holders;
}

void Accounts::Adopt(std::span<const model::JobRecord> records, TimePoint now) {
  // A replay that is refused, as of a snapshot of another program, has told of steps, too: time
  // goes back where the next one begins.
  const auto turn = std::is_sorted_until(
      steps_.rbegin(), steps_.rend(),
      [](const Decided& later, const Decided& sooner) { return later.at > sooner.at; });
  steps_.erase(steps_.begin(), turn.base());
  // Those of its last instant again: some of them may have been written and not seen.
  std::erase_if(steps_, [this](const Decided& decided) { return decided.at < last_; });
  static_cast<void>(Commit());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Grant held = i < holdings_.size() ? holdings_[i].grant : Grant();
    if (held.gpus != records[i].grant.gpus || held.holds() != records[i].grant.holds()) {
      Hold(JobAt(i), records[i].grant, now);
    }
  }
}

void Accounts::BeginAnew(std::span<const model::JobRecord> records, TimePoint now) {
  steps_.clear();
  holdings_.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    Holding& holding = holdings_[i];
    holding.gpu_micros = records[i].progress.gpu_micros;
    holding.held = records[i].progress.run_time;
    holding.grant = records[i].grant;
    holding.since = records[i].progress.as_of;
  }
  last_ = now;
}

std::string Accounts::FindWrongCharge(std::span<const model::JobRecord> records) {
  for (std::size_t i = 0; i < records.size() && i < holdings_.size(); ++i) {
    if (records[i].phase.get() < model::JobPhase::kCompleted || holdings_[i].compared) {
      continue;
    }
    holdings_[i].compared = true;
    ++compared_;
    if (records[i].progress.gpu_micros != holdings_[i].gpu_micros) {
      return fmt::format("job {} is charged {} GPU microseconds and has held {}", i + 1,
                         records[i].progress.gpu_micros, holdings_[i].gpu_micros);
    }
  }
  return {};
}

}  // namespace trainyard::faults
