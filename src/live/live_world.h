// SPDX-License-Identifier: Apache-2.0
// The world of a real cluster: the controller as a deterministic state machine. Calls of clients
// and messages of agents go in; what has to be said to them comes out, after the journal holds it.
// It has no clock, thread, file or socket of its own.
//
// The engine grants at once; the world starts an attempt when no earlier one is left on its GPUs
// and none of the same job anywhere, and says so to the agents. Nothing runs twice at once: the
// numbers of attempts rise and are never given out again, an agent that cannot reach the controller
// stops its attempts when its lease is over, and only then are its GPUs taken for free. Attempts
// are beside others on a GPU only while the engine has granted it so.
//
// Turns messages into facts and actions into messages. Its state is in parts (live_state.h); of
// what follows, clients' calls are LiveCalls', what they read views', failures the FailureJudge's,
// and messages to agents AgentMessages'.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/world.h"
#include "live/attempts/agent_messages.h"
#include "live/calls/live_calls.h"
#include "live/failures/failure_judge.h"
#include "live/history/change_log.h"
#include "live/live_state.h"
#include "live/measured/overruns.h"
#include "live/measured/throughput_meter.h"
#include "live/measured/use_recorder.h"
#include "live/notices/notices.h"
#include "live/section.h"
#include "live/view/view_writer.h"
#include "model/rules.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// Whether a live world can keep the rules: an end is when the workers have ended.
[[nodiscard]] Status CheckRules(const model::Rules& rules);

class LiveWorld final : public engine::World {
 public:
  // All must outlive the world. The nodes of the engine's configuration may join; they are down
  // until their agent says hello.
  LiveWorld(LiveOptions options, const engine::Engine& engine, LiveOutput& output);
  ~LiveWorld() override;

  // What comes in; nothing is done about it before Next.
  void OnCall(std::uint64_t call, v1::ClientRequest request);
  void OnCallGone(std::uint64_t call);
  void OnAgent(std::uint64_t connection, v1::AgentMessage message);
  void OnAgentGone(std::uint64_t connection);
  void OnNoMoreSubmits();  // of a trace
  // Another configuration, by its note, takes the place of the present one with the next step.
  // Error: it may not; nothing changes.
  [[nodiscard]] Status OnConfiguration(const std::string& note);

  // The time of the next batch. REQUIRES: it does not go back.
  void SetNow(TimePoint now) { state_.now = now; }
  // When Next must be called at the latest though nothing comes in: a lease runs out, or metrics
  // have waited long enough.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  [[nodiscard]] bool has_input() const { return !inbox_.empty(); }
  // Goes through what has come in; true if there are facts for the engine. What is no fact (a
  // worker's progress, a question) needs no journal, and Answer says what there is to say. `ends`:
  // facts that the controller knows of: what the engine has foreseen.
  [[nodiscard]] bool Absorb(std::vector<model::Event> ends = {});
  void Answer();
  // The same of an outage in which no lease was renewed: all that runs has lost its GPUs. Nodes
  // get jobs again when their agents are back, and none starts before its last attempt has gone.
  [[nodiscard]] bool AbsorbOutage(std::vector<model::Event> first);

  // The facts that Absorb has found; never done. REQUIRES: there are some, or `wake_at` has come.
  [[nodiscard]] model::Batch Next(std::optional<TimePoint> wake_at) override;
  [[nodiscard]] Status Perform(TimePoint now, std::span<const model::Action> actions) override;

  // While the journal cannot be written. Withhold: the next Perform keeps what it is told, and
  // Release does it. In between Stall takes the place of Absorb: agents keep their leases, calls
  // are refused with `why`, and all else waits.
  void Withhold();
  void Stall(const std::string& why);
  void Release();

  // For going on at another time: what a restart would know of one job. What
  // agents know better, as whether an attempt runs, they tell again. Reading: into a world as it is
  // made, first all jobs. `spec`: that of the engine's job.
  void SerializeJob(JobId job, const std::shared_ptr<const JobSpec>& spec, StateStream& state);
  // All but the jobs, for a snapshot of that format.
  [[nodiscard]] std::vector<Section> Sections(int format);
  // Whether what SerializeJob writes stays as it is for ever.
  [[nodiscard]] bool IsOver(JobId job) const {
    return state_.jobs[job].ending && state_.attempts[job].list.empty();
  }

