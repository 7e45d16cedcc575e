// SPDX-License-Identifier: Apache-2.0
// Jobs as clients ask for them: between JobRequest (live.proto) and JobSpec, by the table of a
// job's fields.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/job_fields.h"
#include "supervisor/launch/script_word.h"
#include "supervisor/steps/slurm_tools.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::live {

// The word of a command that stands for the script of its request.
inline constexpr const char* kScriptWord = supervisor::kScriptWord;
// The commands of Slurm that scripts find on their path.
inline constexpr const auto& kSlurmTools = supervisor::kSlurmTools;

// What a shell ends with that opens the files of a script, with the script's own words behind it.
inline constexpr const char* kRunsRest = "; exec \"$@\"";
// The command as a user knows it: of a script without the shell that opens its files.
[[nodiscard]] std::vector<std::string> CommandOf(const v1::LaunchSpec& launch);

// "1 GPU", "3 GPUs".
[[nodiscard]] inline std::string GpusText(int gpus) {
  return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
}

// "RUNNING" as users read it: "running".
[[nodiscard]] std::string LowerCase(std::string text);
[[nodiscard]] inline std::string StateText(v1::JobState state) {
  return LowerCase(v1::JobState_Name(state));
}
// Whether the update is of that field.
[[nodiscard]] inline bool Names(const v1::UpdateRequest& update, std::string_view field) {
  return std::find(update.fields().begin(), update.fields().end(), field) != update.fields().end();
}
// What a call has made of a selection; null: the answer is another one.
[[nodiscard]] const v1::Changed* ChangedOf(const v1::ClientReply& reply);

[[nodiscard]] inline bool HasEnded(v1::JobState state) { return state >= v1::COMPLETED; }

[[nodiscard]] DataSet DataOf(const v1::DataSet& data);
[[nodiscard]] v1::DataSet MessageOf(const DataSet& data);

// The GPUs of one node as messages list them, and with the name of the node.
void AddGpus(std::uint64_t mask, google::protobuf::RepeatedField<std::int32_t>& gpus);
// "n0:0-1,3"
[[nodiscard]] std::string DevicesText(const Slice& slice, const Cluster& cluster);
[[nodiscard]] v1::NodeGrant GrantOf(const Slice& slice, const Cluster& cluster);

// What the request states, submitted then. Errors: what is wrong with the request, whatever the
// cluster (kInvalidArgument); it names GPUs that the cluster does not have (kFailed).
[[nodiscard]] Result<model::JobDraft> DraftOf(const v1::JobRequest& request, TimePoint submit,
                                              const Cluster& cluster);

// What the request asks for beside GPUs; what cannot be read is left out.
[[nodiscard]] NodeRequest AsksOf(const v1::JobRequest& request);

// The request that states what the job of a trace does. `cluster` says what the nodes of its
// devices are called. `command`: of its workers, one for each GPU; empty: they are emulated.
[[nodiscard]] v1::JobRequest RequestOf(const JobSpec& job, const Cluster& cluster,
                                       std::span<const std::string> command = {});

// Sets what stands at the path ("launch.priority"). REQUIRES: it is there and of that type; whole
// numbers may be of 32 or 64 bits.
using RequestValue =
    std::variant<std::string, std::vector<std::string>, std::int64_t, double, bool>;
void SetInRequest(std::string_view path, const RequestValue& value, v1::JobRequest& request);

}  // namespace trainyard::live
