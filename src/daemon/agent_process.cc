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
#include "supervisor/attempt_folder.h"
#include "supervisor/descriptor.h"
#include "supervisor/local_processes.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

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

// Tells the operator when the controller cannot be reached, once, and when it can again.
class Contact {
 public:
  explicit Contact(std::string address) : address_(std::move(address)) {}
  void Found() {
    if (told_) {
      std::fprintf(stderr, "trainyard agent: the controller at %s answers\n", address_.c_str());
    }
    told_ = false;
    missing_since_.reset();
  }
  void Lost() { missing_since_ = Clock::now(); }
  // When Look has something to say.
  [[nodiscard]] std::optional<Clock::time_point> due() const {
    return missing_since_ && !told_ ? std::optional(*missing_since_ + kPatience) : std::nullopt;
  }
  void Look() {
    if (const auto at = due(); at && Clock::now() >= *at) {
      told_ = true;
      std::fprintf(stderr, "trainyard agent: no controller answers at %s; trying again\n",
                   address_.c_str());
    }
  }

 private:
  static constexpr std::chrono::seconds kPatience{5};
  std::string address_;
  std::optional<Clock::time_point> missing_since_ = Clock::now();
  bool told_ = false;
};

}  // namespace

Status RunAgent(const AgentOptions& options, Mailbox& mailbox) {
  const Result<Descriptor> lock = HoldState(options.state);
  if (!lock.ok()) {
    return lock.error();
  }
  if (!options.checkpoints.empty()) {
    if (Status status = LinkCheckpoints(options.state, options.checkpoints); !status.ok()) {
      return status;
    }
  }
  const LiveClock clock;
  const v1::Hello hello = Describe(options);
  Agent* agent = nullptr;  // its processes are made first, and speak of it
  const std::unique_ptr<Processes> processes =
      MakeLocalProcesses({.state_folder = options.state, .program = options.program},
                         [&mailbox, &agent] { mailbox.Put([&agent] { agent->OnReports(); }); });
  Contact contact(options.controller);
  std::unique_ptr<AgentStream> stream;
  Agent machine(hello, *processes, [&stream](v1::AgentMessage message) {
    if (stream) {
      stream->Send(std::move(message));
    }
  });
  agent = &machine;
  machine.Begin();
  stream = AttachAgent(options.controller, {.on_connected =
                                                [&] {
                                                  mailbox.Put([&] {
                                                    contact.Found();
                                                    machine.OnConnected(clock.Now());
                                                  });
                                                },
                                            .on_message =
                                                [&](v1::ControllerMessage message) {
                                                  mailbox.Put([&, message = std::move(message)] {
                                                    machine.OnMessage(message, clock.Now());
                                                  });
                                                },
                                            .on_disconnected =
                                                [&] {
                                                  mailbox.Put([&] {
                                                    contact.Lost();
                                                    machine.OnDisconnected();
                                                  });
                                                }});
  std::string refusal;
  while (!mailbox.closed()) {
    std::optional<Clock::time_point> until = contact.due();
    if (const std::optional<TimePoint> timer = machine.next_timer()) {
      until = std::min(until.value_or(Clock::time_point::max()), clock.RealTime(*timer));
    }
    for (const Mailbox::Letter& letter : mailbox.Take(until)) {
      letter();
    }
    machine.OnTime(clock.Now());
    contact.Look();
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