  // A step of an earlier controller, from its journal: brings the world where that one was.
  // An error names what the facts speak of and is not there.
  [[nodiscard]] Status Restore(const model::Batch& batch);
  void Restore(std::span<const model::Action> actions);
  // Before anything of a snapshot is read: the configuration that it was taken under.
  void Adopt(engine::SharedConfiguration configuration) {
    state_.Configure(std::move(configuration));
  }
  // The entry of the journal that what has been read from a snapshot ends with.
  void SetEntry(std::uint64_t entry) { change_log_.SetEntry(entry); }
  // All steps have been told; time goes on from `now`.
  void Restored(TimePoint now);

  // What clients may read, as of the last step. For any thread. REQUIRES: Restored.
  [[nodiscard]] std::shared_ptr<const ClusterView> view() const { return views_.Published(); }
  // Of which jobs something may have changed: for Engine::Watch.
  [[nodiscard]] model::TouchedIds<JobId>* touched() { return &state_.touched.jobs; }

  // For tests and tools.
  [[nodiscard]] v1::JobStatus StatusOf(JobId job) { return views_.Now().StatusOf(job); }
  [[nodiscard]] v1::JobState StateOf(JobId job) { return views_.Now().StateOf(job); }
  [[nodiscard]] std::size_t jobs() const { return state_.jobs.size(); }
  [[nodiscard]] const LiveOptions& options() const { return state_.options; }
  [[nodiscard]] std::vector<v1::NodeStatus> NodeStatuses() { return views_.Now().OfNodes(); }
  [[nodiscard]] std::string WhyViewIsStale() { return views_.WhyStale(); }

 private:
  struct Input {
    enum class Kind : std::uint8_t {
      kCall,
      kCallGone,
      kAgent,
      kAgentGone,
      kNoMoreSubmits,
      kConfiguration,
    } kind{};
    std::uint64_t number = 0;
    v1::ClientRequest request{};
    v1::AgentMessage message{};
    std::string configuration{};
  };
  // Decided, but not to be done yet.
  struct Withheld {
    TimePoint at{};
    std::vector<model::Action> actions;
    LiveCalls::Answers answers;
    std::map<std::uint64_t, NodeId> welcomed;  // connections whose Hello is still to be taken
  };

  // What comes in.
  void Take(Input& input);
  [[nodiscard]] bool TakeWhileWithheld(const Input& input);
  void TakeAgent(std::uint64_t connection, const v1::AgentMessage& message);
  void TakeHello(std::uint64_t connection, const v1::Hello& hello);
  void Reconcile(NodeId node, const v1::Hello& hello);
  void TakeMissing(JobId job, LiveAttempt& attempt, Part& part);
  void TakeReport(NodeId node, const v1::AttemptReport& report);
  void NoteBegin(JobId job);
  void TakeStray(NodeId node, const v1::AttemptReport& report);
  static void TakeFetch(Part& part, const v1::AttemptReport& report);
  void TakeData(NodeId node, const v1::DataReport& data);
  void NoteProgress(LiveJob& job, LiveAttempt& attempt, Part& part, double iterations) const;
  void TakeExit(JobId job, LiveAttempt& attempt, Part& part, const v1::AttemptReport& report);
  void TakeAgentGone(std::uint64_t connection);
  void LookAtAgents();

  // Facts, found now or read from the journal.
  void Add(model::Event event);
  void Note(const model::Event& event);
  void Fence(NodeId node);
  void TellMetrics(JobId job);
  void SortFacts();
  void Conclude();

  void StateStages(LiveJob& job) const;

  // Actions.
  void Note(const model::Action& action);
  void Open(const model::Action& action);
  void End(JobId job);
  void StopAll(JobId job);
  void DropGone(JobId job);
  void StartAttempts();
  [[nodiscard]] bool HasData(JobId job);
  void Tune();

  LiveOutput& output_;
  const engine::Engine& engine_;
  LiveState state_;
  ViewWriter views_;
  Notices notices_;
  ChangeLog change_log_;
  AgentMessages messages_;
  LiveCalls calls_;
  FailureJudge judge_;
  ThroughputMeter meter_;
  Overruns overruns_;
  UseRecorder use_;

  std::deque<Input> inbox_;
  model::Batch batch_;
  std::set<JobId> to_tune_;  // whose agents do not know yet what else the job has
  std::unique_ptr<Withheld> withheld_;
  bool restoring_ = false;
  bool fresh_ = true;  // nothing has happened yet
};

}  // namespace trainyard::live
