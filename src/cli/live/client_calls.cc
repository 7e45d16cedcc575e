// SPDX-License-Identifier: Apache-2.0
#include "cli/live/client_calls.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/printable.h"
#include "base/try.h"
#include "rpc/address.h"

namespace trainyard::cli {

void AddClusterOptions(CLI::App& command, ClusterOptions& options) {
  command.add_option("--controller", options.controller, "HOST[:PORT] of the controller")
      ->envname("TRAINYARD_CONTROLLER")
      ->capture_default_str();
  command.add_flag("--json", options.json, "print JSON");
}

void Tell(const std::string& line) {
  fmt::print(stderr, "trainyard: {}\n", line);
  std::fflush(stderr);
}

Result<std::unique_ptr<rpc::ClusterClient>> ConnectTo(const ClusterOptions& options) {
  ASSIGN_OR_RETURN(const std::string address,
                   rpc::ControllerAddress("--controller", options.controller));
  return rpc::Connect(address, Tell);
}

Result<v1::ClientReply> CallTo(const ClusterOptions& options, const v1::ClientRequest& request) {
  const Result<std::unique_ptr<rpc::ClusterClient>> client = ConnectTo(options);
  return client.ok() ? client.value()->Call(request, kTimeout)
                     : Result<v1::ClientReply>(client.error());
}

std::string Printable(std::string text) { return base::Printable(std::move(text)); }

std::string OrDash(std::string text) { return text.empty() ? "-" : Printable(std::move(text)); }

std::string LoginName() {
  const passwd* const entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

std::string LocalTime(double at) {
  const auto whole = static_cast<std::time_t>(at);
  std::tm parts{};
  localtime_r(&whole, &parts);
  constexpr std::size_t kRoom = 32;
  std::string text(kRoom, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts));
  return text;
}

v1::ClientRequest JobsCall(const std::vector<std::uint64_t>& jobs, bool live_only) {
  v1::ClientRequest request;
  request.mutable_jobs()->mutable_jobs()->Assign(jobs.begin(), jobs.end());
  request.mutable_jobs()->set_live_only(live_only);
  return request;
}

Result<v1::ClientReply> CallForJobs(rpc::ClusterClient& client, v1::ClientRequest request,
                                    Duration patience) {
  constexpr std::uint32_t kPage = 5000;
  request.mutable_jobs()->set_limit(kPage);
  ASSIGN_OR_RETURN(v1::ClientReply all, client.Call(request, kTimeout, patience));
  for (std::uint64_t next = all.jobs().next(); next != 0;) {
    request.mutable_jobs()->set_after(next);
    ASSIGN_OR_RETURN(v1::ClientReply page, client.Call(request, kTimeout, patience));
    next = page.jobs().next();
    all.mutable_jobs()->mutable_jobs()->MergeFrom(page.jobs().jobs());
  }
  all.mutable_jobs()->clear_next();
  return all;
}

}  // namespace trainyard::cli
