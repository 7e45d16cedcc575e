// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/name_list.h"
#include "base/unix_time.h"
#include "cli/live/client_calls.h"
#include "cli/slurm/slurm_steps.h"
#include "live/jobs/job_request.h"
#include "model/request/node_request.h"
#include "requests/slurm/slurm_time.h"

namespace trainyard::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSlurmStates{
    {{"PENDING", "PD"},
     {"CONFIGURING", "CF"},
     {"RUNNING", "R"},
     {"COMPLETING", "CG"},
     {"COMPLETED", "CD"},
     {"CANCELLED", "CA"},
     {"FAILED", "F"},
     {"TIMEOUT", "TO"},
     {"NODE_FAIL", "NF"},
     {"OUT_OF_MEMORY", "OOM"}}};
constexpr std::int64_t kMilliCpu = 1000;

// The parts of a span, rounded down.
struct SpanParts {
  std::int64_t days, hours, minutes, seconds;

  explicit SpanParts(double span) {
    const auto whole = static_cast<std::int64_t>(std::max(0.0, span));
    days = whole / 86400;
    hours = whole / 3600 % 24;
    minutes = whole / 60 % 60;
    seconds = whole % 60;
  }
};

int RoundedUp(std::int64_t milli) { return static_cast<int>((milli + kMilliCpu - 1) / kMilliCpu); }

int GpusOf(const v1::JobStatus& job) { return std::max(0, job.request().gpus()); }

std::string GresText(const v1::JobStatus& job, int gpus) {
  const v1::JobRequest& request = job.request();
  const bool is_typed =
      request.gpu_types_size() == 1 && request.gpu_types(0).find(',') == std::string::npos;
  return gpus == 0 ? std::string()
                   : fmt::format("gpu:{}{}", is_typed ? request.gpu_types(0) + ":" : "", gpus);
}

// What a node is, in short and in full.
struct NodeWord {
  std::string_view compact;
  std::string_view full;
};
constexpr NodeWord kDown{"down", "down"};
constexpr NodeWord kDraining{"drng", "draining"};
constexpr NodeWord kDrained{"drain", "drained"};
constexpr NodeWord kAllocated{"alloc", "allocated"};
constexpr NodeWord kMixed{"mix", "mixed"};
constexpr NodeWord kIdle{"idle", "idle"};

const NodeWord& WordOf(const v1::NodeStatus& node) {
  const bool is_used = node.gpus_used() > 0 || node.jobs_size() > 0 || node.other_jobs() > 0;
  if (!node.up()) {
    return kDown;
  }
  if (node.drained()) {
    return is_used ? kDraining : kDrained;
  }
  return !is_used                                             ? kIdle
         : node.gpus() > 0 && node.gpus_used() >= node.gpus() ? kAllocated
                                                              : kMixed;
}

}  // namespace

std::string_view SlurmState(const v1::JobStatus& job) {
  switch (job.state()) {
    case v1::SUBMITTED:
    case v1::WAITING:
      return "PENDING";
    case v1::STARTING:
      return "CONFIGURING";
    case v1::RUNNING:
      return "RUNNING";
    case v1::STOPPING:
      return "COMPLETING";
    case v1::COMPLETED:
      return "COMPLETED";
    case v1::FAILED:
      return job.reason_code() == "TimeLimit"     ? "TIMEOUT"
             : job.reason_code() == "OutOfMemory" ? "OUT_OF_MEMORY"
             : job.reason_code() == "NodeDown"    ? "NODE_FAIL"
                                                  : "FAILED";
    default:
      return "CANCELLED";  // or declined, which Slurm does not do once it has taken a job
  }
}

std::string_view SlurmStateCode(std::string_view state) {
  const auto* const at = std::find_if(kSlurmStates.begin(), kSlurmStates.end(),
                                      [state](const auto& one) { return one.first == state; });
  return at == kSlurmStates.end() ? "" : at->second;
}

