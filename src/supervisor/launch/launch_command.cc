// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "supervisor/data/data_store.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using Words = std::vector<std::string>;

void Append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

Words JobsCommand(const v1::StartAttempt& start) {
  return {start.launch().command().begin(), start.launch().command().end()};
}

// The same as torchrun, whose program may be missing, or belong to another Python.
Words TorchrunCommand(const v1::StartAttempt& start) {
  Words words = {"python3",
                 "-m",
                 "torch.distributed.run",
                 "--nnodes",
                 std::to_string(start.nodes()),
                 "--node_rank",
                 std::to_string(start.node_rank()),
                 "--nproc_per_node",
                 std::to_string(WorkersOf(start)),
                 "--master_addr",
                 start.master_address(),
                 "--master_port",
                 std::to_string(start.master_port()),
                 "--no_python"};
  Append(words, JobsCommand(start));
  return words;
}

// On the first node mpirun, which starts its daemons by `launch rsh`; on the others `launch
// daemon`, which becomes one of them. Ranks follow the hostfile, node by node, as Trainyard counts
// them.
Words MpiCommand(const v1::StartAttempt& start, const AttemptFolder& folder,
                 const std::string& program) {
  if (start.node_rank() > 0) {
    return {program, "launch", "daemon"};
  }
  Words words = {"mpirun",
                 "--hostfile",
                 folder.PathOf(kHostfile),
                 "-np",
                 std::to_string(start.world_size()),
                 "--map-by",
                 "slot",
                 "--bind-to",
                 "none"};
  if (start.nodes() > 1) {
    // All daemons by mpirun itself, and in the foreground: their supervisors stand by them.
    Append(words, {"--leave-session-attached", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                   program + " launch rsh", "--mca", "plm_rsh_no_tree_spawn", "1"});
  }
  Append(words, {program, "launch", "rank"});
  Append(words, JobsCommand(start));
  return words;
}

// Differs between all containers of a machine, whatever runs there.
std::string ContainerName(const v1::StartAttempt& start, int local_rank,
                          const AttemptFolder& folder) {
  const std::string& name = start.launch().container().name();
  return fmt::format("{}-{}-{}", name.empty() ? "trainyard" : name, folder.UniqueName(),
                     start.first_rank() + local_rank);
}

// SOURCE:TARGET:FLAG+FLAG as podman wants it.
std::string VolumeOf(std::string mount) {
  std::replace(mount.begin(), mount.end(), '+', ',');
  return mount;
}

void AddVolumes(const v1::StartAttempt& start, const AttemptFolder& folder, Words& words) {
  const v1::LaunchSpec& launch = start.launch();
  const auto add = [&words](const std::string& source, const std::string& target) {
    Append(words, {"--volume", source + ":" + target});
  };
  add(folder.PathOf("job.sock"), kSocketInContainer);
  add(folder.CheckpointFolder(), folder.CheckpointFolder());
  if (const std::string data = DataFolderOf(start); data.starts_with('/')) {
    Append(words, {"--volume", data + ":" + data + ":ro"});
  }
  if (const std::string& place = launch.working_directory(); !place.empty() && place != "/") {
    add(place, place);
  }
  for (const std::string& mount : launch.container().mounts()) {
    const std::size_t flags = mount.find(':', mount.find(':') + 1);
    Append(words, {"--volume", mount.substr(0, flags) + (flags == std::string::npos
                                                             ? std::string()
                                                             : VolumeOf(mount.substr(flags)))});
  }
}

// By name only, so that no list of processes shows the values; but what podman itself needs to find
// its way, as HOME, stays the agent's for it.
void AddVariables(const v1::StartAttempt& start, const Words& environment, Words& words) {
  for (const std::string& variable : environment) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!IsTakenOver(name)) {
      Append(words, {"--env", name});
    }
  }
  for (const v1::EnvironmentVariable& variable : start.launch().environment()) {
    if (IsTakenOver(variable.name())) {
      Append(words, {"--env", variable.name() + "=" + variable.value()});
    }
  }
}

// No key detaches podman from what it runs: that would look like its end.
Words TerminalOptions() { return {"--interactive", "--tty", "--detach-keys", ""}; }

