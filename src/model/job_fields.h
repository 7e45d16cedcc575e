// SPDX-License-Identifier: Apache-2.0
// The fields of a job: one table of all members of JobSpec. Journal, snapshots, native traces, job
// files, options of `trainyard submit` and requests iterate it; each of them knows the types of
// fields and not the fields. A new field of a known type is a member of JobSpec or JobTraits and a
// row here, and a line in live.proto where clients may state it; plug-ins see it, so raise
// TRAINYARD_PLUGIN_INTERFACE.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::model {

inline constexpr std::int64_t kMostDataMib = 1'000'000'000;

// Traces are in seconds: what is beyond 285 years is in another unit.
inline constexpr double kMostTraceSeconds = 9e9;
inline constexpr std::int64_t kMostGpus = 100'000 * std::int64_t{kMaxGpusPerNode};  // of one job

// Its place in the journal, for ever, and the flag that says that it is there (engine/journal.cc).
// A new field takes the next place, without a flag.
struct JournalPlace {
  int place = 0;
  int flag = -1;
};

// Numbers and times (in seconds) that may be stated, both ends included. Times and amounts that are
// optional are more than 0; times of day are from 0.
struct FieldBounds {
  double least = 0;
  double most = 0;
};

// Of submit, with the name of the field.
struct FieldOption {
  std::string_view value{};  // "N"; none: it is a flag
  std::string_view help{};
};

// What is the same for fields of all types.
struct JobFieldInfo {
  std::string_view name;  // in job files and messages
  // Where a JobRequest (live.proto) has it; none: no client states it.
  std::string_view request{};
  // Its columns in native traces, more than one if the type has parts; none: no trace states it.
  std::array<std::string_view, 4> columns{};
  bool required = false;  // in each row of a native trace
  JournalPlace journal{};
  FieldBounds bounds{};
  FieldOption option{};
  int column = -1;  // the first of its columns among those of all fields
};

// A member of JobSpec, JobTraits, GpuRange or NodeRequest.
template <typename Owner, typename T>
struct JobField {
  T Owner::*member;
  JobFieldInfo info;

  [[nodiscard]] constexpr std::size_t columns() const {
    std::size_t count = 0;
    while (count < info.columns.size() && !info.columns[count].empty()) {
      ++count;
    }
    return count;
  }
};

