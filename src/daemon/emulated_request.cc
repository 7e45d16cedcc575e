// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulated_request.h"

#include <bit>

namespace trainyard {

namespace {

void AddTraits(const JobSpec& job, const Cluster& cluster, v1::JobRequest& request) {
  const JobTraits& traits = *job.traits;
  if (traits.stages) {
    request.mutable_stages()->set_iteration_s(traits.stages->iteration);
    request.mutable_stages()->mutable_stages_s()->Assign(traits.stages->stages.begin(),
                                                         traits.stages->stages.end());
  }
  for (const SoftDeadline& deadline : traits.deadlines) {
    v1::SoftDeadline& soft = *request.add_soft_deadlines();
    soft.set_after_s(Seconds(deadline.at - job.submit));
    soft.set_value(deadline.value);
  }
  for (const Slice& slice : traits.devices) {
    v1::NodeGrant& there = *request.add_devices();
    there.set_node(cluster.nodes[Index(slice.node)].name);
    for (std::uint64_t rest = slice.gpus; rest != 0; rest &= rest - 1) {
      there.add_gpus(std::countr_zero(rest));
    }
  }
  request.set_loader_workers(traits.loader_workers);
  request.set_min_gpus(traits.range.least);
  request.set_max_gpus(traits.range.most);
  for (const std::string& type : traits.gpu_types) {
    request.add_gpu_types(type);
  }
}

}  // namespace

v1::JobRequest EmulatedRequest(const JobSpec& job, const Cluster& cluster) {
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
  request.mutable_launch()->set_priority(job.priority);
  if (job.traits) {
    AddTraits(job, cluster, request);
  }
  return request;
}

void RunCommand(std::span<const std::string> command, v1::JobRequest& request) {
  v1::LaunchSpec& launch = *request.mutable_launch();
  launch.set_workers(v1::LaunchSpec::PER_GPU);
  launch.mutable_command()->Assign(command.begin(), command.end());
}

}  // namespace trainyard