std::string_view SlurmStateNamed(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* const at =
      std::find_if(kSlurmStates.begin(), kSlurmStates.end(),
                   [&](const auto& one) { return one.first == upper || one.second == upper; });
  return at == kSlurmStates.end() ? "" : at->first;
}

std::string SlurmStateNames() {
  std::vector<std::string_view> names;
  names.reserve(kSlurmStates.size());
  for (const auto& [name, code] : kSlurmStates) {
    names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string SlurmStamp(double at) {
  std::string text = LocalTime(at);
  std::replace(text.begin(), text.end(), ' ', 'T');
  return text;
}

std::optional<double> SlurmEnd(const v1::JobStatus& job) {
  if (job.has_ended()) {
    return job.ended();
  }
  if (!job.has_started() || !job.request().has_time_s() || SlurmState(job) == "PENDING") {
    return std::nullopt;
  }
  return job.attempt() > 1 ? base::UnixNow() + job.request().time_s() - job.run_s()
                           : job.started() + job.request().time_s();
}

std::string SlurmSpan(double seconds) {
  const SpanParts of(seconds);
  if (of.days > 0) {
    return SlurmLongSpan(seconds);
  }
  return of.hours > 0 ? fmt::format("{}:{:02}:{:02}", of.hours, of.minutes, of.seconds)
                      : fmt::format("{}:{:02}", of.minutes, of.seconds);
}

std::string SlurmLongSpan(double seconds) {
  const SpanParts of(seconds);
  const std::string days = of.days > 0 ? fmt::format("{}-", of.days) : "";
  return fmt::format("{}{:02}:{:02}:{:02}", days, of.hours, of.minutes, of.seconds);
}

std::string SlurmNodes(const v1::JobStatus& job) {
  std::vector<std::string> names;
  for (const v1::NodeGrant& grant : job.grants()) {
    names.push_back(grant.node());
  }
  std::sort(names.begin(), names.end());
  return base::FoldNames(names);
}

int SlurmNodeCount(const v1::JobStatus& job) {
  return job.grants_size() > 0 ? job.grants_size()
                               : std::max(1, live::AsksOf(job.request()).nodes.least);
}

int SlurmTasks(const v1::JobStatus& job) {
  const v1::LaunchSpec& launch = job.request().launch();
  if (launch.has_batch()) {
    return launch.batch().tasks() > 0 ? launch.batch().tasks() : SlurmNodeCount(job);
  }
  return launch.workers() == v1::LaunchSpec::PER_NODE || GpusOf(job) == 0
             ? SlurmNodeCount(job) * std::max(1, launch.workers_per_node())
             : GpusOf(job);
}

int SlurmCpusOn(const v1::JobStatus& job, std::string_view node) {
  for (const v1::NodeGrant& grant : job.grants()) {
    if (grant.node() == node) {
      return grant.share().milli_cpus() > 0
                 ? RoundedUp(grant.share().milli_cpus())
                 : std::max(1, SlurmCpus(job) / std::max(1, job.grants_size()));
    }
  }
  return 0;
}

int SlurmCpus(const v1::JobStatus& job) {
  std::int64_t given = 0;
  for (const v1::NodeGrant& grant : job.grants()) {
    given += grant.share().milli_cpus();
  }
  const CpuRequest asked = live::AsksOf(job.request()).cpus;
  const std::int64_t times = asked.per == Per::kNode  ? SlurmNodeCount(job)
                             : asked.per == Per::kGpu ? GpusOf(job)
                                                      : 1;
  return given > 0         ? RoundedUp(given)
         : asked.milli > 0 ? std::max(1, RoundedUp(asked.milli * times))
                           : std::max(SlurmTasks(job), SlurmNodeCount(job));
}

std::string SlurmMemory(const v1::JobStatus& job) {
  constexpr std::int64_t kGiB = 1024;
  const MemoryRequest asked = live::AsksOf(job.request()).memory;
  const int nodes = SlurmNodeCount(job);
  const std::int64_t mib = asked.per == Per::kNode  ? asked.mib
                           : asked.per == Per::kGpu ? asked.mib * GpusOf(job) / nodes
                                                    : asked.mib / nodes;
  return mib == 0          ? "0"
         : mib % kGiB == 0 ? fmt::format("{}G", mib / kGiB)
                           : fmt::format("{}M", mib);
}

std::string SlurmGpus(const v1::JobStatus& job) { return GresText(job, GpusOf(job)); }

std::string SlurmGpusPerNode(const v1::JobStatus& job) {
  const int nodes = SlurmNodeCount(job);
  return GresText(job, (GpusOf(job) + nodes - 1) / nodes);
}

std::string SlurmExitCode(const v1::JobStatus& job) { return SlurmExitText(job.exit_code()); }

std::string SlurmKept(const v1::JobStatus& job, std::string_view name) {
  for (const v1::EnvironmentVariable& kept : job.request().launch().batch().kept()) {
    if (kept.name() == name) {
      return OrNull(kept.value());
    }
  }
  return "(null)";
}

std::string OrNull(const std::string& text) { return text.empty() ? "(null)" : Printable(text); }

void NamePartition(v1::NodesReply& nodes) {
  if (!nodes.partitions().empty()) {
    return;
  }
  v1::PartitionStatus& only = *nodes.add_partitions();
  only.set_name(kOnlyPartition);
  only.set_is_default(true);
  for (v1::NodeStatus& node : *nodes.mutable_nodes()) {
    node.add_partitions(kOnlyPartition);
  }
}

std::string DefaultPartition(const v1::NodesReply& nodes) {
  for (const v1::PartitionStatus& partition : nodes.partitions()) {
    if (partition.is_default()) {
      return partition.name();
    }
  }
  return kOnlyPartition;
}

const std::string& PartitionOf(const v1::JobStatus& job, const std::string& unnamed) {
  return job.request().queue().empty() ? unnamed : job.request().queue();
}

std::string SlurmNodeState(const v1::NodeStatus& node, bool is_long) {
  const NodeWord& word = WordOf(node);
  return std::string(is_long ? word.full : word.compact) + (node.silent() ? "*" : "");
}

// Of an operator's drain the node says "drained by ann (uid 7, admin) at 2026-11-29T13:08:46Z; jobs
// on it run until they end: a new fan".
SlurmDrain SlurmDrainOf(const v1::NodeStatus& node) {
  SlurmDrain drain;
  const std::string& by = node.changed_by();
  if (!node.reason().empty()) {
    drain.reason = Printable(node.reason());
  }
  if (!node.drained() || !by.starts_with("drained by ")) {
    return drain;
  }
  const std::size_t name = std::string_view("drained by ").size();
  drain.user = Printable(by.substr(name, by.find(" (", name) - name));
  if (const std::size_t why = by.find(": "); node.reason().empty() && why != std::string::npos) {
    drain.reason = Printable(by.substr(why + 2));
  }
  constexpr std::string_view kAt = ") at ";
  constexpr std::size_t kStamp = std::string_view("2026-11-29T13:08:46Z").size();
  if (const std::size_t at = by.find(kAt); at != std::string::npos) {
    const requests::TimeReading when =
        requests::ReadTime(std::string_view(by).substr(at + kAt.size(), kStamp), 0);
    drain.when = when.seconds ? SlurmStamp(*when.seconds) : drain.when;
  }
  return drain;
}

std::string SlurmGres(const v1::NodeStatus& node) {
  return node.gpus() == 0
             ? "(null)"
             : fmt::format("gpu:{}{}", node.gpu_type().empty() ? "" : node.gpu_type() + ":",
                           node.gpus());
}

int SlurmCpus(const v1::NodeStatus& node) {
  return node.stated_milli_cpus() > 0 ? static_cast<int>(node.stated_milli_cpus() / kMilliCpu)
                                      : node.cpus();
}

}  // namespace trainyard::cli
