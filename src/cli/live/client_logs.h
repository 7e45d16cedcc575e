// SPDX-License-Identifier: Apache-2.0
// What the workers of a job have written, copied to standard output.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

struct LogsOptions : ClusterOptions {
  requests::JobSelection selection;
  std::uint32_t attempt = 0;  // 0: the last
  bool all = false;           // attempts
  int rank = 0;
  bool follow = false;
  std::uint64_t tail = 0;  // lines; 0: all
  std::string label;       // each line begins so
};

// Until the job has ended. A job that has ended in another way than completed is an error.
[[nodiscard]] Status FollowLogs(const LogsOptions& options, std::uint64_t job);

// What there is of that attempt from there on.
[[nodiscard]] Status CopyLogFrom(const LogsOptions& options, std::uint64_t job,
                                 std::uint64_t offset);

// Called with an array's tasks as they are now it prints what is new of their output, each line
// behind its task: of those that have ended all, of those that run as long as these are few.
[[nodiscard]] std::function<void(const v1::JobsReply&)> OutputOfTasks(const LogsOptions& options,
                                                                      rpc::ClusterClient& client);

// Says why a waiting job waits, unless it has said so: `told` is the last reason. A time to begin
// is one reason, though it comes nearer.
void TellWhyItWaits(const v1::JobStatus& job, std::string& told);

}  // namespace trainyard::cli
