// SPDX-License-Identifier: Apache-2.0
#include "model/conditions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"

namespace trainyard::model {
namespace {

constexpr int kMostMinutes = 60 * 24 * 366;

using KindName = std::pair<std::string_view, Condition::Kind>;
constexpr std::array<KindName, 6> kKinds{{{"after", Condition::Kind::kAfter},
                                          {"afterok", Condition::Kind::kAfterOk},
                                          {"afterany", Condition::Kind::kAfterAny},
                                          {"afternotok", Condition::Kind::kAfterNotOk},
                                          {"aftercorr", Condition::Kind::kAfterCorr},
                                          {"singleton", Condition::Kind::kSingleton}}};

Error BadDependency(std::string_view text) {
  return InvalidArgument("'" + std::string(text) +
                         "' is no dependency; expected afterok:JOB[:JOB...], afterany:JOB, "
                         "afternotok:JOB, aftercorr:JOB, after:JOB[+MINUTES] or singleton, with "
                         "',' between several (or '?', if one is enough)");
}

Result<Condition> ParseCondition(std::string_view text) {
  const std::vector<std::string_view> parts = base::Split(text, ":");
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& known) {
    return known.first == parts.front();
  });
  if (kind == kKinds.end()) {
    return BadDependency(text);
  }
  Condition condition{.kind = kind->second};
  condition.jobs.assign(parts.begin() + 1, parts.end());
  const bool names_jobs = kind->second != Condition::Kind::kSingleton;
  if (condition.jobs.empty() == names_jobs ||
      std::find(condition.jobs.begin(), condition.jobs.end(), "") != condition.jobs.end()) {
    return BadDependency(text);
  }
  for (std::size_t i = 0; condition.kind == Condition::Kind::kAfter && i < condition.jobs.size();
       ++i) {
    std::string& job = condition.jobs[i];
    const std::size_t plus = job.find('+');
    const auto minutes = plus == std::string::npos
                             ? std::optional(0)
                             : base::ToInteger<int>(std::string_view(job).substr(plus + 1));
    if (plus == 0 || !minutes || *minutes < 0 || *minutes > kMostMinutes) {
      return BadDependency(text);
    }
    condition.minutes.push_back(*minutes);
    job.resize(std::min(plus, job.size()));
  }
  return condition;
}

Error BadArray(std::string_view text) {
  return InvalidArgument("'" + std::string(text) + "' is no array; expected at most " +
                         std::to_string(kMostTasks) + " indices from 0 to " +
                         std::to_string(kMostTaskIndex) +
                         ", and how many may run at a time: " + "0-999%50, 1,3,7, 0-20:4");
}

// "3", "3-7", "3-7:2": its indices, which rise; none: it is no range, or of more than kMostTasks.
std::vector<std::int64_t> IndicesOf(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t dash = text.find('-');
  const bool has_step = colon != std::string_view::npos;
  const bool is_range = dash != std::string_view::npos;
  const auto first = base::ToInteger<std::int64_t>(text.substr(0, is_range ? dash : text.size()));
  const auto last =
      is_range ? base::ToInteger<std::int64_t>(text.substr(dash + 1, colon - dash - 1)) : first;
  const auto step =
      has_step ? base::ToInteger<std::int64_t>(text.substr(colon + 1)) : std::optional(1L);
  if (!first || !last || !step || (has_step && !is_range) || *first < 0 || *last < *first ||
      *last > kMostTaskIndex || *step < 1 ||
      (*last - *first) / *step >= static_cast<std::int64_t>(kMostTasks)) {
    return {};
  }
  std::vector<std::int64_t> indices;
  for (std::int64_t index = *first; index <= *last; index += std::min(*step, kMostTaskIndex + 1)) {
    indices.push_back(index);
  }
  return indices;
}

}  // namespace

Result<Dependency> ParseDependency(std::string_view text) {
  const bool any = text.find('?') != std::string_view::npos;
  if (any && text.find(',') != std::string_view::npos) {
    return BadDependency(text);
  }
  Dependency dependency{.any = any, .conditions = {}};
  for (const std::string_view part : base::Split(text, any ? "?" : ",")) {
    ASSIGN_OR_RETURN(Condition condition, ParseCondition(part));
    dependency.conditions.push_back(std::move(condition));
  }
  return dependency;
}

std::string TextOf(const Dependency& dependency) {
  std::string text;
  for (const Condition& condition : dependency.conditions) {
    text += text.empty() ? "" : dependency.any ? "?" : ",";
    text += std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& known) {
              return known.second == condition.kind;
            })->first;
    for (std::size_t i = 0; i < condition.jobs.size(); ++i) {
      text += ":" + condition.jobs[i];
      if (i < condition.minutes.size() && condition.minutes[i] > 0) {
        text += "+" + std::to_string(condition.minutes[i]);
      }
    }
  }
  return text;
}

std::optional<JobNumber> ParseJobNumber(std::string_view text) {
  const std::size_t bar = text.find('_');
  const auto job = base::ToInteger<std::uint64_t>(text.substr(0, bar));
  if (!job || *job == 0) {
    return std::nullopt;
  }
  if (bar == std::string_view::npos) {
    return JobNumber{.job = *job};
  }
  const auto task = base::ToInteger<std::int64_t>(text.substr(bar + 1));
  return task && *task >= 0 ? std::optional(JobNumber{.job = *job, .task = *task}) : std::nullopt;
}

std::string TextOf(const JobNumber& number) {
  return std::to_string(number.job) + (number.task ? "_" + std::to_string(*number.task) : "");
}

Result<ArrayTasks> ParseArray(std::string_view text) {
  ArrayTasks tasks;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const auto at_once = base::ToInteger<int>(text.substr(percent + 1));
    if (!at_once || *at_once < 1) {
      return BadArray(text);
    }
    tasks.at_once = *at_once;
  }
  for (const std::string_view part : base::Split(text.substr(0, percent), ",")) {
    const std::vector<std::int64_t> indices = IndicesOf(part);
    std::vector<std::int64_t> all;  // each once, however often it is named
    std::set_union(tasks.indices.begin(), tasks.indices.end(), indices.begin(), indices.end(),
                   std::back_inserter(all));
    if (indices.empty() || all.size() > kMostTasks) {
      return BadArray(text);
    }
    tasks.indices = std::move(all);
  }
  return tasks;
}

std::string RangesText(const std::vector<std::int64_t>& indices) {
  constexpr std::size_t kLongest = 40;
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) {
      ++last;
    }
    if (text.size() > kLongest) {
      return text + ",... " + std::to_string(indices.size()) + " in all";
    }
    text += (text.empty() ? "" : ",") + std::to_string(indices[i]);
    text += last == i ? "" : "-" + std::to_string(indices[last]);
    i = last + 1;
  }
  return text;
}

bool WaitsByTask(const JobSpec& spec) {
  return spec.traits && spec.traits->dependency.find("aftercorr:") != std::string::npos;
}

std::size_t CountOf(const JobSpec& spec) {
  if (!spec.traits || spec.traits->array.empty()) {
    return 1;
  }
  const Result<ArrayTasks> tasks = ParseArray(spec.traits->array);
  return tasks.ok() ? tasks.value().indices.size() : 1;
}

}  // namespace trainyard::model
