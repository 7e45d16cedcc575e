// SPDX-License-Identifier: Apache-2.0
// Finds whose fault the end of an attempt is, and which facts follow. Owns the failures that are
// not judged yet; what follows from all that were judged is in the failure book.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "live/live_state.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine

namespace trainyard::live {

class FailureJudge {
 public:
  // All must outlive it.
  FailureJudge(LiveState& state, const engine::Engine& engine, AddFact add)
      : state_(state), engine_(engine), add_(std::move(add)) {}

  // A new batch begins.
  void Begin() { lost_.clear(); }
  // The job's last attempt has failed: it is judged now, or by JudgeDue when enough is known.
  void Take(JobId job, LiveAttempt& attempt);
  // Nothing is to be judged: the attempt ends for the loss of another part.
  void Drop(JobId job) { unjudged_.erase(job); }
  // Judges what can be by now; the jobs that were.
  std::vector<JobId> JudgeDue();
  // While it is set, the node's agent is another one than before.
  void SetRenewed(std::optional<NodeId> node) { renewed_ = node; }

  // The job loses its GPUs and waits again, unless it has to go anyway.
  void Requeue(JobId job, LiveAttempt& attempt, int exit_code);
  // The agent of the node is lost, with what it ran: once in a batch.
  void NoteAgentLost(NodeId node);
  // The node's agent cannot end what is left of an attempt, and says why. It says so again and
  // again for as long as that is so.
  void NoteUnended(NodeId node, const std::string& why) { unended_.emplace(node, why); }
  // The node has another agent: jobs may try it again.
  void NoteRenewed(NodeId node);
  // The job's attempt has run well, if that matters; and all of which that is known by now.
  void NoteRunsWell(JobId job, const LiveAttempt& attempt);
  void NoteAllThatRunWell();
  // When there is something to judge or to note though nothing happens.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  // What follows from the failure book, as further facts.
  [[nodiscard]] std::vector<model::Event> Conclusions();

 private:
  [[nodiscard]] bool MayJudge(const LiveAttempt& attempt) const;
  void Judge(JobId job, LiveAttempt& attempt);
  void BlameNode(JobId job, LiveAttempt& attempt, const Part& part);
  void BlameJob(JobId job, LiveAttempt& attempt, const Part& part);
  // The job has failed, for the reason that it has.
  void Fail(JobId job, LiveAttempt& attempt, int exit_code);
  void Note(FailureNote note) { add_(FactOf(std::move(note), state_.now)); }
  [[nodiscard]] std::optional<TimePoint> WellFrom(JobId job, const LiveAttempt& attempt) const;
  [[nodiscard]] int NodesFor(JobId job, bool with_drained) const;

  LiveState& state_;
  const engine::Engine& engine_;
  const AddFact add_;
  std::set<JobId> unjudged_;               // whose last attempt has failed
  std::set<NodeId> lost_;                  // in this batch
  std::map<NodeId, std::string> unended_;  // not told to the failure book yet
  std::optional<NodeId> renewed_;
};

}  // namespace trainyard::live
