// SPDX-License-Identifier: Apache-2.0
// A controller with its disk, one entry of the journal after the other: how long a step takes with
// and without snapshots, how large the file gets, and how long the next controller needs to start.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/try.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "scenario/assembly.h"
#include "store/store.h"

namespace trainyard {
namespace {

constexpr int kNodes = 100;
constexpr int kGpus = 8;
constexpr std::size_t kLiveJobs = 1000;

double MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Agents that start and stop at once what they are told to.
class Agents final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply /*reply*/) override {}
  void Close(std::uint64_t /*connection*/) override {}
  void Send(std::uint64_t connection, v1::ControllerMessage message) override {
    if (message.has_start()) {
      running_[{message.start().id().job(), message.start().id().attempt()}].push_back(connection);
      Report(connection, message.start().id(), v1::AttemptReport::RUNNING);
    } else if (message.has_stop()) {
      running_.erase({message.stop().id().job(), message.stop().id().attempt()});
      Report(connection, message.stop().id(), v1::AttemptReport::EXITED).set_lost(true);
    }
  }
  // One of those that run has done its work.
  bool EndOne(std::mt19937& random) {
    if (running_.empty()) {
      return false;
    }
    const auto one = std::next(
        running_.begin(),
        static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(running_.size(), 20)));
    for (const std::uint64_t connection : one->second) {
      v1::AttemptId id;
      id.set_job(one->first.first);
      id.set_attempt(one->first.second);
      Report(connection, id, v1::AttemptReport::EXITED).set_finished(true);
    }
    running_.erase(one);
    return true;
  }
  void TellAll(live::LiveWorld& world) {
    for (auto& [connection, message] : std::exchange(told_, {})) {
      world.OnAgent(connection, std::move(message));
    }
  }

 private:
  v1::AttemptReport& Report(std::uint64_t connection, const v1::AttemptId& id,
                            v1::AttemptReport::State state) {
    v1::AttemptReport& report =
        *told_.emplace_back(connection, v1::AgentMessage()).second.mutable_attempt();
    *report.mutable_id() = id;
    report.set_state(state);
    return report;
  }
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint64_t>> running_;
  std::vector<std::pair<std::uint64_t, v1::AgentMessage>> told_;
};

live::ControllerSetup SetupOf(const scenario::Assembly& parts, const Cluster& cluster,
                              const live::SnapshotRules& snapshots) {
  return {.engine = {.configuration = parts.Configure(cluster)},
          .live = {.lease = std::chrono::hours(10'000), .epoch = 1},
          .snapshots = snapshots};
}

Status Start(const std::string& what, const live::ControllerSetup& setup, store::Store& store) {
  Agents nobody;
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::unique_ptr<live::Controller> opened,
                   live::Controller::Open(setup, store, nobody, TimePoint{}));
  const double took = MillisecondsSince(begin);
  fmt::print("  start {:<17} {:8.0f} ms: snapshot at entry {}, {} replayed; state {:.16}\n", what,
             took, opened->restart().snapshot, opened->restart().replayed, opened->StateDigest());
  return {};
}

void AddNodes(live::Controller& controller, const Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_node(cluster.nodes[i].name);
    hello.set_gpus(kGpus);
    controller.world().OnAgent(i + 1, message);
  }
}

struct Played {
  std::vector<double> steps;  // milliseconds, ascending
  std::size_t jobs = 0;
};

// Jobs come and go, ten seconds apart.
Result<Played> Play(live::Controller& controller, Agents& agents, std::size_t entries) {
  Played played;
  std::mt19937 random(1);
  TimePoint now{};
  std::size_t ended = 0;
  while (played.steps.size() < entries) {
    now += std::chrono::seconds(10);
    if (played.jobs - ended < kLiveJobs || !agents.EndOne(random)) {
      v1::ClientRequest request;
      v1::JobRequest& job = *request.mutable_submit()->mutable_job();
      request.mutable_submit()->set_client_token("token-" + std::to_string(++played.jobs));
      job.set_gpus(1 << random() % 4);
      job.set_duration_s(static_cast<double>(600 + random() % 36'000));
      job.set_user("user" + std::to_string(random() % 40));
      for (const char* word : {"python3", "train.py", "--model", "resnet50", "--data", "/data"}) {
        job.mutable_launch()->add_command(word);
      }
      controller.world().OnCall(played.jobs, request);
    } else {
      ++ended;
    }
    agents.TellAll(controller.world());
    const auto begin = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(controller.Step(now));
    played.steps.push_back(MillisecondsSince(begin));
  }
  std::sort(played.steps.begin(), played.steps.end());
  return played;
}

Status Run(const std::string& policy, std::size_t entries, const live::SnapshotRules& snapshots,
           const std::string& folder) {
  std::filesystem::remove_all(folder);
  Cluster cluster;
  for (int i = 0; i < kNodes; ++i) {
    cluster.nodes.push_back({.name = "n" + std::to_string(i), .gpus = kGpus});
  }
  ASSIGN_OR_RETURN(
      scenario::Assembly parts,
      scenario::AssembleComponents(
          {.policy = policy, .placement = "consolidated", .admission = "all"}, cluster, ""));
  parts.rates = profile::MakeMixedModel(nullptr);
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::OpenStore(folder));
  Agents agents;
  ASSIGN_OR_RETURN(
      std::unique_ptr<live::Controller> controller,
      live::Controller::Open(SetupOf(parts, cluster, snapshots), *store, agents, TimePoint{}));
  AddNodes(*controller, cluster);
  ASSIGN_OR_RETURN(const Played played, Play(*controller, agents, entries));
  const std::vector<double>& steps = played.steps;
  if (!controller->snapshot_error().empty()) {
    return Failed(controller->snapshot_error());
  }
  double sum = 0;
  for (const double step : steps) {
    sum += step;
  }
  fmt::print(
      "{}, {} entries, {} jobs, {}: steps of {:.2f} ms, p50 {:.2f}, p99.9 {:.1f}, longest "
      "{:.0f}, second {:.0f}; {:.0f} s; {:.0f} MB\n",
      policy, entries, played.jobs,
      snapshots.entries == 0 ? std::string("no snapshots")
                             : fmt::format("snapshots each {} entries", snapshots.entries),
      sum / static_cast<double>(steps.size()), steps[steps.size() / 2],
      steps[steps.size() * 999 / 1000], steps.back(), steps[steps.size() - 2], sum / 1000,
      static_cast<double>(std::filesystem::file_size(folder + "/controller.db")) / 1e6);
  controller.reset();
  RETURN_IF_ERROR(Start("as it is", SetupOf(parts, cluster, snapshots), *store));
  return Start("with the journal", SetupOf(parts, cluster, {.entries = 0}), *store);
}

}  // namespace
}  // namespace trainyard

// restarts [ENTRIES [FOLDER]]
int main(int argc, char** argv) {
  const std::size_t entries = argc > 1 ? std::stoul(argv[1]) : 50'000;
  const std::string folder =
      argc > 2 ? argv[2]
               : (std::filesystem::temp_directory_path() / fmt::format("restarts-{}", getpid()))
                     .string();
  for (const char* policy : {"fifo", "tiresias"}) {
    for (const trainyard::live::SnapshotRules& snapshots :
         {trainyard::live::SnapshotRules{.entries = 0},
          {.entries = std::max<std::size_t>(1, entries / 10) + 7,
          .interval = std::chrono::hours(1'000'000)}}) {
      if (const trainyard::Status status = trainyard::Run(policy, entries, snapshots, folder);
          !status.ok()) {
        fmt::print(stderr, "{}\n", status.error().message);
        return 1;
      }
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
