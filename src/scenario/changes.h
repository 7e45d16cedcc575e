// SPDX-License-Identifier: Apache-2.0
// What changes while a simulation runs, by a file (docs/formats/changes.md): nodes that come and
// go, partitions, another policy, other profiles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/preset.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::scenario {

// Another configuration from some time on; what is not set is as before.
struct ConfigurationChange {
  TimePoint at{};
  std::string where{};  // "file:line", for messages
  std::optional<std::string> preset{};
  std::optional<std::string> policy{};
  std::optional<std::string> placement{};
  std::optional<std::string> admission{};
  std::optional<std::string> grouping{};
  std::optional<std::string> tuning{};
  std::optional<std::string> profiles{};               // the path of throughput profiles
  std::optional<std::vector<Partition>> partitions{};  // all that there are

  // The names among them.
  void ApplyTo(PresetRequest& names) const;
};

// By time. The nodes of the file are added to the cluster, down until a change adds them; what
// happens to nodes is added to Cluster::changes. Paths are relative to the folder of the file.
// Errors: "file:line: what; expected".
[[nodiscard]] Result<std::vector<ConfigurationChange>> ParseChanges(const std::string& path,
                                                                    std::string_view text,
                                                                    Cluster& cluster);

}  // namespace trainyard::scenario
