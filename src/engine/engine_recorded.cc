// SPDX-License-Identifier: Apache-2.0
// Decisions of another program, taken as they are recorded.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/try.h"
#include "engine/engine.h"
#include "engine/journal.h"
#include "engine/no_requeue.h"
#include "model/slices.h"

namespace trainyard::engine {

class Engine::Following {
 public:
  Following(Engine& engine, const model::Batch& batch)
      : engine_(engine), batch_(batch), decided_(*batch.decided) {}

  [[nodiscard]] Status Make(bool is_due);

 private:
  [[nodiscard]] Status DropWhatFollowsFromFacts();
  [[nodiscard]] Status Read();
  [[nodiscard]] std::string WhyNot(const model::Action& action) const;
  void Select(const model::Action& action);
  [[nodiscard]] bool IsUnjudged(JobId job) const;
  [[nodiscard]] bool IsThere(const Grant& grant) const;

  Engine& engine_;
  const model::Batch& batch_;
  std::span<const model::Action> decided_;
  std::vector<Verdict> verdicts_;
  scheduler::Selection selection_;
};

// `is_due`: by what has happened a decision is due. An empty batch is a wake of the policy: it has
// decided, too, though nothing may have come of it.
Status Engine::Following::Make(bool is_due) {
  engine_.parts_->scheduler.Retire();
  RETURN_IF_ERROR(DropWhatFollowsFromFacts());
  const bool decides = is_due || batch_.events.empty() || !decided_.empty();
  if (!decides) {
    return {};
  }
  RETURN_IF_ERROR(Read());
  engine_.ApplyVerdicts(verdicts_, batch_.now);
  RETURN_IF_ERROR(engine_.Adopt(std::move(selection_), batch_.now));
  NoRequeue(engine_).LeaveStartedAlone();
  const bool by_policy = is_due || batch_.events.empty() ||
                         !std::all_of(decided_.begin(), decided_.end(), [this](const auto& action) {
                           return engine_.jobs_.IsCpuJob(action.job);
                         });
  if (!by_policy) {
    return {};
  }
  engine_.parts_->instants.Decided(batch_.now);
  engine_.resized_.clear();
  engine_.parts_->charges.CountDecisions(++engine_.decisions_);
  return {};
}

// The facts have been taken, and come first in what was decided.
Status Engine::Following::DropWhatFollowsFromFacts() {
  std::vector<model::Action> taken = engine_.actions_;
  std::erase_if(
      taken, [](const model::Action& action) { return action.kind == model::ActionKind::kPace; });
  if (taken.size() > decided_.size() ||
      EncodeActions(taken) != EncodeActions(decided_.first(taken.size()))) {
    return Failed("facts of the journal at " + std::to_string(Seconds(batch_.now)) +
                  " s mean something else to this program");
  }
  decided_ = decided_.subspan(taken.size());
  return {};
}

Status Engine::Following::Read() {
  for (const model::Action& action : decided_) {
    if (const std::string why = WhyNot(action); !why.empty()) {
      return Failed("what the journal has decided at " + std::to_string(Seconds(batch_.now)) +
                    " s cannot be done: job " + std::to_string(engine_.numbers_.Of(action.job)) +
                    ": " + why);
    }
    Select(action);
  }
  return {};
}

// Empty: it can be done.
std::string Engine::Following::WhyNot(const model::Action& action) const {
  if (Index(action.job) >= engine_.jobs_.size()) {
    return "there is no such job";
  }
  switch (action.kind) {
    case model::ActionKind::kAdmit:
    case model::ActionKind::kReject:
      return IsUnjudged(action.job) ? "" : "it does not wait for a verdict";
    case model::ActionKind::kPreempt:
      return engine_.jobs_[action.job].grant.holds() ? "" : "it holds nothing";
    case model::ActionKind::kLaunch:
    case model::ActionKind::kResize:
    case model::ActionKind::kMigrate:
    case model::ActionKind::kTune:
      return !engine_.jobs_.IsLive(action.job) && !IsUnjudged(action.job) ? "it cannot run"
             : IsThere(action.grant)                                      ? ""
                                     : "there are no such nodes or jobs";
    case model::ActionKind::kRelease:
    case model::ActionKind::kPace:
      break;
  }
  return "no decision does that";
}

void Engine::Following::Select(const model::Action& action) {
  const bool admits = action.kind == model::ActionKind::kAdmit;
  if (admits || action.kind == model::ActionKind::kReject) {
    verdicts_.push_back({.job = action.job,
                         .judgement = admits ? Judgement::kAdmit : Judgement::kReject,
                         .reason = action.reason});
  } else if (action.kind == model::ActionKind::kPreempt) {
    selection_.dropped.push_back(action.job);
  } else {
    // Who was told to begin anew elsewhere counts as moved: the record is the same.
    const bool is_there =
        model::SameGpus(engine_.jobs_[action.job].grant.slices, action.grant.slices);
    selection_.placed.push_back({.job = action.job,
                                 .grant = action.grant,
                                 .restart = is_there && action.kind != model::ActionKind::kTune});
  }
}

bool Engine::Following::IsUnjudged(JobId job) const {
  const std::vector<JobId>& unjudged = engine_.jobs_.unjudged();
  return std::find(unjudged.begin(), unjudged.end(), job) != unjudged.end();
}

bool Engine::Following::IsThere(const Grant& grant) const {
  return std::all_of(grant.slices.begin(), grant.slices.end(),
                     [&](const Slice& slice) {
                       return Index(slice.node) < engine_.cluster().nodes.size();
                     }) &&
         std::all_of(grant.group.begin(), grant.group.end(),
                     [&](JobId job) { return Index(job) < engine_.jobs_.size(); });
}

Status Engine::Follow(const model::Batch& batch, bool is_due) {
  return Following(*this, batch).Make(is_due);
}

}  // namespace trainyard::engine
