// SPDX-License-Identifier: Apache-2.0
// Which jobs a command means: by numbers, or by name, user, queue and state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rpc/client.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainyard::cli {

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

// An option or argument that takes names, of which each may be a list: "n[0-2],v0". The parser says
// what is wrong with it. `names` must outlive the command.
CLI::Option* AddNames(CLI::App& command, const char* option, std::vector<std::string>& names,
                      const char* help);
// The numbers of the jobs, as "12", "12_3", "12,13" and "12_[3-9]".
CLI::Option* AddJobs(
    CLI::App& command, JobSelection& selection,
    const char* help = "ids of jobs; ARRAY_INDEX is a task of an array, ARRAY all its tasks");

// --name, --user, --queue and --state; the numbers are the command's own.
void AddFilters(CLI::App& command, JobSelection& selection);

// The call that asks for the jobs that the filters fit. Errors: a state that there is not.
[[nodiscard]] Result<v1::ClientRequest> FilterCall(const JobSelection& selection, bool live_only);

// The same for a call that changes jobs. Errors: neither numbers nor filters, or both; a text that
// is no job; a state that there is not.
[[nodiscard]] Result<v1::Selection> SelectionOf(const JobSelection& selection);
// Prints what a call has left as it is, all but the first that is an error, which is returned.
[[nodiscard]] Status TellLeftOut(const google::protobuf::RepeatedPtrField<v1::LeftOut>& left_out);

// "12", or "12_3" for a task of an array.
[[nodiscard]] std::string JobText(const v1::JobStatus& job);

// The numbers of the jobs; tasks of arrays are looked up. Errors: a text that is no job; a task
// that there is not.
[[nodiscard]] Result<std::vector<std::uint64_t>> JobNumbers(rpc::ClusterClient& client,
                                                            const std::vector<std::string>& texts);

// The jobs that are meant; the number of an array stands for its tasks. What the controller does
// not know has nothing but its number. Errors: neither numbers nor filters, or both; filters that
// fit no job.
[[nodiscard]] Result<std::vector<v1::JobStatus>> SelectJobs(rpc::ClusterClient& client,
                                                            const JobSelection& selection,
                                                            bool live_only);

}  // namespace trainyard::cli
