// SPDX-License-Identifier: Apache-2.0
#include "live/calls/selection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "model/conditions.h"
#include "service/call_error.h"

namespace trainyard::live {

Selected::Selected(const CallContext& context, const Call& call, const Target& target)
    : state_(context.state()), known_(context.known_jobs()), principal_(call.principal) {
  if (target.selection == nullptr) {
    const std::optional<JobId> job = state_.numbers.Find(target.number, known_);
    if (job) {
      Add(*job, true);
    } else {
      AddUnknown(NotFound("there is no job " + std::to_string(target.number)));
    }
    return;
  }
  const v1::Selection& selection = *target.selection;
  for (const std::string& text : selection.jobs()) {
    AddNamed(text);
  }
  const bool has_filter = !selection.names().empty() || !selection.users().empty() ||
                          !selection.queues().empty() || !selection.states().empty();
  for (std::size_t i = 0; has_filter && i < known_; ++i) {
    if (context.statuses().IsMeant(JobAt(i), selection) &&
        context.statuses().MaySee(principal_, JobAt(i))) {
      Add(JobAt(i), false);
    }
  }
  std::sort(jobs_.begin(), jobs_.end());
}

void Selected::AddUnknown(const Error& error) {
  v1::LeftOut& unknown = unknown_.emplace_back();
  unknown.set_code(service::NumberOf(error.code));
  unknown.set_why(error.message);
}

void Selected::AddNamed(const std::string& text) {
  const std::optional<model::JobNumber> number = model::ParseJobNumber(text);
  if (!number) {
    return AddUnknown(InvalidArgument(
        "'" + text + "' is no job; expected its number, or ARRAY_INDEX for a task of an array"));
  }
  const std::optional<JobId> named = state_.numbers.Find(number->job, known_);
  if (!named) {
    return AddUnknown(NotFound("there is no job " + text));
  }
  const JobId first = *named;
  const bool is_array = state_.jobs[first].array == first;
  const std::size_t end = is_array ? EndOfArray(first) : Index(first) + 1;
  if (!number->task) {
    return is_array ? AddArray(first, end) : Add(first, true);
  }
  std::size_t at = Index(first);  // the indices of the tasks rise
  for (std::size_t most = end; is_array && at < most;) {
    const std::size_t middle = at + (most - at) / 2;
    (state_.jobs[JobAt(middle)].array_index < *number->task ? at : most) =
        state_.jobs[JobAt(middle)].array_index < *number->task ? middle + 1 : middle;
  }
  if (!is_array || at == end || state_.jobs[JobAt(at)].array_index != *number->task) {
    return AddUnknown(NotFound("there is no task " + text));
  }
  Add(JobAt(at), true);
}

std::size_t Selected::EndOfArray(JobId first) const {
  return std::min(known_, Index(first) + model::CountOf(*state_.jobs[first].spec));
}

// The tasks that have not ended, or all where none is left.
void Selected::AddArray(JobId first, std::size_t end) {
  bool has_ended = true;
  for (std::size_t i = Index(first); i < end; ++i) {
    has_ended = has_ended && state_.jobs[JobAt(i)].ending;
  }
  for (std::size_t i = Index(first); i < end; ++i) {
    if (has_ended || !state_.jobs[JobAt(i)].ending) {
      Add(JobAt(i), has_ended);
    }
  }
}

void Selected::Add(JobId job, bool named) {
  if (named) {
    named_.insert(job);
  }
  if (!seen_.insert(job).second) {
    return;
  }
  if (!principal_.May(service::Access::kChange, *state_.jobs[job].request)) {
    named_.insert(job);  // it is an error whatever has named it
    return Leave(job, {NotYours(principal_, service::Access::kChange)});
  }
  jobs_.push_back(job);
}

// "12", "12-14,17", "12_[3-9]". `array`: 0, they are in none. REQUIRES: ascending, at least one.
std::string Selected::NameOf(std::uint64_t array, const std::vector<JobId>& jobs) const {
  if (jobs.size() == 1) {
    return state_.jobs.TextOf(jobs.front());
  }
  std::vector<std::int64_t> indices;
  indices.reserve(jobs.size());
  for (const JobId job : jobs) {
    indices.push_back(array != 0 ? state_.jobs[job].array_index
                                 : static_cast<std::int64_t>(state_.numbers.Of(job)));
  }
  std::string ranges = model::RangesText(indices);
  return array == 0 ? ranges : std::to_string(array) + "_[" + ranges + "]";
}

std::vector<v1::LeftOut> Selected::LeftOut(bool nothing_else) const {
  std::vector<v1::LeftOut> all = unknown_;
  struct Group {
    std::vector<JobId> jobs;
    std::size_t place = 0;
  };
  // By array (0: of none), number if it was named and is in none, code and text.
  std::map<std::tuple<std::uint64_t, std::uint64_t, int, std::string>, Group> groups;
  for (const Left& left : left_) {
    if (left.why.quiet && !nothing_else && !IsNamed(left.job)) {
      continue;
    }
    const std::optional<JobId>& array = state_.jobs[left.job].array;
    const int code = nothing_else || IsNamed(left.job) ? service::NumberOf(left.why.error.code) : 0;
    groups
        .try_emplace({array ? state_.numbers.Of(*array) : 0,
                      array || !IsNamed(left.job) ? 0 : state_.numbers.Of(left.job), code,
                      left.why.error.message},
                     Group{.jobs = {}, .place = groups.size()})
        .first->second.jobs.push_back(left.job);
  }
  const std::size_t begin = all.size();
  all.resize(begin + groups.size());
  for (auto& [key, group] : groups) {
    v1::LeftOut& left = all[begin + group.place];
    std::sort(group.jobs.begin(), group.jobs.end());
    const std::string name = NameOf(std::get<0>(key), group.jobs);
    for (const JobId job : group.jobs) {
      left.add_jobs(state_.numbers.Of(job));
    }
    left.set_code(std::get<2>(key));
    left.set_why(base::ReplaceAll(std::get<3>(key), "{}", name));
  }
  return all;
}

}  // namespace trainyard::live
