// SPDX-License-Identifier: Apache-2.0
// A torchloader workload with what it says of an app's start beside the job: for clusters on which
// the apps are to run (docs/formats/torchloader.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard::trace {

struct TorchloaderApp {
  std::string arch;
  std::int64_t depth = 0;
  std::string output_folder;  // may be empty
  std::int64_t iterations_of_epoch = 0;
  std::int64_t epochs = 0;
};

struct TorchloaderWorkload {
  Trace trace;
  std::vector<TorchloaderApp> apps;  // one for each job of the trace
  bool states_addresses = false;     // it has a column master or port
};

// Errors: those of ReadTrace for the format torchloader.
[[nodiscard]] Result<TorchloaderWorkload> ReadTorchloaderWorkload(const std::string& path);

}  // namespace trainyard::trace
