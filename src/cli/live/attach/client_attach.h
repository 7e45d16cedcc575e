// SPDX-License-Identifier: Apache-2.0
// trainyard attach, signal: into a running job.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cli/live/client_calls.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// The output of a session, copied to standard output and standard error as it comes.
class SessionOutput {
 public:
  // `target`: job, attempt, rank and session.
  SessionOutput(rpc::ClusterClient& client, v1::AttachRequest target)
      : client_(client), target_(std::move(target)) {}

  // Until the command has ended or is gone. Errors: the session could not be reached for a minute;
  // standard output cannot be written.
  [[nodiscard]] Status Copy();
  // Set once the command has ended; unset: it is gone with its attempt.
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }
  // How much of its output has come.
  [[nodiscard]] std::uint64_t offset() const { return target_.offset(); }

 private:
  [[nodiscard]] Status Take(const v1::AttachReply& reply);

  rpc::ClusterClient& client_;
  v1::AttachRequest target_;
  std::optional<int> exit_code_;
  bool over_ = false;
};

void AddAttach(CLI::App& app, Command& chosen);
void AddSignal(CLI::App& app, Command& chosen);

}  // namespace trainyard::cli
