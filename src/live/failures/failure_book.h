// SPDX-License-Identifier: Apache-2.0
// Whose fault it is that an attempt has ended before its work was done; what a live cluster
// remembers of failures, and what it concludes: which nodes a job avoids, which jobs are held back,
// which nodes are drained, and when starts wait because a fault is the whole cluster's.
// docs/live.md, "Failures", has the rules.
//
// Everything follows from the facts of the journal, taken in their order, so that a controller that
// starts again concludes the same. What the engine has no use for is a fact of kind kNoted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "live/notes.h"
#include "model/event.h"
#include "trainyard/cluster.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

// ------------------------------------------------------------------------------------- one failure

enum class FailureOwner : std::uint8_t {
  kNobody,    // notice, an expired lease, a machine that goes down: the job just waits again
  kNode,      // the command could not be run there, or not to its end
  kDoubtful,  // the node's, unless other nodes say the same of the job
  kJob,       // the command was started and left with a code other than 0, or by a signal
};

// What a part of an attempt has said of its failure.
struct PartFailure {
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
  int exit_code = 0;
  bool lost = false;     // as AttemptReport::lost
  double failed_at = 0;  // as AttemptReport::failed_at
  std::string message{};

  // Whether it is one, or an end of which the controller knows no reason.
  [[nodiscard]] bool has_failed() const {
    return lost || exit_code != 0 || cause != v1::AttemptReport::CAUSE_UNSPECIFIED;
  }
};

[[nodiscard]] PartFailure FailureOf(const v1::AttemptReport& report);
[[nodiscard]] FailureOwner OwnerOf(const PartFailure& failure);

// The part that a gang's end is blamed on: the one that failed first. One that never ran, or whose
// supervisor has gone, knows no time and comes before all that do. Workers that left with a code of
// their own come last, whatever the clocks of the nodes say: they fail when those of another node
// have gone. REQUIRES: one has failed.
[[nodiscard]] std::size_t FirstFailed(std::span<const PartFailure> parts);

// What failures of several nodes must have in common to be one and the same: the cause and what the
// system said, without the names of files.
[[nodiscard]] std::string ReasonKey(const PartFailure& failure);

// The same of a vanished attempt of that user's job; empty: of an unknown one's.
[[nodiscard]] std::string VanishedKey(const std::string& user);

// For people, in one line of at most 200 bytes.
[[nodiscard]] std::string Describe(const PartFailure& failure);

// -------------------------------------------------------------------------------------- all
// failures

struct FailureRules {
  Duration soon = std::chrono::seconds(60);  // an attempt that has run so long has run well
  Duration window = std::chrono::minutes(10);
  Duration first_pause = std::chrono::seconds(1);  // doubles with each failure in a row
  Duration longest_pause = std::chrono::minutes(5);
  int in_a_row = 3;       // failures of a node
  int strangers = 3;      // jobs that fail soon on a node and run well elsewhere
  int same_reason = 3;    // nodes, or half of them but at least two: the reason is the cluster's
  int most_vanished = 3;  // attempts in a row whose supervisor has gone
  int one_in = 5;         // of so many nodes, one at least, may be drained without the operator
};

// What its failures mean for a job, for people.
struct FailureEffect {
  std::string why_held{};  // FailureBook::WhyHeld, and so on
  std::string why_avoids{};
  std::optional<TimePoint> held_until{};
  bool has_no_node_left = false;
  friend bool operator==(const FailureEffect&, const FailureEffect&) = default;
};

class FailureBook {
 public:
  // What conclusions depend on besides.
  struct Surroundings {
    std::function<bool(NodeId)> available;  // up and not drained
    std::function<bool(NodeId)> drained;
    std::function<bool(JobId, NodeId)> accepts;  // whether the GPU type is one for the job
    std::function<int(JobId)> least_gpus;        // with which the job can run
    std::function<bool(JobId)> runs;             // it has an attempt that need not stop
    std::map<NodeId, std::string> unended{};     // nodes that cannot end an attempt, and why
  };

