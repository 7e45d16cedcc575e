// SPDX-License-Identifier: Apache-2.0
// Policies that make an object of each decision.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "trainyard/component_entry.h"

namespace trainyard::policies {

// Decision: constructed from settings, snapshot and memory, it lives for Take() only.
template <typename Decision, typename DecisionMemory, typename Settings>
class DecisionPolicy final : public Policy {
 public:
  DecisionPolicy(std::string_view name, const PolicyTraits& traits, Settings settings)
      : name_(name), traits_(traits), settings_(std::move(settings)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] PolicyTraits traits() const override { return traits_; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<DecisionMemory>();
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return Decision(settings_, snapshot, static_cast<DecisionMemory&>(*memory)).Take();
  }

 private:
  const std::string_view name_;
  const PolicyTraits traits_;
  const Settings settings_;
};

// `name` must live as long as the program.
template <typename Decision, typename DecisionMemory, typename Settings>
[[nodiscard]] Components PolicyOf(std::string_view name, const PolicyTraits& traits,
                                  Settings settings) {
  return {.policy = std::make_unique<DecisionPolicy<Decision, DecisionMemory, Settings>>(
              name, traits, std::move(settings))};
}

}  // namespace trainyard::policies
