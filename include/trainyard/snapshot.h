// SPDX-License-Identifier: Apache-2.0
// What a component sees: a const view of the jobs and the cluster at one instant.
// Views are made on demand and are valid until the component returns.
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

// The jobs that use GPUs of a job at the same time as it does.
struct CoRunners {
  std::span<const JobSpec* const> group{};       // interleaved: all members in stage order, the job
                                                 // among them; empty: alone
  std::span<const JobSpec* const> collocated{};  // others that run on one of its GPUs
};

// Throughput of a job, both ways round, as published programs round one or the other.
struct Throughput {
  double rate = 0;              // units of work per second, >= 0
  double seconds_per_unit = 0;  // of no meaning where the rate is 0

  static Throughput OfRate(double rate) { return {rate, 1 / rate}; }
  static Throughput OfSeconds(double seconds) { return {1 / seconds, seconds}; }
};

// How fast a job advances. Work is counted in the unit that the run names: iterations of the job,
// or seconds of its declared duration.
class ExecutionModel {
 public:
  virtual ~ExecutionModel() = default;
  // All the work of the job, in units. > 0.
  [[nodiscard]] virtual double TotalWork(const JobSpec& job) const = 0;
  // Units per second on `gpus` GPUs; 0 where the job cannot run on that many.
  [[nodiscard]] virtual double Rate(const JobSpec& job, int gpus) const = 0;
  // The same if all of them are of this type. Rate is that of the slowest type that the job may
  // get.
  [[nodiscard]] virtual double RateOn(const JobSpec& job, int gpus, const GpuType& type) const {
    return Rate(job, gpus) * type.speed;
  }
  // With exactly this grant, beside these.
  [[nodiscard]] virtual Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                                   const CoRunners& /*co_runners*/) const {
    return Throughput::OfRate(Rate(job, grant.gpus));
  }
  [[nodiscard]] double RateUnder(const JobSpec& job, const Grant& grant,
                                 const CoRunners& co_runners) const {
    return ThroughputUnder(job, grant, co_runners).rate;
  }
  // CPUs, memory and storage bandwidth for the whole gang, beyond which the job gains nothing;
  // zero: it does not matter.
  [[nodiscard]] virtual Resources Preferred(const JobSpec& /*job*/) const { return {}; }
  // GPU counts that the profile knows for this job, ascending; empty: only the requested count.
  [[nodiscard]] virtual std::span<const int> Levels(const JobSpec& job) const = 0;
};

// What a change of a job's grant costs in time without progress, under the rules of the run.
class RestartCosts {
 public:
  virtual ~RestartCosts() = default;
  // `gpus`: the number held afterwards.
  [[nodiscard]] virtual Duration Of(const JobSpec& job, Change change, int gpus) const = 0;
};

// One job as a policy may see it, at Snapshot::now.
struct JobView {
  JobId id{};
  const JobSpec* spec = nullptr;
  const Grant* grant = nullptr;  // null: holds nothing
  std::uint64_t arrival = 0;     // position in the order of arrival
  bool started = false;          // has ever held GPUs
  Duration waited{0};            // time without GPUs since it arrived
  Duration waiting{0};           // since it was admitted or last held GPUs; 0: holds some
  Duration run_time{0};          // time with GPUs
  Duration productive_time{0};   // run_time less restart costs paid so far
  Duration debt{0};              // restart cost not yet paid
  double gpu_seconds = 0;        // attained service: GPUs x run_time, restart costs included
  double last_rate = 0;  // units per second under its latest grant; the full rate before its first
  std::optional<double> work_left;  // if Requires::work_left; units of ExecutionModel
  // If Requires::work_left: on the requested GPUs, with the debt and, without GPUs, start_cost.
  std::optional<Duration> time_left;
  std::optional<Duration> total_time;  // if Requires::work_left; on the requested GPUs, from start
  // What it would pay if it had to be started now, or again; 0 under rules that do not count it
  // (Preemption::Rule::kPublished).
  Duration start_cost{0};
  // With GPUs: how long it is still no victim, if it keeps them; 0: it may be one.
  Duration stay_left{0};
  ResourceShares shares{};  // of the cluster, that it asks for
  // If Requires::work_left: the end as registered at the last decision; none, or not asked for: end
  // of time.
  TimePoint expected_end = kEndOfTime;
  // What the job has reported of itself, the latest value of each name, by name; at most
  // kMaxMetrics. Empty where jobs do not run.
  std::span<const Metric> reported{};
};

// Asked of one job at a time; what a call returns is valid until the component returns.
class JobTable {
 public:
  // A part of the view without the cost of a whole one.
  struct Brief {
    const JobSpec* spec = nullptr;
    const Grant* grant = nullptr;  // null, or of 0 GPUs: holds nothing
    bool started = false;
  };

  virtual ~JobTable() = default;
  // Jobs that may hold GPUs (admitted, not ended), in the order in which they are visited.
  [[nodiscard]] virtual std::span<const JobId> live() const = 0;
  // REQUIRES, here and below: `job` is live or unjudged.
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

// The present, of one decision. The engine sets all pointers but nodes_up; a test may leave out
// what its component does not read.
struct Snapshot {
  TimePoint now{};
  const Cluster* cluster = nullptr;             // all nodes, those that are down included
  int gpus_up = 0;                              // GPUs of the nodes that are up
  const std::vector<bool>* nodes_up = nullptr;  // by NodeId; null: all are
  std::uint64_t node_changes = 0;               // how often a node has gone down or come up
  std::int64_t jobs_waiting = 0;                // without GPUs, those not yet judged included
  std::int64_t gpus_asked = 0;  // by all live jobs together, whether they hold any or not
  const JobTable* jobs = nullptr;
  std::span<const JobId> resized{};   // live, and ask for another number of GPUs since the last one
  std::span<const JobId> unjudged{};  // arrived since, not yet judged; not in live()
  const ExecutionModel* rates = nullptr;  // how fast jobs would be elsewhere, or on other numbers
  const RestartCosts* costs = nullptr;    // what it would take to bring them there

  [[nodiscard]] bool up(NodeId node) const {
    return nodes_up == nullptr || (*nodes_up)[Index(node)];
  }
};

}  // namespace trainyard
