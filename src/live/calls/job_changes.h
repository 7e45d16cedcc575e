// SPDX-License-Identifier: Apache-2.0
// Calls by which users change what becomes of jobs that they have submitted. All jobs of a call
// change at one time: one fact, or one for each job where these differ, in one entry of the
// journal.
#pragma once

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "live/attempts/agent_messages.h"
#include "live/calls/call.h"
#include "live/calls/selection.h"
#include "live/calls/validation.h"

namespace trainyard::live {

class JobChanges {
 public:
  // All must outlive it.
  JobChanges(CallContext& context, const Validation& validation, AgentMessages& messages)
      : context_(context), state_(context.state()), validation_(validation), messages_(messages) {}

  // A new batch of calls begins.
  void Begin() { held_anew_.clear(); }
  // Of a call of the family kJobChange.
  [[nodiscard]] Result<Reply> Change(const Call& call, const v1::ClientRequest& request);
  // Holds or releases the jobs. A hold of another user, which the caller may not release, stays.
  void Hold(const Call& call, const std::vector<JobId>& jobs, bool hold);

 private:
  // What a job would be after an update.
  struct Update {
    JobId job{};
    std::shared_ptr<const JobSpec> spec;
  };
  // What the call does to each of the jobs; those to which it does nothing are left out.
  struct Chosen {
    std::vector<JobId> jobs;       // it changes them
    std::vector<JobId> as_wanted;  // already
    std::vector<Update> updates;   // of an update, in place of a change alike for all
  };
  // Done once the facts of the call are in the journal.
  using AfterFacts = std::function<void()>;

  [[nodiscard]] Chosen Choose(const Call& call, const v1::ClientRequest& request,
                              Selected& selected) const;
  [[nodiscard]] std::optional<Refusal> CheckChange(const Call& call,
                                                   const v1::ClientRequest& request,
                                                   JobId job) const;
  [[nodiscard]] std::optional<Refusal> CheckHold(const Call& call, bool hold, JobId job) const;
  [[nodiscard]] Result<Update> UpdateOf(const v1::UpdateRequest& request, JobId job,
                                        bool with_array) const;
  [[nodiscard]] Status CheckWaiting(const v1::UpdateRequest& request, JobId job,
                                    bool with_array) const;
  [[nodiscard]] bool WaitsAsItsArray(JobId task, const v1::UpdateRequest& request) const;
  void UpdateTasks(JobId first, const v1::UpdateRequest& request, const JobSpec& as);
  void AddUpdates(const Call& call, const v1::UpdateRequest& request,
                  const std::vector<Update>& updates);
  [[nodiscard]] AfterFacts AddChange(const Call& call, const v1::ClientRequest& request,
                                     const std::vector<JobId>& jobs);
  template <model::fact::OfSeveral T>
  void AddFactOf(const Call& call, std::string_view what, const std::vector<JobId>& jobs, T fact);
  [[nodiscard]] AfterFacts Signal(const Call& call, int signal, const std::vector<JobId>& jobs);

  CallContext& context_;
  LiveState& state_;
  const Validation& validation_;
  AgentMessages& messages_;
  std::set<JobId> held_anew_;  // or released, in this batch
};

}  // namespace trainyard::live
