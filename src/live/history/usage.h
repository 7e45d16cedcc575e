// SPDX-License-Identifier: Apache-2.0
// Owns who has held which GPUs and CPUs for how long, and has used how much CPU time, day by day,
// since the state began: a sum for each user, account, queue, model and node. Of jobs that share a
// GPU, each holds it. And the same of each job, with the memory that it has used.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live/live_options.h"
#include "live/measured/process_use.h"
#include "live/notes.h"
#include "model/event.h"
#include "trainyard/cluster.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct UsageKey {
  std::string user{};
  std::string account{};
  std::string queue{};
  std::string model{};
  std::string node{};

  void Serialize(StateStream& state) { state(user, account, queue, model, node); }
  friend auto operator<=>(const UsageKey&, const UsageKey&) = default;  // NOLINT
};

// What a job holds of a node.
struct NodeHolding {
  std::string node{};
  int gpus = 0;
  std::int64_t milli_cpus = 0;  // 0: nobody has said
};

// What a job holds from some time on.
struct Holding {
  TimePoint since{};
  UsageKey of{};  // without a node
  std::vector<NodeHolding> nodes{};
};

// Times of GPUs and CPUs held, as the engine counts them, and the CPU time that was used, in real
// time.
struct UsageTimes {
  Duration gpus{0};
  Duration cpus{0};
  Duration cpus_used{0};

  UsageTimes& operator+=(const UsageTimes& other) {
    gpus += other.gpus;
    cpus += other.cpus;
    cpus_used += other.cpus_used;
    return *this;
  }
};

// What a job has been given beside GPUs, but for what it holds still, and what is known in the
// journal of what its processes have used.
struct JobUse {
  // What has been counted of an attempt on a node.
  struct Counted {
    std::uint32_t attempt = 0;
    NodeId node{};
    std::int64_t cpu_micros = 0;

    void Serialize(StateStream& state) { state(attempt, node, cpu_micros); }
    friend bool operator==(const Counted&, const Counted&) = default;
  };
  // Reports of an attempt may come once more long after it has gone; but of those so much younger
  // than the last one, none are waited for.
  static constexpr std::uint32_t kAttemptsKnown = 4;

  Duration cpus_given{0};  // CPUs x time, as the engine counts it
  ProcessUse used{};       // CPU time of all; the most memory of any node at a time
  NodeId peak_node{};
  std::int64_t peak_memory_mib = 0;  // that it had of this node; 0: nobody has said
  std::vector<Counted> counted{};

  void Serialize(StateStream& state) {
    state(cpus_given, used, peak_node, peak_memory_mib, counted);
  }
  friend bool operator==(const JobUse&, const JobUse&) = default;
  // Counts what is new in it. The CPU time in microseconds that is.
  std::int64_t Count(const UseNote& note);
};

// All zero where there is none.
[[nodiscard]] JobUse CopyOf(const std::shared_ptr<const JobUse>& use);

class Usage {
 public:
  using Day = std::map<UsageKey, UsageTimes>;
  using Days = std::map<std::int64_t, std::shared_ptr<const Day>>;  // since 1970, UTC

  // Must outlive it.
  explicit Usage(const LiveOptions& options) : options_(options), days_(std::make_shared<Days>()) {}

  // A job with that request gets or loses GPUs or CPUs at that time.
  void Note(const model::Action& action, TimePoint at, const v1::JobRequest& request,
            const Cluster& cluster);
  // What processes of a job with that request have used, as is known at that time.
  void Note(const UseNote& note, TimePoint at, const v1::JobRequest& request,
            const Cluster& cluster);
  // Null: nothing is known of the job. What has been given out does not change any more.
  [[nodiscard]] std::shared_ptr<const JobUse> UseOf(JobId job) const;
  // What the job holds; null: nothing. What has been given out does not change any more.
  [[nodiscard]] std::shared_ptr<const Holding> HeldBy(JobId job) const;
  // All that has been given back. Likewise.
  [[nodiscard]] std::shared_ptr<const Days> days() const {
    given_out_ = true;
    return days_;
  }
  // Calls `add` for each day and node with what is held until then. `options`: of the controller.
  using AddPart = std::function<void(std::int64_t day, UsageKey key, const UsageTimes& times)>;
  static void ForEachPart(const Holding& holding, TimePoint until, const LiveOptions& options,
                          const AddPart& add);

  // The parts of a snapshot: what is known of one job; GPU time; CPU time.
  void SerializeJob(JobId job, StateStream& state);
  void SerializeGpus(StateStream& state);
  void SerializeCpus(StateStream& state);

 private:
  [[nodiscard]] Day& Edit(std::int64_t day);
  void SetUse(JobId job, JobUse use) {
    jobs_[job] = std::make_shared<const JobUse>(std::move(use));
  }

  const LiveOptions& options_;
  std::map<JobId, std::shared_ptr<const Holding>> held_;
  std::map<JobId, std::shared_ptr<const JobUse>> jobs_;
  std::shared_ptr<Days> days_;
  mutable bool given_out_ = false;                    // by days(); the next change is one of a copy
  std::map<std::int64_t, std::shared_ptr<Day>> own_;  // those of `days_` that nobody else has
};

}  // namespace trainyard::live
