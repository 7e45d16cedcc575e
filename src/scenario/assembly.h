// SPDX-License-Identifier: Apache-2.0
// The components of a run or of a controller, from their names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "engine/engine.h"
#include "loader/loader_profiles.h"
#include "scenario/preset.h"

namespace trainyard::scenario {

// Everything an engine is made of, owned for as long as it lives.
struct Assembly {
  ResolvedPreset preset;
  std::string label;  // of a candidate: "policy admission placement", as they were named
  Components policy;
  Components placement;
  Components admission;
  Components grouping;                    // empty: none
  Components tuning;                      // empty: none
  std::unique_ptr<ExecutionModel> rates;  // the caller's choice
  profile::Corrector corrector;           // of these rates; may be empty
  std::vector<Assembly> candidates;       // of a selector; then the others have no components
  std::unique_ptr<engine::ForkRunner> forks;

  // With a selector: that of the first candidate.
  [[nodiscard]] scheduler::Bundle bundle() const;
  // Of all candidates together.
  [[nodiscard]] PolicyTraits traits() const;
  // Whether somebody divides the cores of nodes as loader workers.
  [[nodiscard]] bool divides_cores() const {
    return traits().needs.named_devices || tuning.tuning != nullptr;
  }
  // With these components, which the caller keeps or gives to the result (owner). REQUIRES: rates
  // are set.
  [[nodiscard]] std::shared_ptr<engine::Configuration> Configure(Cluster cluster) const;
};

// Errors: names that cannot be resolved; components that do not go together, or not with the
// cluster. `profiles`: where policies look for prior samples; may be empty. `loader`: for policies
// that divide loader workers; may be null, and must outlive the result.
[[nodiscard]] Result<Assembly> AssembleComponents(const PresetRequest& names,
                                                  const Cluster& cluster,
                                                  const std::string& profiles,
                                                  const loader::LoaderProfiles* loader = nullptr);

}  // namespace trainyard::scenario
