// SPDX-License-Identifier: Apache-2.0
#include "daemon/fast_forward.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/try.h"
#include "daemon/trace_requests.h"
#include "live/agent/agent.h"
#include "live/controller.h"
#include "live/jobs/job_request.h"
#include "model/job_order.h"
#include "scenario/known_models.h"
#include "store/memory_store.h"

namespace trainyard::daemon {
namespace {

// Longer than any trace: nothing is late here.
constexpr Duration kNever = std::chrono::hours(24 * 365 * 50);
// Nobody restarts from the journal.
constexpr auto kAllBlocks = std::numeric_limits<std::uint64_t>::max();

// The trainers of one node, advancing in the time of the run. `endless`: their work is counted by
// the engine alone, and they end when they are told to.
class JumpingProcesses final : public supervisor::Processes {
 public:
  JumpingProcesses(const TimePoint& now, bool endless) : now_(now), endless_(endless) {}

  std::vector<v1::AttemptReport> Recover() override { return {}; }
  void Start(const v1::StartAttempt& start) override {
    Attempt& attempt = attempts_[supervisor::KeyOf(start.id())];
    attempt.start = start;
    if (endless_) {
      attempt.start.set_rate(0);
    }
    attempt.advances_from = now_ + FromSeconds(start.restart_cost_s());
    attempt.FindEnd();
    Tell(attempt, v1::AttemptReport::RUNNING, start.iterations_done(), false);
  }
  void Stop(const v1::AttemptId& id, Duration /*grace*/) override {
    if (const auto at = attempts_.find(supervisor::KeyOf(id)); at != attempts_.end()) {
      Exit(at, at->second.DoneBy(now_), now_ >= at->second.done);
    }
  }
  void Tune(const v1::TuneAttempt& tune) override {
    const auto at = attempts_.find(supervisor::KeyOf(tune.id()));
    if (at == attempts_.end() || endless_) {
      return;
    }
    Attempt& attempt = at->second;
    attempt.start.set_iterations_done(attempt.DoneBy(now_));
    attempt.start.set_rate(tune.rate());
    attempt.advances_from = std::max(attempt.advances_from, now_);
    attempt.FindEnd();
  }
  void SetLease(Duration /*from_now*/, Duration /*grace*/) override {}
  void Forget(const v1::AttemptId& /*attempt*/) override {}
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& /*attempt*/, int /*rank*/,
                                std::uint64_t /*offset*/) override {
    return v1::LogsReply();
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

  [[nodiscard]] TimePoint next_end() const {
    TimePoint next = kEndOfTime;
    for (const auto& [key, attempt] : attempts_) {
      next = std::min(next, attempt.done);
    }
    return next;
  }
  void EndAllBy(TimePoint now) {
    for (auto at = attempts_.begin(); at != attempts_.end();) {
      const auto next = std::next(at);
      if (at->second.done <= now) {
        Exit(at, at->second.start.iterations(), true);
      }
      at = next;
    }
  }

 private:
  struct Attempt {
    v1::StartAttempt start;
    TimePoint advances_from{};
    TimePoint done{};

    [[nodiscard]] double DoneBy(TimePoint now) const {
      const double advanced = std::max(0.0, Seconds(now - advances_from)) * start.rate();
      return std::min(start.iterations(), start.iterations_done() + advanced);
    }
    void FindEnd() {
      const double left = start.iterations() - start.iterations_done();
      done = start.rate() > 0 ? advances_from + CeilFromSeconds(left / start.rate()) : kEndOfTime;
    }
  };

  void Tell(const Attempt& attempt, v1::AttemptReport::State state, double iterations,
            bool finished) {
    v1::AttemptReport& report = reports_.emplace_back();
    *report.mutable_id() = attempt.start.id();
    *report.mutable_gpus() = attempt.start.gpus();
    report.set_state(state);
    report.set_iterations(iterations);
    report.set_checkpointed_iterations(iterations);
    report.set_finished(finished);
  }
  void Exit(std::map<supervisor::AttemptKey, Attempt>::iterator at, double iterations,
            bool finished) {
    Tell(at->second, v1::AttemptReport::EXITED, iterations, finished);
    attempts_.erase(at);
  }

  const TimePoint& now_;
  const bool endless_;
  std::map<supervisor::AttemptKey, Attempt> attempts_;
  std::vector<v1::AttemptReport> reports_;
};

class FastForward final : public live::LiveOutput {
 public:
  FastForward(const scenario::Inputs& inputs, const std::optional<SteppedCommand>& command,
              bool ends_by_rule)
      : inputs_(inputs),
        command_(command),
        ends_by_rule_(ends_by_rule),
        gauge_(command ? command->steps : Steps{}),
        requests_(*inputs.jobs, inputs.cluster,
                  command ? std::span<const std::string>(command->command)
                          : std::span<const std::string>()),
        order_(model::SubmitOrder(*inputs.jobs)),
        numbers_(order_.size()) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      numbers_[order_[i]] = i + 1;
    }
  }

