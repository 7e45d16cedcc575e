// SPDX-License-Identifier: Apache-2.0
// For tests: a controller that measures the jobs of one pretended node, by their reports from the
// wire on.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/opened_controller.h"

namespace trainyard::live {

// One node, of 8 GPUs and 12 cores, whose agent is the test. A derived fixture sets the parts and
// calls Open().
class MeasuredController : public OpenedController {
 protected:
  struct Parts {
    const Policy* policy = nullptr;
    const ExecutionModel* rates = nullptr;
    const profile::ThroughputTable* profiles = nullptr;
    profile::Corrector corrector{};
    std::function<Status(JobSpec&)> bind{};
  };

  MeasuredController() { snapshots_.entries = 7; }

  [[nodiscard]] ControllerSetup SetUpOf() override {
    const Cluster cluster{
        .name = "c",
        .nodes = {{.name = "a", .gpus = 8, .gpu_type = "A100", .capacity = {.milli_cpus = 12000}}}};
    profile::OverheadTable costs;
    costs.fallback = {.start = std::chrono::seconds(1),
                      .restart = std::chrono::seconds(1),
                      .resize = std::chrono::seconds(1),
                      .migrate = std::chrono::seconds(1)};
    return {.engine = {.configuration = engine::Share(
                           {.cluster = cluster,
                            .bundle = {.policy = parts_.policy, .admission = &everyone_},
                            .rates = parts_.rates,
                            .overheads = profile::OverheadModel(costs),
                            .profiles = parts_.profiles,
                            .bind = parts_.bind,
                            .corrector = parts_.corrector,
                            .policy = std::string(parts_.policy->name()),
                            .traits = parts_.policy->traits()}),
                       .measured = known_},
            .live = {.epoch = 1},
            .snapshots = snapshots_};
  }
  void Hello(const std::vector<v1::AttemptReport>& attempts = {}) {
    v1::AgentMessage message = HelloOf("a", attempts, 8);
    message.mutable_hello()->set_gpu_type("A100");
    Hear(++connection_, message);
  }
  std::uint64_t Submit(const std::string& model = "m") {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_model(model);
    job.set_batch_size(32);
    job.set_iterations(1e6);
    job.mutable_launch()->add_command("train");
    const v1::ClientReply reply = Call(request);
    EXPECT_TRUE(reply.has_submit()) << reply.error().message();
    return reply.submit().job();
  }
  static v1::AttemptReport Running(std::uint64_t job, std::uint32_t attempt) {
    return Report(job, attempt, v1::AttemptReport::RUNNING);
  }
  // The orders of a kind to the agent, oldest first.
  template <class Order>
  std::vector<Order> Told(bool (v1::ControllerMessage::*has)() const,
                          const Order& (v1::ControllerMessage::*get)() const) {
    std::vector<Order> orders;
    for (const auto& [connection, messages] : said_.messages) {
      for (const v1::ControllerMessage& message : messages) {
        if ((message.*has)()) {
          orders.push_back((message.*get)());
        }
      }
    }
    return orders;
  }
  std::vector<v1::StartAttempt> Starts() {
    return Told(&v1::ControllerMessage::has_start, &v1::ControllerMessage::start);
  }
  std::size_t Stops() {
    return Told(&v1::ControllerMessage::has_stop, &v1::ControllerMessage::stop).size();
  }
  v1::ProfilesReply Profiles() {
    v1::ClientRequest request;
    request.mutable_profiles();
    return Call(request).profiles();
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
  std::optional<profile::MeasuredBook> known_ = profile::MeasuredBook();
  std::uint64_t connection_ = 0;
};

}  // namespace trainyard::live
