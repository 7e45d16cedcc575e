// SPDX-License-Identifier: Apache-2.0
// The components of a run or of a controller, from their names.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "policy/catalog.h"
#include "scenario/preset.h"

namespace trainyard {

// Everything an engine is made of, owned for as long as it lives.
struct Assembly {
  ResolvedPreset preset;
  PolicyComponent policy;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<ExecutionModel> rates;  // the caller's choice

  [[nodiscard]] Bundle bundle() const;
};

// Errors: names that cannot be resolved; components that do not go together, or not with the
// cluster. `profiles`: where policies look for prior samples; may be empty.
[[nodiscard]] Result<Assembly> AssembleComponents(const PresetRequest& names,
                                                  const Cluster& cluster,
                                                  const std::string& profiles);

}  // namespace trainyard
