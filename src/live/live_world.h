// SPDX-License-Identifier: Apache-2.0
// The world of a real cluster: the controller as a deterministic state machine. Calls of clients
// and messages of agents go in; what has to be said to them comes out, after the journal holds it.
// It has no clock, thread, file or socket of its own.
//
// An attempt is one stay of a job on its GPUs, with a part on each of its nodes. The engine grants
// at once; the world starts an attempt when no earlier one is left on its GPUs and none of the same
// job anywhere, and says so to the agents. Nothing runs twice at once: the numbers of attempts rise
// and are never given out again, an agent that cannot reach the controller stops its attempts when
// its lease is over, and only then are its GPUs taken for free. Attempts are beside others on a GPU
// only while the engine has granted it so.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "engine/world.h"
#include "live/failure_book.h"
#include "live/job_request.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard {

struct LiveOptions {
  Duration heartbeat = std::chrono::seconds(5);
  // Without contact for this long, an agent stops its attempts, which takes a grace period at most.
  Duration lease = std::chrono::seconds(60);
  Duration grace = std::chrono::seconds(30);  // of jobs that state none; also the longest of all
  Duration margin = std::chrono::seconds(5);  // clocks and messages may be off by so much
  FailureRules failures{};                    // in real time
  Duration default_duration = std::chrono::hours(1);  // the estimate for jobs that state no work
  std::size_t max_live_jobs = 100'000;
  double unix_zero = 0;     // seconds since 1970 at the engine's zero
  double time_scale = 1;    // engine seconds per real second
  std::string policy;       // as the operator named it
  std::uint64_t epoch = 0;  // of this controller
  Needs needs{};            // the policy's; `elastic`: it needs profiles
  bool promises = false;    // it takes only jobs that can be ended by their deadlines
  // Binds a job to what is known of its model besides throughput profiles, or says why it cannot
  // be taken. May be empty.
  std::function<Status(JobSpec&)> bind{};
};

// What the world has to say. Numbers that are gone are ignored.
class LiveOutput {
 public:
  virtual ~LiveOutput() = default;
  virtual void Reply(std::uint64_t call, v1::ClientReply reply) = 0;
  virtual void Send(std::uint64_t connection, v1::ControllerMessage message) = 0;
  virtual void Close(std::uint64_t connection) = 0;
};

// Whether a live world can keep the rules: an end is when the workers have ended.
[[nodiscard]] Status CheckRules(const Rules& rules);

class LiveWorld final : public World {
 public:
  // All must outlive the world; `profiles` may be null. `cluster` is the engine's: nodes that may
  // join. They are down until their agent says hello.
  LiveWorld(LiveOptions options, const Cluster& cluster, const Engine& engine,
            const ThroughputTable* profiles, LiveOutput& output);
  ~LiveWorld() override;

  // What comes in; nothing is done about it before Next.
  void OnCall(std::uint64_t call, v1::ClientRequest request);
  void OnCallGone(std::uint64_t call);
  void OnAgent(std::uint64_t connection, v1::AgentMessage message);
  void OnAgentGone(std::uint64_t connection);
  void OnNoMoreSubmits();  // of a trace

  // The time of the next batch. REQUIRES: it does not go back.
  void SetNow(TimePoint now) { now_ = now; }
  // When Next must be called at the latest though nothing comes in: a lease runs out, or metrics
  // have waited long enough.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  [[nodiscard]] bool has_input() const { return !inbox_.empty(); }
  // Goes through what has come in; true if there are facts for the engine. What is no fact (a
  // worker's progress, a question) needs no journal, and Answer says what there is to say. `ends`:
  // facts that the engine has foreseen.
  [[nodiscard]] bool Absorb(std::vector<Event> ends = {});
  void Answer();

  // The facts that Absorb has found; never done.
  [[nodiscard]] Batch Next(std::optional<TimePoint> wake_at) override;
  [[nodiscard]] Status Perform(TimePoint now, std::span<const Action> actions) override;

  // While the journal cannot be written. Withhold: the next Perform keeps what it is told, and
  // Release does it. In between Stall takes the place of Absorb: agents keep their leases, calls
  // are refused with `why`, and all else waits.
  void Withhold();
  void Stall(const std::string& why);
  void Release();