  // Must outlive the book.
  FailureBook(const Cluster& cluster, FailureRules rules);
  // There may be more nodes than before.
  void ListNodes();

  // Any fact, in the order of the journal.
  void Take(const model::Event& event);
  // The job has ended without a fact that says so.
  void Forget(JobId job) { changes_ += jobs_.erase(job); }
  // What follows from all facts so far by `now`, as further facts; Take has had them.
  [[nodiscard]] std::vector<model::Event> Conclude(TimePoint now, const Surroundings& around);
  // When Conclude may say something new though nothing happens.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  // Whether a doubtful failure of the job on `node` is the job's own: enough nodes say the same, of
  // `eligible` that could.
  [[nodiscard]] bool NodesAgree(JobId job, NodeId node, v1::AttemptReport::Cause cause,
                                int eligible) const;
  // Whether all that could say so, several nodes at least if there are more, say the same of the
  // job's data set, and no other job is told so anywhere: a fault of what the job names.
  [[nodiscard]] bool IsOfOneJob(const FailureNote& note, int eligible) const;
  // Whose a job is; empty: that is not known, and no two jobs are of the same user.
  using UserOf = std::function<std::string(JobId)>;
  // In how many attempts in a row of the last window the job has vanished with one more now, on
  // `node`, if that is one too many and its own doing, else 0. It is when they were on three nodes,
  // or several on each of two, in an order that takes three faults of nodes, one after the other,
  // to explain, where there are more nodes than one, and no job of another user's vanishes on any
  // of these.
  struct Vanishing {
    JobId job{};
    NodeId node{};
    TimePoint at{};
  };
  [[nodiscard]] int VanishesTooOften(const Vanishing& vanishing, int eligible,
                                     const UserOf& user_of) const;
  // Whether the success of this attempt of the job, opened at `opened` on these nodes, could change
  // a conclusion.
  [[nodiscard]] bool WantsToKnow(JobId job, const std::vector<NodeId>& nodes,
                                 TimePoint opened) const;
  // How often something may have changed of what it says of jobs; and the jobs of which it says
  // anything.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] std::vector<JobId> JobsWithRecord() const;
  [[nodiscard]] FailureEffect EffectOn(JobId job) const {
    return {.why_held = WhyHeld(job),
            .why_avoids = WhyAvoids(job),
            .held_until = HeldUntil(job),
            .has_no_node_left = HasNoNodeLeft(job)};
  }
  // Nothing has failed of late.
  [[nodiscard]] bool quiet() const { return jobs_.empty() && nodes_in_doubt_ == 0; }
  // Whether it has failed of late, or jobs avoid it.
  [[nodiscard]] bool HasRecord(NodeId node) const;
  // Whether jobs avoid the node for what a former agent has said.
  [[nodiscard]] bool IsAvoidedSince(NodeId node, const std::string& agent) const;

  // No attempt is to be started before; none: at any time.
  [[nodiscard]] std::optional<TimePoint> starts_from(TimePoint now) const;
  // Why starts wait; REQUIRES: starts_from.
  [[nodiscard]] const std::string& why_starts_wait() const { return cluster_text_; }
  // Why the job gets no GPUs for now; empty: it may.
  [[nodiscard]] std::string WhyHeld(JobId job) const;
  // Until when the job is held, if only time is missing.
  [[nodiscard]] std::optional<TimePoint> HeldUntil(JobId job) const;
  // Whether the job is held because it avoids all nodes that could run it.
  [[nodiscard]] bool HasNoNodeLeft(JobId job) const;
  // "avoids n0: No space left on device"; empty: it avoids none.
  [[nodiscard]] std::string WhyAvoids(JobId job) const;
  // Why the node has been drained by Conclude; empty: it has not.
  [[nodiscard]] const std::string& WhyDrained(NodeId node) const {
    return nodes_[Index(node)].drained_for;
  }
  [[nodiscard]] const FailureRules& rules() const { return rules_; }

