// SPDX-License-Identifier: Apache-2.0
// The production controller and agent, to which anybody says anything.
#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "fuzz/targets.h"
#include "live/agent/agent.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "scenario/assembly.h"
#include "store/memory_store.h"

namespace trainyard::fuzz {
namespace {

constexpr unsigned kAgents = 3;  // connections; the first kinds of records
constexpr unsigned kCall = kAgents;
constexpr unsigned kGone = kAgents + 1;  // the connection of the first byte
constexpr unsigned kTime = kAgents + 2;  // so many seconds pass
constexpr unsigned kKinds = kAgents + 3;
static_assert(kKinds == kControllerKinds);

class Nobody final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override {
    CHECK(reply.kind_case() != v1::ClientReply::KIND_NOT_SET);
  }
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage message) override {
    CHECK(message.kind_case() != v1::ControllerMessage::KIND_NOT_SET);
    started = started || message.has_start();
  }
  void Close(std::uint64_t /*connection*/) override {}

  bool started = false;  // an attempt: an agent has joined and a job was taken
};

struct Setting {
  Cluster cluster;
  scenario::Assembly parts;

  Setting() {
    cluster.nodes = {{.name = "n0", .gpus = 2}, {.name = "n1", .gpus = 2}};
    parts = scenario::AssembleComponents(
                {.policy = "srtf", .placement = "consolidated", .admission = "all"}, cluster, "")
                .value();
    parts.rates = profile::MakeMixedModel(nullptr);
  }
  [[nodiscard]] live::ControllerSetup Setup() const {
    const std::shared_ptr<engine::Configuration> configuration = parts.Configure(cluster);
    configuration->rules = {};
    configuration->overheads = {};
    return {.engine = {.configuration = configuration},
            .live = {.epoch = 1},
            .snapshots = {.entries = 0}};
  }
};

unsigned FirstOf(std::string_view bytes) {
  return bytes.empty() ? 0 : static_cast<unsigned>(static_cast<unsigned char>(bytes.front()));
}

// What comes in, to the controller.
void Say(const Record& record, std::uint64_t& calls, TimePoint& now, live::Controller& controller) {
  const unsigned kind = record.kind % kKinds;
  const auto size = static_cast<int>(record.bytes.size());
  if (kind < kAgents) {
    v1::AgentMessage message;
    if (message.ParseFromArray(record.bytes.data(), size)) {
      controller.world().OnAgent(kind + 1, std::move(message));
    }
  } else if (kind == kCall) {
    v1::ClientRequest request;
    if (request.ParseFromArray(record.bytes.data(), size)) {
      controller.world().OnCall(++calls, std::move(request));
    }
  } else if (kind == kGone) {
    controller.world().OnAgentGone(FirstOf(record.bytes) % kAgents + 1);
  } else {
    now += std::chrono::seconds(FirstOf(record.bytes));
  }
}

// Processes that do as they are told, at once.
class Obedient final : public supervisor::Processes {
 public:
  std::vector<v1::AttemptReport> Recover() override { return {}; }
  void Start(const v1::StartAttempt& start) override {
    Tell(start.id(), v1::AttemptReport::RUNNING);
  }
  void Stop(const v1::AttemptId& id, Duration /*grace*/) override {
    Tell(id, v1::AttemptReport::EXITED);
  }
  void Tune(const v1::TuneAttempt& /*tune*/) override {}
  void SetLease(Duration /*from_now*/, Duration /*grace*/) override {}
  void Forget(const v1::AttemptId& /*id*/) override {}
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& /*id*/, int /*rank*/,
                                std::uint64_t /*offset*/) override {
    return v1::LogsReply();
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

 private:
  void Tell(const v1::AttemptId& id, v1::AttemptReport::State state) {
    v1::AttemptReport& report = reports_.emplace_back();
    *report.mutable_id() = id;
    report.set_state(state);
  }

  std::vector<v1::AttemptReport> reports_;
};

v1::AgentMessage HelloOf(const std::string& node) {
  v1::AgentMessage message;
  message.mutable_hello()->set_protocol(1);
  message.mutable_hello()->set_node(node);
  message.mutable_hello()->set_address("127.0.0.1");
  message.mutable_hello()->set_gpus(2);
  message.mutable_hello()->set_start("1");
  return message;
}

v1::ClientRequest SubmissionOf(int gpus) {
  v1::ClientRequest request;
  v1::JobRequest& job = *request.mutable_submit()->mutable_job();
  job.set_gpus(gpus);
  job.set_duration_s(100);
  job.mutable_launch()->add_command("true");
  job.mutable_launch()->set_working_directory("/");
  request.mutable_submit()->set_client_token("t" + std::to_string(gpus));
  return request;
}

v1::AgentMessage ReportOf(std::uint64_t job, v1::AttemptReport::State state) {
  v1::AgentMessage message;
  message.mutable_attempt()->mutable_id()->set_job(job);
  message.mutable_attempt()->mutable_id()->set_attempt(1);
  message.mutable_attempt()->set_state(state);
  message.mutable_attempt()->set_finished(state == v1::AttemptReport::EXITED);
  message.mutable_attempt()->set_iterations(1);
  v1::Metric& metric = *message.mutable_attempt()->add_metrics();
  metric.set_name("loss");
  metric.set_value(1);
  return message;
}

}  // namespace

