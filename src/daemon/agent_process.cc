// SPDX-License-Identifier: Apache-2.0
#include "daemon/agent_process.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"
#include "daemon/clock.h"
#include "daemon/periodic.h"
#include "identity/certificates.h"
#include "identity/secret_file.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "io/find_program.h"
#include "live/agent/agent.h"
#include "rpc/address.h"
#include "rpc/client.h"
#include "rpc/identity_calls.h"
#include "store/folder.h"
#include "supervisor/attempt_folder.h"
#include "supervisor/data/local_data_store.h"
#include "supervisor/data/rsync.h"
#include "supervisor/local_processes.h"

namespace trainyard::daemon {
namespace {

using Clock = std::chrono::steady_clock;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// Empty: it has no name.
std::string UserName() {
  std::array<char, 4096> space{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, space.data(), space.size(), &found);
  return found == nullptr ? std::string() : entry.pw_name;
}

std::int64_t MemoryMib() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / (1 << 20);
}

std::int64_t DataMib(const AgentOptions& options) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  return static_cast<std::int64_t>(options.data_cache / kMib);
}

std::int64_t DataKbps(const AgentOptions& options) {
  constexpr std::uint64_t kKilo = 1000;
  return static_cast<std::int64_t>((options.data_rate + kKilo - 1) / kKilo);
}

v1::Hello Describe(const AgentOptions& options) {
  v1::Hello hello;
  hello.set_node(options.node);
  hello.set_address(options.address.empty() ? "127.0.0.1" : options.address);
  hello.set_gpus(options.gpus);
  hello.set_gpu_type(options.gpu_type);
  hello.set_user(options.launcher.empty() ? UserName() : "");
  hello.set_isolates(!options.launcher.empty());
  hello.set_cpus(static_cast<int>(std::thread::hardware_concurrency()));
  hello.set_memory_mib(MemoryMib());
  hello.mutable_data()->set_cache_mib(DataMib(options));
  hello.mutable_data()->set_rate_kbps(DataKbps(options));
  std::random_device random;
  hello.set_start(std::to_string(getpid()) + "-" + std::to_string(random()));
  return hello;
}

// "job 3", "jobs 3, 5"
std::string JobsText(const std::set<std::uint64_t>& jobs) {
  std::string text = jobs.size() == 1 ? "job" : "jobs";
  for (const std::uint64_t job : jobs) {
    text += (job == *jobs.begin() ? " " : ", ") + std::to_string(job);
  }
  return text;
}

