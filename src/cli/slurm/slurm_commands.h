// SPDX-License-Identifier: Apache-2.0
// The program by the names of Slurm's commands: what users type and tools call. Options, columns,
// exit statuses and messages are those of the manual pages of Slurm 22.05 (docs/from-slurm.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm/slurm_words.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// The exit status of the command that the program has been called as; nothing: it is none.
[[nodiscard]] std::optional<int> RunSlurmCommand(std::string_view name,
                                                 const std::vector<std::string>& words);

// Each gives its exit status.
int Sacct(const std::vector<std::string>& words);
int Salloc(const std::vector<std::string>& words);
int Sbatch(const std::vector<std::string>& words);
int Scancel(const std::vector<std::string>& words);
int Scontrol(const std::vector<std::string>& words);
int Sinfo(const std::vector<std::string>& words);
int Squeue(const std::vector<std::string>& words);
int Srun(const std::vector<std::string>& words);
int Sstat(const std::vector<std::string>& words);

// The client of the controller that TRAINYARD_CONTROLLER names. Errors: those of ConnectTo.
[[nodiscard]] Result<std::unique_ptr<rpc::ClusterClient>> ConnectAsSlurm();
// There is always a partition.
[[nodiscard]] Result<v1::NodesReply> NodesOf(rpc::ClusterClient& client);
// Calls `show`, again and again where --iterate says how many seconds to wait between. Gives the
// exit status; what is wrong is told on standard error.
int Repeat(std::string_view command, const SlurmWords& words,
           Status (*show)(const SlurmWords& words, rpc::ClusterClient& client));
// The jobs of these numbers, the number of an array standing for its tasks; those that there are
// not are left out. Errors: a text that is no number, "Invalid job id: abc".
[[nodiscard]] Result<std::vector<v1::JobStatus>> JobsOfIds(rpc::ClusterClient& client,
                                                           const std::vector<std::string>& ids,
                                                           bool with_steps = false);

}  // namespace trainyard::cli
