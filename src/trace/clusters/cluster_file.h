// SPDX-License-Identifier: Apache-2.0
// Reads cluster descriptions: native TOML (docs/formats/cluster.md), the one-row CSV of the
// published simulators, the node lists of published logs, the INI file of Synergy's, torchloader's
// XML ("FILE.xml" or "FILE.xml:gpus=4,cpus=24"), and the short form "16x8" (16 nodes with 8 GPUs
// each), "16x8:V100", or several of them, "8x8:A100,16x8:V100".
#pragma once

#include <string>
#include <string_view>

#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Whether it names no file.
[[nodiscard]] bool IsShortForm(std::string_view spec);
[[nodiscard]] Result<Cluster> ReadCluster(const std::string& spec);

}  // namespace trainyard::trace
