// SPDX-License-Identifier: Apache-2.0
#include "daemon/agent_process.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/clock.h"
#include "live/agent.h"
#include "rpc/client.h"
#include "supervisor/descriptor.h"
#include "supervisor/local_processes.h"

namespace trainyard {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::int64_t MemoryMib() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / (1 << 20);
}

v1::Hello Describe(const AgentOptions& options) {
  v1::Hello hello;
  hello.set_node(options.node.empty() ? HostName() : options.node);
  hello.set_address(options.address.empty() ? "127.0.0.1" : options.address);
  hello.set_gpus(options.gpus);
  hello.set_gpu_type(options.gpu_type);
  hello.set_cpus(static_cast<int>(std::thread::hardware_concurrency()));
  hello.set_memory_mib(MemoryMib());
  std::random_device random;
  hello.set_start(std::to_string(getpid()) + "-" + std::to_string(random()));
  return hello;
}

// A second agent would not know what the first has started since, and let the controller start it
// again.
Result<Descriptor> HoldState(const std::string& folder) {
  constexpr mode_t kMine = 0600;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // opening tells what is wrong
  Descriptor lock(open((folder + "/agent.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMine));
  if (lock.open() && flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    return lock;
  }
  return Failed(folder + ": " +
                (errno == EWOULDBLOCK
                     ? "another agent has it open; stop that one or choose another folder"
                     : "cannot be written: " + std::generic_category().message(errno)));
}

// Gives notice to all and waits until they have gone. They count as lost: the controller starts
// them again.
void StopAttempts(Processes& processes, Duration grace, const LiveClock& clock) {
  const TimePoint latest = clock.Now() + grace + std::chrono::seconds(5);
  const auto runs = [](const v1::AttemptReport& report) {
    return report.state() != v1::AttemptReport::EXITED;
  };
  std::vector<v1::AttemptReport> reports = processes.Recover();
  for (const v1::AttemptReport& report : reports) {
    processes.Stop(report.id(), grace);
  }
  while (std::any_of(reports.begin(), reports.end(), runs) && clock.Now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reports = processes.Recover();
  }
}

// The shared folder under the name by which the attempts know their own.
Status LinkCheckpoints(const AgentOptions& options) {
  if (options.checkpoints.empty()) {
    return {};
  }
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(options.checkpoints, error);
  const fs::path shared = fs::absolute(options.checkpoints, error);
  const fs::path link = fs::path(options.state) / "checkpoints";
  if (!fs::exists(fs::symlink_status(link, error))) {
    fs::create_directory_symlink(shared, link, error);
  }
  if (!fs::equivalent(link, shared, error)) {
    return Failed(link.string() + ": is not " + shared.string() +
                  "; expected the same --checkpoints as before, or another --state");
  }
  return {};
}

}  // namespace

Status RunAgent(const AgentOptions& options, Mailbox& mailbox) {
  const Result<Descriptor> lock = HoldState(options.state);
  if (!lock.ok()) {
    return lock.error();
  }
  if (Status status = LinkCheckpoints(options); !status.ok()) {
    return status;
  }
  const LiveClock clock;
  const v1::Hello hello = Describe(options);
  Agent* agent = nullptr;  // its processes are made first, and speak of it
  const std::unique_ptr<Processes> processes =
      MakeLocalProcesses({.state_folder = options.state, .program = options.program},
                         [&mailbox, &agent] { mailbox.Put([&agent] { agent->OnReports(); }); });
  std::unique_ptr<AgentStream> stream;
  Agent machine(hello, *processes, [&stream](v1::AgentMessage message) {
    if (stream) {
      stream->Send(std::move(message));
    }
  });
  agent = &machine;
  machine.Begin();
  stream =
      AttachAgent(options.controller,
                  {.on_connected = [&] { mailbox.Put([&] { machine.OnConnected(clock.Now()); }); },
                   .on_message =
                       [&](v1::ControllerMessage message) {
                         mailbox.Put([&, message = std::move(message)] {
                           machine.OnMessage(message, clock.Now());
                         });
                       },
                   .on_disconnected = [&] { mailbox.Put([&] { machine.OnDisconnected(); }); }});
  std::string refusal;
  while (!mailbox.closed()) {
    std::optional<std::chrono::steady_clock::time_point> until;
    if (const std::optional<TimePoint> timer = machine.next_timer()) {
      until = clock.RealTime(*timer);
    }
    for (const Mailbox::Letter& letter : mailbox.Take(until)) {
      letter();
    }
    machine.OnTime(clock.Now());
    if (machine.refusal() != refusal) {
      refusal = machine.refusal();
      std::fprintf(stderr, "trainyard agent: the controller refuses: %s\n", refusal.c_str());
    }
  }
  stream.reset();
  if (options.grace_at_end) {
    StopAttempts(*processes, *options.grace_at_end, clock);
  }
  return {};
}

}  // namespace trainyard
