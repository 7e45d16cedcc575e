// SPDX-License-Identifier: Apache-2.0
// Whether the cluster can take a job as it is asked for, and what the engine gets of it.
#pragma once

#include <cstddef>

#include "live/calls/call.h"
#include "live/jobs/job_request.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::live {

// Error: with these profiles and this policy no cluster takes the job.
[[nodiscard]] Status CheckProfiles(const JobSpec& job, const engine::Configuration& with);
// Error: a job that has not ended has been taken by the present configuration, and would not be by
// the next one, whatever the nodes.
[[nodiscard]] Status CheckJobs(const LiveState& state, const engine::Configuration& next);

class Validation {
 public:
  // Must outlive it.
  explicit Validation(const CallContext& context) : context_(context), state_(context.state()) {}

  // Where the cluster has partitions, what the job does not state: the name of the default one, the
  // time limit, CPUs and memory.
  void FillIn(v1::JobRequest& job) const;
  // The first two alone.
  void FillInQueueAndTime(v1::JobRequest& job) const;
  // Error: there is no such partition, or the job asks for more than it gives.
  [[nodiscard]] Status CheckPartition(JobSpec spec) const;
  // The job as the engine gets it. Errors: the request is wrong, or this cluster, its policy or its
  // profiles cannot take it: all that can be judged each for itself, in a line each.
  [[nodiscard]] Result<JobSpec> SpecOf(const v1::JobRequest& job) const;
  // The same with what DraftOf has made of the request.
  [[nodiscard]] Result<JobSpec> SpecOf(model::JobDraft draft, const v1::JobRequest& job) const;
  // Error: the job cannot wait for those that it names, which must be among the first `before` and
  // such as its owner may see.
  [[nodiscard]] Status CheckDependency(const v1::JobRequest& waiting, std::size_t before) const;

 private:
  [[nodiscard]] Status CheckContainer(const v1::JobRequest& job) const;
  [[nodiscard]] Status CheckDataSet(const JobTraits& traits) const;

  const CallContext& context_;
  const LiveState& state_;
};

}  // namespace trainyard::live
