// SPDX-License-Identifier: Apache-2.0
// Which jobs squeue, scancel and sacct are about: users, names, partitions and so on.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cli/slurm/slurm_words.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {

class SlurmFilter {
 public:
  // Of the options user, users, me, name, jobname, partition, account, qos, nodelist, state and
  // states. Errors: a user or state that there is not, a list of nodes that is none.
  [[nodiscard]] static Result<SlurmFilter> Of(std::string_view command, const SlurmWords& words);

  // `partition`: that of the job.
  [[nodiscard]] bool Fits(const v1::JobStatus& job, const std::string& partition) const;
  [[nodiscard]] bool has_states() const { return !states_.empty(); }
  [[nodiscard]] bool is_empty() const {
    return users_.empty() && names_.empty() && partitions_.empty() && accounts_.empty() &&
           qos_.empty() && states_.empty() && nodes_.empty();
  }

 private:
  using Names = std::set<std::string, std::less<>>;

  Status TakeStates(std::string_view command, const SlurmWords& words);

  Names users_, names_, partitions_, accounts_, qos_, states_, nodes_;
};

}  // namespace trainyard::cli