// The controller may refuse what it is told; it may not give up, and one that starts again on the
// same journal must be where this one was.
bool RunController(std::string_view bytes) {
  google::protobuf::SetLogHandler(nullptr);  // of bytes that are no message
  static const Setting kSetting;
  store::MemoryStore disk;
  Nobody nobody;
  TimePoint now{};
  std::uint64_t calls = 0;
  std::unique_ptr<live::Controller> controller =
      live::Controller::Open(kSetting.Setup(), disk, nobody, now).value();
  for (const Record& record : RecordsOf(bytes)) {
    Say(record, calls, now, *controller);
    now += std::chrono::milliseconds(1);
    const Status stepped = controller->Step(now);
    if (!stepped.ok()) {
      std::fprintf(stderr, "%s\n", stepped.error().message.c_str());
    }
    CHECK(stepped.ok());
  }
  const Result<std::unique_ptr<live::Controller>> again =
      live::Controller::Open(kSetting.Setup(), disk, nobody, now);
  if (!again.ok()) {
    std::fprintf(stderr, "%s\n", again.error().message.c_str());
  }
  CHECK(again.ok());
  CHECK(again.value()->digest() == controller->digest());
  CHECK(again.value()->StateDigest() == controller->StateDigest());
  return nobody.started;
}

const google::protobuf::Message* ToController(unsigned kind) {
  kind %= kKinds;
  return kind < kAgents
             ? static_cast<const google::protobuf::Message*>(&v1::AgentMessage::default_instance())
         : kind == kCall ? &v1::ClientRequest::default_instance()
                         : nullptr;
}

const google::protobuf::Message* ToAgent(unsigned /*kind*/) {
  return &v1::ControllerMessage::default_instance();
}

bool RunAgent(std::string_view bytes) {
  google::protobuf::SetLogHandler(nullptr);
  Obedient processes;
  live::Agent agent(HelloOf("n0").hello(), processes, [](const v1::AgentMessage& message) {
    CHECK(message.kind_case() != v1::AgentMessage::KIND_NOT_SET);
  });
  TimePoint now{};
  bool understood = false;
  agent.Begin();
  agent.OnConnected(now);
  for (const Record& record : RecordsOf(bytes)) {
    now += std::chrono::seconds(record.kind);
    v1::ControllerMessage message;
    if (message.ParseFromArray(record.bytes.data(), static_cast<int>(record.bytes.size()))) {
      agent.OnMessage(message, now);
      understood = true;
    }
    agent.OnReports();
    agent.OnTime(now);
  }
  agent.OnDisconnected();
  return understood;
}

std::vector<std::string> ControllerSeeds() {
  std::string day;
  AddRecord(0, HelloOf("n0").SerializeAsString(), day);
  AddRecord(1, HelloOf("n1").SerializeAsString(), day);
  for (const int gpus : {1, 2, 4}) {
    AddRecord(kCall, SubmissionOf(gpus).SerializeAsString(), day);
  }
  AddRecord(0, ReportOf(1, v1::AttemptReport::RUNNING).SerializeAsString(), day);
  AddRecord(1, ReportOf(2, v1::AttemptReport::RUNNING).SerializeAsString(), day);
  AddRecord(kTime, std::string(1, '\x0a'), day);
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  AddRecord(0, beat.SerializeAsString(), day);
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  AddRecord(kCall, request.SerializeAsString(), day);
  AddRecord(0, ReportOf(1, v1::AttemptReport::EXITED).SerializeAsString(), day);
  request.mutable_cancel()->set_job(3);
  AddRecord(kCall, request.SerializeAsString(), day);
  request.mutable_drain()->set_node("n1");
  request.mutable_drain()->set_drain(true);
  AddRecord(kCall, request.SerializeAsString(), day);
  request.mutable_jobs()->set_live_only(true);
  AddRecord(kCall, request.SerializeAsString(), day);
  request.mutable_logs()->set_job(1);
  AddRecord(kCall, request.SerializeAsString(), day);
  request.mutable_nodes();
  AddRecord(kCall, request.SerializeAsString(), day);
  AddRecord(kGone, std::string(1, '\0'), day);
  AddRecord(kTime, std::string(1, '\x7f'), day);
  AddRecord(0, HelloOf("n0").SerializeAsString(), day);
  return {day};
}

std::vector<std::string> AgentSeeds() {
  std::string day;
  v1::ControllerMessage message;
  const auto add = [&day, &message] { AddRecord(1, message.SerializeAsString(), day); };
  message.set_epoch(1);
  message.mutable_welcome()->set_heartbeat(1000);
  message.mutable_welcome()->set_lease(10000);
  add();
  message.mutable_fetch()->mutable_id()->set_job(1);
  message.mutable_fetch()->mutable_data_set()->set_name("d");
  add();
  message.mutable_start()->mutable_id()->set_job(1);
  message.mutable_start()->mutable_id()->set_attempt(1);
  message.mutable_start()->add_gpus(0);
  message.mutable_start()->mutable_launch()->add_command("true");
  add();
  message.mutable_tune()->mutable_id()->set_job(1);
  message.mutable_tune()->mutable_id()->set_attempt(1);
  message.mutable_tune()->set_order(2);
  add();
  message.mutable_heartbeat()->set_number(1);
  add();
  message.mutable_read_log()->mutable_id()->set_job(1);
  add();
  message.mutable_stop()->mutable_id()->set_job(1);
  message.mutable_stop()->mutable_id()->set_attempt(1);
  add();
  message.mutable_forget()->mutable_id()->set_job(1);
  message.mutable_forget()->mutable_id()->set_attempt(1);
  add();
  message.mutable_refusal()->set_message("no");
  add();
  return {day};
}

}  // namespace trainyard::fuzz
