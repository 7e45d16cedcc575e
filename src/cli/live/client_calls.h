// SPDX-License-Identifier: Apache-2.0
// What the commands have in common that call the controller of a live cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "live/jobs/job_request.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace CLI {
class App;
}

namespace trainyard::cli {

struct Command;

inline constexpr Duration kTimeout = std::chrono::seconds(30);  // of a call
// A controller that is started anew is back within this.
inline constexpr Duration kPatience = std::chrono::seconds(10);

struct ClusterOptions {
  std::string controller = "127.0.0.1:7077";
  bool json = false;
};
void AddClusterOptions(CLI::App& command, ClusterOptions& options);

// A line on standard error, beside what was asked for.
void Tell(const std::string& line);

// Errors: an address that is none; no controller there.
[[nodiscard]] Result<std::unique_ptr<rpc::ClusterClient>> ConnectTo(const ClusterOptions& options);
// One call to the controller. Errors: those of ConnectTo; what the controller refuses.
[[nodiscard]] Result<v1::ClientReply> CallTo(const ClusterOptions& options,
                                             const v1::ClientRequest& request);
// Asks for the status of the jobs; none: of all, or of those that have not ended.
[[nodiscard]] v1::ClientRequest JobsCall(const std::vector<std::uint64_t>& jobs, bool live_only);

// Calls for jobs, those of all pages in one reply.
[[nodiscard]] Result<v1::ClientReply> CallForJobs(rpc::ClusterClient& client,
                                                  v1::ClientRequest request,
                                                  Duration patience = Duration{0});

// What others wrote must not steer the terminal: base::Printable.
[[nodiscard]] std::string Printable(std::string text);
// The same; "-" where it is empty.
[[nodiscard]] std::string OrDash(std::string text);

// Two spaces between columns; the first row is the heading.
[[nodiscard]] std::string TableText(const std::vector<std::vector<std::string>>& rows);

// Of the user who calls; the number where it has none.
[[nodiscard]] std::string LoginName();

// "2026-11-21 18:00:00" for seconds since 1970.
[[nodiscard]] std::string LocalTime(double at);

// The commands `logs`, `profiles`, `config` and `submit`.
void AddUsage(CLI::App& app, Command& chosen);
void AddAudit(CLI::App& app, Command& chosen);
void AddProfiles(CLI::App& app, Command& chosen);
void AddConfig(CLI::App& app, Command& chosen);
void AddLogs(CLI::App& app, Command& chosen);
void AddSubmit(CLI::App& app, Command& chosen);
// `login`, `user`, `node` and `certs`.
void AddIdentity(CLI::App& app, Command& chosen);

}  // namespace trainyard::cli
