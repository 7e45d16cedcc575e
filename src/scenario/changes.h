// SPDX-License-Identifier: Apache-2.0
// What changes while a simulation runs, by a file (docs/formats/changes.md): nodes that come and
// go, another policy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/preset.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::scenario {

// Another policy, placement, admission, grouping or tuning from some time on; none: as before.
struct NamesChange {
  TimePoint at{};
  std::string where{};  // "file:line", for messages
  std::optional<std::string> policy{};
  std::optional<std::string> placement{};
  std::optional<std::string> admission{};
  std::optional<std::string> grouping{};
  std::optional<std::string> tuning{};

  void ApplyTo(PresetRequest& names) const;
};

// By time. The nodes of the file are added to the cluster, down until a change adds them; what
// happens to nodes is added to Cluster::changes. Errors: "file:line: what; expected".
[[nodiscard]] Result<std::vector<NamesChange>> ReadChanges(const std::string& path,
                                                           Cluster& cluster);

}  // namespace trainyard::scenario