// Gives notice to all attempts and waits until they have exited, or kills them when the user is in
// a hurry. The attempts count as lost: the controller starts their jobs again.
void StopAttempts(supervisor::Processes& processes, const AgentOptions& options,
                  const LiveClock& clock) {
  const Duration grace = *options.grace_at_end;
  const TimePoint latest = clock.Now() + grace + std::chrono::seconds(5);
  std::vector<v1::AttemptReport> left;
  const auto look = [&] {
    left = processes.Recover();
    std::erase_if(left, [](const v1::AttemptReport& report) {
      return report.state() == v1::AttemptReport::EXITED;
    });
  };
  const auto stop = [&](Duration within) {
    for (const v1::AttemptReport& report : left) {
      processes.Stop(report.id(), within);
    }
  };
  look();
  stop(grace);
  if (!left.empty() && options.tell) {
    std::set<std::uint64_t> jobs;
    for (const v1::AttemptReport& report : left) {
      jobs.insert(report.id().job());
    }
    options.tell(fmt::format("{}: waiting up to {} for {} to save and leave; Ctrl-C kills at once",
                             options.node, base::ShortDuration(Seconds(grace)), JobsText(jobs)));
  }
  for (bool killed = false; !left.empty() && clock.Now() < latest; look()) {
    if (!killed && options.hurry != nullptr && *options.hurry) {
      killed = true;
      stop(Duration{0});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Tells the operator when the controller cannot be reached, once, and when it can again.
class ControllerContact {
 public:
  // `announces`: the first time at which it lets this agent in is told, too.
  ControllerContact(std::string address, bool announces)
      : address_(std::move(address)), announces_(announces) {}
  void Found() {
    if (told_) {
      SayAsAgent("the controller at " + address_ + " answers");
    }
    told_ = false;
    refusal_.clear();
    missing_since_.reset();
  }
  void LetIn() {
    if (std::exchange(announces_, false)) {
      SayAsAgent("connected to the controller at " + address_);
    }
  }
  // Told once for each reason.
  void Refused(const std::string& why) {
    if (why != refusal_) {
      refusal_ = why;
      SayAsAgent("the controller at " + address_ + " does not let this agent in: " + why);
    }
  }
  void Lost() { missing_since_ = Clock::now(); }
  // When Look has something to say.
  [[nodiscard]] std::optional<Clock::time_point> due() const {
    return missing_since_ && !told_ ? std::optional(*missing_since_ + kPatience) : std::nullopt;
  }
  void Look() {
    if (const auto at = due(); at && Clock::now() >= *at) {
      told_ = true;
      if (!refusal_.empty()) {
        return;  // one answers
      }
      SayAsAgent("no controller answers at " + address_ + "; trying again");
    }
  }

 private:
  static constexpr std::chrono::seconds kPatience{5};
  std::string address_;
  bool announces_;
  std::optional<Clock::time_point> missing_since_ = Clock::now();
  bool told_ = false;
  std::string refusal_;
};

Status CheckLauncher(const AgentOptions& options) {
  if (access(options.launcher.c_str(), X_OK) != 0) {
    return Failed(fmt::format(
        "--launcher is {}, which cannot be run: {}; expected trainyard-launcher, of owner root and "
        "this user's group, with the mode 4750",
        options.launcher, std::generic_category().message(errno)));
  }
  if (options.data_cache > 0) {
    return InvalidArgument(
        "--launcher and --data-cache do not go together: the copies of data sets are fetched by "
        "the "
        "agent's user, whatever the job's user may read");
  }
  return {};
}

std::string IdentityFolder(const AgentOptions& options) { return options.state + "/identity"; }

// What it is to join with, if it has no certificate or the token is newer, as after a revocation;
// empty: nothing.
Result<std::string> NewToken(const AgentOptions& options) {
  struct stat certificate {};
  struct stat token {};
  const bool has_one =
      stat((IdentityFolder(options) + rpc::kNodeCertificate).c_str(), &certificate) == 0;
  if (options.join_token_file.empty() ||
      (has_one && (stat(options.join_token_file.c_str(), &token) != 0 ||
                   token.st_mtime <= certificate.st_mtime))) {
    return std::string();
  }
  return identity::ReadSecretFile(options.join_token_file);
}

}  // namespace

Status CheckAgent(const AgentOptions& options) {
  constexpr auto kNone = std::string::npos;
  RETURN_IF_ERROR(rpc::ControllerAddress("--controller", options.controller));
  const bool is_host = options.address.find_first_of(" \t/") == kNone &&
                       (options.address.find(':') == kNone ||
                        options.address.find(':') != options.address.rfind(':'));
  if (!is_host) {
    return InvalidArgument(fmt::format(
        "--address is '{}'; expected a host or an IP address without a port", options.address));
  }
  if (!options.checkpoints.empty()) {
    RETURN_IF_ERROR(store::CheckFolder("--checkpoints", options.checkpoints));
  }
  if (options.data_cache > 0 && DataMib(options) == 0) {
    return InvalidArgument(fmt::format(
        "--data-cache is {} bytes; expected 0, or a size of at least 1MB", options.data_cache));
  }
  if (options.data_cache > 0 && io::FindProgram("rsync").empty()) {
    return Failed(
        "--data-cache fetches data sets by rsync, which is not along PATH; expected rsync to be "
        "installed (apt-get install rsync), or no --data-cache");
  }
  RETURN_IF_ERROR(NewToken(options));
  return options.launcher.empty() ? Status() : CheckLauncher(options);
}

namespace {

// Null: it keeps no copies of data sets.
std::unique_ptr<supervisor::DataStore> MakeStore(const AgentOptions& options,
                                                 std::function<void()> on_reports) {
  return options.data_cache == 0
             ? nullptr
             : supervisor::MakeLocalDataStore({.folder = options.state + "/data",
                                               .rsync = io::FindProgram("rsync"),
                                               .rate_kbps = DataKbps(options)},
                                              std::move(on_reports));
}

// No other agent uses its folders while the descriptor is open: a second one would not know what
// the first has started since, and let the controller start it again.
Result<io::Descriptor> HoldFolders(const AgentOptions& options) {
  std::error_code error;  // what cannot be made is found missing
  std::filesystem::create_directories(options.state, error);
  Result<io::Descriptor> lock = store::HoldFolder(options.state, "agent");
  if (lock.ok() && !options.checkpoints.empty()) {
    RETURN_IF_ERROR(supervisor::LinkCheckpoints(options.state, options.checkpoints));
  }
  return lock;
}

// Gets the node its certificate.
Status Join(const AgentOptions& options) {
  ASSIGN_OR_RETURN(const std::string secret, NewToken(options));
  return secret.empty()
             ? Status()
             : rpc::JoinCluster(options.controller, secret, options.node, IdentityFolder(options));
}

// Once a third of its life is left the node's certificate is made anew. The connection that is open
// stays; the next one uses the new one.
void RenewIfDue(const AgentOptions& options, std::string& told) {
  const std::string folder = IdentityFolder(options);
  const Result<std::string> pem = io::ReadBytes(folder + rpc::kNodeCertificate);
  const Result<identity::CertificateFacts> facts =
      pem.ok() ? identity::FactsOf(pem.value()) : Result<identity::CertificateFacts>(pem.error());
  const double now = LiveClock::UnixNow();
  if (!facts.ok() || facts.value().ends - now > (facts.value().ends - facts.value().begins) / 3) {
    return;
  }
  const Status status =
      facts.value().ends > now
          ? rpc::RenewNode(options.controller, folder)
          : Failed(fmt::format("it has ended, and no controller takes it any more; expected "
                               "--join-token-file with the file of a new 'trainyard node token {}'",
                               options.node));
  const std::string why = status.ok() ? "" : status.error().message;
  if (why != told) {
    SayAsAgent("the certificate cannot be renewed: " + (why.empty() ? "now it has been" : why));
  }
  told = why;
}

// The one loop of an agent: whatever has come in since, and what is due.
void ServeAgent(live::Agent& machine, ControllerContact& contact, const LiveClock& clock,
                Mailbox& mailbox) {
  std::string refusal;
  while (!mailbox.closed()) {
    std::optional<Clock::time_point> until = contact.due();
    if (const std::optional<TimePoint> timer = machine.next_timer()) {
      until = std::min(until.value_or(Clock::time_point::max()), clock.RealTime(*timer));
    }
    for (const Mailbox::Task& task : mailbox.Take(until)) {
      task();
    }
    machine.OnTime(clock.Now());
    contact.Look();
    if (machine.next_timer()) {  // there are heartbeats: it has been welcomed
      contact.LetIn();
    }
    if (machine.refusal() != refusal) {
      refusal = machine.refusal();
      SayAsAgent("the controller refuses: " + refusal);
    }
  }
}

}  // namespace

void SayAsAgent(const std::string& line) {
  std::fprintf(stderr, "%s trainyard agent: %s\n", base::UtcNow().c_str(),
               base::Printable(line).c_str());
}

Status RunAgent(const AgentOptions& given, Mailbox& mailbox) {
  RETURN_IF_ERROR(CheckAgent(given));
  RETURN_IF_ERROR(store::CheckFolder("--state", given.state));
  AgentOptions options = given;
  options.controller = rpc::ControllerAddress("--controller", given.controller).value();
  options.node = given.node.empty() ? HostName() : given.node;
  ASSIGN_OR_RETURN(const io::Descriptor lock, HoldFolders(options));
  RETURN_IF_ERROR(Join(options));
  const Periodic renewing(kLookAtCertificates, [&options, told = std::string()]() mutable {
    RenewIfDue(options, told);
  });
  const LiveClock clock;
  const v1::Hello hello = Describe(options);
  live::Agent* agent = nullptr;  // its processes are made first, and speak of it
  const auto on_reports = [&mailbox, &agent] { mailbox.Put([&agent] { agent->OnReports(); }); };
  const std::unique_ptr<supervisor::Processes> processes =
      supervisor::MakeLocalProcesses({.state_folder = options.state,
                                      .program = options.program,
                                      .log_limit = options.log_limit,
                                      .gpu_fault = options.gpu_fault,
                                      .launcher = options.launcher},
                                     on_reports);
  const std::unique_ptr<supervisor::DataStore> data = MakeStore(options, on_reports);
  // Those of `up` are in one program with their controller.
  ControllerContact contact(options.controller, /*announces=*/!options.grace_at_end);
  std::unique_ptr<rpc::AgentStream> stream;
  const auto send = [&stream](v1::AgentMessage message) {
    if (stream) {
      stream->Send(std::move(message));
    }
  };
  live::Agent machine(hello, *processes, send, data.get());
  agent = &machine;
  machine.Begin();
  stream = rpc::AttachAgent(
      options.controller,
      {.on_connected =
           [&] {
             mailbox.Put([&] {
               contact.Found();
               machine.OnConnected(clock.Now());
             });
           },
       .on_message =
           [&](v1::ControllerMessage message) {
             mailbox.Put(
                 [&, message = std::move(message)] { machine.OnMessage(message, clock.Now()); });
           },
       .on_disconnected =
           [&] {
             mailbox.Put([&] {
               contact.Lost();
               machine.OnDisconnected();
             });
           },
       .on_refused =
           [&](const std::string& why) { mailbox.Put([&, why] { contact.Refused(why); }); }},
      {.identity_folder = IdentityFolder(options)});
  ServeAgent(machine, contact, clock, mailbox);
  stream.reset();
  if (options.grace_at_end) {
    StopAttempts(*processes, options, clock);
  }
  return {};
}

}  // namespace trainyard::daemon