  // For going on at another time: what a restart would know of one job, and everything else. What
  // agents know better, as whether an attempt runs, they tell again. Reading: into a world as it is
  // made, whose engine has the job; first all jobs.
  void SerializeJob(JobId job, StateStream& state);
  void Serialize(StateStream& state);
  // Whether what SerializeJob writes stays as it is for ever.
  [[nodiscard]] bool IsOver(JobId job) const {
    return jobs_[Index(job)].ending && jobs_[Index(job)].attempts.empty();
  }

  // A step of an earlier controller, from its journal: brings the world where that one was.
  // An error names what the facts speak of and is not there.
  [[nodiscard]] Status Restore(const Batch& batch);
  void Restore(std::span<const Action> actions);
  // All steps have been told; time goes on from `now`.
  void Restored(TimePoint now);

  // For tests and tools.
  [[nodiscard]] v1::JobStatus StatusOf(JobId job) const;
  [[nodiscard]] v1::JobState StateOf(JobId job) const;
  [[nodiscard]] std::size_t jobs() const { return jobs_.size(); }

 private:
  enum class PartState : std::uint8_t {
    kUnknown,  // what an earlier controller has left; the node's agent will tell
    kQueued,
    kSent,
    kRunning,
    kExited,
  };
  struct Part {
    NodeId node{};
    std::uint64_t gpus = 0;
    PartState state = PartState::kQueued;
    bool finished = false;
    PartFailure failure{};  // as its agent tells it

    void Serialize(StateStream& stream);
  };
  struct Attempt {
    std::uint32_t number = 0;
    std::vector<Part> parts;
    bool stopping = false;      // it has no future
    bool told_to_stop = false;  // and its agents know
    bool has_run = false;       // all parts at once
    Sharing sharing = Sharing::kExclusive;
    std::vector<JobId> group;  // see Grant
    double rate_told = 0;      // to its agents: the engine's rate
    TimePoint opened{};
    TimePoint notice{};               // told_to_stop: since when
    TimePoint ran_from{};             // has_run: since when
    std::optional<TimePoint> failed;  // since when that is known, and not yet whose fault it is

    void Serialize(StateStream& state) {
      state(number, parts, stopping, told_to_stop, sharing, group, opened, notice);
    }
  };
  struct LiveJob {
    std::shared_ptr<const v1::JobRequest> request;
    TimePoint submitted{};
    std::uint32_t last_attempt = 0;
    // Not yet gone, oldest first. All but the last are stopping.
    std::vector<Attempt> attempts;
    // Of each attempt: the nodes and how many GPUs there, in the order of ranks; for logs. Empty if
    // it was stopped before it could start.
    std::vector<std::vector<std::pair<NodeId, int>>> places;
    std::vector<std::uint64_t> verdict_calls;
    bool ending = false;  // a fact that ends it is on its way or has been taken
    double iterations_saved = 0;
    double iterations_seen = 0;
    std::uint32_t failures = 0;
    int exit_code = 0;
    std::string reason;
    TimePoint ended = kEndOfTime;
    std::map<std::string, double> untold;  // metrics that the engine does not know yet
    TimePoint tell_from{};                 // when it may be told again
    std::optional<Duration> start_took;    // the last time, if that was seen
    std::optional<Duration> stop_took;
    // After a cancel: the first code other than 0 of those that had to go. In no journal.
    std::optional<int> left_with;

    // All but the request, which the engine's job has, calls, and left_with: a start from the
    // journal alone must give the same.
    void Serialize(StateStream& state) {
      state(submitted, last_attempt, attempts, places, ending, iterations_saved, iterations_seen,
            failures, exit_code, reason, ended, untold, tell_from, start_took, stop_took);
    }
  };
  struct Node {
    std::optional<std::uint64_t> connection;
    bool alive = false;  // its lease runs
    bool drained = false;
    bool available = false;  // as the engine knows it
    TimePoint heard{};
    v1::Hello hello;
    // GPUs of what may have processes, by attempt. Also what is reported but not wanted: left from
    // jobs that have ended.
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> holders;

    void Serialize(StateStream& state) { state(alive, drained, available); }
  };
  struct Input {
    enum class Kind : std::uint8_t { kCall, kAgent, kAgentGone, kNoMoreSubmits } kind{};
    std::uint64_t number = 0;
    v1::ClientRequest request;
    v1::AgentMessage message;
  };

  // Decided, but not to be done yet.
  struct Withheld {
    TimePoint at{};
    std::vector<Action> actions;
    std::vector<std::function<void()>> answers;
    std::map<std::uint64_t, NodeId> welcomed;  // connections whose Hello is still to be taken
  };

