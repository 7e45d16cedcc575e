// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulated_request.h"

#include "live/job_request.h"

namespace trainyard {

v1::JobRequest EmulatedRequest(const JobSpec& job, const Cluster& cluster) {
  v1::JobRequest request = RequestOf(job, cluster);
  request.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
  return request;
}

void RunCommand(std::span<const std::string> command, v1::JobRequest& request) {
  v1::LaunchSpec& launch = *request.mutable_launch();
  launch.set_workers(v1::LaunchSpec::PER_GPU);
  launch.mutable_command()->Assign(command.begin(), command.end());
}

}  // namespace trainyard
