// SPDX-License-Identifier: Apache-2.0
// What a component sees: a const view of the jobs and the cluster at one instant, that of the
// decision. Nothing can be changed through it.
//
// Views are made on demand: a component pays for the jobs that it asks about. Pointers, spans and
// references of a snapshot, and of what it returns, are valid until the component returns; keep ids
// and numbers. All answers are the same however often and in which order they are asked for.
//
// Work is counted in the unit of the run's ExecutionModel, here "units": iterations of the job, or
// seconds of its declared duration.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard {

// The jobs that use GPUs of a job at the same time as it does. What the spans point to must outlive
// the call that is given them.
struct CoRunners {
  // Interleaved: all members in stage order, the job among them; empty: alone.
  std::span<const JobSpec* const> group{};
  // Collocated: the others that run on one of its GPUs.
  std::span<const JobSpec* const> collocated{};
};

// Throughput of a job, both ways round, as published programs round one or the other.
struct Throughput {
  double rate = 0;              // units of work per second, >= 0
  double seconds_per_unit = 0;  // of no meaning where the rate is 0

  static Throughput OfRate(double rate) { return {rate, 1 / rate}; }
  // REQUIRES: seconds > 0.
  static Throughput OfSeconds(double seconds) { return {1 / seconds, seconds}; }
};

// How fast jobs advance: on the GPUs that they hold, and on others that they might be given. The
// program has several models, of which the run uses one; a component asks it through
// Snapshot::rates. Answers depend on the arguments alone, not on time or on what jobs hold. O(1) or
// O(log levels), times the number of GPU types.
class ExecutionModel {
 public:
  virtual ~ExecutionModel() = default;
  // All the work of the job, in units. > 0.
  [[nodiscard]] virtual double TotalWork(const JobSpec& job) const = 0;
  // Units per second on `gpus` GPUs, alone on them; 0 where the job cannot run on that many. On a
  // cluster of several GPU types: on the slowest type that the job accepts and runs on, whether
  // nodes of it are free or not, so that a plan by Rate is kept wherever the job is placed.
  // REQUIRES: gpus >= 1.
  [[nodiscard]] virtual double Rate(const JobSpec& job, int gpus) const = 0;
  // The same if all GPUs are of this type: by the job's profile for the type where there is one,
  // otherwise GpuType::speed times the rate without a type. That the job accepts the type is not
  // looked at.
  [[nodiscard]] virtual double RateOn(const JobSpec& job, int gpus, const GpuType& type) const {
    return Rate(job, gpus) * type.speed;
  }
  // With exactly this grant, beside these co-runners: as fast as the slowest GPU type of the grant
  // allows. Where the run knows what CPUs, memory or loader workers are worth, Slice::soft and
  // Slice::loader_workers count.
  [[nodiscard]] virtual Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                                   const CoRunners& /*co_runners*/) const {
    return Throughput::OfRate(Rate(job, grant.gpus));
  }
  // The rate of ThroughputUnder.
  [[nodiscard]] double RateUnder(const JobSpec& job, const Grant& grant,
                                 const CoRunners& co_runners) const {
    return ThroughputUnder(job, grant, co_runners).rate;
  }
  // CPUs, memory and storage bandwidth for the whole gang on its requested GPUs, beyond which the
  // job gains nothing; zero: it does not matter. Stated by sensitivity profiles (Synergy, OSDI'22:
  // the best-case demand).
  [[nodiscard]] virtual Resources Preferred(const JobSpec& /*job*/) const { return {}; }
  // GPU counts that the profile knows for this job, ascending; empty: only the requested count.
  // Rate may be 0 on some, as those outside the job's GpuRange. Valid as long as the model.
  [[nodiscard]] virtual std::span<const int> Levels(const JobSpec& job) const = 0;
};

// What a change of a job's grant costs in time without progress, under the rules of the run.
class RestartCosts {
 public:
  virtual ~RestartCosts() = default;
  // At most so long does the change keep the job from advancing, >= 0: the overhead of its model,
  // and the longest fetch of its data set on any node. 0 where the rules of the run do not charge
  // the change by itself. `gpus`: the number held afterwards. O(log models).
  [[nodiscard]] virtual Duration Of(const JobSpec& job, Change change, int gpus) const = 0;
};