  [[nodiscard]] bool HearStalled(const Input& input);
  [[nodiscard]] v1::ControllerMessage Welcome() const;
  [[nodiscard]] v1::ControllerMessage AnswerTo(const v1::Heartbeat& heartbeat) const;
  void Take(Input& input);
  void TakeCall(std::uint64_t call, const v1::ClientRequest& request);
  void TakeSubmit(std::uint64_t call, const v1::SubmitRequest& request);
  void TakeCancel(std::uint64_t call, const v1::CancelRequest& request);
  void TakeResize(std::uint64_t call, const v1::ResizeRequest& request);
  void TakeDrain(std::uint64_t call, const v1::DrainRequest& request);
  void TakeLogs(std::uint64_t call, const v1::LogsRequest& request);
  [[nodiscard]] static std::uint32_t LastStarted(const LiveJob& job);
  void AnswerSubmit(std::uint64_t call, JobId job, bool wait);
  void AnswerJobs(std::uint64_t call, const v1::JobsRequest& request);
  void AnswerNodes(std::uint64_t call);
  [[nodiscard]] std::variant<JobSpec, v1::CallError> Judged(const v1::JobRequest& job) const;
  [[nodiscard]] std::string WhyNotTaken(const JobSpec& job) const;
  [[nodiscard]] std::optional<JobId> Find(std::uint64_t call, std::uint64_t number);
  [[nodiscard]] std::optional<JobId> FindLive(std::uint64_t call, std::uint64_t number,
                                              std::string_view to);

  void TakeAgent(std::uint64_t connection, const v1::AgentMessage& message);
  void TakeHello(std::uint64_t connection, const v1::Hello& hello);
  void TakeReport(NodeId node, const v1::AttemptReport& report);
  void TakeExit(JobId job, Attempt& attempt, Part& part, const v1::AttemptReport& report);
  void JudgeFailures();
  [[nodiscard]] bool MayJudge(const Attempt& attempt) const;
  void Judge(JobId job, Attempt& attempt);
  void BlameNode(JobId job, Attempt& attempt, const Part& part);
  void BlameJob(JobId job, Attempt& attempt, const Part& part);
  void NoteFault(const FailureNote& note);
  void NoteRunsWell(JobId job, const Attempt& attempt);
  void NoteWhatRunsWell();
  [[nodiscard]] std::optional<TimePoint> WellFrom(JobId job, const Attempt& attempt) const;
  void NoteAgentLost(NodeId node);
  [[nodiscard]] int EligibleNodes(JobId job) const;
  [[nodiscard]] int NodesFor(JobId job) const;
  [[nodiscard]] bool Accepts(JobId job, NodeId node) const;
  [[nodiscard]] int LeastGpus(JobId job) const;
  void Conclude();
  void SortFacts();
  void NoteRunning(LiveJob& job, Attempt& attempt) const;
  void TakeStray(NodeId node, const v1::AttemptReport& report);
  void TakeLogChunk(const v1::LogChunk& chunk);
  void ForgetLogCalls(NodeId node);
  [[nodiscard]] std::string WhyNotJoin(const v1::Hello& hello) const;
  void Reconcile(NodeId node, const v1::Hello& hello);
  void Missing(JobId job, Attempt& attempt, Part& part);
  void ExpireLeases();
  [[nodiscard]] std::optional<TimePoint> LeaseEnd(const Node& node) const;
  void Fence(NodeId node);

  void Requeue(JobId job, Attempt& attempt, int exit_code);
  void Fail(JobId job, Attempt& attempt, int exit_code);
  [[nodiscard]] bool CountsWork(JobId job) const;
  void SaveProgress(JobId job, const v1::AttemptReport& report);
  void NoteMetrics(JobId job, const v1::AttemptReport& report);
  void TellMetrics(JobId job);
  void TellDueMetrics();
  void Add(Event event);

  void Note(const Event& event);
  void Note(const Action& action);
  void Open(JobId job, const Grant& grant);
  void End(LiveJob& job, TimePoint at);
  void StopAll(JobId job);
  // A copy: DropGone takes jobs out.
  [[nodiscard]] std::vector<JobId> Present() const { return {present_.begin(), present_.end()}; }
  void DropGone(JobId job);
  [[nodiscard]] static bool AllExited(const Attempt& attempt);
  [[nodiscard]] static bool HasFinished(const Attempt& attempt);
  void StartAttempts();
  [[nodiscard]] bool MayStart(const LiveJob& job);
  [[nodiscard]] bool MayBeOn(const Attempt& attempt, const Part& part);
  [[nodiscard]] static bool MayShare(const Attempt& attempt, const Attempt& other);
  void Tune();
  void SendTune(JobId job, Attempt& attempt);
  [[nodiscard]] bool HasTerms(JobId job, const Attempt& attempt) const;
  void SendStart(JobId job, Attempt& attempt, std::size_t part);
  void SendStop(JobId job, std::uint32_t attempt, NodeId node);
  void Send(NodeId node, v1::ControllerMessage message);
  [[nodiscard]] int MasterPort(JobId job, std::uint32_t attempt) const;
  [[nodiscard]] Duration GraceOf(const LiveJob& job) const;
  [[nodiscard]] Duration Scaled(Duration real) const;