namespace job_fields {

template <typename Owner, typename T>
constexpr JobField<Owner, T> Field(T Owner::*member, JobFieldInfo info, JournalPlace journal,
                                   FieldBounds bounds = {}, FieldOption option = {}) {
  info.journal = journal;
  info.bounds = bounds;
  info.option = option;
  return {member, info};
}

// Counts the columns.
template <typename... Fields>
constexpr std::tuple<Fields...> Table(Fields... fields) {
  int column = 0;
  const auto number = [&column](auto& field) {
    field.info.column = field.columns() > 0 ? column : -1;
    column += static_cast<int>(field.columns());
  };
  (number(fields), ...);
  return {fields...};
}

inline constexpr int kFirstRequestPlace = 31;  // in the journal, of NodeRequest
inline constexpr FieldBounds kSeconds{0, kMostTraceSeconds};
inline constexpr FieldBounds kAnyInt{std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::int32_t>::max()};
inline constexpr FieldBounds kCount{1, kAnyInt.most};
inline constexpr FieldBounds kNone{};
inline constexpr FieldBounds kLongText{0, 4096};  // bytes; of other texts 256

// In the order of the columns of native traces. Of each: member; name, path in JobRequest, columns
// and whether they are required; journal; bounds; option.
inline constexpr auto kTable = Table(
    Field(&JobSpec::name, {"name", "name", {"job_id"}, true}, {1}, kNone,
          {"TEXT", "of the job (default: made from its id)"}),
    Field(&JobSpec::submit, {"submit_time", "", {"submit_time"}, true}, {7}, kSeconds),
    Field(&JobSpec::gpus, {"gpus", "gpus", {"gpus"}, true}, {5}, {0, kMostGpus},
          {"N|MIN:MAX", "GPUs; MIN:MAX: MIN, and up to MAX for an elastic job; 0: on CPUs alone"}),
    Field(&JobSpec::duration, {"duration", "duration_s", {"duration"}}, {8}, kSeconds,
          {"TIME", "estimated run time on the requested GPUs: 90, 90s, 15m, 2h"}),
    Field(&JobSpec::iterations, {"iterations", "iterations", {"iterations"}}, {9}, {0, 1e15},
          {"N", "training iterations in all"}),
    Field(&JobSpec::user, {"user", "user", {"user"}}, {2}, kNone,
          {"TEXT", "owner (default: the login name)"}),
    Field(&JobSpec::queue, {"queue", "queue", {"queue"}}, {3}, kNone, {"TEXT", "queue"}),
    Field(&JobSpec::model, {"model", "model", {"model"}}, {4}, kNone,
          {"TEXT", "model of the throughput profile"}),
    Field(&JobSpec::batch_size, {"batch_size", "batch_size", {"batch_size"}}, {6}, {1, 1e12},
          {"N", "global batch size, for the throughput profile"}),
    Field(&JobSpec::deadline, {"deadline", "deadline_s", {"deadline"}}, {10}, kSeconds,
          {"TIME", "from now (2h), or a local time (2026-11-21T18:00)"}),
    Field(&JobSpec::best_effort, {"best_effort", "best_effort", {"best_effort"}}, {11, 0}, kNone,
          {"", "no deadline counts, no guarantee"}),
    Field(
        &JobTraits::data_set, {"data_set", "data_set", {"data_set", "data_mib", "data_home"}},
        {20, 5}, {1, kMostDataMib},
        {"NAME=PATH[:MIB]", "data set: a folder or HOST:FOLDER, and its size (default: as found)"}),
    Field(
        &JobTraits::gpu_types, {"gpu_types", "gpu_types", {"gpu_types"}}, {21, 6}, kNone,
        {"TYPE|...",
         "GPU types that it accepts, the fastest first; H100,A100: in that order (default: any)"}),
    Field(&JobSpec::handover, {"handover_time", "", {"handover_time"}}, {14, 2}, kSeconds),
    Field(&JobSpec::priority, {"priority", "launch.priority", {"priority"}}, {15, 3}, kAnyInt,
          {"N", "higher goes first where the policy asks"}),
    Field(&JobTraits::deadlines,
          {"soft_deadlines", "soft_deadlines", {"target_times", "target_values"}}, {17, 4},
          kSeconds, {"TIME=VALUE,...", "what an end within each time is worth: 2h=10,4h=5"}),
    Field(&JobTraits::stages,
          {"stages", "stages", {"iteration_time", "stage_0", "stage_1", "stage_2"}}, {16, 4},
          kSeconds, {"S,S,S", "seconds of an iteration for loading, GPU and network"}),
    Field(&JobTraits::devices, {"devices", "devices", {"devices"}}, {18, 4}, kNone,
          {"NODE:GPUS...", "GPUs by name, where the policy asks: 'n0:0-1 n1:3'"}),
    Field(&JobTraits::loader_workers, {"loader_workers", "loader_workers", {"loader_workers"}},
          {19, 4}, {1, 1e9}, {"N", "data-loading processes for all GPUs"}),
    Field(&GpuRange::least, {"min_gpus", "min_gpus", {"min_gpus"}}, {22, 7}, kCount,
          {"N", "an elastic job: the fewest that it may have (default: 1)"}),
    Field(&GpuRange::most, {"max_gpus", "max_gpus", {"max_gpus"}}, {23, 7}, kCount,
          {"N", "the most that it may have (default: as many as its profile gains by)"}),
    Field(&JobTraits::time_limit, {"time", "time_s", {"time_limit"}}, {25}, kSeconds,
          {"TIME", "end it when it has held GPUs for so long: 90m, 2h, 1-12:00:00"}),
    Field(&JobTraits::begin, {"begin", "begin_s", {"begin"}}, {26}, kSeconds,
          {"TIME", "not before: 2h (from now), now+1hour, 18:00, 2026-11-21T18:00"}),
    Field(&JobTraits::dependency, {"dependency", "dependency", {"dependency"}}, {27}, kLongText,
          {"LIST",
           "afterok:JOB[:JOB...], afterany:, afternotok:, aftercorr:, after:JOB[+MINUTES], "
           "singleton (',': all, '?': any)"}),
    Field(&JobTraits::array, {"array", "array", {"array"}}, {28}, kLongText,
          {"INDICES[%N]", "a task for each index, at most N at a time: 0-999%50, 1,3,8-20:4"}),
    Field(&JobTraits::account, {"account", "account", {"account"}}, {29}, kNone,
          {"TEXT", "that it is counted on in 'trainyard usage'; no policy goes by it"}),
    Field(&JobTraits::label, {"job_name", "", {"job_name"}}, {30}),
    Field(&NodeRequest::cpus, {"cpus", "cpus", {"cpus"}}, {kFirstRequestPlace}, kNone,
          {"N[/node|/gpu|/task]",
           "CPUs of the job, or of each of its nodes, GPUs or tasks: 8, 16/node, 4/gpu, 2/task"}),
    Field(&NodeRequest::memory, {"memory", "memory", {"memory"}}, {32}, kNone,
          {"SIZE[/node|/gpu|/task]", "memory likewise: 64G, 128G/node, 16G/gpu, 8G/task"}),
    Field(&NodeRequest::nodes, {"nodes", "nodes", {"nodes"}}, {33}, kNone,
          {"N|MIN-MAX", "nodes over which its GPUs are spread evenly"}),
    Field(&NodeRequest::exclusive, {"exclusive", "exclusive", {"exclusive"}}, {34}, kNone,
          {"", "nobody else on its nodes"}),
    Field(&NodeRequest::tmp, {"tmp", "tmp", {"tmp"}}, {35}, kNone,
          {"SIZE", "space for temporary files that its nodes have: 100G"}),
    Field(&NodeRequest::node_list, {"node_list", "node_list", {"node_list"}}, {36}, kLongText,
          {"NODES", "on all of these nodes and no others: n0, n[0-3],v0"}),
    Field(&NodeRequest::exclude, {"exclude", "exclude", {"exclude"}}, {37}, kLongText,
          {"NODES", "not on these nodes"}),
    Field(&NodeRequest::constraint, {"constraint", "constraint", {"constraint"}}, {38}, kLongText,
          {"LABELS", "labels of its nodes: nvlink, 'nvlink&(a100|h100)', 'ib*2&fast'"}),
    Field(&NodeRequest::licenses, {"licenses", "licenses", {"licenses"}}, {39}, kLongText,
          {"NAME[:N],...", "licences of the cluster that it needs while it runs"}),
    Field(&JobTraits::no_requeue, {"no_requeue", "no_requeue", {"no_requeue"}}, {40}, kNone,
          {"", "never preempted once it runs; if its node fails it ends and does not start again"}),
    Field(&JobTraits::keep_on_invalid_dep,
          {"keep_on_invalid_dep", "keep_on_invalid_dep", {"keep_on_invalid_dep"}}, {41}, kNone,
          {"", "keep it waiting, and not end it, once its dependency cannot be met any more"}),
    // What no user states.
    Field(&JobSpec::profile_row, {"profile_row"}, {12}),
    Field(&JobSpec::launch, {"launch"}, {13, 1}), Field(&JobTraits::avoided, {"avoided"}, {24}));

}  // namespace job_fields

