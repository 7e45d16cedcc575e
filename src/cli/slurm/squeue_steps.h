// SPDX-License-Identifier: Apache-2.0
// squeue --steps: the steps that run.
#pragma once

#include "cli/slurm/slurm_words.h"
#include "rpc/client.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// Prints them. Errors: a column that steps have not, an id that is none.
[[nodiscard]] Status ShowQueueOfSteps(const SlurmWords& words, rpc::ClusterClient& client);

}  // namespace trainyard::cli
