// SPDX-License-Identifier: Apache-2.0
// Owns what has become of each job and what was changed of it, when and by whom. Follows from the
// facts and actions of the journal, which has all of it; here are the last events of the last jobs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/configuration.h"
#include "live/jobs/live_jobs.h"
#include "model/event.h"
#include "model/touched.h"
#include "trainyard/cluster.h"
#include "trainyard/state.h"

namespace trainyard::live {

struct JobEvent {
  TimePoint at{};
  std::string what{};    // "updated priority", "granted GPUs"
  std::string by{};      // "ann (uid 1001, user)"; empty: nobody, or it is not known
  std::string before{};  // the value, GPUs ...; empty: none
  std::string after{};

  void Serialize(StateStream& state) { state(at, what, by, before, after); }
};

class History {
 public:
  static constexpr std::size_t kMostOfJob = 100;    // the oldest are forgotten first
  static constexpr std::size_t kMostJobs = 10'000;  // ended ones are forgotten first

  // Must outlive it.
  explicit History(model::TouchedIds<JobId>& touched) : touched_(touched) {}

  // `jobs`: as they were before the fact.
  void Note(const model::Event& event, const LiveJobs& jobs, const Cluster& cluster);
  void Note(const model::Action& action, TimePoint at, const Cluster& cluster);
  // Another configuration, in whose place `former` was: jobs may lose GPUs for it.
  void NoteConfigured(const engine::Configuration& former, const engine::Configuration& next,
                      TimePoint at);
  // Oldest first.
  // Null: there is nothing. What has been given out does not change any more.
  using Events = std::shared_ptr<const std::vector<JobEvent>>;
  [[nodiscard]] Events Of(JobId job) const;

  void Serialize(StateStream& state) { state(jobs_, ended_); }

 private:
  struct OfJob {
    std::shared_ptr<std::vector<JobEvent>> events = std::make_shared<std::vector<JobEvent>>();
    mutable bool given_out = false;  // by Of; the next change is one of a copy
    std::string holds;               // the GPUs that it has been granted

    void Serialize(StateStream& state) { state(*events, holds); }
  };

  // Something happens to a node, for which jobs there lose their GPUs at that time.
  void NoteNode(NodeId node, TimePoint at, const std::string& cause, const Cluster& cluster);
  [[nodiscard]] std::string CauseOf(const std::string& held, TimePoint at) const;
  void NoteText(const model::Event& event, const LiveJobs& jobs, const Cluster& cluster);
  void NoteUpdate(const model::Event& event, const LiveJobs& jobs);
  void Put(JobId job, JobEvent event);
  OfJob& At(JobId job);
  [[nodiscard]] std::vector<JobEvent>& Edit(JobId job);
  [[nodiscard]] std::string TakeAuthor(JobId job, TimePoint at, const std::string& of);
  void NoteEnd(JobId job);

  model::TouchedIds<JobId>& touched_;
  std::map<JobId, OfJob> jobs_;
  // By the nodes' names; of the last time only, and not saved.
  std::map<std::string, std::string> causes_;
  TimePoint caused_at_{};
  std::vector<JobId> ended_;  // of jobs_, in the order in which they have ended
};

}  // namespace trainyard::live
