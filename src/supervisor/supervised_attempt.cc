// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervised_attempt.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

#include "io/file.h"
#include "supervisor/exec_pointers.h"
#include "supervisor/launch/launch_command.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{20};

// Starts the command, looked for along this process' PATH, with no signal blocked or ignored. An
// error number or 0.
int Spawn(const std::vector<std::string>& command, char* const* environment, pid_t& pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::vector<char*> arguments = ExecPointers(command);
  const int error =
      posix_spawnp(&pid, arguments.front(), nullptr, &attributes, arguments.data(), environment);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

SupervisedAttempt::SupervisedAttempt(AttemptFolder folder, Options options,
                                     const v1::StartAttempt& start)
    : Attempt(std::move(folder)), phase_(Phase::kNew), options_(std::move(options)) {
  SetStart(start);
}

SupervisedAttempt::SupervisedAttempt(AttemptFolder found, Options options)
    : Attempt(std::move(found)), options_(std::move(options)) {
  if (const Result<v1::StartAttempt> start = folder().ReadStart(); start.ok()) {
    SetStart(start.value());
    has_processes_ = start.value().launch().workers() != v1::LaunchSpec::EMULATED;
  }
  if (const std::optional<v1::AttemptReport> last = folder().ReadReport(); last.has_value()) {
    SetCheckpoint(last->checkpointed_iterations());
  }
}

SupervisedAttempt::SupervisedAttempt(AttemptFolder folder, const Error& why)
    : Attempt(std::move(folder)), phase_(Phase::kExited) {
  v1::AttemptReport report = this->report();
  report.set_state(v1::AttemptReport::EXITED);
  report.set_exit_code(kNotStarted);
  report.set_cause(v1::AttemptReport::DISK);
  report.set_message(why.message);
  Tell(std::move(report));
}

SupervisedAttempt::~SupervisedAttempt() {
  for (const pid_t child : {launcher_, removal_}) {
    if (child > 0) {
      waitpid(child, nullptr, WNOHANG);
    }
  }
}

void SupervisedAttempt::Advance(Clock::time_point now) {
  if (phase_ == Phase::kConnected) {
    TakeReports(now);
  } else if (phase_ != Phase::kExited && now >= due_) {
    AdvanceAlone(now);
  }
  if (now >= PatienceEnd()) {
    KillSupervisor();
  }
}

void SupervisedAttempt::AdvanceAlone(Clock::time_point now) {
  switch (phase_) {
    case Phase::kNew:
      Launch(now);
      break;
    case Phase::kLaunching:
      AwaitLauncher(now);
      break;
    case Phase::kConnecting:
      Look(now);
      break;
    case Phase::kClearing:
      Clear(now);
      break;
    case Phase::kConnected:
    case Phase::kExited:
      break;
  }
}

pollfd SupervisedAttempt::Awaited() const {
  return supervisor_.has_value() ? supervisor_->Awaited() : pollfd{.fd = -1};
}

Attempt::Clock::time_point SupervisedAttempt::NextDue() const {
  if (phase_ == Phase::kExited) {
    return Clock::time_point::max();
  }
  return phase_ == Phase::kConnected ? PatienceEnd() : std::min(due_, PatienceEnd());
}

// --------------------------------------------------------------------------------- its supervisor

void SupervisedAttempt::Launch(Clock::time_point now) {
  if (const int error = Spawn({options_.program, "supervise", folder().path()}, environ, launcher_);
      error != 0) {
    End(kNotStarted,
        fmt::format("'{} supervise': {}", options_.program, std::generic_category().message(error)),
        v1::AttemptReport::SPAWN);
    return;
  }
  phase_ = Phase::kLaunching;
  AwaitLauncher(now);
}

// The launcher ends as soon as the supervisor is up, or has failed to come up.
void SupervisedAttempt::AwaitLauncher(Clock::time_point now) {
  int status = 0;
  if (waitpid(launcher_, &status, WNOHANG) == 0) {
    due_ = now + milliseconds(2);
    return;
  }
  launcher_ = 0;
  never_up_ = status != 0;
  Look(now);
}

// Finds out the state of the attempt from what its supervisor has left or still holds.
void SupervisedAttempt::Look(Clock::time_point now) {
  if (TakeEnd()) {
    return;
  }
  if (io::Descriptor socket = ConnectIn(folder().path(), "control.sock"); socket.open()) {
    supervisor_.emplace(std::move(socket));
    phase_ = Phase::kConnected;
    SendTune();
    SendStop(now);
    return;
  }
  std::optional<io::Descriptor> lock = folder().TryLock();
  if (!lock.has_value() && folder().Exists()) {
    Lose(now + kRetry);
    return;
  }
  if (!TakeEnd()) {  // it may have come before the lock was free
    lock_ = std::move(lock).value_or(io::Descriptor());
    phase_ = Phase::kClearing;
    Clear(now);
  }
}

bool SupervisedAttempt::TakeEnd() {
  std::optional<v1::AttemptReport> last = folder().ReadReport();
  if (!last.has_value() || last->state() != v1::AttemptReport::EXITED) {
    return false;
  }
  phase_ = Phase::kExited;
  Tell(std::move(*last));
  return true;
}

void SupervisedAttempt::TakeReports(Clock::time_point now) {
  const bool open = supervisor_->Transfer();
  while (true) {
    v1::AttemptReport report;
    const Taken taken = TakeMessage(supervisor_->received(), report);
    if (taken == Taken::kMalformed) {
      Lose(now + std::chrono::seconds(1));
      return;
    }
    if (taken == Taken::kNone) {
      break;
    }
    if (report.has_turn()) {
      Want(report.turn());
    } else {
      Tell(std::move(report));
    }
  }
  if (!open) {
    supervisor_.reset();
    LeaveTurns();
    Look(now);
  }
}

// Its supervisor lets the workers go on without an agent.
void SupervisedAttempt::LeaveTurns() {
  v1::StageTurn turn;
  turn.set_kind(v1::StageTurn::LEAVES);
  Want(turn);
}

void SupervisedAttempt::Go(v1::Stage stage) {
  if (supervisor_.has_value()) {
    v1::SupervisorOrder order;
    order.set_go(stage);
    supervisor_->Send(Framed(order));
  }
}

void SupervisedAttempt::Lose(Clock::time_point retry) {
  LeaveTurns();
  supervisor_.reset();
  phase_ = Phase::kConnecting;
  due_ = retry;
}

void SupervisedAttempt::Stop(Clock::time_point now, Clock::time_point end) {
  stop_end_ = std::min(stop_end_.value_or(end), end);
  SendStop(now);
}

void SupervisedAttempt::SendStop(Clock::time_point now) {
  if (!supervisor_.has_value() || !stop_end_.has_value()) {
    return;  // sent on connecting
  }
  const auto left = std::chrono::ceil<milliseconds>(*stop_end_ - now);
  v1::SupervisorOrder order;
  v1::StopAttempt& stop = *order.mutable_stop();
  *stop.mutable_id() = folder().id();
  stop.set_grace(std::max<std::int64_t>(0, left.count()));
  supervisor_->Send(Framed(order));
}

void SupervisedAttempt::Tune(Clock::time_point /*now*/, const v1::TuneAttempt& tune) {
  tune_ = tune;
  SendTune();
}

void SupervisedAttempt::SendTune() {
  if (supervisor_.has_value() && tune_.has_value()) {
    v1::SupervisorOrder order;
    *order.mutable_tune() = *tune_;
    supervisor_->Send(Framed(order));
  }
}

// ------------------------------------------------------------------------ without its supervisor

Attempt::Clock::time_point SupervisedAttempt::PatienceEnd() const {
  const bool supervised = phase_ == Phase::kConnected || phase_ == Phase::kConnecting;
  return supervised && stop_end_.has_value() ? *stop_end_ + options_.patience
                                             : Clock::time_point::max();
}

// Its workers get SIGKILL by this; other processes of the attempt are found when its lock is free.
void SupervisedAttempt::KillSupervisor() {
  if (const std::optional<ProcessGroup> group = folder().ReadGroup(); group.has_value()) {
    if (const std::optional<Process> supervisor = SessionLeaderOf(*group); supervisor.has_value()) {
      SendSignal(*supervisor, SIGKILL);
    }
  }
  stop_end_.reset();
}

void SupervisedAttempt::Clear(Clock::time_point now) {
  const std::optional<std::vector<Process>> left = LeftProcesses();
  if (left.has_value() && left->empty()) {
    if (!AreContainersRemoved(now)) {
      due_ = now + kRetry;
    } else if (never_up_) {
      End(kNotStarted, "no supervisor could be started" + LastWords(), v1::AttemptReport::SPAWN);
    } else {
      End(kKilled, "its supervisor is gone", v1::AttemptReport::SUPERVISOR_LOST);
    }
    return;
  }
  for (const Process& process : left.value_or(std::vector<Process>())) {
    SendSignal(process, SIGKILL);
  }
  constexpr Clock::duration kLongest = std::chrono::seconds(1);
  due_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongest);
}

