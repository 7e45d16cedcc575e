// SPDX-License-Identifier: Apache-2.0
// A controller of two nodes that decides as little as one can: the fixture of the tests of
// src/live.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live/controller.h"
#include "profile/execution_model.h"
#include "support/opened_controller.h"

namespace trainyard::live {

// First come, first served.
class FirstCome final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "fifo"; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {Seconds(job.spec->submit)}};
  }
};
// The lowest free GPUs of the first nodes that have any.
class LowestGpus final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "lowest"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    int gpus = demand.gpus;
    Slices slices;
    for (std::size_t i = 0; i < free.cluster().nodes.size() && gpus > 0; ++i) {
      Slice slice{.node = NodeAt(i)};
      for (std::uint64_t bit = 1; bit != 0 && gpus > 0; bit <<= 1U) {
        if ((free.gpus(slice.node) & bit) != 0) {
          slice.gpus |= bit;
          --gpus;
        }
      }
      if (slice.gpus != 0) {
        slices.push_back(slice);
      }
    }
    return gpus == 0 ? std::optional(slices) : std::nullopt;
  }
};

// A controller of two nodes with two GPUs each, and what it says.
class LiveWorldTest : public OpenedController {
 protected:
  LiveWorldTest() { Open(); }

  [[nodiscard]] ControllerSetup SetUpOf() override {
    Cluster cluster;
    cluster.nodes = {{.name = "a", .gpus = 2}, {.name = "b", .gpus = 2}};
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return {.engine = {.configuration = engine::Share({.rules = rules,
                                                       .cluster = cluster,
                                                       .bundle = bundle_,
                                                       .rates = rates_.get(),
                                                       .profiles = profiles_,
                                                       .policy = "fifo",
                                                       .traits = policy_traits_,
                                                       .promises = promises_}),
                       .measured = profile::MeasuredBook()},
            .live = {.heartbeat = std::chrono::seconds(5),
                     .lease = std::chrono::seconds(60),
                     .grace = std::chrono::seconds(10),
                     .margin = std::chrono::seconds(5),
                     .max_live_jobs = most_jobs_,
                     .epoch = 7},
            .snapshots = snapshots_,
            .former_program = former_program_};
  }
  void Hello(std::uint64_t connection, const std::string& node,
             const std::vector<v1::AttemptReport>& attempts = {}, int gpus = 2) {
    Hear(connection, HelloOf(node, attempts, gpus));
  }
  static v1::ClientRequest Submission(int gpus, const std::string& token = "") {
    v1::ClientRequest request;
    v1::SubmitRequest& submit = *request.mutable_submit();
    submit.set_client_token(token);
    submit.mutable_job()->set_gpus(gpus);
    submit.mutable_job()->mutable_launch()->add_command("train");
    return request;
  }
  std::uint64_t Submit(int gpus) {
    const v1::ClientReply reply = Call(Submission(gpus));
    EXPECT_TRUE(reply.has_submit()) << reply.error().message();
    return reply.submit().job();
  }
  v1::JobStatus StatusOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1));
  }
  v1::JobState StateOf(std::uint64_t job) { return StatusOf(job).state(); }
  // The kinds of what a connection has been told since the last call.
  std::vector<v1::ControllerMessage> Heard(std::uint64_t connection) {
    return std::exchange(said_.messages[connection], {});
  }
  std::string KindsHeard(std::uint64_t connection) {
    std::string kinds;
    for (const v1::ControllerMessage& message : Heard(connection)) {
      kinds += message.has_welcome()     ? "welcome "
               : message.has_fetch()     ? "fetch "
               : message.has_start()     ? "start "
               : message.has_stop()      ? "stop "
               : message.has_tune()      ? "tune "
               : message.has_forget()    ? "forget "
               : message.has_heartbeat() ? "heartbeat "
               : message.has_refusal()   ? "refusal "
                                         : "? ";
    }
    return kinds;
  }
  std::string ErrorOf(const v1::ClientRequest& request) { return Call(request).error().message(); }

  FirstCome fifo_;
  LowestGpus lowest_;
  scheduler::Bundle bundle_{.ordering = &fifo_, .placement = &lowest_, .admission = &everyone_};
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  PolicyTraits policy_traits_{};
  const profile::ThroughputTable* profiles_ = nullptr;
  bool promises_ = false;
  std::size_t most_jobs_ = 100'000;
  std::string former_program_{};
};

}  // namespace trainyard::live