inline constexpr auto kJobFields = job_fields::kTable;
// Since when writers know of requests (StateStream::job_fields).
inline constexpr int kFirstRequestPlace = job_fields::kFirstRequestPlace;
// And since when they write down the steps of jobs in snapshots.
inline constexpr int kFirstPlaceWithSteps = 41;
inline constexpr std::size_t kJobFieldCount = std::tuple_size_v<decltype(kJobFields)>;

constexpr bool IsAnyField(const JobFieldInfo& /*info*/) { return true; }
constexpr bool IsInTraces(const JobFieldInfo& info) { return info.column >= 0; }
constexpr bool IsInRequests(const JobFieldInfo& info) { return !info.request.empty(); }

namespace job_fields {

template <bool (*kIsMeant)(const JobFieldInfo&), typename Visit, std::size_t... kAt>
constexpr void ForEach(Visit& visit, std::index_sequence<kAt...> /*all*/) {
  const auto visit_one = [&visit](auto at) {
    if constexpr (kIsMeant(std::get<decltype(at)::value>(kJobFields).info)) {
      visit(std::get<decltype(at)::value>(kJobFields));
    }
  };
  (visit_one(std::integral_constant<std::size_t, kAt>()), ...);
}

}  // namespace job_fields

// Calls `visit` with each field of which that is true.
template <bool (*kIsMeant)(const JobFieldInfo&) = IsAnyField, typename Visit>
constexpr void ForEachJobField(Visit&& visit) {
  job_fields::ForEach<kIsMeant>(visit, std::make_index_sequence<kJobFieldCount>());
}

