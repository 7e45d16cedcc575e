// SPDX-License-Identifier: Apache-2.0
// The variables that Slurm sets for a batch script, as far as they are the same for all workers of
// a node; those of each worker are the supervisor's (supervisor/worker_environment.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::live {

// What the job has of one node.
struct SlurmPlace {
  std::string node;
  int workers = 0;
  std::vector<int> gpus;
  int cpus = 0;                 // 0: not known
  std::int64_t memory_mib = 0;  // 0: it is not shared out
};

struct SlurmTask {
  std::uint64_t array = 0;  // number of the array
  std::int64_t index = 0;
  std::string_view indices;  // of all tasks: "3-5:2"
};

struct SlurmJob {
  std::uint64_t number = 0;
  std::uint32_t attempt = 1;
  std::string_view name;
  std::string_view user;
  std::string_view queue;
  std::string_view cluster;
  std::string_view address;  // of the first node
  bool states_tasks = false;
  std::optional<SlurmTask> task{};
  std::vector<SlurmPlace> places;  // by the rank of the node
};

// Name and value of each, for the workers on one of the places. REQUIRES: there is such a place.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> SlurmVariables(const SlurmJob& job,
                                                                              std::size_t place);

}  // namespace trainyard::live
