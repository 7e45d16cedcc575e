// SPDX-License-Identifier: Apache-2.0
// A job that holds what it has been given for what runs elsewhere: that of salloc, or of srun
// outside of a job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/live/attach/session_input.h"
#include "cli/slurm/slurm_words.h"
#include "io/descriptor.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

class Allocation {
 public:
  // Starts the process that gives the allocation back when this one is gone, however that went; it
  // takes the place of nothing else. Error: there is no process. REQUIRES: this one has one thread.
  [[nodiscard]] static Result<Allocation> Prepare(std::string_view command);

  // Submits the job. `options`: those of sbatch.
  [[nodiscard]] Status Ask(std::vector<std::pair<const SlurmOption*, std::string>> options,
                           const std::string& name);
  // Until it has been given its nodes. False: it has ended, or a signal has come before, which has
  // been told on standard error.
  [[nodiscard]] bool Await(const BlockedSignals& signals);
  // It still has them. True as well while nobody answers.
  [[nodiscard]] bool IsHeld();
  // It stays until somebody cancels it.
  void Leave();
  // What becomes of this process by exec holds it.
  void HandToExec() const;

  // "salloc: WHAT" on standard error.
  void Say(const std::string& what) const;
  void TellRevoked() const;
  [[nodiscard]] std::uint64_t job() const { return status_.job(); }

 private:
  Allocation(std::string_view command, io::Descriptor keeper)
      : command_(command), keeper_(std::move(keeper)) {}
  [[nodiscard]] Status Look();

  std::string command_;
  io::Descriptor keeper_;  // closed: it is given back
  std::unique_ptr<rpc::ClusterClient> client_;
  v1::JobStatus status_;
};

}  // namespace trainyard::cli
