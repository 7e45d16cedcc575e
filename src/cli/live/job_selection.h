// SPDX-License-Identifier: Apache-2.0
// Which jobs a command means: the options that say it, and the jobs of the cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "requests/job_selection.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainyard::cli {

// An option or argument that takes names, of which each may be a list: "n[0-2],v0". The parser says
// what is wrong with it. `names` must outlive the command.
CLI::Option* AddNames(CLI::App& command, const char* option, std::vector<std::string>& names,
                      const char* help);
// The numbers of the jobs, as "12", "12_3", "12,13" and "12_[3-9]".
CLI::Option* AddJobs(
    CLI::App& command, requests::JobSelection& selection,
    const char* help = "ids of jobs; ARRAY_INDEX is a task of an array, ARRAY all its tasks");

// --name, --user, --queue and --state; the numbers are the command's own.
void AddFilters(CLI::App& command, requests::JobSelection& selection);

// Prints what a call has left as it is, all but the first that is an error, which is returned.
[[nodiscard]] Status TellLeftOut(const google::protobuf::RepeatedPtrField<v1::LeftOut>& left_out);

// "12", or "12_3" for a task of an array.
[[nodiscard]] std::string JobText(const v1::JobStatus& job);

// The numbers of the jobs; tasks of arrays are looked up. Errors: a text that is no job; a task
// that there is not.
[[nodiscard]] Result<std::vector<std::uint64_t>> JobNumbers(rpc::ClusterClient& client,
                                                            const std::vector<std::string>& texts);

// The jobs that are meant; the number of an array stands for its tasks. What the controller does
// not know has nothing but its number. `with_steps`: those that are named by number have their
// steps. Errors: neither numbers nor filters, or both; filters that fit no job.
[[nodiscard]] Result<std::vector<v1::JobStatus>> SelectJobs(rpc::ClusterClient& client,
                                                            const requests::JobSelection& selection,
                                                            bool live_only,
                                                            bool with_steps = false);

}  // namespace trainyard::cli
