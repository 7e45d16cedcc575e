// SPDX-License-Identifier: Apache-2.0
// changes JOBS NODES COUNT: CPU time of so many changes of the policy, each with its effects told
// before, in a controller without disk and network under which so many jobs run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "catalog/catalog.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "store/memory_store.h"

namespace trainyard {
namespace {

constexpr int kGpus = 16;

double CpuSeconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

class Nowhere final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override { CHECK(!reply.has_error()); }
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage /*message*/) override {}
  void Close(std::uint64_t /*connection*/) override {}
};

// One for each policy, by its name.
class ByPolicy final : public engine::ConfigurationSource {
 public:
  explicit ByPolicy(Cluster cluster) : cluster_(std::move(cluster)) {}

  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& present) const override {
    return engine::Share(Of(std::string(note), present.number + 1));
  }
  [[nodiscard]] Result<engine::SharedConfiguration> Make(
      const engine::AskedConfiguration& asked,
      const engine::Configuration& present) const override {
    engine::Configuration made = Of(asked.text, present.number + 1);
    made.changes = "policy " + present.policy + ", now " + asked.text;
    return engine::Share(std::move(made));
  }
  [[nodiscard]] engine::Configuration Of(const std::string& policy, std::uint64_t number) const {
    auto [known, is_new] = policies_.try_emplace(policy);
    if (is_new) {
      known->second = catalog::Make(ComponentKind::kPolicy, {.name = policy}).value();
    }
    return {.number = number,
            .note = policy,
            .cluster = cluster_,
            .bundle = {.ordering = known->second.ordering.get(),
                       .placement = placement_.placement.get(),
                       .admission = admission_.admission.get()},
            .rates = rates_.get(),
            .text = policy,
            .policy = policy};
  }

 private:
  const Cluster cluster_;
  const Components placement_ =
      catalog::Make(ComponentKind::kPlacement, {.name = "consolidated"}).value();
  const Components admission_ = catalog::Make(ComponentKind::kAdmission, {.name = "all"}).value();
  const std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  mutable std::map<std::string, Components> policies_;
};

class Changes {
 public:
  Changes(int jobs, int nodes) : source_(ClusterOf(nodes)) {
    live::ControllerSetup setup{.engine = {.configuration = engine::Share(source_.Of("fifo", 0)),
                                           .measured = profile::MeasuredBook(),
                                           .configurations = &source_},
                                .live = {.lease = std::chrono::hours(10), .epoch = 1},
                                .snapshots = {.entries = 0}};
    Result<std::unique_ptr<live::Controller>> opened =
        live::Controller::Open(std::move(setup), store_, output_, TimePoint{});
    CHECK(opened.ok());
    controller_ = std::move(opened).value();
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(nodes); ++i) {
      v1::AgentMessage message;
      v1::Hello& hello = *message.mutable_hello();
      hello.set_protocol(1);
      hello.set_node("n" + std::to_string(i));
      hello.set_gpus(kGpus);
      hello.set_start("first");
      controller_->world().OnAgent(i + 1, message);
    }
    Step();
    for (int i = 0; i < jobs; ++i) {
      v1::ClientRequest request;
      v1::JobRequest& job = *request.mutable_submit()->mutable_job();
      job.set_gpus(1);
      job.set_duration_s(3600 + i % 977);
      job.mutable_launch()->add_command("train");
      Call(request);
    }
    CHECK(Running() == static_cast<std::size_t>(jobs));
  }

  double Change(const std::string& policy) {
    v1::ClientRequest request;
    request.mutable_configure()->set_text(policy);
    const double begun = CpuSeconds();
    Call(request);
    CHECK(controller_->engine().configuration().policy == policy);
    return CpuSeconds() - begun;
  }
  [[nodiscard]] std::size_t Running() const {
    const auto records = controller_->engine().records();
    return static_cast<std::size_t>(std::count_if(
        records.begin(), records.end(),
        [](const model::JobRecord& job) { return job.phase.get() == model::JobPhase::kRunning; }));
  }

 private:
  static Cluster ClusterOf(int nodes) {
    Cluster cluster;
    cluster.nodes.assign(static_cast<std::size_t>(nodes), NodeSpec{.gpus = kGpus});
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      cluster.nodes[i].name = "n" + std::to_string(i);
    }
    return cluster;
  }
  void Step() { CHECK(controller_->Step(TimePoint(std::chrono::milliseconds(++steps_))).ok()); }
  void Call(const v1::ClientRequest& request) {
    controller_->world().OnCall(static_cast<std::uint64_t>(++calls_), request);
    Step();
  }

  const ByPolicy source_;
  store::MemoryStore store_;
  Nowhere output_;
  std::unique_ptr<live::Controller> controller_;
  int calls_ = 0;
  int steps_ = 0;
};

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "changes JOBS NODES COUNT\n");
    return EXIT_FAILURE;
  }
  trainyard::Changes changes(std::atoi(argv[1]), std::atoi(argv[2]));
  std::vector<double> seconds(static_cast<std::size_t>(std::atoi(argv[3])));
  bool shortest_first = false;
  for (double& one : seconds) {
    shortest_first = !shortest_first;
    one = changes.Change(shortest_first ? "srtf" : "fifo");
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print("{} running jobs: median {:.3f} s, longest {:.3f} s of CPU time\n", changes.Running(),
             seconds[seconds.size() / 2], seconds.back());
  return EXIT_SUCCESS;
}