  void Refuse(std::uint64_t call, int code, std::string message);
  void AnswerVerdict(JobId job);
  void AnswerWithJob(std::uint64_t call, JobId job, v1::ClientRequest::KindCase kind);
  [[nodiscard]] std::vector<v1::NodeStatus> NodeStatuses() const;
  [[nodiscard]] std::string WhyItWaits(JobId job) const;
  [[nodiscard]] std::string WhyItself(JobId job) const;
  [[nodiscard]] std::string WhyBlocked(JobId job, const Blocked& blocked) const;
  [[nodiscard]] std::string WhyItHangs(const LiveJob& job) const;
  [[nodiscard]] std::string NodesAway(const JobSpec& job) const;
  [[nodiscard]] std::string ReasonOf(JobId job, v1::JobState state) const;
  [[nodiscard]] bool IsSilent(const Node& node) const;
  [[nodiscard]] Duration RunTimeOf(JobId job) const;
  [[nodiscard]] std::optional<int> ExitCodeOf(JobId job) const;
  [[nodiscard]] std::string DifferenceFrom(JobId job, const v1::JobRequest& request) const;
  [[nodiscard]] std::vector<std::string> Ignored(const v1::JobRequest& job) const;
  [[nodiscard]] double UnixSeconds(TimePoint time) const;
  [[nodiscard]] Attempt* FindAttempt(std::uint64_t job, std::uint32_t number);

  const LiveOptions options_;
  const Cluster& cluster_;
  const Engine& engine_;
  const ThroughputTable* profiles_;
  LiveOutput& output_;

  TimePoint now_{};
  std::deque<Input> inbox_;
  Batch batch_;
  std::vector<LiveJob> jobs_;
  std::map<std::string, JobId, std::less<>> tokens_;
  std::vector<Node> nodes_;
  std::map<std::string, NodeId, std::less<>> node_names_;
  std::map<std::uint64_t, NodeId> connections_;
  std::set<JobId> to_start_;  // their last attempt has parts that are not sent
  std::set<JobId> present_;   // those with attempts
  std::set<JobId> untold_;    // those with metrics that are not told
  std::set<JobId> sharing_;   // whose last attempt may be beside others: its pace depends on them
  std::set<JobId> holding_;   // those that hold GPUs and may not run on them yet
  std::set<JobId> to_tune_;   // whose agents do not know yet what else it has
  std::map<std::uint64_t, JobId> verdict_calls_;
  // They wait until the journal holds what they say.
  std::vector<std::function<void()>> answers_;
  std::vector<std::pair<NodeId, v1::AttemptId>> to_forget_;
  std::map<std::uint64_t, NodeId> log_calls_;
  std::unique_ptr<Withheld> withheld_;
  bool states_gpu_types_ = false;  // some node does
  FailureBook failures_;
  std::set<JobId> to_judge_;       // whose last attempt has failed
  std::optional<NodeId> renewed_;  // in its Hello: the node whose agent is another one
  bool late_ = false;              // what is told has happened some time before, unseen
  std::size_t live_jobs_ = 0;
  std::size_t known_jobs_ = 0;  // those of earlier batches
  bool restoring_ = false;
  bool fresh_ = true;  // nothing has happened yet
};

// gRPC's status codes.
inline constexpr int kInvalidArgument = 3;
inline constexpr int kNotFound = 5;
inline constexpr int kAlreadyExists = 6;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kFailedPrecondition = 9;
inline constexpr int kUnavailable = 14;

// As messages count it.
[[nodiscard]] constexpr std::int64_t Milliseconds(Duration duration) {
  return duration.count() / 1000;
}

// The number by which users know a job: submissions are counted from 1.
[[nodiscard]] constexpr std::uint64_t NumberOf(JobId job) { return Index(job) + 1; }

}  // namespace trainyard
