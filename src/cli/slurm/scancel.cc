// SPDX-License-Identifier: Apache-2.0
// scancel: ends jobs, or sends them a signal.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/name_list.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_filter.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"
#include "service/signals.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;

constexpr const char* kScancel = "scancel";
constexpr std::array kScancelOptions{
    SlurmOption{"account", 'A', kNeeded, kDone, ""},
    SlurmOption{"batch", 'b', kNone, kNoEffect, ""},
    SlurmOption{"clusters", 'M', kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"cron", 0, kNone, kNoEffect, ""},
    SlurmOption{"full", 'f', kNone, kNoEffect, ""},
    SlurmOption{"help", 0, kNone, kDone, ""},
    SlurmOption{"hurry", 'H', kNone, kNoEffect, ""},
    SlurmOption{"interactive", 'i', kNone, kDone, ""},
    SlurmOption{"jobname", 'n', kNeeded, kDone, ""},
    SlurmOption{"me", 0, kNone, kDone, ""},
    SlurmOption{"name", 0, kNeeded, kDone, ""},
    SlurmOption{"nodelist", 'w', kNeeded, kDone, ""},
    SlurmOption{"partition", 'p', kNeeded, kDone, ""},
    SlurmOption{"qos", 'q', kNeeded, kDone, ""},
    SlurmOption{"quiet", 'Q', kNone, kDone, ""},
    SlurmOption{"reservation", 'R', kNeeded, kRefused, "there are no reservations"},
    SlurmOption{"sibling", 0, kNeeded, kNoEffect, ""},
    SlurmOption{"signal", 's', kNeeded, kDone, ""},
    SlurmOption{"state", 't', kNeeded, kDone, ""},
    SlurmOption{"usage", 0, kNone, kDone, ""},
    SlurmOption{"user", 'u', kNeeded, kDone, ""},
    SlurmOption{"verbose", 'v', kNone, kDone, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
    SlurmOption{"wckey", 0, kNeeded, kRefused, "jobs are not chosen by it"},
};
constexpr const char* kScancelUsage =
    "Usage: scancel [-A account] [-i] [--me] [-n name] [-p partition] [-Q] [-q qos] [-s signal]\n"
    "               [-t PENDING|RUNNING] [-u user] [-v] [-w nodes] [jobid[_index]...]\n"
    "Trainyard by the name of Slurm's scancel; see 'trainyard cancel' and 'trainyard signal'.\n";

// The jobs by their numbers, as the call names them. Errors: a word that is no job.
Result<std::vector<std::string>> JobsMeant(const SlurmWords& words, const SlurmFilter& filter,
                                           rpc::ClusterClient& client) {
  std::vector<std::string> named;
  for (const std::string& word : words.rest) {
    const Result<std::vector<std::string>> ids = base::ExpandNames(word);
    for (const std::string& id : ids.ok() ? ids.value() : std::vector<std::string>{word}) {
      if (!requests::ReadJobNumber(id).ok()) {
        return InvalidArgument("Invalid job id " + word);
      }
      named.push_back(id);
    }
  }
  if (filter.is_empty()) {
    return named;
  }
  ASSIGN_OR_RETURN(const v1::ClientReply all, CallForJobs(client, JobsCall({}, true)));
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  const std::string unnamed = DefaultPartition(nodes);
  std::vector<std::string> fitting;
  for (const v1::JobStatus& job : all.jobs().jobs()) {
    const bool is_named =
        named.empty() || std::any_of(named.begin(), named.end(), [&job](const std::string& id) {
          return id == JobText(job) || id == std::to_string(job.job()) ||
                 (job.has_array_job() && id == std::to_string(job.array_job()));
        });
    if (is_named && filter.Fits(job, PartitionOf(job, unnamed))) {
      fitting.push_back(JobText(job));
    }
  }
  return fitting;
}

bool IsConfirmed(const std::string& id) {
  fmt::print("Cancel job_id={} [y/n]? ", id);
  std::fflush(stdout);
  const int answer = std::getchar();
  for (int rest = answer; rest != '\n' && rest != EOF;) {
    rest = std::getchar();
  }
  return answer == 'y' || answer == 'Y';
}

// KILL is what `cancel` does in the end: it gives notice first.
Status PutEnd(const SlurmWords& words, const std::vector<std::string>& ids,
              v1::ClientRequest& request) {
  const std::optional<std::string> named = words.Value("signal");
  if (!named || *named == "KILL" || *named == "SIGKILL" || *named == "9") {
    request.mutable_cancel()->mutable_selection()->mutable_jobs()->Assign(ids.begin(), ids.end());
    return {};
  }
  const int signal = service::SignalNamed(*named);
  if (signal == 0) {
    return InvalidArgument(
        fmt::format("Unknown job signal: {}; expected KILL, {}", *named, service::kPassedSignals));
  }
  request.mutable_signal()->set_signal(signal);
  request.mutable_signal()->mutable_selection()->mutable_jobs()->Assign(ids.begin(), ids.end());
  return {};
}

Result<int> EndJobs(const SlurmWords& words) {
  ASSIGN_OR_RETURN(const SlurmFilter filter, SlurmFilter::Of(kScancel, words));
  if (words.rest.empty() && filter.is_empty()) {
    return InvalidArgument("No job identification provided");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectAsSlurm());
  ASSIGN_OR_RETURN(std::vector<std::string> ids, JobsMeant(words, filter, *client));
  if (words.Has("interactive")) {
    std::erase_if(ids, [](const std::string& id) { return !IsConfirmed(id); });
  }
  if (ids.empty()) {
    return 0;
  }
  v1::ClientRequest request;
  RETURN_IF_ERROR(PutEnd(words, ids, request));
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client->Call(request, kTimeout));
  const v1::Changed* const changed = live::ChangedOf(reply);
  int status = 0;
  if (changed != nullptr) {
    for (const v1::JobStatus& job : changed->jobs()) {
      if (words.Has("verbose")) {
        fmt::print(stderr, "scancel: Terminating job {}\n", JobText(job));
      }
    }
    for (const v1::LeftOut& left : changed->left_out()) {
      if (left.code() != 0 && !words.Has("quiet")) {
        status = SlurmError(kScancel, "Kill job error: " + Printable(left.why()));
      }
    }
  }
  return status;
}

}  // namespace

int Scancel(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kScancel, words, kScancelOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", kScancelUsage);
    return 0;
  }
  const Result<int> status = EndJobs(*read);
  return status.ok() ? status.value() : SlurmError(kScancel, status.error().message);
}

}  // namespace trainyard::cli
