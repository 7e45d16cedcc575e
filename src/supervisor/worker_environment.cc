// SPDX-License-Identifier: Apache-2.0
#include "supervisor/worker_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "supervisor/data/data_store.h"
#include "supervisor/job/job_protocol.h"

namespace trainyard::supervisor {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr std::array kTakenOver{"HOME",    "LANG", "LC_ALL", "LD_LIBRARY_PATH",
                                "LOGNAME", "PATH", "SHELL",  "TMPDIR",
                                "TZ",      "USER"};

void AddTakenOver(Variables& variables) {
  variables["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  for (const char* name : kTakenOver) {
    if (const char* value = std::getenv(name); value != nullptr) {
      variables[name] = value;
    }
  }
}

void AddJobs(const v1::LaunchSpec& launch, Variables& variables) {
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    // No environment can hold other names or values.
    const std::string nul("\0", 1);
    const bool fits = !variable.name().empty() &&
                      variable.name().find_first_of("=" + nul) == std::string::npos &&
                      variable.value().find(nul) == std::string::npos;
    if (fits) {
      variables[variable.name()] = variable.value();
    }
  }
}

// As torchrun sets them.
void AddTorchrun(const v1::StartAttempt& start, int local_rank, Variables& variables) {
  variables["MASTER_ADDR"] = start.master_address();
  variables["MASTER_PORT"] = std::to_string(start.master_port());
  variables["WORLD_SIZE"] = std::to_string(start.world_size());
  variables["RANK"] = std::to_string(start.first_rank() + local_rank);
  variables["LOCAL_RANK"] = std::to_string(local_rank);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(WorkersOf(start));
  variables["GROUP_RANK"] = std::to_string(start.node_rank());
  variables["NODE_RANK"] = std::to_string(start.node_rank());
}

// As Blox sets them. Its text and its code differ in the name of the last.
void AddBlox(const v1::StartAttempt& start, int local_rank, const std::string& gpus,
             Variables& variables) {
  const bool has_gpu = local_rank < start.gpus_size();
  variables["local_gpu_id"] = has_gpu ? std::to_string(start.gpus(local_rank)) : "";
  variables["master_ip_address"] = start.master_address();
  variables["world_size"] = std::to_string(start.world_size());
  variables["dist_rank"] = std::to_string(start.first_rank() + local_rank);
  variables["job_id"] = std::to_string(start.id().job());
  variables["local_accessible_gpu"] = gpus;
  variables["local_accessible_gpus"] = gpus;
}

void AddOwn(const v1::StartAttempt& start, const std::string& gpus, const std::string& socket,
            const std::string& checkpoints, Variables& variables) {
  variables["CUDA_VISIBLE_DEVICES"] = gpus;
  variables["TRAINYARD_JOB"] = std::to_string(start.id().job());
  variables["TRAINYARD_ATTEMPT"] = std::to_string(start.id().attempt());
  variables["TRAINYARD_SOCKET"] = socket;
  variables["TRAINYARD_CHECKPOINT_DIR"] = checkpoints;
  variables["TRAINYARD_GPUS"] = gpus;
  if (start.has_data_set() && IsFetched(start.data_set())) {
    variables["TRAINYARD_DATA_DIR"] =
        start.data_folder().empty() ? start.data_set().home() : start.data_folder();
  }
  variables["TRAINYARD_ITERATIONS_DONE"] = fmt::format("{}", start.iterations_done());
  for (const auto& [name, value] : ShareTexts(start.share())) {  // later changes: `tune`
    std::string variable = "TRAINYARD_" + name;
    std::transform(variable.begin(), variable.end(), variable.begin(), ::toupper);
    variables[variable] = value;
  }
}

// The names of all that it may set but the attempt's mark.
std::set<std::string, std::less<>> ReservedNames() {
  v1::StartAttempt start;
  start.add_gpus(0);
  start.mutable_share()->set_milli_cpus(1);
  start.mutable_share()->set_memory_mib(1);
  start.mutable_share()->set_storage_kbps(1);
  start.mutable_share()->set_loader_workers(1);
  start.mutable_data_set()->set_home("/");
  Variables variables;
  AddTorchrun(start, 0, variables);
  AddBlox(start, 0, "0", variables);
  AddOwn(start, "0", "", "", variables);
  std::set<std::string, std::less<>> names;
  for (const auto& [name, value] : variables) {
    names.insert(name);
  }
  return names;
}

}  // namespace

bool IsReservedVariable(std::string_view name) {
  static const std::set<std::string, std::less<>> kNames = ReservedNames();
  return kNames.contains(name) || name == AttemptFolder::kMarkVariable;
}

int WorkersOf(const v1::StartAttempt& start) {
  return start.launch().workers() == v1::LaunchSpec::PER_NODE ? 1 : start.gpus_size();
}

std::vector<std::string> WorkerEnvironment(const v1::StartAttempt& start, int local_rank,
                                           const AttemptFolder& folder, const std::string& socket) {
  const std::string gpus = fmt::format("{}", fmt::join(start.gpus(), ","));
  Variables variables;
  AddTakenOver(variables);
  AddJobs(start.launch(), variables);
  AddTorchrun(start, local_rank, variables);
  AddBlox(start, local_rank, gpus, variables);
  AddOwn(start, gpus, socket, folder.CheckpointFolder(), variables);
  std::vector<std::string> environment{folder.Mark()};
  for (const auto& [name, value] : variables) {
    if (!folder.Mark().starts_with(name + "=")) {
      environment.push_back(fmt::format("{}={}", name, value));
    }
  }
  return environment;
}

}  // namespace trainyard::supervisor
