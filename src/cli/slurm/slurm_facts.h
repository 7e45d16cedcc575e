// SPDX-License-Identifier: Apache-2.0
// Jobs and nodes in the words of Slurm's commands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::cli {

// "PENDING", "RUNNING": of a job that failed also why, "TIMEOUT", "OUT_OF_MEMORY".
[[nodiscard]] std::string_view SlurmState(const v1::JobStatus& job);
// "PD" for "PENDING". Empty: it is no state.
[[nodiscard]] std::string_view SlurmStateCode(std::string_view state);
// The state that "pd" or "Pending" names; empty: none.
[[nodiscard]] std::string_view SlurmStateNamed(std::string_view text);
// All states, "PENDING,RUNNING,...".
[[nodiscard]] std::string SlurmStateNames();

// "2026-11-29T14:08:46", local time of seconds since 1970.
[[nodiscard]] std::string SlurmStamp(double at);
// When the job has ended, or ends by its limit at the latest, of which earlier attempts have used
// some; seconds since 1970. None: it does not run, or has no limit.
[[nodiscard]] std::optional<double> SlurmEnd(const v1::JobStatus& job);
// "0:02", "1:00:00", "2-03:04:05".
[[nodiscard]] std::string SlurmSpan(double seconds);
// The same with all parts, "00:00:02", "2-03:04:05".
[[nodiscard]] std::string SlurmLongSpan(double seconds);

// "n[0-1],v0" of the nodes that the job has; empty: none.
[[nodiscard]] std::string SlurmNodes(const v1::JobStatus& job);
// How many it has; of a job that has none, how many it asks for: at least one.
[[nodiscard]] int SlurmNodeCount(const v1::JobStatus& job);
// The CPUs that it has been given, else those that it asks for: at least one for each task.
[[nodiscard]] int SlurmCpus(const v1::JobStatus& job);
// The same, of one node.
[[nodiscard]] int SlurmCpusOn(const v1::JobStatus& job, std::string_view node);
[[nodiscard]] int SlurmTasks(const v1::JobStatus& job);
// The memory that it asks for of each node, "64G"; "0": it states none.
[[nodiscard]] std::string SlurmMemory(const v1::JobStatus& job);
// "gpu:2", "gpu:a100:2": what it asks for in all, or of each node; empty: no GPUs.
[[nodiscard]] std::string SlurmGpus(const v1::JobStatus& job);
[[nodiscard]] std::string SlurmGpusPerNode(const v1::JobStatus& job);
// "7:0": exit code and signal.
[[nodiscard]] std::string SlurmExitCode(const v1::JobStatus& job);
// What the job carries by that name and nothing is decided by ("comment"); "(null)": nothing.
[[nodiscard]] std::string SlurmKept(const v1::JobStatus& job, std::string_view name);
// The text, or "(null)".
[[nodiscard]] std::string OrNull(const std::string& text);

// What stands where the cluster has no partitions.
inline constexpr const char* kOnlyPartition = "all";
// Puts it there.
void NamePartition(v1::NodesReply& nodes);
// The partition of jobs that name none.
[[nodiscard]] std::string DefaultPartition(const v1::NodesReply& nodes);
// That of the job; `unnamed`: of one that names none. The answer lives as long as both.
[[nodiscard]] const std::string& PartitionOf(const v1::JobStatus& job, const std::string& unnamed);

// "idle", "mix", "alloc", "drng", "drain", "down", with '*' where the agent is silent; `is_long`:
// "mixed", "allocated", "draining", "drained".
[[nodiscard]] std::string SlurmNodeState(const v1::NodeStatus& node, bool is_long);
// Who has drained a node, why and when, "2026-11-29T14:08:46"; "Unknown" and "none": it is not
// known.
struct SlurmDrain {
  std::string reason = "none";
  std::string user = "Unknown";
  std::string when = "Unknown";
};
[[nodiscard]] SlurmDrain SlurmDrainOf(const v1::NodeStatus& node);
// "gpu:a100:4".
[[nodiscard]] std::string SlurmGres(const v1::NodeStatus& node);
[[nodiscard]] int SlurmCpus(const v1::NodeStatus& node);

}  // namespace trainyard::cli