// ------------------------------------------------------------------------------------------ access

// Of a job without traits: those of none.
template <typename Owner>
[[nodiscard]] const Owner& PartOf(const JobSpec& job) {
  if constexpr (std::is_same_v<Owner, JobSpec>) {
    return job;
  } else if constexpr (std::is_same_v<Owner, GpuRange>) {
    return PartOf<JobTraits>(job).range;
  } else if constexpr (std::is_same_v<Owner, NodeRequest>) {
    static const NodeRequest kNone;
    const std::optional<NodeRequest>& request = PartOf<JobTraits>(job).request;
    return request ? *request : kNone;
  } else {
    static_assert(std::is_same_v<Owner, JobTraits>);
    static const JobTraits kNone;
    return job.traits == nullptr ? kNone : *job.traits;
  }
}

template <typename Owner, typename T>
[[nodiscard]] const T& ValueOf(const JobField<Owner, T>& field, const JobSpec& job) {
  return PartOf<Owner>(job).*field.member;
}

// JobTraits::no_requeue.
[[nodiscard]] inline bool IsNoRequeue(const JobSpec& job) {
  return job.traits != nullptr && job.traits->no_requeue;
}

// Whether the job says anything there. (Of required fields: something else than a new JobSpec.)
template <typename Owner, typename T>
[[nodiscard]] bool States(const JobSpec& job, const JobField<Owner, T>& field) {
  if constexpr (std::is_same_v<Owner, NodeRequest>) {
    if (job.traits == nullptr || !job.traits->request) {
      return false;
    }
  }
  static const Owner kNew;
  return !(ValueOf(field, job) == kNew.*field.member);
}

// A job that is being put together.
struct JobDraft {
  JobSpec spec;
  JobTraits traits;
  NodeRequest request;  // instead of that of the traits

  template <typename Owner, typename T>
  [[nodiscard]] T& At(const JobField<Owner, T>& field) {
    if constexpr (std::is_same_v<Owner, JobSpec>) {
      return spec.*field.member;
    } else if constexpr (std::is_same_v<Owner, GpuRange>) {
      return traits.range.*field.member;
    } else if constexpr (std::is_same_v<Owner, NodeRequest>) {
      return request.*field.member;
    } else {
      return traits.*field.member;
    }
  }
  // The job; it has traits only if they say anything.
  [[nodiscard]] JobSpec Take() && {
    if (request != NodeRequest{}) {
      traits.request = std::move(request);
    }
    if (traits != JobTraits{}) {
      spec.traits = std::make_shared<const JobTraits>(std::move(traits));
    }
    return std::move(spec);
  }
};

// ------------------------------------------------------------------------------------------ bounds

// What a value has to be, for messages: "an integer from 1 to 64", "a number > 0 and <= 1e+15".
[[nodiscard]] std::string ExpectedInteger(const JobFieldInfo& info);
[[nodiscard]] std::string ExpectedAmount(const JobFieldInfo& info);

}  // namespace trainyard::model

// --------------------------------------------------------------------------------------- snapshots

namespace trainyard {

void Serialize(StateStream& state, JobTraits& of);
void Serialize(StateStream& state, JobSpec& of);

}  // namespace trainyard
