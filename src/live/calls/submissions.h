// SPDX-License-Identifier: Apache-2.0
// Calls that submit a job, and that change the GPUs of one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/calls/call.h"
#include "live/calls/job_changes.h"
#include "live/calls/validation.h"

namespace trainyard::live {

class Submissions {
 public:
  // All must outlive it.
  Submissions(CallContext& context, const Validation& validation, JobChanges& changes,
              const engine::Engine& engine)
      : context_(context), validation_(validation), changes_(changes), engine_(engine) {}

  // A request with the token of a job that is known is that job, if it asks for the same.
  [[nodiscard]] Result<Reply> Submit(const Call& call, const v1::SubmitRequest& request);
  [[nodiscard]] Result<Reply> Resize(const Call& call, const v1::ResizeRequest& request);

  // The calls that wait for the verdict on the job, which there is now, or will never be.
  [[nodiscard]] std::vector<std::uint64_t> TakeWaitingFor(JobId job);
  [[nodiscard]] v1::ClientReply ReplyWith(JobId job) const;
  // The client of the call waits no longer.
  void Drop(std::uint64_t call);

 private:
  [[nodiscard]] Status CheckSameJob(const Call& call, JobId known,
                                    const v1::SubmitRequest& request) const;
  [[nodiscard]] std::string DifferenceFrom(JobId job, const v1::JobRequest& request) const;
  [[nodiscard]] Status CheckLimit(std::size_t more) const;
  [[nodiscard]] Result<JobSpec> SpecFor(v1::JobRequest& job) const;
  [[nodiscard]] Reply Test(const v1::JobRequest& job, const JobSpec& spec) const;
  [[nodiscard]] Reply WithVerdict(const Call& call, JobId job, bool wait);

  CallContext& context_;
  const Validation& validation_;
  JobChanges& changes_;
  const engine::Engine& engine_;
  std::map<JobId, std::vector<std::uint64_t>> waiting_;  // calls, for the verdict on the job
};

}  // namespace trainyard::live
