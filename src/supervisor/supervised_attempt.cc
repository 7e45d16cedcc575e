// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervised_attempt.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "launcher/credential.h"
#include "service/call_error.h"
#include "supervisor/exec_pointers.h"
#include "supervisor/launch/last_line.h"
#include "supervisor/launch/launch_command.h"
#include "supervisor/launch/spawn.h"
#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{20};

// The other end of the socket belongs to this user.
bool IsOf(const io::Descriptor& socket, uid_t user) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user;
}

// Nothing but a socket, and nobody but the folder's owner: in a shared folder others may have put
// something else there.
io::Descriptor ConnectToSupervisor(const AttemptFolder& folder) {
  struct stat owner {};
  struct stat status {};
  if (stat(folder.path().c_str(), &owner) != 0 ||
      lstat(folder.PathOf("control.sock").c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return {};
  }
  io::Descriptor socket = ConnectIn(folder.path(), "control.sock");
  return socket.open() && IsOf(socket, owner.st_uid) ? std::move(socket) : io::Descriptor();
}

// The reason that the launcher gives for its refusal, in one line; the operator reads it with what
// the agent itself says.
std::string RefusalIn(const io::Descriptor& words) {
  constexpr std::string_view kRefused = "refused: ";
  std::array<char, 1024> bytes{};
  const ssize_t got = read(words.get(), bytes.data(), bytes.size());
  const std::string line =
      LastLineOf({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
  fmt::print(stderr, "{}\n", line);
  const std::size_t refused = line.find(kRefused);
  return refused == std::string::npos ? line : line.substr(refused + kRefused.size());
}

}  // namespace

SupervisedAttempt::SupervisedAttempt(AttemptFolder folder, Options options,
                                     const v1::StartAttempt& start)
    : Attempt(std::move(folder)), phase_(Phase::kNew), options_(std::move(options)) {
  SetStart(start);
  start_ = start;
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
  for (const pid_t child : {starter_, removal_, ending_, limiting_}) {
    if (child > 0) {
      waitpid(child, nullptr, WNOHANG);
    }
  }
}

void SupervisedAttempt::Advance(Clock::time_point now) {
  SetLimits();
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
  const int error =
      options_.launcher.there()
          ? options_.launcher.BeginStart(folder(), start_, starter_)
          : Spawn({options_.program, "supervise", folder().path()}, environ, starter_);
  if (error != 0) {
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
  if (waitpid(starter_, &status, WNOHANG) == 0) {
    due_ = now + milliseconds(2);
    return;
  }
  starter_ = 0;
  start_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  Look(now);
}

// Finds out the state of the attempt from what its supervisor has left or still holds.
void SupervisedAttempt::Look(Clock::time_point now) {
  if (TakeEnd()) {
    return;
  }
  if (io::Descriptor socket = ConnectToSupervisor(folder()); socket.open()) {
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
  if (options_.launcher.there() && !ended_) {  // the job's user may have written it
    phase_ = Phase::kClearing;
    return true;
  }
  *last->mutable_gpus() = report().gpus();
  last->clear_unended();
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
    if (report.has_attach()) {
      if (calls_.erase(report.attach().call()) > 0) {
        Answer(std::move(*report.mutable_attach()));
      }
    } else if (report.has_turn()) {
      Want(report.turn());
    } else if (KeyOf(report.id()) == KeyOf(folder().id()) &&
               report.state() != v1::AttemptReport::EXITED) {
      *report.mutable_gpus() = this->report().gpus();  // a supervisor speaks for itself alone
      report.clear_unended();
      Tell(std::move(report));
    }
  }
  if (!open) {
    LoseSupervisor();
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

// What it was asked for it will not answer.
void SupervisedAttempt::LoseSupervisor() {
  supervisor_.reset();
  LeaveTurns();
  for (const auto& [call, epoch] : std::exchange(calls_, {})) {
    v1::AttachAnswer answer;
    answer.set_call(call);
    answer.set_epoch(epoch);
    *answer.mutable_error() =
        service::MessageOf({ErrorCode::kUnavailable, "the attempt's supervisor is gone"});
    Answer(std::move(answer));
  }
}

bool SupervisedAttempt::Attach(const v1::AttachOrder& order) {
  constexpr std::size_t kMostCalls = 1024;
  if (!supervisor_.has_value() || calls_.size() >= kMostCalls) {
    return false;
  }
  calls_[order.call()] = order.epoch();
  v1::SupervisorOrder message;
  *message.mutable_attach() = order;
  supervisor_->Send(Framed(message));
  return true;
}

void SupervisedAttempt::Signal(int signal) {
  if (supervisor_.has_value()) {
    v1::SupervisorOrder order;
    order.set_signal(signal);
    supervisor_->Send(Framed(order));
  }
}

void SupervisedAttempt::Lose(Clock::time_point retry) {
  LoseSupervisor();
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
  limits_changed_ = options_.launcher.there();
  SendTune();
}

// Where a launcher has set limits, they follow the share.
void SupervisedAttempt::SetLimits() {
  if (limiting_ > 0 && waitpid(limiting_, nullptr, WNOHANG) == 0) {
    return;
  }
  limiting_ = 0;
  if (limits_changed_) {
    limits_changed_ = false;
    if (options_.launcher.BeginLimit(folder(), tune_->share(), limiting_) != 0) {
      limiting_ = 0;
    }
  }
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
  stop_end_.reset();
  if (options_.launcher.there()) {
    LoseSupervisor();
    phase_ = Phase::kClearing;
    due_ = {};
    return;
  }
  if (const std::optional<ProcessGroup> group = folder().ReadGroup(); group.has_value()) {
    if (const std::optional<Process> supervisor = SessionLeaderOf(*group); supervisor.has_value()) {
      SendSignal(*supervisor, SIGKILL);
    }
  }
}

// The launcher kills all that is left of it: no process of the attempt is outside of its control
// group, and no other is in it. Whether it is done.
bool SupervisedAttempt::AwaitEnd(Clock::time_point now) {
  if (ended_) {
    return true;
  }
  due_ = now + kRetry;
  if (ending_ == 0) {
    if (options_.launcher.BeginEnd(folder(), ending_, end_words_) != 0) {
      ending_ = 0;
      due_ = now + end_pause_;
    }
    return false;
  }
  int status = 0;
  if (waitpid(ending_, &status, WNOHANG) != 0) {
    ending_ = 0;
    ended_ = status == 0;
    if (ended_) {
      due_ = now;
    } else {
      NoteFailedEnd(now, WIFEXITED(status));
    }
  }
  return ended_;
}

// It is asked again for as long as it takes. The controller hears of it when it is no accident: the
// node is of no use until somebody has looked at it.
void SupervisedAttempt::NoteFailedEnd(Clock::time_point now, bool refused) {
  constexpr Clock::duration kLongest = std::chrono::seconds(30);
  constexpr int kAccidents = 3;
  due_ = now + end_pause_;
  end_pause_ = std::min(end_pause_ * 2, kLongest);
  const std::string why = RefusalIn(end_words_);
  refused_ends_ = refused ? refused_ends_ + 1 : 0;  // a full machine may kill it
  if (refused_ends_ > kAccidents) {
    v1::AttemptReport report = this->report();
    report.set_unended(fmt::format("trainyard-launcher has not ended attempt {} of job {}: {}",
                                   folder().id().attempt(), folder().id().job(), why));
    Tell(std::move(report));
  }
}

void SupervisedAttempt::Clear(Clock::time_point now) {
  if (options_.launcher.there() && (!AwaitEnd(now) || TakeEnd())) {
    return;
  }
  const std::optional<std::vector<Process>> left = LeftProcesses();
  if (left.has_value() && left->empty()) {
    if (!AreContainersRemoved(now)) {
      due_ = now + kRetry;
    } else if (start_status_ != 0) {
      // A user whose jobs may not run is no fault of the node's.
      End(kNotStarted, "no supervisor could be started" + LastWords(),
          start_status_ == launcher::kRefusesUser ? v1::AttemptReport::NO_PROGRAM
                                                  : v1::AttemptReport::SPAWN);
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
  if (!removal_begun_ && !options_.launcher.there()) {
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
  if (!has_processes_ || options_.launcher.there()) {
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
  Result<std::string> log = AttemptFolder::ReadPlain(folder().LauncherLog());
  if (!log.ok() || log.value().empty()) {
    log = AttemptFolder::ReadPlain(folder().PathOf("supervisor.log"));
  }
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
  report.clear_unended();
  phase_ = Phase::kExited;
  Exit(std::move(report));
  lock_.Close();  // only now may a late supervisor look at the report
}

}  // namespace trainyard::supervisor
