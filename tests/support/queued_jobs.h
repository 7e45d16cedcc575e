// SPDX-License-Identifier: Apache-2.0
// For tests of queues: jobs, an ordering whose keys a test sets, and decisions by count.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/queue/ordered_queue.h"

namespace trainyard::scheduler {

class QueuedJobs final : public JobTable {
 public:
  // Waits for so many GPUs.
  JobId Add(int gpus) {
    const JobId job = JobAt(jobs_.size());
    Job& added = jobs_.emplace_back();
    added.spec.gpus = gpus;
    added.view = {.id = job, .spec = &added.spec, .arrival = Index(job)};
    live_.push_back(job);
    return job;
  }
  void Hold(JobId job, const Grant& grant) {
    Job& of = jobs_[Index(job)];
    of.grant = grant;
    of.view.grant = grant.gpus > 0 ? &of.grant : nullptr;
  }
  void Leave(JobId job) {
    Hold(job, {});
    std::erase(live_, job);
  }
  [[nodiscard]] JobView& view(JobId job) { return jobs_[Index(job)].view; }
  [[nodiscard]] std::span<const JobId> live() const override { return live_; }
  [[nodiscard]] JobView at(JobId job) const override { return jobs_[Index(job)].view; }
  [[nodiscard]] std::vector<JobId> running() const {
    std::vector<JobId> jobs;
    std::copy_if(live_.begin(), live_.end(), std::back_inserter(jobs),
                 [this](JobId job) { return grant(job).gpus > 0; });
    return jobs;
  }

 private:
  struct Job {
    JobSpec spec{};
    Grant grant{};
    JobView view{};
  };
  std::deque<Job> jobs_;  // views point into it
  std::vector<JobId> live_;
};

// Says of each job what the test has set, and counts how often it is asked.
class SetOrdering final : public Ordering {
 public:
  explicit SetOrdering(const OrderingTraits& traits = {}) : traits_(traits) {}
  [[nodiscard]] std::string_view name() const override { return "set"; }
  [[nodiscard]] OrderingTraits traits() const override { return traits_; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* /*memory*/) const override {
    ++asked;
    const auto found = standings.find(job.id);
    Standing standing = found != standings.end() ? found->second : Standing{};
    if (standing.moves_at && *standing.moves_at <= now) {  // it has moved
      standing.moves_at.reset();
      standing.key = {1e9};
    }
    return standing;
  }
  void SetKey(JobId job, double key) { standings[job].key = {key}; }

  std::map<JobId, Standing> standings;
  mutable int asked = 0;

 private:
  const OrderingTraits traits_;
};

// Jobs in a queue that decides by count, on one node.
class QueueByCount {
 public:
  using MakeQueue =
      std::function<std::unique_ptr<OrderedQueue>(const Ordering&, const JobTable&, Packing&)>;

  QueueByCount(const Ordering& ordering, int gpus, const MakeQueue& make)
      : cluster_{.nodes = {NodeSpec{.gpus = gpus}}},
        packing_(cluster_),
        make_([this, &ordering, make] { return make(ordering, jobs_, packing_); }),
        queue_(make_()) {}

  JobId Arrive(int gpus, TimePoint now) {
    const JobId job = jobs_.Add(gpus);
    queue_->Note(job, JobChange::kAdmitted, now);
    return job;
  }
  void End(JobId job, TimePoint now) {
    if (jobs_.grant(job).gpus > 0) {
      packing_.Remove(jobs_.spec(job), jobs_.grant(job));
    }
    jobs_.Leave(job);
    queue_->Note(job, JobChange::kLeft, now);
  }
  // What was selected comes true.
  Selection Decide(TimePoint now) {
    Selection selection = queue_->Select(SnapshotAt(now), packing_);
    std::map<JobId, Grant> holds;
    for (const JobId job : jobs_.live()) {
      holds[job] = selection.complete ? Grant{} : jobs_.grant(job);
    }
    for (const JobId job : selection.dropped) {
      holds[job] = {};
    }
    for (const Placed& placed : selection.placed) {
      holds[placed.job] = placed.grant;
    }
    std::vector<JobId> changed;
    for (const auto& [job, grant] : holds) {
      if (!(grant == jobs_.grant(job))) {
        jobs_.Hold(job, grant);
        changed.push_back(job);
      }
    }
    next_ = queue_->Adopted(SnapshotAt(now), changed);
    return selection;
  }
  // Goes on as a queue that reads what this one has written.
  void Restore() {
    StateStream written;
    queue_->Serialize(written);
    queue_ = make_();
    StateStream read{written.bytes()};
    queue_->Serialize(read);
    restored_ = read.complete();
  }

  [[nodiscard]] QueuedJobs& jobs() { return jobs_; }
  [[nodiscard]] OrderedQueue& queue() { return *queue_; }
  [[nodiscard]] std::optional<TimePoint> next() const { return next_; }
  [[nodiscard]] bool restored() const { return restored_; }  // the last Restore was complete

 private:
  [[nodiscard]] Snapshot SnapshotAt(TimePoint now) const {
    const auto running = static_cast<std::int64_t>(jobs_.running().size());
    return {.now = now,
            .cluster = &cluster_,
            .jobs_waiting = static_cast<std::int64_t>(jobs_.live().size()) - running,
            .jobs = &jobs_};
  }

  const Cluster cluster_;
  QueuedJobs jobs_;
  Packing packing_;
  std::function<std::unique_ptr<OrderedQueue>()> make_;
  std::unique_ptr<OrderedQueue> queue_;
  std::optional<TimePoint> next_;
  bool restored_ = false;
};

}  // namespace trainyard::scheduler
