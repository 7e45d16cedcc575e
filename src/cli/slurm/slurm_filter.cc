// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_filter.h"

#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <initializer_list>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/slurm/slurm_facts.h"

namespace trainyard::cli {

Result<SlurmFilter> SlurmFilter::Of(std::string_view command, const SlurmWords& words) {
  SlurmFilter filter;
  const auto take = [&words](Names& names, std::initializer_list<std::string_view> options) {
    for (const std::string_view option : options) {
      for (std::string& item : words.Items(option)) {
        names.insert(std::move(item));
      }
    }
  };
  take(filter.users_, {"user", "users", "uid"});
  take(filter.names_, {"name", "jobname"});
  take(filter.partitions_, {"partition"});
  take(filter.accounts_, {"account", "accounts"});
  take(filter.qos_, {"qos"});
  Names users;
  for (const std::string& user : filter.users_) {  // a number is a uid
    const auto uid = base::ToInteger<std::uint32_t>(user);
    const passwd* const entry = uid ? getpwuid(*uid) : getpwnam(user.c_str());
    if (entry == nullptr && !uid) {
      return InvalidArgument("Invalid user: " + user);
    }
    users.insert(entry != nullptr ? entry->pw_name : user);
  }
  filter.users_ = std::move(users);
  if (words.Has("me")) {
    filter.users_.insert(LoginName());
  }
  RETURN_IF_ERROR(filter.TakeStates(command, words));
  if (const std::optional<std::string> list = words.Value("nodelist")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, base::ExpandNames(*list));
    filter.nodes_.insert(names.begin(), names.end());
  }
  return filter;
}

Status SlurmFilter::TakeStates(std::string_view command, const SlurmWords& words) {
  const std::string all = SlurmStateNames();
  for (const std::string_view option : {"states", "state"}) {
    for (const std::string& text : words.Items(option)) {
      if (text == "all" || text == "ALL") {
        for (const std::string_view name : base::Split(all, ",")) {
          states_.emplace(name);
        }
      } else if (const std::string_view state = SlurmStateNamed(text); !state.empty()) {
        states_.emplace(state);
      } else {
        return InvalidArgument(
            fmt::format("Invalid job state specified: {}\n{}: error: Valid job states include: {}",
                        text, command, all));
      }
    }
  }
  return {};
}

bool SlurmFilter::Fits(const v1::JobStatus& job, const std::string& partition) const {
  const auto fits = [](const Names& names, std::string_view text) {
    return names.empty() || names.contains(text);
  };
  const bool is_there = nodes_.empty() || std::any_of(job.grants().begin(), job.grants().end(),
                                                      [this](const auto& grant) {
                                                        return nodes_.contains(grant.node());
                                                      });
  return fits(users_, job.request().user()) && fits(names_, job.request().name()) &&
         fits(partitions_, partition) && fits(accounts_, job.request().account()) &&
         fits(qos_, SlurmKept(job, "qos")) && is_there && fits(states_, SlurmState(job));
}

}  // namespace trainyard::cli
