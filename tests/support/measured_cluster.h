// SPDX-License-Identifier: Apache-2.0
// For tests: a controller that measures the jobs of one pretended node, by their reports from the
// wire on.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "live/controller.h"
#include "support/memory_store.h"

namespace trainyard {

class HeardByCluster final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override { last = std::move(reply); }
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage message) override {
    if (message.has_start()) {
      starts.push_back(message.start());
    }
    if (message.has_tune()) {
      tunes.push_back(message.tune());
    }
    if (message.has_stop()) {
      stops.push_back(message.stop());
    }
  }
  void Close(std::uint64_t /*connection*/) override {}

  v1::ClientReply last;
  std::vector<v1::StartAttempt> starts;
  std::vector<v1::StopAttempt> stops;
  std::vector<v1::TuneAttempt> tunes;
};

class AdmitsEveryone final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "all"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot,
                                           Memory* /*memory*/) const override {
    std::vector<Verdict> verdicts;
    for (const JobId job : snapshot.unjudged) {
      verdicts.push_back({.job = job});
    }
    return verdicts;
  }
};

// A controller with one node, of 8 GPUs and 12 cores, whose agent is the test.
class MeasuredCluster : public testing::Test {
 protected:
  // What it goes by; the pointers must be set before Open.
  struct Parts {
    const Policy* policy = nullptr;
    const ExecutionModel* rates = nullptr;
    const profile::ThroughputTable* profiles = nullptr;
    profile::Corrector corrector{};
    std::function<Status(JobSpec&)> bind{};
  };

  [[nodiscard]] Result<std::unique_ptr<live::Controller>> TryToOpen(store::Store& store,
                                                                    live::LiveOutput& output) {
    const Cluster cluster{
        .name = "c",
        .nodes = {{.name = "a", .gpus = 8, .gpu_type = "A100", .capacity = {.milli_cpus = 12000}}}};
    profile::OverheadTable costs;
    costs.fallback = {.start = std::chrono::seconds(1),
                      .restart = std::chrono::seconds(1),
                      .resize = std::chrono::seconds(1),
                      .migrate = std::chrono::seconds(1)};
    return live::Controller::Open(
        {.engine = {.cluster = cluster,
                    .bundle = {.policy = parts_.policy, .admission = &everyone_},
                    .rates = parts_.rates,
                    .overheads = profile::OverheadModel(costs),
                    .measured = known_,
                    .corrector = parts_.corrector},
         .live = {.policy = std::string(parts_.policy->name()),
                  .epoch = 1,
                  .policy_traits = parts_.policy->traits(),
                  .bind = parts_.bind},
         .profiles = parts_.profiles,
         .snapshots = snapshots_},
        store, output, now_);
  }
  // From the last snapshot, and as from the whole journal.
  void Open() {
    controller_.reset();
    Result<std::unique_ptr<live::Controller>> opened = TryToOpen(store_, heard_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    controller_ = std::move(opened).value();
    MemoryStore whole = store_;
    whole.DropSnapshots();
    HeardByCluster nothing;
    const Result<std::unique_ptr<live::Controller>> replayed = TryToOpen(whole, nothing);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    EXPECT_EQ(replayed.value()->digest(), controller_->digest());
    EXPECT_EQ(replayed.value()->StateDigest(), controller_->StateDigest());
    Step();
  }
  void Step(Duration later = Duration{0}) {
    now_ += later;
    const Status status = controller_->Step(now_);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void Hello(const std::vector<v1::AttemptReport>& attempts = {}) {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_node("a");
    hello.set_address("a.example");
    hello.set_gpus(8);
    hello.set_gpu_type("A100");
    hello.set_start("first");
    for (const v1::AttemptReport& report : attempts) {
      *hello.add_attempts() = report;
    }
    controller_->world().OnAgent(++connection_, message);
    Step();
  }
  std::uint64_t Submit(const std::string& model = "m") {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_model(model);
    job.set_batch_size(32);
    job.set_iterations(1e6);
    job.mutable_launch()->add_command("train");
    controller_->world().OnCall(1, request);
    Step();
    EXPECT_TRUE(heard_.last.has_submit()) << heard_.last.error().message();
    return heard_.last.submit().job();
  }
  static v1::AttemptReport Report(std::uint64_t job, std::uint32_t attempt) {
    v1::AttemptReport report;
    report.mutable_id()->set_job(job);
    report.mutable_id()->set_attempt(attempt);
    report.set_state(v1::AttemptReport::RUNNING);
    return report;
  }
  void Tell(const v1::AttemptReport& report) {
    v1::AgentMessage message;
    *message.mutable_attempt() = report;
    controller_->world().OnAgent(connection_, message);
    Step();
  }
  // The workers begin to advance `after` the grant and go on so for a while.
  void Advance(std::uint64_t job, std::uint32_t attempt, Duration after, double rate,
               double iterations_before = 0) {
    v1::AttemptReport report = Report(job, attempt);
    Step(after);
    Tell(report);
    report.set_first_progress_s(1 / rate);
    for (int second = 1; second <= 40; ++second) {
      Step(std::chrono::seconds(1));
      report.set_progress_s(second);
      report.set_iterations(iterations_before + rate * second);
      Tell(report);
    }
  }
  void End(std::uint64_t job, std::uint32_t attempt) {
    v1::AttemptReport report = Report(job, attempt);
    report.set_state(v1::AttemptReport::EXITED);
    report.set_finished(true);
    Tell(report);
  }
  v1::ProfilesReply Profiles() {
    v1::ClientRequest request;
    request.mutable_profiles();
    controller_->world().OnCall(2, request);
    Step();
    return heard_.last.profiles();
  }
  // The median; 0: none.
  double Measured(const std::string& measure, int gpus) {
    const v1::ProfilesReply profiles = Profiles();
    for (const v1::MeasuredSamples& row : profiles.measured()) {
      if (row.measure() == measure && row.gpus() == gpus) {
        return row.median();
      }
    }
    return 0;
  }

  Parts parts_;
  AdmitsEveryone everyone_;
  std::optional<profile::MeasuredBook> known_ = profile::MeasuredBook();
  live::SnapshotRules snapshots_{.entries = 7};
  MemoryStore store_;
  HeardByCluster heard_;
  TimePoint now_{};
  std::unique_ptr<live::Controller> controller_;
  std::uint64_t connection_ = 0;
};

}  // namespace trainyard
