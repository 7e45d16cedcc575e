// SPDX-License-Identifier: Apache-2.0
#include "requests/job_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "live/jobs/job_request.h"
#include "requests/slurm/slurm_words.h"

namespace trainyard::requests {
namespace {

Result<v1::JobState> ReadState(const std::string& text) {
  std::vector<std::string> names;
  for (int state = v1::SUBMITTED; v1::JobState_IsValid(state); ++state) {
    names.push_back(live::StateText(static_cast<v1::JobState>(state)));
    if (names.back() == live::LowerCase(text)) {
      return static_cast<v1::JobState>(state);
    }
  }
  if (const std::string here = InsteadOfState(text); !here.empty()) {
    return InvalidArgument(fmt::format("--state: '{}' is a state of Slurm; here it is '{}' ({})",
                                       text, here, kSlurmPage));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return InvalidArgument(fmt::format("--state: {}", base::UnknownName("state", text, known)));
}

// An empty text comes of a variable that is not set, and would select jobs that have no such name.
Status CheckFilters(const JobSelection& selection) {
  using Filter = std::pair<std::string_view, const std::vector<std::string>*>;
  for (const auto& [option, texts] :
       {Filter{"name", &selection.names}, Filter{"user", &selection.users},
        Filter{"queue", &selection.queues}, Filter{"state", &selection.states}}) {
    if (std::find(texts->begin(), texts->end(), "") != texts->end()) {
      return InvalidArgument(
          fmt::format("--{0} has an empty value; expected the {0} of jobs, or no "
                      "--{0}",
                      option));
    }
  }
  return {};
}

// Both messages have the same fields for it.
template <typename Message>
Status PutFilters(const JobSelection& selection, Message& message) {
  RETURN_IF_ERROR(CheckFilters(selection));
  message.mutable_names()->Assign(selection.names.begin(), selection.names.end());
  message.mutable_users()->Assign(selection.users.begin(), selection.users.end());
  message.mutable_queues()->Assign(selection.queues.begin(), selection.queues.end());
  for (const std::string& text : selection.states) {
    ASSIGN_OR_RETURN(const v1::JobState state, ReadState(text));
    message.add_states(state);
  }
  return {};
}

}  // namespace

Status CheckOneOfBoth(const JobSelection& selection) {
  if (selection.jobs.empty() == selection.has_filter()) {
    return {};
  }
  return InvalidArgument(
      selection.jobs.empty()
          ? "no job is named; expected numbers of jobs, or --name, --user, --queue or --state"
          : "jobs are named by number and by --name, --user, --queue or --state; expected one of "
            "both");
}

Result<model::JobNumber> ReadJobNumber(const std::string& text) {
  const std::optional<model::JobNumber> number = model::ParseJobNumber(text);
  if (!number) {
    return InvalidArgument(fmt::format(
        "'{}' is no job; expected its number, or ARRAY_INDEX for a task of an array", text));
  }
  return *number;
}

Result<v1::ClientRequest> FilterCall(const JobSelection& selection, bool live_only) {
  v1::ClientRequest request;
  v1::JobsRequest& jobs = *request.mutable_jobs();
  RETURN_IF_ERROR(PutFilters(selection, jobs));
  for (const int state : jobs.states()) {  // an ended state asks for ended jobs
    live_only = live_only && !live::HasEnded(static_cast<v1::JobState>(state));
  }
  jobs.set_live_only(live_only);
  return request;
}

Result<v1::Selection> SelectionOf(const JobSelection& selection) {
  RETURN_IF_ERROR(CheckOneOfBoth(selection));
  v1::Selection chosen;
  for (const std::string& text : selection.jobs) {
    RETURN_IF_ERROR(ReadJobNumber(text));
    chosen.add_jobs(text);
  }
  RETURN_IF_ERROR(PutFilters(selection, chosen));
  return chosen;
}

}  // namespace trainyard::requests
