// SPDX-License-Identifier: Apache-2.0
// Jobs that have not ended, by user and name: what a job that is to be alone waits for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/job.h"

namespace trainyard::engine {

class Namesakes {
 public:
  // The job is there, or has another user or name than before. O(log jobs), as is Remove.
  void Put(JobId job, const std::string& user, const std::string& name);
  // The job has ended. Nothing happens if it is not there.
  void Remove(JobId job);
  // Those of its user and name that are before it, ascending. O(log jobs + results).
  [[nodiscard]] std::vector<JobId> Before(JobId job, const std::string& user,
                                          const std::string& name) const;

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::set<JobId>> jobs_;
  std::map<JobId, std::map<Key, std::set<JobId>>::iterator> places_;
};

}  // namespace trainyard::engine