  Result<std::string> Run(const scenario::RunRequest& request, const scenario::Assembly& parts,
                          engine::EngineSetup setup, const scenario::CollectFrom& collect);

  // LiveOutput
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override {
    if (reply.has_error() && refusal_.ok()) {
      refusal_ = BadInput("a job is refused: " + reply.error().message());
    }
  }
  void Send(std::uint64_t connection, v1::ControllerMessage message) override {
    messages_.emplace_back(connection, std::move(message));
  }
  void Close(std::uint64_t /*connection*/) override {}

 private:
  void AddNodes();
  supervisor::Processes& AddProcesses(const NodeSpec& node);
  [[nodiscard]] TimePoint NextTime() const;
  void SubmitDue();
  [[nodiscard]] Status Settle();

  const scenario::Inputs& inputs_;
  const std::optional<SteppedCommand>& command_;
  const bool ends_by_rule_;
  StepGauge gauge_;
  const TraceRequests requests_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint64_t> numbers_;  // by row: as the controller counts submissions
  std::size_t next_submit_ = 0;
  TimePoint now_{};
  std::unique_ptr<live::Controller> controller_;
  std::vector<std::unique_ptr<supervisor::Processes>> processes_;
  std::vector<JumpingProcesses*> jumping_;    // of these, without a command
  std::vector<SteppingProcesses*> stepping_;  // with one
  std::vector<std::unique_ptr<live::Agent>> agents_;
  std::deque<std::pair<std::uint64_t, v1::ControllerMessage>> messages_;
  Status refusal_;
};

supervisor::Processes& FastForward::AddProcesses(const NodeSpec& node) {
  if (command_) {
    auto stepping = std::make_unique<SteppingProcesses>(
        supervisor::LocalProcessesOptions{.state_folder = command_->folder + "/" + node.name,
                                          .program = command_->program},
        command_->folder + "/checkpoints", gauge_);
    stepping_.push_back(stepping.get());
    processes_.push_back(std::move(stepping));
  } else {
    auto jumping = std::make_unique<JumpingProcesses>(now_, ends_by_rule_);
    jumping_.push_back(jumping.get());
    processes_.push_back(std::move(jumping));
  }
  return *processes_.back();
}

void FastForward::AddNodes() {
  for (std::size_t i = 0; i < inputs_.cluster.nodes.size(); ++i) {
    const NodeSpec& node = inputs_.cluster.nodes[i];
    v1::Hello hello;
    hello.set_node(node.name);
    hello.set_address(command_ ? "127.0.0.1" : node.name);
    hello.set_gpus(node.gpus);
    agents_.push_back(std::make_unique<live::Agent>(
        std::move(hello), AddProcesses(node), [this, i](v1::AgentMessage message) {
          controller_->world().OnAgent(i + 1, std::move(message));
        }));
    agents_.back()->OnConnected(now_);
  }
}

TimePoint FastForward::NextTime() const {
  TimePoint next = controller_->next_instant().value_or(kEndOfTime);
  if (next_submit_ < order_.size()) {
    next = std::min(next, (*inputs_.jobs)[order_[next_submit_]].known_from());
  }
  for (const JumpingProcesses* processes : jumping_) {
    next = std::min(next, processes->next_end());
  }
  return next;
}

