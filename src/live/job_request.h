// SPDX-License-Identifier: Apache-2.0
// Jobs as clients ask for them: between JobRequest (live.proto) and JobSpec, by the table of a
// job's fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_fields.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard {

// "1 GPU", "3 GPUs".
[[nodiscard]] inline std::string GpusText(int gpus) {
  return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
}

// What the request states, submitted then. Errors: what is wrong with the request, whatever the
// cluster (kInvalidArgument); it names GPUs that the cluster does not have (kFailed).
[[nodiscard]] Result<JobDraft> DraftOf(const v1::JobRequest& request, TimePoint submit,
                                       const Cluster& cluster);

// The request that states what the job does, with nothing to run. `cluster` says what the nodes of
// its devices are called.
[[nodiscard]] v1::JobRequest RequestOf(const JobSpec& job, const Cluster& cluster);

// Sets what stands at the path ("launch.priority"). REQUIRES: it is there and of that type; whole
// numbers may be of 32 or 64 bits.
void SetInRequest(std::string_view path, const std::string& value, v1::JobRequest& request);
void SetInRequest(std::string_view path, const std::vector<std::string>& value,
                  v1::JobRequest& request);
void SetInRequest(std::string_view path, std::int64_t value, v1::JobRequest& request);
void SetInRequest(std::string_view path, double value, v1::JobRequest& request);
void SetInRequest(std::string_view path, bool value, v1::JobRequest& request);

}  // namespace trainyard
