// SPDX-License-Identifier: Apache-2.0
// What policies may not propose, whatever the mode. An error names the policy, the placement and
// the job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_records.h"
#include "scheduler/bundle.h"
#include "trainyard/cluster.h"
#include "trainyard/plan.h"
#include "trainyard/status.h"

namespace trainyard::scheduler {

class ProposalCheck {
 public:
  // All must outlive it.
  ProposalCheck(const Cluster& cluster, const std::vector<bool>& nodes_up,
                const model::JobRecords& jobs, const Bundle& bundle)
      : cluster_(cluster), nodes_up_(nodes_up), jobs_(jobs), bundle_(bundle) {}

  // Of an admission: at most one verdict for each job that waits for one, and for no other.
  [[nodiscard]] Status AdmissionVerdicts(std::span<const Verdict> verdicts) const;
  // Of a policy: one for each that still waits, if it judges arrivals.
  [[nodiscard]] Status Verdicts(std::span<const Verdict> verdicts) const;
  // Jobs that it does not know, one twice, GPUs that are shared against what was announced.
  [[nodiscard]] Status Demands(std::span<const Demand> demands);
  [[nodiscard]] Status Ends(std::span<const PlannedEnd> ends) const;
  // Whether the GPUs that the policy names exist and are up; whether other jobs hold them is
  // another question.
  [[nodiscard]] Status Named(const Demand& demand) const;

  // "policy 'p' with placement 'q': job j: <what>"
  [[nodiscard]] Error Broken(JobId job, const std::string& what) const;
  // "policy 'p' with placement 'q': <what>"
  [[nodiscard]] Error Broken(const std::string& what) const;

 private:
  [[nodiscard]] Status CheckLive(JobId job, std::string_view to) const;
  [[nodiscard]] Status CheckOnce(JobId job);
  [[nodiscard]] Status CheckSharing(const Demand& demand);
  [[nodiscard]] bool Asks(JobId job) const;

  const Cluster& cluster_;
  const std::vector<bool>& nodes_up_;
  const model::JobRecords& jobs_;
  const Bundle& bundle_;
  std::vector<std::uint32_t> asked_;  // by JobId: the check that has seen it last
  std::uint32_t check_ = 0;
};

}  // namespace trainyard::scheduler
