// SPDX-License-Identifier: Apache-2.0
// What `submit` and `run` have in common: the options that say what a job is, and its submission.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/live/client_calls.h"
#include "requests/slurm/batch_script.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

struct JobOptionValues : ClusterOptions {
  std::string file;
  std::string script;                            // with #SBATCH lines
  std::optional<requests::SbatchCall> sbatch{};  // the command is that of Slurm
  bool strict = false;                           // lines without effect are refused
  bool test_only = false;                        // nothing is submitted
  std::vector<std::pair<std::string_view, std::string>> settings;  // as given
  std::string token;
  v1::LaunchSpec::Input input = v1::LaunchSpec::NOTHING;  // of the first worker
  int rank = 0;  // of the worker whose output is shown, of which there must be one
};

// `options` must outlive the command.
void AddJobOptions(CLI::App& command, JobOptionValues& options);

// Submits the job whose command is `words`. What the policy does not heed is told on standard
// error. `wait`: until it is accepted or declined. `script`: gets the script that says what the job
// is, if one does. Errors: what is wrong with the options; what the controller refuses.
[[nodiscard]] Result<v1::SubmitReply> SendJob(
    const JobOptionValues& options, const std::vector<std::string>& words, bool wait,
    rpc::ClusterClient& client, std::optional<requests::BatchScript>* script = nullptr);

}  // namespace trainyard::cli
