// SPDX-License-Identifier: Apache-2.0
// The GPUs that a job names, as traces write them: docs/formats/torchloader.md.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/csv_reader.h"
#include "model/slices.h"
#include "trace/trace.h"
#include "trainyard/resources.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Reads such lists and collects the nodes that they name.
class DeviceLists {
 public:
  // Errors: not a list of GPUs, a GPU that is named twice.
  [[nodiscard]] Result<Slices> Read(const io::CsvRow& row, int column);
  // Those named so far; the slices count them (Trace::device_nodes).
  [[nodiscard]] const std::vector<DeviceNode>& nodes() const { return nodes_; }

 private:
  [[nodiscard]] NodeId NodeOf(const DeviceNode& node);

  std::vector<DeviceNode> nodes_;
};

// The list that reads as these slices of the nodes. Nodes by position must come in their order,
// from the first on, as they do where they were read.
[[nodiscard]] std::string DeviceListOf(const Slices& slices, std::span<const DeviceNode> nodes);

}  // namespace trainyard::trace
