// SPDX-License-Identifier: Apache-2.0
// What the world does while the journal cannot be written: it keeps the leases of its agents going,
// and does and says nothing else.
#include <map>
#include <tuple>
#include <utility>

#include "live/live_world.h"

namespace trainyard {

void LiveWorld::Withhold() { withheld_ = std::make_unique<Withheld>(); }

Status LiveWorld::Perform(TimePoint now, std::span<const Action> actions) {
  if (withheld_) {
    withheld_->actions.assign(actions.begin(), actions.end());
    withheld_->answers = calls_.TakeAnswers();
    withheld_->at = now;
    return {};
  }
  for (const Action& action : actions) {
    Note(action);
  }
  Answer();
  return {};
}

void LiveWorld::Release() {
  const std::unique_ptr<Withheld> withheld = std::move(withheld_);
  const TimePoint now = std::exchange(state_.now, withheld->at);  // as a replay will see it
  for (const Action& action : withheld->actions) {
    Note(action);
  }
  state_.now = now;
  calls_.GiveBack(std::move(withheld->answers));
  Answer();
}

// Reports are kept for later, the newest of each kind.
void LiveWorld::Stall(const std::string& why) {
  std::deque<Input> kept;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, int>, std::size_t> reports;
  for (Input& input : inbox_) {
    if (input.kind == Input::Kind::kCall && !input.request.has_logs()) {
      calls_.Refuse(input.number, kResourceExhausted,
                    "the controller cannot write its journal (" + why +
                        "); it takes nothing and starts nothing until it can");
      continue;
    }
    if (input.kind == Input::Kind::kCall) {
      Take(input);
      continue;
    }
    if (input.kind == Input::Kind::kAgent && HearStalled(input)) {
      continue;
    }
    if (input.message.has_attempt()) {
      const v1::AttemptReport& report = input.message.attempt();
      const auto [at, is_new] =
          reports.try_emplace({input.number, report.id().job(), report.id().attempt(),
                               static_cast<int>(report.state())},
                              kept.size());
      if (!is_new) {
        kept[at->second] = std::move(input);
        continue;
      }
    }
    kept.push_back(std::move(input));
  }
  inbox_ = std::move(kept);
  calls_.Answer();
}

// Whether that is all there is to do about the message.
bool LiveWorld::HearStalled(const Input& input) {
  std::optional<NodeId> node = state_.leases.At(input.number);
  if (const auto welcomed = withheld_->welcomed.find(input.number);
      welcomed != withheld_->welcomed.end()) {
    node = welcomed->second;
  }
  const v1::AgentMessage& message = input.message;
  if (message.has_hello() && !node && state_.leases.WhyNotJoin(message.hello()).empty()) {
    node = state_.leases.Named(message.hello().node());
    withheld_->welcomed[input.number] = *node;
    orders_.Welcome(input.number);
  }
  if (!node) {
    return false;
  }
  state_.leases.Hear(*node, state_.now);
  if (!message.has_heartbeat()) {
    return false;
  }
  orders_.AnswerTo(message.heartbeat(), input.number);
  return true;
}

}  // namespace trainyard
