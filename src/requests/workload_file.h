// SPDX-License-Identifier: Apache-2.0
// The apps of a torchloader workload file as jobs to be submitted (docs/from/torchloader.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/placeholders.h"
#include "trace/trace.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::requests {

struct WorkloadApp {
  v1::JobRequest request;  // all that the file states of it; no command yet
  Duration arrival{};      // after the start of the workload
  std::int64_t line = 0;
  base::Placeholders placeholders;
};

struct WorkloadFile {
  std::vector<WorkloadApp> apps;  // by arrival, then as they stand
  bool states_addresses = false;  // of masters, which Trainyard chooses itself
  trace::Trace trace;             // the file as it was read, with the remarks of the reader
};

// `cluster_xml`: which node is the first, the second ... worker of torchloader, by name or address;
// empty: in the order of `nodes`. Errors, as
// "file:line: ...": those of both files; a worker that is none of the nodes; GPUs that the nodes do
// not have.
[[nodiscard]] Result<WorkloadFile> ReadWorkloadFile(const std::string& path,
                                                    const std::string& cluster_xml,
                                                    const v1::NodesReply& nodes);

// Puts the values into the command and the values of the environment. Errors: those of base::Fill.
[[nodiscard]] Status FillPlaceholders(const base::Placeholders& placeholders,
                                      v1::LaunchSpec& launch);

}  // namespace trainyard::requests