  // `former`: as in snapshots before format 10.
  void Serialize(StateStream& state, bool former = false);

 private:
  // Why a job avoids a node.
  struct Fault {
    v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
    std::string key;
    std::string text;
    std::string agent;

    void Serialize(StateStream& state) { state(cause, key, text, agent); }
  };
  // An attempt whose supervisor has gone.
  struct Vanished {
    NodeId node{};
    TimePoint at{};

    void Serialize(StateStream& state) { state(node, at); }
  };
  struct Job {
    std::map<NodeId, Fault> avoided;
    std::set<NodeId> left_soon;      // where it failed soon, by its own account
    int failures = 0;                // in a row that call for a pause
    std::vector<Vanished> vanished;  // in a row, oldest first
    TimePoint until{};               // it is held back
    std::string paused_for;          // why
    TimePoint failed_at{};           // last
    bool none_left = false;          // it avoids too many nodes
    std::vector<NodeId> told;        // to the engine
    bool held = false;               // as the engine was told

    void Serialize(StateStream& state) {
      state(avoided, left_soon, failures, vanished, until, paused_for, failed_at, none_left, told,
            held);
    }
  };
  // As snapshots before format 10 have it: how many have vanished where, without their times.
  struct FormerJob {
    Job job;
    void Serialize(StateStream& state);
  };
  struct Node {
    int in_a_row = 0;
    std::string last_text;  // of these
    std::string last_key;
    TimePoint failed_at{};      // last
    std::set<JobId> strangers;  // failed soon here and run well elsewhere
    std::string drained_for;

    void Serialize(StateStream& state) {
      state(in_a_row, last_text, last_key, failed_at, strangers, drained_for);
    }
  };
  struct Reason {
    std::string key;
    NodeId node{};
    TimePoint at{};

    void Serialize(StateStream& state) { state(key, node, at); }
  };

  [[nodiscard]] bool IsHere(const FailureNote& note) const;
  void TakeNote(const FailureNote& note, TimePoint at);
  void TakeNodeFailure(const FailureNote& note, TimePoint at);
  void TakeJobFailure(const FailureNote& note, TimePoint at);
  void TakeRanWell(const FailureNote& note);
  void TakeBarred(const model::Event& event);
  void Clear(NodeId node);
  void Pause(Job& job, const std::string& why, TimePoint at);
  [[nodiscard]] Duration PauseOf(int failures) const;
  void CountFailure(const FailureNote& note, TimePoint at);
  void CountReason(const FailureNote& note, TimePoint at);
  [[nodiscard]] std::vector<NodeId> VanishedInARow(const Vanishing& last) const;
  [[nodiscard]] bool OthersFailFor(const FailureNote& note) const;
  [[nodiscard]] bool IsOfTheCluster(const std::string& key, TimePoint now) const;
  [[nodiscard]] bool IsSoft(const Fault& fault, TimePoint now) const;
  [[nodiscard]] std::string WhyDrain(const Node& node, TimePoint now) const;
  void ConcludeNodes(TimePoint now, const Surroundings& around, std::vector<model::Event>& events);
  void ConcludeJob(JobId id, Job& job, TimePoint now, const Surroundings& around,
                   std::vector<model::Event>& events);
  [[nodiscard]] bool HasRoom(JobId id, const Job& job, const Surroundings& around) const;
  void CountDoubts();

  const Cluster& cluster_;
  const FailureRules rules_;
  std::map<JobId, Job> jobs_;  // those with something to remember
  std::uint64_t changes_ = 0;
  std::vector<Node> nodes_;
  std::size_t nodes_in_doubt_ = 0;  // with failures in a row
  std::vector<Reason> reasons_;     // of the last window
  std::string cluster_text_;        // the last reason that was the whole cluster's
  int cluster_pauses_ = 0;          // in a row
  TimePoint cluster_until_{};
};

}  // namespace trainyard::live