// In the namespaces of the host but for files and users: workers reach each other as without
// containers, their processes are the supervisor's to see, and SIGTERM ends one that has no handler
// (the first process of a namespace would not notice).
Words InContainer(const v1::StartAttempt& start, int local_rank, const AttemptFolder& folder,
                  const Words& command, const Words& environment) {
  const v1::LaunchSpec& launch = start.launch();
  const v1::Container& container = launch.container();
  Words words = {"podman",
                 "run",
                 "--rm",
                 "--conmon-pidfile",
                 folder.PathOf(ContainerPidFile(local_rank).c_str()),
                 "--name",
                 ContainerName(start, local_rank, folder),
                 "--network",
                 "host",
                 "--ipc",
                 "host",
                 "--pid",
                 "host",
                 "--entrypoint",
                 ""};
  // podman passes nothing through that is a terminal; what such a worker writes is the session's
  // to keep (Attachments).
  const bool terminal =
      launch.input() == v1::LaunchSpec::TERMINAL && start.node_rank() == 0 && local_rank == 0;
  Append(words, {"--log-driver", terminal ? "none" : "passthrough"});
  if (terminal) {
    Append(words, TerminalOptions());
  } else if (launch.input() == v1::LaunchSpec::PIPE) {
    words.push_back("--interactive");
  }
  AddVolumes(start, folder, words);
  if (const std::string& workdir =
          container.workdir().empty() ? launch.working_directory() : container.workdir();
      !workdir.empty()) {
    Append(words, {"--workdir", workdir});
  }
  if (start.nvidia()) {
    for (const int gpu : start.gpus()) {
      Append(words, {"--device", fmt::format("nvidia.com/gpu={}", gpu)});
    }
  }
  AddVariables(start, environment, words);
  words.push_back(container.image());
  Append(words, command);
  return words;
}

}  // namespace

int ProcessesOf(const v1::StartAttempt& start) {
  const bool has_one = start.launch().launcher() != v1::LaunchSpec::PLAIN || OnlyHolds(start);
  return has_one ? 1 : WorkersOf(start);
}

std::vector<std::string> LaunchCommand(const v1::StartAttempt& start, int local_rank,
                                       const AttemptFolder& folder, const std::string& program,
                                       const std::vector<std::string>& environment) {
  if (OnlyHolds(start)) {
    return {program, "launch", "hold"};
  }
  if (start.launch().launcher() == v1::LaunchSpec::MPI) {
    return MpiCommand(start, folder, program);
  }
  Words command = start.launch().launcher() == v1::LaunchSpec::TORCHRUN ? TorchrunCommand(start)
                                                                        : JobsCommand(start);
  if (!start.launch().batch().script().empty()) {
    std::replace(command.begin(), command.end(), std::string(kScriptWord), folder.PathOf(kScript));
  }
  return start.launch().has_container()
             ? InContainer(start, local_rank, folder, command, environment)
             : command;
}

std::string Hostfile(const v1::StartAttempt& start) {
  std::string text;
  for (int rank = 0; rank < start.node_workers_size(); ++rank) {
    const std::string host = rank == 0 ? "localhost" : fmt::format("{}{}", kHostPrefix, rank);
    text += fmt::format("{} slots={}\n", host, start.node_workers(rank));
  }
  return text;
}

std::vector<std::string> SignalCommand(const v1::StartAttempt& start, int local_rank,
                                       const AttemptFolder& folder, int signal) {
  return {"podman", "kill", "--signal", std::to_string(signal),
          ContainerName(start, local_rank, folder)};
}

std::vector<std::string> ExecCommand(const v1::StartAttempt& start, int local_rank,
                                     const AttemptFolder& folder,
                                     const v1::AttachRequest& request) {
  Words words = {"podman", "exec", "--env", SessionMark(request.session())};
  if (request.terminal()) {
    Append(words, TerminalOptions());
    Append(words, {"--env", "TERM"});
  } else {
    words.push_back("--interactive");
  }
  words.push_back(ContainerName(start, local_rank, folder));
  if (request.command().empty()) {
    words.push_back("/bin/sh");
  }
  Append(words, {request.command().begin(), request.command().end()});
  return words;
}

std::vector<std::string> CleanUpCommand(const v1::StartAttempt& start, int local_rank,
                                        const AttemptFolder& folder) {
  return {"podman", "container", "cleanup", ContainerName(start, local_rank, folder)};
}

std::string ContainerPidFile(int local_rank) { return fmt::format("conmon-{}", local_rank); }

std::string SessionMark(const std::string& session) { return "TRAINYARD_SESSION=" + session; }

std::vector<std::string> RemovalCommand(const v1::StartAttempt& start,
                                        const AttemptFolder& folder) {
  if (!start.launch().has_container() || OnlyHolds(start)) {
    return {};
  }
  Words words = {"podman", "rm", "--force", "--ignore", "--time", "0"};
  for (int local_rank = 0; local_rank < ProcessesOf(start); ++local_rank) {
    words.push_back(ContainerName(start, local_rank, folder));
  }
  return words;
}

}  // namespace trainyard::supervisor
