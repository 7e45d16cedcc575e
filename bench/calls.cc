// SPDX-License-Identifier: Apache-2.0
// calls KIND COUNT: so many calls of one kind to a controller without disk and network that holds a
// thousand waiting jobs. KIND: submit, each a decision of its own, or status, of one job. For
// counts of instructions (budget.py): the difference of two counts is what the calls take.
#include <cstdlib>
#include <memory>
#include <string>

#include "base/check.h"
#include "catalog/catalog.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "store/memory_store.h"

namespace trainyard {
namespace {

constexpr std::size_t kNodes = 100;
constexpr int kJobs = 1000;

class Nowhere final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override {
    CHECK(!reply.has_error());
    ++replies;
  }
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage /*message*/) override {}
  void Close(std::uint64_t /*connection*/) override {}

  int replies = 0;
};

class Calls {
 public:
  Calls() {
    Cluster cluster;
    cluster.nodes.assign(kNodes, NodeSpec{.gpus = 8});
    for (std::size_t i = 0; i < kNodes; ++i) {
      cluster.nodes[i].name = "n" + std::to_string(i);
    }
    live::ControllerSetup setup{.engine = {.configuration = engine::Share(
                                               {.cluster = cluster,
                                                .bundle = {.ordering = policy_.ordering.get(),
                                                           .placement = placement_.placement.get(),
                                                           .admission = admission_.admission.get()},
                                                .rates = rates_.get(),
                                                .policy = "srtf"}),
                                           .measured = profile::MeasuredBook()},
                                .live = {.epoch = 1},
                                .snapshots = {.entries = 0}};
    Result<std::unique_ptr<live::Controller>> opened =
        live::Controller::Open(std::move(setup), store_, output_, TimePoint{});
    CHECK(opened.ok());
    controller_ = std::move(opened).value();
    for (int i = 0; i < kJobs; ++i) {
      Submit();
    }
  }
  void Submit() {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1 << (count_ % 4));
    job.set_duration_s(60 + count_ % 977);
    job.mutable_launch()->add_command("train");
    Call(request);
  }
  void Status() {
    v1::ClientRequest request;
    request.mutable_jobs()->add_jobs(1 + static_cast<std::uint64_t>(count_ * 31 % kJobs));
    Call(request);
  }

 private:
  void Call(const v1::ClientRequest& request) {
    controller_->world().OnCall(static_cast<std::uint64_t>(++count_), request);
    CHECK(controller_->Step(TimePoint(std::chrono::milliseconds(count_))).ok());
    CHECK(output_.replies == count_);
  }

  static Components Make(ComponentKind kind, const std::string& name) {
    return catalog::Make(kind, {.name = name}).value();
  }

  const Components policy_ = Make(ComponentKind::kPolicy, "srtf");
  const Components placement_ = Make(ComponentKind::kPlacement, "consolidated");
  const Components admission_ = Make(ComponentKind::kAdmission, "all");
  const std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  store::MemoryStore store_;
  Nowhere output_;
  std::unique_ptr<live::Controller> controller_;
  int count_ = 0;
};

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 3) {
    return EXIT_FAILURE;
  }
  const bool submits = std::string(argv[1]) == "submit";
  trainyard::Calls calls;
  for (int left = std::atoi(argv[2]); left > 0; --left) {
    submits ? calls.Submit() : calls.Status();
  }
  return EXIT_SUCCESS;
}