// What the supervisor does where it lives (Supervisor::RemoveContainers).
bool SupervisedAttempt::AreContainersRemoved(Clock::time_point now) {
  if (!removal_begun_) {
    removal_begun_ = true;
    removal_end_ = now + std::chrono::seconds(20);
    const Result<v1::StartAttempt> start = folder().ReadStart();
    const std::vector<std::string> command =
        start.ok() ? RemovalCommand(start.value(), folder()) : std::vector<std::string>();
    if (!command.empty()) {
      std::vector<std::string> environment = ProcessEnvironment(start.value(), 0, folder(), "");
      std::erase(environment, folder().Mark());  // it is not one of those that are left
      if (Spawn(command, ExecPointers(environment).data(), removal_) != 0) {
        removal_ = 0;
      }
    }
  }
  if (removal_ > 0 && waitpid(removal_, nullptr, WNOHANG) == 0) {
    if (now > removal_end_) {
      kill(removal_, SIGKILL);
    }
    return false;
  }
  removal_ = 0;
  return true;
}

// None: it cannot be found out.
std::optional<std::vector<Process>> SupervisedAttempt::LeftProcesses() const {
  if (!has_processes_) {
    return std::vector<Process>();
  }
  if (!FindProcess(getpid()).has_value()) {
    return std::nullopt;  // no descriptors left, say
  }
  std::vector<Process> left = StartedWith(folder().Mark());
  if (const std::optional<ProcessGroup> group = folder().ReadGroup(); group.has_value()) {
    const std::vector<Process> members = MembersOf(*group);
    left.insert(left.end(), members.begin(), members.end());
  }
  return left;
}

// The last line of a supervisor that has failed to come up: ": WHY"; empty if it left none.
std::string SupervisedAttempt::LastWords() const {
  const Result<std::string> log = io::ReadBytes(folder().PathOf("supervisor.log"));
  if (!log.ok() || log.value().empty()) {
    return {};
  }
  const std::string text = log.value().substr(0, log.value().find_last_not_of('\n') + 1);
  const std::size_t begin = text.rfind('\n') + 1;  // 0: there is one line
  return ": " + text.substr(begin);
}

void SupervisedAttempt::End(int exit_code, std::string message, v1::AttemptReport::Cause cause) {
  v1::AttemptReport report = this->report();
  report.set_lost(cause == v1::AttemptReport::SUPERVISOR_LOST);
  report.set_cause(cause);
  report.set_exit_code(exit_code);
  report.set_message(std::move(message));
  phase_ = Phase::kExited;
  Exit(std::move(report));
  lock_.Close();  // only now may a late supervisor look at the report
}

}  // namespace trainyard::supervisor
