// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/slurm/slurm_facts.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

struct SlurmCommand {
  std::string_view name;
  int (*run)(const std::vector<std::string>& words);
};
constexpr std::array kSlurmCommands{
    SlurmCommand{"sacct", Sacct},       SlurmCommand{"salloc", Salloc},
    SlurmCommand{"sbatch", Sbatch},     SlurmCommand{"scancel", Scancel},
    SlurmCommand{"scontrol", Scontrol}, SlurmCommand{"sinfo", Sinfo},
    SlurmCommand{"squeue", Squeue},     SlurmCommand{"srun", Srun},
    SlurmCommand{"sstat", Sstat},
};

}  // namespace

std::optional<int> RunSlurmCommand(std::string_view name, const std::vector<std::string>& words) {
  const auto* const command =
      std::find_if(kSlurmCommands.begin(), kSlurmCommands.end(),
                   [name](const SlurmCommand& one) { return one.name == name; });
  if (command == kSlurmCommands.end()) {
    return std::nullopt;
  }
  if (words.size() == 1 && (words.front() == "--version" || words.front() == "-V")) {
    fmt::print("slurm 22.05 (Trainyard {})\n", TRAINYARD_VERSION);
    return 0;
  }
  return command->run(words);
}

Result<std::unique_ptr<rpc::ClusterClient>> ConnectAsSlurm() {
  ClusterOptions options;
  if (const char* const named = std::getenv("TRAINYARD_CONTROLLER"); named != nullptr) {
    options.controller = named;
  }
  return ConnectTo(options);
}

Result<v1::NodesReply> NodesOf(rpc::ClusterClient& client) {
  v1::ClientRequest request;
  request.mutable_nodes();
  ASSIGN_OR_RETURN(v1::ClientReply reply, client.Call(request, kTimeout, kPatience));
  NamePartition(*reply.mutable_nodes());
  return std::move(*reply.mutable_nodes());
}

int Repeat(std::string_view command, const SlurmWords& words,
           Status (*show)(const SlurmWords& words, rpc::ClusterClient& client)) {
  const double every = base::ToNumber(words.Value("iterate").value_or("0")).value_or(0);
  const Result<std::unique_ptr<rpc::ClusterClient>> client = ConnectAsSlurm();
  while (true) {
    const Status shown = client.ok() ? show(words, *client.value()) : client.error();
    if (!shown.ok()) {
      return SlurmError(command, shown.error().message);
    }
    if (every <= 0) {
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(every));
  }
}

Result<std::vector<v1::JobStatus>> JobsOfIds(rpc::ClusterClient& client,
                                             const std::vector<std::string>& ids, bool with_steps) {
  requests::JobSelection selection;
  for (const std::string& id : ids) {
    if (!requests::ReadJobNumber(id).ok()) {
      return InvalidArgument("Invalid job id: " + id);
    }
    selection.jobs.push_back(id);
  }
  ASSIGN_OR_RETURN(std::vector<v1::JobStatus> jobs,
                   SelectJobs(client, selection, false, with_steps));
  std::erase_if(jobs, [](const v1::JobStatus& job) { return !job.has_request(); });
  return jobs;
}

}  // namespace trainyard::cli
