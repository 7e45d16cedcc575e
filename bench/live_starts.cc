// SPDX-License-Identifier: Apache-2.0
// A controller with its disk and its network, 200 agents whose trainers take no time, and clients
// that submit one-GPU jobs as fast as they are acknowledged: durable job starts per second.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/clock.h"
#include "daemon/controller_process.h"
#include "live/agent/agent.h"
#include "rpc/client.h"
#include "store/store.h"

namespace trainyard {
namespace {

constexpr int kNodes = 200;
constexpr int kGpus = 8;
constexpr double kWantedStarts = 2000;  // per second

// Trainers that have finished as soon as they are started.
class InstantProcesses final : public supervisor::Processes {
 public:
  std::vector<v1::AttemptReport> Recover() override { return {}; }
  void Start(const v1::StartAttempt& start) override {
    v1::AttemptReport& report = reports_.emplace_back();
    *report.mutable_id() = start.id();
    report.set_state(v1::AttemptReport::EXITED);
    report.set_finished(true);
  }
  void Stop(const v1::AttemptId& /*attempt*/, Duration /*grace*/) override {}
  void Tune(const v1::TuneAttempt& /*tune*/) override {}
  void SetLease(Duration /*from_now*/, Duration /*grace*/) override {}
  void Forget(const v1::AttemptId& /*attempt*/) override {}
  Result<v1::LogsReply> ReadLog(const v1::AttemptId& /*attempt*/, int /*rank*/,
                                std::uint64_t /*offset*/) override {
    return v1::LogsReply();
  }
  std::vector<v1::AttemptReport> TakeReports() override { return std::exchange(reports_, {}); }

 private:
  std::vector<v1::AttemptReport> reports_;
};

// An agent driven by its stream's thread alone.
class BenchAgent {
 public:
  BenchAgent(int number, const std::string& address) {
    v1::Hello hello;
    hello.set_node("n" + std::to_string(number));
    hello.set_address("127.0.0.1");
    hello.set_gpus(kGpus);
    hello.set_start("bench");
    agent_ = std::make_unique<live::Agent>(
        std::move(hello), processes_,
        [this](v1::AgentMessage message) { stream_->Send(std::move(message)); });
    stream_ = rpc::AttachAgent(address, {.on_connected =
                                             [this] {
                                               complete_.wait(false);
                                               agent_->OnConnected(clock_.Now());
                                             },
                                         .on_message =
                                             [this](const v1::ControllerMessage& message) {
                                               agent_->OnMessage(message, clock_.Now());
                                               agent_->OnTime(clock_.Now());
                                             },
                                         .on_disconnected = [this] { agent_->OnDisconnected(); }});
    complete_ = true;
    complete_.notify_all();
  }
  void End() { stream_.reset(); }

 private:
  daemon::LiveClock clock_;
  InstantProcesses processes_;
  std::unique_ptr<live::Agent> agent_;
  std::unique_ptr<rpc::AgentStream> stream_;
  std::atomic<bool> complete_ = false;  // the stream's thread may be faster than its maker
};

v1::ClientReply Ask(rpc::ClusterClient& client, const v1::ClientRequest& request) {
  Result<v1::ClientReply> reply = client.Call(request, std::chrono::seconds(60));
  if (!reply.ok()) {
    fmt::print(stderr, "{}\n", reply.error().message);
    std::exit(1);
  }
  return std::move(reply).value();
}

void AwaitNodes(rpc::ClusterClient& client) {
  v1::ClientRequest request;
  request.mutable_nodes();
  const auto all_up = [&] {
    const v1::ClientReply reply = Ask(client, request);
    return std::all_of(reply.nodes().nodes().begin(), reply.nodes().nodes().end(),
                       [](const v1::NodeStatus& node) { return node.up(); });
  };
  while (!all_up()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void AwaitEnd(rpc::ClusterClient& client) {
  v1::ClientRequest request;
  request.mutable_jobs()->set_live_only(true);
  while (Ask(client, request).jobs().jobs_size() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Milliseconds from each submission to its acknowledgement.
std::vector<double> SubmitAll(const std::string& address, int clients, int jobs) {
  std::atomic<int> left = jobs;
  std::mutex mutex;
  std::vector<double> latencies;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(clients));
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      const std::unique_ptr<rpc::ClusterClient> client = rpc::Connect(address);
      v1::ClientRequest request;
      request.mutable_submit()->mutable_job()->set_gpus(1);
      request.mutable_submit()->mutable_job()->mutable_launch()->add_command("train");
      std::vector<double> own;
      while (left.fetch_sub(1) > 0) {
        const auto before = std::chrono::steady_clock::now();
        Ask(*client, request);
        own.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
                .count());
      }
      const std::lock_guard lock(mutex);
      latencies.insert(latencies.end(), own.begin(), own.end());
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

double Run(int clients, int jobs) {
  const std::string state =
      (std::filesystem::temp_directory_path() / fmt::format("trainyard-bench-{}", getpid()))
          .string();
  std::filesystem::remove_all(state);
  daemon::Mailbox mailbox;
  std::atomic<int> port = 0;
  std::thread controller([&] {
    const Status status =
        daemon::RunController({.state = state,
                               .listen = "127.0.0.1:0",
                               .cluster = fmt::format("{}x{}", kNodes, kGpus),
                               .names = {.policy = "fifo"}},
                              mailbox, [&port](const daemon::Ready& ready) { port = ready.port; });
    if (!status.ok()) {
      fmt::print(stderr, "{}\n", status.error().message);
      std::exit(1);
    }
  });
  while (port == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const std::string address = fmt::format("127.0.0.1:{}", port.load());
  std::vector<std::unique_ptr<BenchAgent>> agents;
  agents.reserve(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    agents.push_back(std::make_unique<BenchAgent>(i, address));
  }
  const std::unique_ptr<rpc::ClusterClient> client = rpc::Connect(address);
  AwaitNodes(*client);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double> latencies = SubmitAll(address, clients, jobs);
  AwaitEnd(*client);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const std::unique_ptr<BenchAgent>& agent : agents) {
    agent->End();
  }
  mailbox.Close();
  controller.join();
  std::size_t blocks = 0;
  if (const auto store = store::OpenStore(state); store.ok()) {
    static_cast<void>(store.value()
                          ->Read(1,
                                 [&blocks](std::string_view /*block*/) {
                                   ++blocks;
                                   return Status();
                                 })
                          .ok());
  }
  std::filesystem::remove_all(state);
  const double starts = jobs / seconds;
  fmt::print(
      "{:>4} clients: {:6.0f} durable starts/s, submit p50 {:.1f} ms, p99 {:.1f} ms, {:.1f} "
      "jobs in a group\n",
      clients, starts, latencies[latencies.size() / 2], latencies[latencies.size() * 99 / 100],
      static_cast<double>(jobs) / static_cast<double>(blocks));
  return starts;
}

}  // namespace
}  // namespace trainyard

int main() {
  double best = 0;
  for (const int clients : {1, 16, 64, 256}) {
    best = std::max(best, trainyard::Run(clients, clients == 1 ? 500 : 8000));
  }
  const bool good = best >= trainyard::kWantedStarts;
  fmt::print("best {:.0f} starts/s; wanted at least {:.0f}: {}\n", best, trainyard::kWantedStarts,
             good ? "good" : "MISSED");
  return good ? 0 : 1;
}
