// SPDX-License-Identifier: Apache-2.0
// What clients may read of a live cluster, as of one step of its controller: immutable, so that any
// thread may read it while the next decision is made. What did not change between two steps is
// shared by their views. Times run on: what is asked of a view is asked for a time, and progress up
// to then follows from the records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/configuration.h"
#include "engine/eligibility.h"
#include "live/attempts/attempts.h"
#include "live/failures/failure_book.h"
#include "live/history/configuration_history.h"
#include "live/history/history.h"
#include "live/history/steps.h"
#include "live/history/usage.h"
#include "live/jobs/live_jobs.h"
#include "live/live_options.h"
#include "live/switches.h"
#include "live/view/shared_list.h"
#include "model/blocked.h"
#include "model/job_numbers.h"
#include "model/job_record.h"
#include "model/node_classes.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// One job.
struct JobEntry {
  std::uint64_t changed = 0;  // the number of the view that had it first as it is here
  LiveJob live;
  model::JobRecord record;
  Attempts::Current attempts;
  std::map<std::string, double> metrics;
  History::Events history;                // null: there is none
  std::shared_ptr<const Holding> usage;   // null: it holds nothing
  std::shared_ptr<const JobUse> use;      // null: nothing is known of it
  std::shared_ptr<const JobSteps> steps;  // null: it has started none
  std::string changed_by;
  std::string holder;  // who holds it
  FailureEffect failures;
  // Of the job, or of the array of which it is the first task. Of later tasks only if they do not
  // wait for the same jobs (model::WaitsByTask).
  engine::Deferral terms{};
  std::optional<int> kind;  // of its demand class; none: the policy has asked for no such GPUs
  bool deferred = false;
  bool held = false;  // by its user
  bool overrun = false;
  bool queued = false;   // its last attempt has parts that are not sent
  bool holding = false;  // GPUs that it may not use yet
};

// What an agent has said of its node: seldom another.
struct ReportedByAgent {
  v1::Hello hello;
  v1::DataReport data;
};

struct NodeEntry {
  bool connected = false;
  bool alive = false;  // its lease runs
  bool drained = false;
  bool available = false;
  std::optional<TimePoint> finish_until;  // as of LiveNode
  TimePoint heard{};
  std::uint64_t reported_version = 0;  // LiveNode::version
  std::shared_ptr<const ReportedByAgent> reported;
  std::string why_drained;  // by the controller
  std::string changed_by;
  // The attempts that may have processes there, and on which GPUs.
  std::map<supervisor::AttemptKey, std::uint64_t> holders;
};

struct ClusterView {
  std::uint64_t number = 0;                    // rises from step to step of one controller
  TimePoint now{};                             // of the step
  const LiveOptions* options = nullptr;        // of the controller, which outlives the view
  const model::JobNumbers* numbers = nullptr;  // the same
  engine::SharedConfiguration configuration;
  std::shared_ptr<const model::NodeClasses> classes;  // of its cluster
  SharedList<JobEntry> jobs;                          // by JobId
  SharedList<NodeEntry> nodes;                        // by NodeId
  // Jobs that hold GPUs or have processes, ascending.
  std::shared_ptr<const std::vector<JobId>> holders;
  // The jobs that wait, as the policy serves them; of large queues as of some steps ago. Empty: the
  // policy keeps no order.
  std::shared_ptr<const std::vector<JobId>> order;
  std::shared_ptr<const std::vector<model::Blocked>> blocked;
  std::optional<TimePoint> next_wakeup;
  std::optional<TimePoint> starts_from;  // no attempt is started before, for `why_starts_wait`
  std::string why_starts_wait;
  std::shared_ptr<const v1::ProfilesReply> profiles;
  Switches switches;
  std::shared_ptr<const ConfigurationHistory> configurations;
  std::shared_ptr<const Usage::Days> usage;  // without what is held still

  [[nodiscard]] const Cluster& cluster() const { return configuration->cluster; }
  [[nodiscard]] const JobEntry& job(JobId id) const { return jobs[Index(id)]; }
  [[nodiscard]] const NodeEntry& node(NodeId id) const { return nodes[Index(id)]; }
  [[nodiscard]] std::optional<JobId> Find(std::uint64_t number_of_job) const {
    return numbers->Find(number_of_job, jobs.size());
  }
  // Null: there is none, or it has gone.
  [[nodiscard]] const LiveAttempt* Find(const supervisor::AttemptKey& key) const;
  // What people call the job (LiveJob).
  [[nodiscard]] std::string TextOf(JobId id) const;
  // Why demands like the job's wait; null: they do not, or the policy has left the job out.
  [[nodiscard]] const model::Blocked* BlockedOf(JobId id) const;
  // Why the job is not judged yet; none: it is not deferred.
  [[nodiscard]] std::optional<engine::Deferral> DeferralOf(JobId id) const;
  // The job's progress at `at`; of one that has ended, at its end.
  [[nodiscard]] model::Progress ProgressOf(JobId id, TimePoint at) const;
  // Its lease runs, but nothing is heard of it.
  [[nodiscard]] bool IsSilent(NodeId id, TimePoint at) const;
};

}  // namespace trainyard::live
