// SPDX-License-Identifier: Apache-2.0
// What a user asks for: one training job, as submitted. All members stand in the table of
// src/model/job_fields.h, by which jobs are read and written.
//
// A specification is a constant object that engine, snapshots and forks share. Where the user
// resizes or updates a live job, or a node is to be avoided, the job gets a new specification, so
// keep no pointer to a JobSpec from one decision to the next. What changes in this way: name,
// queue, priority and GPUs; of the traits the range of GPUs, what it asks for beside GPUs, the time
// limit, begin, the dependency and the nodes to avoid.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// What one iteration does when the job has its GPUs for itself; seconds. After Muri (SIGCOMM'22):
// jobs whose stages need different resources can take turns on the same GPUs.
struct StageTimes {
  double iteration = 0;  // from one to the next; stages overlap, so not their sum
  // In the order in which an iteration goes through them. Traces, and models of interleaved and
  // collocated jobs, have three: data loading, GPU, network.
  std::vector<double> stages;

  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

// What an end by a certain time is worth; one of several (Chronus, SoCC'21).
struct SoftDeadline {
  TimePoint at{};    // absolute
  double value = 0;  // of an end at or before `at`, in the user's own unit

  friend bool operator==(const SoftDeadline&, const SoftDeadline&) = default;
};

// What a job trains on. Jobs that name the same data set share what nodes keep of it
// (DataLocality, docs/placements.md).
struct DataSet {
  std::string name;
  std::int64_t mib = 0;  // 1 to 10^9; the same for all jobs that name it
  std::string home;      // the node that always has it; any other name, or none: a remote store

  friend bool operator==(const DataSet&, const DataSet&) = default;
};

// On how many GPUs the user wants a job to run; elsewhere its model has no rate. Both ends are
// optional and hold the number of GPUs asked for.
struct GpuRange {
  int least = 0;  // 0: not stated, from 1
  int most = 0;   // 0: not stated, as many as its profile gains by

  // Whether the job may run on so many GPUs. REQUIRES: gpus >= 1.
  [[nodiscard]] bool Holds(int gpus) const { return gpus >= least && (most == 0 || gpus <= most); }
  friend bool operator==(const GpuRange&, const GpuRange&) = default;
};

// What an amount of CPUs or memory is for.
enum class Per : std::uint8_t {
  kJob,   // shared out over its nodes as its GPUs are, rounded up
  kNode,  // on each of its nodes
  kGpu,
};
struct CpuRequest {
  std::int64_t milli = 0;  // thousandths of a core; 0: not stated
  Per per = Per::kJob;
  friend auto operator<=>(const CpuRequest&, const CpuRequest&) = default;  // NOLINT
};
struct MemoryRequest {
  std::int64_t mib = 0;  // 0: not stated
  Per per = Per::kJob;
  friend auto operator<=>(const MemoryRequest&, const MemoryRequest&) = default;  // NOLINT
};
struct TmpRequest {
  std::int64_t mib = 0;                                                     // 0: not stated
  friend auto operator<=>(const TmpRequest&, const TmpRequest&) = default;  // NOLINT
};
// On how many nodes a gang lies; their numbers of GPUs differ by one at most.
struct NodeCount {
  int least = 0;  // 0: not stated, any number
  int most = 0;
  friend auto operator<=>(const NodeCount&, const NodeCount&) = default;  // NOLINT
};

// On which nodes a job may lie, and what it needs there beside its GPUs (docs/requests.md). Below
// all placements: a Placement or Packer is shown no place that does not meet it. Where it is silent
// of CPUs or memory, the job counts for the share of its GPUs; one without GPUs for one CPU on each
// of its nodes.
struct NodeRequest {
  CpuRequest cpus;
  MemoryRequest memory;
  NodeCount nodes;
  bool exclusive = false;  // nobody else on its nodes
  TmpRequest tmp;          // that its nodes have (NodeSpec::tmp_mib); nothing is taken of it
  std::string
      node_list;        // on these nodes alone, "n[0-3],v0"; on all of them unless `nodes` says so
  std::string exclude;  // not on these
  std::string constraint;  // over NodeSpec::labels: "nvlink&(a100|h100)"
  std::string licenses;    // of Cluster::licenses: "matlab:2,simulink"