// One job as a policy may see it, at Snapshot::now, with its progress up to that time. A value: it
// does not change, but what it points to is valid until the component returns.
struct JobView {
  JobId id{};
  const JobSpec* spec = nullptr;  // never null
  const Grant* grant = nullptr;   // null: holds nothing
  // Position in the order of arrival, from 0, different for all jobs; what decides between equals.
  std::uint64_t arrival = 0;
  bool started = false;  // has ever held GPUs
  // Time since it arrived in which it did not run: without GPUs, or held with Grant::running false.
  Duration waited{0};
  Duration waiting{0};          // since it was admitted or last held GPUs; 0: holds some
  Duration run_time{0};         // time with GPUs, restart costs included
  Duration productive_time{0};  // run_time less restart costs paid so far and work lost since
  Duration debt{0};             // restart cost not yet paid; before it is, work does not advance
  double gpu_seconds = 0;       // attained service: GPUs x time held, restart costs included
  // Units per second under its latest grant; before its first, the rate on the requested GPUs.
  double last_rate = 0;
  // If Requires::work_left: units; a little below 0 where rounding overshot.
  std::optional<double> work_left;
  // If Requires::work_left: on the requested GPUs, with the debt and, without GPUs, start_cost.
  // None where the job has no rate on the requested GPUs. (Some presets leave out the debt.)
  std::optional<Duration> time_left;
  // If Requires::work_left: on the requested GPUs, from start to end, without any restart cost.
  std::optional<Duration> total_time;
  // What it would pay if it had to be started on its requested GPUs now, or again: RestartCosts of
  // kStart before its first launch, of kRestart after. 0 under presets that preempt as published.
  Duration start_cost{0};
  // With GPUs: how long it is still no victim, if it keeps them (Standing::stay); 0: it may be one.
  Duration stay_left{0};
  // Of the cluster, that it asks for: its requested GPUs and ExecutionModel::Preferred.
  ResourceShares shares{};
  // If Requires::work_left: the end as registered at the last decision. End of time: there is none,
  // or it was not asked for.
  TimePoint expected_end = kEndOfTime;
  // What the job has reported of itself, the latest value of each name, by name; at most
  // kMaxMetrics. Empty where jobs do not run.
  std::span<const Metric> reported{};
};

// The live jobs. Asked of one job at a time; what a call returns is valid until the component
// returns. The engine's table is O(1) in each call; a test derives a table of its own from it, for
// which live() and at() are enough.
class JobTable {
 public:
  // A part of the view without the cost of a whole one.
  struct Brief {
    const JobSpec* spec = nullptr;
    const Grant* grant = nullptr;  // null, or of 0 GPUs: holds nothing
    bool started = false;
  };

  virtual ~JobTable() = default;
  // Jobs that may hold GPUs: admitted, not ended, and not held back (by users or after failures).
  // In the order of their admission.
  [[nodiscard]] virtual std::span<const JobId> live() const = 0;
  // All about one job, worked out at each call. REQUIRES, here and below: `job` is live or
  // unjudged.
  [[nodiscard]] virtual JobView at(JobId job) const = 0;
  [[nodiscard]] virtual Brief brief(JobId job) const {
    const JobView view = at(job);
    return {view.spec, view.grant, view.started};
  }
  // Of 0 GPUs: the job holds nothing.
  [[nodiscard]] const Grant& grant(JobId job) const {
    static const Grant kNothing;
    const Grant* const held = brief(job).grant;
    return held != nullptr ? *held : kNothing;
  }
  [[nodiscard]] const JobSpec& spec(JobId job) const { return *brief(job).spec; }
  [[nodiscard]] bool started(JobId job) const { return brief(job).started; }
  // In units of ExecutionModel, if Requires::work_left; otherwise 0.
  [[nodiscard]] virtual double work_left(JobId job) const { return at(job).work_left.value_or(0); }
};

// The present, of one decision. The engine sets all pointers; a test may leave out what its
// component does not read. "Since the last decision" is also right after a restart and in a fork.
struct Snapshot {
  TimePoint now{};
  // All nodes, those that are down included; not null.
  const Cluster* cluster = nullptr;
  int gpus_up = 0;  // GPUs of the nodes that are up, free or not
  // By NodeId; null: all are. Ask up() instead.
  const std::vector<bool>* nodes_up = nullptr;
  // How often a node has gone down or come up in this run; the same number as at the last call
  // means the same nodes.
  std::uint64_t node_changes = 0;
  std::int64_t jobs_waiting = 0;  // without GPUs, those not yet judged included
  // Requested by all live jobs together, whether they hold any or not.
  std::int64_t gpus_asked = 0;
  const JobTable* jobs = nullptr;
  // Jobs that ask for another number of GPUs since the last decision, and therefore hold nothing
  // now: live jobs, each once, in ascending order.
  std::span<const JobId> resized{};
  // Jobs that have arrived and are not judged yet, those left for later before included, in the
  // order of arrival; not in jobs->live(). Once the admission has judged, those it left.
  std::span<const JobId> unjudged{};
  const ExecutionModel* rates = nullptr;  // how fast jobs would be elsewhere, or on other numbers
  const RestartCosts* costs = nullptr;    // what it would take to bring them there

  // Whether the node can hold jobs: it has not failed and is not drained.
  [[nodiscard]] bool up(NodeId node) const {
    return nodes_up == nullptr || (*nodes_up)[Index(node)];
  }
};

}  // namespace trainyard
