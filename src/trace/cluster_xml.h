// SPDX-License-Identifier: Apache-2.0
// The cluster file of torchloader. The only code that knows pugixml is its source file.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard {

// What such a file does not say: the published workers ask their own host. 0: not stated.
struct NodeSizes {
  int gpus = 0;
  int cpus = 0;
};

// `text` is the content of `path`. A node for each <worker_config>, whose own <gpus> and <cpus>
// count before `sizes`. Errors: no XML; another root; no worker; unknown elements; a node without
// GPUs; addresses or ports that are none; two workers at one address.
[[nodiscard]] Result<Cluster> ParseClusterXml(const std::string& path, std::string_view text,
                                              const NodeSizes& sizes);

}  // namespace trainyard
