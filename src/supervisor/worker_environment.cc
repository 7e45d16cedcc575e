// SPDX-License-Identifier: Apache-2.0
#include "supervisor/worker_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "supervisor/data/data_store.h"
#include "supervisor/job/job_protocol.h"
#include "supervisor/steps/slurm_tools.h"

namespace trainyard::supervisor {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 10> kTakenOver{
    "HOME",   "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL",
    "TMPDIR", "TZ",   "USER"};

constexpr const char* kTemporaryFolder = "TMPDIR";
constexpr const char* kOwnTemporaryFolder = "TRAINYARD_TMPDIR";  // the job's, where mpirun has it
constexpr const char* kSegments = "OMPI_MCA_btl_vader_backing_directory";

void AddTakenOver(Variables& variables) {
  variables["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  variables["PYTHONUNBUFFERED"] = "1";  // what a script prints is in its log at once
  for (const std::string_view name : kTakenOver) {
    const std::string text(name);
    if (const char* value = std::getenv(text.c_str()); value != nullptr) {
      variables[text] = value;
    }
  }
}

void AddJobs(const v1::LaunchSpec& launch, Variables& variables) {
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    // No environment can hold other names or values.
    const std::string nul("\0", 1);
    const bool is_podmans = launch.has_container() && IsTakenOver(variable.name());
    const bool fits = !is_podmans && !variable.name().empty() &&
                      variable.name().find_first_of("=" + nul) == std::string::npos &&
                      variable.value().find(nul) == std::string::npos;
    if (fits) {
      variables[variable.name()] = variable.value();
    }
  }
}

void AddVenv(const std::string& venv, Variables& variables) {
  if (!venv.empty()) {  // as its own script `activate` does
    variables["PATH"] = venv + "/bin:" + variables["PATH"];
    variables["VIRTUAL_ENV"] = venv;
    variables.erase("PYTHONHOME");
  }
}

// Whether all nodes are one machine, as under `trainyard up`.
bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

// What Open MPI needs to run as Trainyard starts it. The job may choose otherwise.
void AddOpenMpi(const v1::StartAttempt& start, const AttemptFolder& folder, Variables& variables) {
  if (geteuid() == 0) {
    variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  // Otherwise what is killed leaves its segments in memory.
  variables[kSegments] = folder.SharedMemoryFolder();
  if (start.nodes() > 1 && IsLoopback(start.master_address())) {
    // Nodes that are one machine must not take each other's shared memory for their own.
    variables["OMPI_MCA_btl"] = "self,tcp";
    variables["OMPI_MCA_btl_tcp_if_include"] = "127.0.0.0/8";
  }
}

// torch 1.13 with Python 3.11, which is Debian 12's, fails unless the output of some worker is to
// go elsewhere. There is no worker 9 here.
void AddTorchrunsOptions(const v1::StartAttempt& start, Variables& variables) {
  constexpr int kMost = 9;
  if (WorkersOf(start) <= kMost) {
    variables["PET_REDIRECTS"] = "9:1";
    variables["PET_TEE"] = "9:1";
  }
}

void AddLaunchers(const v1::StartAttempt& start, const AttemptFolder& folder,
                  Variables& variables) {
  switch (start.launch().launcher()) {
    case v1::LaunchSpec::PLAIN:
      variables["HOROVOD_CONTROLLER"] = "gloo";
      variables["HOROVOD_CPU_OPERATIONS"] = "gloo";
      break;
    case v1::LaunchSpec::TORCHRUN:
      AddTorchrunsOptions(start, variables);
      break;
    case v1::LaunchSpec::MPI:
      AddOpenMpi(start, folder, variables);
      break;
    default:
      break;
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

// The GPUs as their driver counts them for the workers: in a container it sees these alone.
std::vector<int> VisibleGpus(const v1::StartAttempt& start) {
  std::vector<int> gpus(start.gpus().begin(), start.gpus().end());
  if (start.launch().has_container() && start.nvidia()) {
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  return gpus;
}

// As Blox sets them. Its text and its code differ in the name of the last.
void AddBlox(const v1::StartAttempt& start, const std::string& gpus, Variables& variables) {
  variables["master_ip_address"] = start.master_address();
  variables["world_size"] = std::to_string(start.world_size());
  variables["job_id"] = std::to_string(start.id().job());
  variables["local_accessible_gpu"] = gpus;
  variables["local_accessible_gpus"] = gpus;
}

// What Blox and Horovod set for each worker. The nodes of "cross" are those that have a worker of
// this place.
void AddRank(const v1::StartAttempt& start, int local_rank, Variables& variables) {
  const std::vector<int> gpus = VisibleGpus(start);
  // Workers and GPUs of a node are shared out over one another, whichever are more.
  const auto place = static_cast<std::size_t>(local_rank) * gpus.size() /
                     static_cast<std::size_t>(std::max(1, WorkersOf(start)));
  variables["local_gpu_id"] = place < gpus.size() ? std::to_string(gpus[place]) : "";
  const std::string rank = std::to_string(start.first_rank() + local_rank);
  variables["dist_rank"] = rank;
  variables["HOROVOD_RANK"] = rank;
  variables["HOROVOD_SIZE"] = std::to_string(start.world_size());
  variables["HOROVOD_LOCAL_RANK"] = std::to_string(local_rank);
  variables["HOROVOD_LOCAL_SIZE"] = std::to_string(WorkersOf(start));
  const auto& workers = start.node_workers();
  const auto has_place = [local_rank](int count) { return count > local_rank; };
  const auto here = workers.begin() + std::min(start.node_rank(), start.node_workers_size());
  variables["HOROVOD_CROSS_RANK"] = std::to_string(std::count_if(workers.begin(), here, has_place));
  variables["HOROVOD_CROSS_SIZE"] =
      std::to_string(std::count_if(workers.begin(), workers.end(), has_place));
  if (start.launch().launcher() == v1::LaunchSpec::PLAIN) {  // worker 0 may listen there
    variables["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = start.master_address();
    variables["HOROVOD_GLOO_RENDEZVOUS_PORT"] = std::to_string(start.master_port());
  }
}

// What Slurm sets for each task of a batch script; what is the same for all of a node the
// controller has set.
void AddSlurm(const v1::StartAttempt& start, int local_rank, Variables& variables) {
  std::vector<int> ranks(static_cast<std::size_t>(std::max(0, WorkersOf(start))));
  std::iota(ranks.begin(), ranks.end(), start.first_rank());
  variables["SLURM_JOB_UID"] = std::to_string(geteuid());
  variables["SLURM_JOB_GID"] = std::to_string(getegid());
  variables["SLURM_NODEID"] = std::to_string(start.node_rank());
  variables["SLURM_GTIDS"] = fmt::format("{}", fmt::join(ranks, ","));
  if (start.launch().launcher() != v1::LaunchSpec::TORCHRUN) {
    variables["SLURM_PROCID"] = std::to_string(start.first_rank() + local_rank);
    variables["SLURM_LOCALID"] = std::to_string(local_rank);
  }
  const std::string gpus = fmt::format("{}", fmt::join(VisibleGpus(start), ","));
  variables["ROCR_VISIBLE_DEVICES"] = gpus;
  variables["GPU_DEVICE_ORDINAL"] = gpus;
}

// Shells that set the path anew (bash -l) find the tools again.
void AddSlurmTools(const AttemptFolder& folder, Variables& variables) {
  variables["PATH"] = folder.path() + ":" + variables["PATH"];
  if (const std::string& former = variables["BASH_ENV"]; !former.empty()) {
    variables[kFormerBashVariable] = former;
  }
  variables["BASH_ENV"] = folder.PathOf(kBashFile);
  variables[kStepFolderVariable] = folder.path();
}

void AddOwn(const v1::StartAttempt& start, const std::string& gpus, const std::string& socket,
            const std::string& checkpoints, Variables& variables) {
  variables["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(VisibleGpus(start), ","));
  variables["TRAINYARD_JOB"] = std::to_string(start.id().job());
  variables["TRAINYARD_ATTEMPT"] = std::to_string(start.id().attempt());
  variables["TRAINYARD_SOCKET"] = socket;
  variables["TRAINYARD_CHECKPOINT_DIR"] = checkpoints;
  variables["TRAINYARD_GPUS"] = gpus;
  if (std::string folder = DataFolderOf(start); !folder.empty()) {
    variables["TRAINYARD_DATA_DIR"] = std::move(folder);
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
  AddBlox(start, "0", variables);
  AddRank(start, 0, variables);
  AddOwn(start, "0", "", "", variables);
  std::set<std::string, std::less<>> names;
  for (const auto& [name, value] : variables) {
    names.insert(name);
  }
  return names;
}

Variables VariablesOf(const v1::StartAttempt& start, int local_rank, const AttemptFolder& folder,
                      const std::string& socket) {
  const v1::LaunchSpec& launch = start.launch();
  const std::string gpus = fmt::format("{}", fmt::join(start.gpus(), ","));
  Variables variables;
  AddTakenOver(variables);
  AddLaunchers(start, folder, variables);
  AddJobs(launch, variables);
  AddVenv(launch.venv(), variables);
  // A script that runs once says itself who its workers are: with RANK and WORLD_SIZE of its own,
  // those that it starts would each take themselves for the only one.
  const bool starts_others = launch.has_batch() && launch.workers() == v1::LaunchSpec::ONCE;
  if (!starts_others) {
    AddTorchrun(start, local_rank, variables);
    AddBlox(start, gpus, variables);
  }
  if (!starts_others && launch.launcher() != v1::LaunchSpec::TORCHRUN) {
    AddRank(start, local_rank, variables);  // torchrun starts several from one environment
  }
  if (launch.has_batch()) {
    AddSlurm(start, local_rank, variables);
    if (!launch.has_container()) {
      AddSlurmTools(folder, variables);
    }
  }
  AddOwn(start, gpus, launch.has_container() ? kSocketInContainer : socket,
         folder.CheckpointFolder(), variables);
  return variables;
}

std::vector<std::string> TextsOf(const Variables& variables, const AttemptFolder& folder) {
  std::vector<std::string> environment{folder.Mark()};
  for (const auto& [name, value] : variables) {
    if (!folder.Mark().starts_with(name + "=")) {
      environment.push_back(fmt::format("{}={}", name, value));
    }
  }
  return environment;
}

}  // namespace

bool IsTakenOver(std::string_view name) {
  return std::find(kTakenOver.begin(), kTakenOver.end(), name) != kTakenOver.end();
}

bool IsReservedVariable(std::string_view name) {
  static const std::set<std::string, std::less<>> kNames = ReservedNames();
  return kNames.contains(name) || name == AttemptFolder::kMarkVariable;
}

int WorkersOf(const v1::StartAttempt& start) {
  switch (start.launch().workers()) {
    case v1::LaunchSpec::PER_NODE:
      return std::max(1, start.launch().workers_per_node());
    case v1::LaunchSpec::ONCE:
      return start.node_rank() == 0 ? 1 : 0;
    default:
      return start.gpus_size();
  }
}

std::vector<std::string> WorkerEnvironment(const v1::StartAttempt& start, int local_rank,
                                           const AttemptFolder& folder, const std::string& socket) {
  return TextsOf(VariablesOf(start, local_rank, folder, socket), folder);
}

std::vector<std::string> ProcessEnvironment(const v1::StartAttempt& start, int local_rank,
                                            const AttemptFolder& folder,
                                            const std::string& socket) {
  Variables variables = VariablesOf(start, local_rank, folder, socket);
  if (start.launch().launcher() == v1::LaunchSpec::MPI) {
    if (const auto own = variables.find(kTemporaryFolder); own != variables.end()) {
      variables[kOwnTemporaryFolder] = own->second;
    }
    variables[kTemporaryFolder] = folder.path();
    // Each node's own. mpirun would hand this one's to the others.
    variables.erase(kSegments);
  }
  return TextsOf(variables, folder);
}

void RestoreTemporaryFolder() {
  if (const char* const own = std::getenv(kOwnTemporaryFolder); own != nullptr) {
    setenv(kTemporaryFolder, own, 1);
  } else {
    unsetenv(kTemporaryFolder);
  }
  unsetenv(kOwnTemporaryFolder);
}

}  // namespace trainyard::supervisor
