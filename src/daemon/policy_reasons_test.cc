// SPDX-License-Identifier: Apache-2.0
// What jobs that wait are told, under every policy there is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "live/controller.h"
#include "scenario/assembly.h"
#include "scenario/known_models.h"
#include "support/opened_controller.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

using std::chrono::seconds;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kGpus = 4;

class PolicyReasonsTest : public live::OpenedController,
                          public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    cluster_.name = "c";
    cluster_.nodes = {
        {.name = "a", .gpus = kGpus, .capacity = {.milli_cpus = 16'000, .memory_mib = 65'536}},
        {.name = "b", .gpus = kGpus, .capacity = {.milli_cpus = 16'000, .memory_mib = 65'536}}};
    const std::string throughput = folder_.Write("p.csv",
                                                 "model,batch_size,gpus,iterations_per_second\n"
                                                 "m,64,1,10\nm,64,2,19\nm,64,4,36\nm,64,8,60\n");
    for (const std::string& profiles :
         {std::string(), throughput,
          std::string(TRAINYARD_SOURCE_DIR "/data/example_loader/models.csv")}) {
      if (Assemble(profiles)) {
        return Open();
      }
    }
    FAIL() << GetParam() << ": " << why_not_;
  }
  // Whether the policy does with these profiles.
  bool Assemble(const std::string& profiles) {
    Result<scenario::KnownModels> models = scenario::KnownModels::Read(profiles, cluster_);
    if (!models.ok()) {
      why_not_ = models.error().message;
      return false;
    }
    models_ = std::make_unique<scenario::KnownModels>(std::move(models).value());
    scenario::PresetRequest names;
    names.policy = GetParam();
    Result<scenario::Assembly> parts = scenario::AssembleComponents(
        names, cluster_, profiles, models_->loader ? &*models_->loader : nullptr);
    if (!parts.ok()) {
      why_not_ = parts.error().message;
      return false;
    }
    parts_ = std::make_unique<scenario::Assembly>(std::move(parts).value());
    const Status rates = scenario::MakeLiveRates(*models_, cluster_, *parts_);
    why_not_ = rates.ok() ? "" : rates.error().message;
    return rates.ok();
  }
  [[nodiscard]] live::ControllerSetup SetUpOf() override {
    return {.engine = {.configuration = scenario::LiveConfiguration(*models_, *parts_, cluster_)},
            .live = {.lease = std::chrono::hours(1000), .epoch = 1},
            .snapshots = {.entries = 0}};
  }
  // Empty: it has been taken.
  std::string Submit(int gpus) {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    const bool loads = models_->loader.has_value();
    job.set_gpus(gpus);
    job.set_model(loads ? "cnn16" : "m");
    job.set_batch_size(64);
    job.set_iterations(1e6);
    job.set_deadline_s(1e6);
    job.mutable_launch()->add_command("train");
    job.mutable_launch()->set_priority(0);
    if (!parts_->traits().may.resize && !loads) {
      job.mutable_stages()->set_iteration_s(1);
      for (const double stage : {0.1, 0.8, 0.1}) {
        job.mutable_stages()->add_stages_s(stage);
      }
    }
    if (loads) {
      v1::NodeGrant& devices = *job.add_devices();
      devices.set_node("a");
      for (int gpu = 0; gpu < gpus; ++gpu) {
        devices.add_gpus(gpu);
      }
    }
    return Call(request).error().message();
  }

  const ScratchFolder folder_;
  Cluster cluster_;
  std::unique_ptr<scenario::KnownModels> models_;
  std::unique_ptr<scenario::Assembly> parts_;
  std::string why_not_;
};

bool HasDigit(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char byte) { return std::isdigit(byte) != 0; });
}

TEST_P(PolicyReasonsTest, AJobThatWaitsIsToldWhatFor) {
  Hear(1, HelloOf("a", {}, kGpus));
  Hear(2, HelloOf("b", {}, kGpus));
  constexpr std::size_t kJobs = 24;
  for (std::size_t i = 0; i < kJobs; ++i) {
    ASSERT_EQ(Submit(i % 3 == 0 ? kGpus : 2), "");
    Step(seconds(1));
  }
  int waiting = 0;
  v1::ClientRequest request;
  request.mutable_jobs();
  for (int round = 0; round < 3; ++round) {
    const v1::ClientReply reply = Call(request);
    for (const v1::JobStatus& job : reply.jobs().jobs()) {
      if (job.state() == v1::WAITING) {
        ++waiting;
        EXPECT_TRUE(HasDigit(job.reason())) << job.job() << ": " << job.reason();
        EXPECT_THAT(job.reason(), Not(HasSubstr("at present")));
        EXPECT_THAT(job.reason(), AnyOf(HasSubstr("it asks for "), HasSubstr("behind job "),
                                        HasSubstr("GPUs that it names"), HasSubstr("holds "),
                                        HasSubstr("on one node")));
      }
    }
    Step(seconds(7));
  }
  EXPECT_GT(waiting, 0) << GetParam();
}

std::vector<std::string> AllPolicies() {
  std::vector<std::string> names;
  for (const ComponentEntry& entry : catalog::Catalog(ComponentKind::kPolicy)) {
    names.emplace_back(entry.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyReasonsTest, testing::ValuesIn(AllPolicies()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace trainyard::daemon