  friend auto operator<=>(const NodeRequest&, const NodeRequest&) = default;  // NOLINT
};

// What few jobs state; kept apart so that the others stay small.
struct JobTraits {
  std::optional<StageTimes> stages;
  std::vector<SoftDeadline> deadlines;  // by time; later ones are worth less
  // The GPUs that the user names. Heeded only by policies with Requires::named_devices.
  Slices devices;
  int loader_workers = 0;  // data-loading processes for all its GPUs; 0: not stated
  std::optional<DataSet> data_set;
  // Once it runs it keeps its GPUs until it ends: no policy preempts, moves or resizes it. Where a
  // node is lost it ends, and does not wait again. Below all policies: none has to look at it.
  bool no_requeue = false;
  // That it accepts, sorted, each once: the fastest with room comes first. Or one text with commas:
  // in that order ("H100,A100"). Empty: any.
  std::vector<std::string> gpu_types;
  GpuRange range;
  std::optional<NodeRequest> request;  // none: it asks for GPUs alone
  // It is ended when it has held GPUs for so long in all.
  std::optional<Duration> time_limit;
  std::optional<TimePoint> begin;  // absolute; no component knows of the job before
  // Which jobs have to end first, and how; and the tasks of an array and how many of them may run
  // at a time. Texts of src/model/conditions.h; the engine heeds them, no component has to.
  std::string dependency;
  // Where the dependency cannot be met any more the job waits on, for its user to change or cancel
  // it. Otherwise it is declined then.
  bool keep_on_invalid_dep = false;
  std::string array;
  // As the accounting of another scheduler calls it: whose account it is on, and the user's name
  // for it, which several jobs may share. No component goes by them.
  std::string account;
  std::string label;
  // Nodes that it may not lie on, ascending: where it could not be run. Only a live cluster knows.
  // A Placement is not shown what is free there.
  std::vector<NodeId> avoided;

  friend bool operator==(const JobTraits&, const JobTraits&) = default;
};

struct JobSpec {
  std::string name;  // job_id of the trace
  std::string user;  // may be empty
  // The name of a partition, where the cluster has any (Cluster::partitions; empty: the default
  // one). Otherwise what it means is up to the policy; may be empty.
  std::string queue;
  std::string model;  // may be empty; names a throughput profile
  // Requested: workers of its gang. 0: it runs on CPUs alone, one worker on each of its nodes; no
  // component is shown such a job, and it gets what the others leave (docs/requests.md).
  int gpus = 1;
  std::int64_t batch_size = 0;  // global, of all GPUs together; 0: not stated
  TimePoint submit{};           // JCT counts from here
  // When the scheduler first sees the job; none: at submit.
  std::optional<TimePoint> handover;
  // Run time on the requested GPUs, as declared, restarts and waiting not included. In a
  // simulation of jobs without a profile it is true; on a live cluster it is an estimate. What is
  // left of the job is JobView::time_left.
  std::optional<Duration> duration;
  std::optional<double> iterations;         // total
  std::optional<TimePoint> deadline;        // absolute; none: no deadline
  bool best_effort = false;                 // its deadline, if any, was dropped
  int priority = 0;                         // of the trace; what it means is up to the policy
  std::shared_ptr<const JobTraits> traits;  // null: none
  // Row of the throughput profile, for the execution model; -1: not bound to one.
  std::int32_t profile_row = -1;
  std::string launch;  // what its workers run; opaque to the engine, empty in a trace

  // The time of the job's arrival, before which no component knows of it.
  [[nodiscard]] TimePoint known_from() const { return handover.value_or(submit); }
};

}  // namespace trainyard
