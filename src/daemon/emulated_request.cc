// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulated_request.h"

namespace trainyard {

v1::JobRequest EmulatedRequest(const JobSpec& job) {
  v1::JobRequest request;
  request.set_name(job.name);
  request.set_user(job.user);
  request.set_queue(job.queue);
  request.set_model(job.model);
  request.set_gpus(job.gpus);
  request.set_batch_size(job.batch_size);
  if (job.duration) {
    request.set_duration_s(Seconds(*job.duration));
  }
  if (job.iterations) {
    request.set_iterations(*job.iterations);
  }
  if (job.deadline) {
    request.set_deadline_s(Seconds(*job.deadline - job.submit));
  }
  request.set_best_effort(job.best_effort);
  request.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
  return request;
}

}  // namespace trainyard