void FastForward::SubmitDue() {
  const std::size_t before = next_submit_;
  while (next_submit_ < order_.size() &&
         (*inputs_.jobs)[order_[next_submit_]].known_from() <= now_) {
    const std::uint32_t row = order_[next_submit_++];
    if (requests_.CountOf(row) == 0) {
      continue;
    }
    v1::ClientRequest request;
    *request.mutable_submit()->mutable_job() = requests_.Of(row, numbers_);
    controller_->world().OnCall(next_submit_, std::move(request));
  }
  if (ends_by_rule_ && next_submit_ != before && next_submit_ == order_.size()) {
    controller_->world().OnNoMoreSubmits();
  }
}

// Everything that follows from what has come in, in this very moment.
Status FastForward::Settle() {
  for (const std::unique_ptr<live::Agent>& agent : agents_) {
    agent->OnReports();
  }
  do {
    RETURN_IF_ERROR(controller_->Step(now_));
    for (const auto& [connection, message] : std::exchange(messages_, {})) {
      agents_[connection - 1]->OnMessage(message, now_);
    }
    AwaitStops(stepping_);
    for (const std::unique_ptr<live::Agent>& agent : agents_) {
      agent->OnReports();
    }
  } while (controller_->world().has_input());
  return refusal_;
}

Result<std::string> FastForward::Run(const scenario::RunRequest& request,
                                     const scenario::Assembly& parts, engine::EngineSetup setup,
                                     const scenario::CollectFrom& collect) {
  // Nodes join in the instant of the first job: one decision.
  now_ = order_.empty() ? TimePoint{} : (*inputs_.jobs)[order_.front()].known_from();
  store::MemoryStore store;
  engine::Configuration with = *setup.configuration;
  scenario::TakeLiveJobs(inputs_.models, parts, with);
  setup.configuration = engine::Share(std::move(with));
  ASSIGN_OR_RETURN(controller_, live::Controller::Open(
                                    {.engine = std::move(setup),
                                     .live = {.heartbeat = kNever, .lease = kNever, .epoch = 1},
                                     .snapshots = {.entries = 0},
                                     .ends_by_rule = ends_by_rule_},
                                    store, *this, now_));
  AddNodes();
  for (TimePoint next = NextTime(); next != kEndOfTime; next = NextTime()) {
    now_ = std::max(now_, next);
    for (JumpingProcesses* processes : jumping_) {
      processes->EndAllBy(now_);
    }
    SubmitDue();
    RETURN_IF_ERROR(Settle());
    RETURN_IF_ERROR(store.DropBlocks(kAllBlocks));
    RETURN_IF_ERROR(AwaitSteps(gauge_, stepping_));
    if (request.on_progress) {
      request.on_progress(next_submit_, order_.size());
    }
  }
  // The controller numbers jobs as they are submitted.
  std::vector<JobId> ids(order_.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    ids[order_[i]] = JobId{i};
  }
  collect(controller_->engine(), ids);
  return controller_->digest();
}

}  // namespace

Result<results::RunResult> RunFastForward(const scenario::Inputs& inputs,
                                          const scenario::RunRequest& request,
                                          const std::optional<SteppedCommand>& command) {
  if (!inputs.cluster.changes.empty()) {
    return InvalidArgument(
        "node failures of a cluster file cannot be played to agents; expected a cluster without");
  }
  // A preset counts work and ends in its own way, which no trainer knows; so did the published
  // ElasticFlow when it ran live.
  const bool of_preset = !request.names.preset.empty() && request.names.preset != "sound";
  return scenario::RunScenario(inputs, request,
                               [&](const scenario::Assembly& parts, engine::EngineSetup setup,
                                   const scenario::CollectFrom& collect) -> Result<std::string> {
                                 RETURN_IF_ERROR(scenario::CheckNamesGpus(parts));
                                 return FastForward(inputs, command, of_preset || command)
                                     .Run(request, parts, std::move(setup), collect);
                               });
}

}  // namespace trainyard::daemon
