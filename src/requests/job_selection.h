// SPDX-License-Identifier: Apache-2.0
// Which jobs a call is about, as users type it: numbers of jobs, or name, user, queue and state.
#pragma once

#include <string>
#include <vector>

#include "model/conditions.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::requests {

struct JobSelection {
  std::vector<std::string> jobs;  // "12", "12_3"
  std::vector<std::string> names;
  std::vector<std::string> users;
  std::vector<std::string> queues;
  std::vector<std::string> states;

  // Whether it says anything but numbers.
  [[nodiscard]] bool has_filter() const {
    return !names.empty() || !users.empty() || !queues.empty() || !states.empty();
  }
};

// Errors: neither numbers nor filters, or both.
[[nodiscard]] Status CheckOneOfBoth(const JobSelection& selection);

// "12", "12_3". Errors: a text that is no job.
[[nodiscard]] Result<model::JobNumber> ReadJobNumber(const std::string& text);

// The call that asks for the jobs that the filters fit. Errors: an unknown state.
[[nodiscard]] Result<v1::ClientRequest> FilterCall(const JobSelection& selection, bool live_only);

// The selection of a call that changes jobs. Errors: those of the functions above.
[[nodiscard]] Result<v1::Selection> SelectionOf(const JobSelection& selection);

}  // namespace trainyard::requests
