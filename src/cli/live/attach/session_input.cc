// SPDX-License-Identifier: Apache-2.0
#include "cli/live/attach/session_input.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

namespace trainyard::cli {

// ----------------------------------------------------------------------------------------- signals

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    sigaddset(&set, signal);
  }
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = io::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

BlockedSignals::~BlockedSignals() {
  while (Take() != 0) {  // they have been dealt with, or come too late
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int BlockedSignals::Take() const {
  signalfd_siginfo signal{};
  return read(descriptor_.get(), &signal, sizeof(signal)) == sizeof(signal)
             ? static_cast<int>(signal.ssi_signo)
             : 0;
}

int BlockedSignals::Await(std::chrono::milliseconds patience) const {
  pollfd come{.fd = descriptor_.get(), .events = POLLIN};
  return poll(&come, 1, static_cast<int>(patience.count())) > 0 ? Take() : 0;
}

std::string NewSessionName() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 4; ++i) {
    name += fmt::format("{:08x}", random());
  }
  return name;
}

// ---------------------------------------------------------------------------------------- terminal

RawTerminal::RawTerminal() {
  termios now{};
  if (isatty(STDIN_FILENO) == 0 || tcgetattr(STDIN_FILENO, &now) != 0) {
    return;
  }
  before_ = now;
  cfmakeraw(&now);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
}

RawTerminal::~RawTerminal() {
  if (before_) {
    tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
  }
}

// ------------------------------------------------------------------------------------------- calls

SessionInput::SessionInput(const ClusterOptions& cluster, v1::AttachRequest target,
                           const BlockedSignals& signals, Options options)
    : cluster_(cluster),
      target_(std::move(target)),
      follows_(target_.attempt() == 0),
      signals_(signals),
      options_(std::move(options)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      input_ended_(!options_.reads_input),
      thread_([this] { Run(); }) {}

SessionInput::~SessionInput() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

// Signals are taken meanwhile. False: this object is to go.
bool SessionInput::Pause(int milliseconds) {
  std::array<pollfd, 2> polls{
      {{.fd = stop_.get(), .events = POLLIN}, {.fd = signals_.descriptor(), .events = POLLIN}}};
  poll(polls.data(), polls.size(), milliseconds);
  if (polls[1].revents != 0) {
    TakeSignal();
  }
  return polls[0].revents == 0;
}

void SessionInput::Run() {
  constexpr int kRestartLook = 2000;
  Result<std::unique_ptr<rpc::ClusterClient>> client = ConnectTo(cluster_);
  if (!client.ok()) {
    return;
  }
  client_ = std::move(client).value();
  TellSize();
  if (options_.terminal && follows_ && !FindAttempt() && !over_) {
    return;
  }
  while (true) {
    std::array<pollfd, 3> polls{
        {{.fd = stop_.get(), .events = POLLIN},
         {.fd = signals_.descriptor(), .events = POLLIN},
         {.fd = input_ended_ || over_ ? -1 : STDIN_FILENO, .events = POLLIN}}};
    const bool looks =
        follows_ && options_.reads_input && !over_ && (input_ended_ || options_.terminal);
    poll(polls.data(), polls.size(), looks ? kRestartLook : -1);
    if (polls[0].revents != 0) {
      return;
    }
    if (polls[1].revents != 0) {
      TakeSignal();
    }
    if (polls[2].revents != 0 && !TakeInput()) {
      input_ended_ = true;
    }
    if (looks) {
      LookForRestart();
    }
  }
}

// False: there is no more.
bool SessionInput::TakeInput() {
  std::array<char, std::size_t{16} << 10> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
    return true;
  }
  v1::AttachRequest call;
  if (got > 0) {
    call.set_input(bytes.data(), static_cast<std::size_t>(got));
  } else {
    call.set_input_ends(true);
  }
  Give(std::move(call));
  return got > 0;
}

void SessionInput::TakeSignal() {
  while (const int signal = signals_.Take()) {
    if (signal == SIGWINCH) {
      TellSize();
    } else if (options_.on_signal) {
      options_.on_signal(*this, signal);
    }
  }
}

void SessionInput::Signal(int signal) {
  v1::AttachRequest call;
  call.set_signal(signal);
  Tell(std::move(call));
}

void SessionInput::TellSize() {
  winsize size{};
  if (options_.terminal && target_.attempt() != 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_row > 0) {
    v1::AttachRequest call;
    call.set_rows(size.ws_row);
    call.set_columns(size.ws_col);
    Tell(std::move(call));
  }
}

void SessionInput::Address(v1::AttachRequest& call) const {
  call.set_job(target_.job());
  call.set_attempt(target_.attempt());
  call.set_rank(target_.rank());
  call.set_session(target_.session());
}

// Once: it does not matter if it is lost with its session.
void SessionInput::Tell(v1::AttachRequest call) {
  Address(call);
  v1::ClientRequest request;
  *request.mutable_attach() = std::move(call);
  static_cast<void>(client_->Call(request, kTimeout, kPatience).ok());
}

// Input: until it has been taken, the session has ended or this object is to go.
void SessionInput::Give(v1::AttachRequest call) {
  constexpr int kPause = 200;
  while (!over_ && FindAttempt()) {
    Address(call);
    call.set_number(number_ + 1);
    v1::ClientRequest request;
    *request.mutable_attach() = call;
    const Result<v1::ClientReply> reply = client_->Call(request, kTimeout, kPatience);
    if (reply.ok() && reply.value().attach().gone()) {
      over_ = !follows_;
      target_.set_attempt(0);
    } else if (reply.ok() && reply.value().attach().number() > number_) {
      ++number_;
      return;
    }
    if (!Pause(reply.ok() ? 0 : kPause)) {
      return;
    }
  }
}

// Waits for the job to run. False: it has ended, or this object is to go.
bool SessionInput::FindAttempt() {
  constexpr int kPause = 300;
  while (target_.attempt() == 0) {
    const Result<v1::ClientReply> reply =
        client_->Call(JobsCall({target_.job()}, false), kTimeout, kPatience);
    if (reply.ok() && reply.value().jobs().jobs_size() == 1) {
      const v1::JobStatus& job = reply.value().jobs().jobs(0);
      if (live::HasEnded(job.state())) {
        over_ = true;
        return false;
      }
      if (job.state() == v1::RUNNING) {
        target_.set_attempt(job.attempt());
        number_ = 0;
        TellSize();
        return true;
      }
    }
    if (!Pause(kPause)) {
      return false;
    }
  }
  return true;
}

// A new attempt has another terminal, and waits for input, whose end it has not been told.
void SessionInput::LookForRestart() {
  const Result<v1::ClientReply> reply =
      client_->Call(JobsCall({target_.job()}, false), kTimeout, kPatience);
  if (!reply.ok() || reply.value().jobs().jobs_size() != 1) {
    return;
  }
  const v1::JobStatus& job = reply.value().jobs().jobs(0);
  over_ = live::HasEnded(job.state());
  if (job.state() == v1::RUNNING && job.attempt() != target_.attempt()) {
    target_.set_attempt(0);
    if (!input_ended_) {
      static_cast<void>(FindAttempt());
      return;
    }
    v1::AttachRequest call;
    call.set_input_ends(true);
    Give(std::move(call));
  }
}

}  // namespace trainyard::cli
