// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attach/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "supervisor/process_table.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::seconds;

constexpr std::size_t kChunk = std::size_t{32} << 10;        // read at a time
constexpr std::size_t kAnswer = std::size_t{128} << 10;      // of output in an answer
constexpr std::size_t kMostPending = std::size_t{64} << 10;  // of input
constexpr std::size_t kMostInput = std::size_t{16} << 10;    // of one call
constexpr std::size_t kMostCalls = 16;
constexpr seconds kLongestGift(1);  // until input is taken
constexpr seconds kLongestWait(5);  // of a call
constexpr seconds kPatience(60);    // for the next one
constexpr seconds kLateOutput(1);   // of what the process has left behind

bool IsOnlyLater(int error) { return error == EAGAIN || error == EINTR; }

std::optional<std::array<io::Descriptor, 2>> Pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  return std::array<io::Descriptor, 2>{io::Descriptor(ends[0]), io::Descriptor(ends[1])};
}

void SetSize(const io::Descriptor& terminal, int rows, int columns) {
  const winsize size{.ws_row = static_cast<unsigned short>(rows),
                     .ws_col = static_cast<unsigned short>(columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  ioctl(terminal.get(), TIOCSWINSZ, &size);
}

void NeverWait(const io::Descriptor& mine) { fcntl(mine.get(), F_SETFL, O_NONBLOCK); }

}  // namespace

// ----------------------------------------------------------------------------------------- streams

void OutputBuffer::Drop(std::uint64_t offset) {
  if (offset > begin_) {
    const std::uint64_t gone = std::min<std::uint64_t>(offset - begin_, bytes_.size());
    bytes_.erase(0, gone);
    begin_ += gone;
  }
}

void OutputBuffer::DropOldest() { Drop(end() - std::min(bytes_.size(), kMost / 2)); }

std::string OutputBuffer::From(std::uint64_t offset) const {
  const std::uint64_t skip = offset > begin_ ? offset - begin_ : 0;
  return skip >= bytes_.size() ? std::string() : bytes_.substr(skip, kAnswer);
}

std::optional<SessionStreams> SessionStreams::InputOnly() {
  auto input = Pipe();
  if (!input) {
    return std::nullopt;
  }
  SessionStreams made;
  made.their_input = std::move((*input)[0]);
  made.input = std::move((*input)[1]);
  NeverWait(made.input);
  return made;
}

std::optional<SessionStreams> SessionStreams::Pipes() {
  std::optional<SessionStreams> made = InputOnly();
  auto output = Pipe();
  auto errors = Pipe();
  if (!made || !output || !errors) {
    return std::nullopt;
  }
  made->output = std::move((*output)[0]);
  made->their_output = std::move((*output)[1]);
  made->errors = std::move((*errors)[0]);
  made->their_errors = std::move((*errors)[1]);
  NeverWait(made->output);
  NeverWait(made->errors);
  return made;
}

std::optional<SessionStreams> SessionStreams::Terminal(int rows, int columns) {
  constexpr int kRows = 24;
  constexpr int kColumns = 80;
  SessionStreams made;
  made.terminal = true;
  made.input = io::Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 64> name{};
  if (!made.input.open() || grantpt(made.input.get()) != 0 || unlockpt(made.input.get()) != 0 ||
      ptsname_r(made.input.get(), name.data(), name.size()) != 0) {
    return std::nullopt;
  }
  made.their_input = io::Descriptor(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.their_input.open()) {
    return std::nullopt;
  }
  SetSize(made.input, rows > 0 ? rows : kRows, columns > 0 ? columns : kColumns);
  return made;
}

// ------------------------------------------------------------------------------------------- calls

Session::Session(SessionStreams streams, pid_t pid, io::Descriptor log, Clock::time_point now)
    : input_(std::move(streams.input)),
      output_(std::move(streams.output)),
      errors_(std::move(streams.errors)),
      terminal_(streams.terminal),
      pid_(pid),
      log_(std::move(log)),
      last_call_(now) {}

void Session::Take(const v1::AttachOrder& order, Clock::time_point now) {
  last_call_ = now;
  const v1::AttachRequest& request = order.request();
  out_.Drop(request.offset());
  err_.Drop(request.error_offset());
  Control(request);
  Clock::time_point until = now;
  if (request.waits()) {
    until += kLongestWait;
  } else if (request.number() > 0) {
    until += kLongestGift;
  }
  if (waiting_.size() >= kMostCalls) {
    waiting_.front().until = now;  // its client has given it up
  }
  waiting_.push_back({.order = order, .until = until});
}

// Size and signals.
void Session::Control(const v1::AttachRequest& request) const {
  if (terminal_ && request.rows() > 0 && request.columns() > 0) {
    SetSize(input_, request.rows(), request.columns());
  }
  if (request.signal() > 0 && request.signal() < SIGRTMIN && !exit_code_) {
    Signal(request.signal());
  }
}

void Session::Signal(int signal) const {
  if (mark_.empty()) {
    kill(-pid_, signal);  // a group of its own, whose leader has not been waited for
    return;
  }
  for (const Process& process : StartedWith(mark_)) {
    SendSignal(process, signal);
  }
}

// In its turn, and once.
void Session::Give(const v1::AttachRequest& request) {
  if (request.number() != taken_ + 1 || pending_.size() >= kMostPending ||
      request.input().size() > kMostInput) {
    return;
  }
  taken_ = request.number();
  if (!input_ends_) {
    pending_ += request.input();
    if (request.input_ends() && terminal_) {
      constexpr char kEndOfInput = 4;
      pending_ += kEndOfInput;
    }
    input_ends_ = request.input_ends();
  }
}

void Session::End(int exit_code, Clock::time_point now) {
  exit_code_ = exit_code;
  ended_at_ = now;
}

Session::Answers Session::Serve(Clock::time_point now) {
  for (const Waiting& call : waiting_) {
    Give(call.order.request());
  }
  Feed();
  Fetch(terminal_ ? input_ : output_, out_);
  Fetch(errors_, err_);
  Answers answers;
  std::erase_if(waiting_, [&](const Waiting& call) {
    if (!IsDue(call, now)) {
      return false;
    }
    answers.push_back(AnswerTo(call, now));
    return true;
  });
  return answers;
}

Session::Answers Session::Close() {
  Answers answers;
  for (const Waiting& call : std::exchange(waiting_, {})) {
    answers.push_back(AnswerTo(call, ended_at_ + kLateOutput));
    v1::AttachReply& reply = *answers.back().mutable_reply();
    reply.set_gone(!reply.has_exit_code());
  }
  return answers;
}

bool Session::IsDue(const Waiting& call, Clock::time_point now) const {
  const v1::AttachRequest& request = call.order.request();
  const bool more = out_.end() > request.offset() || err_.end() > request.error_offset();
  const bool taken = request.number() > 0 && request.number() <= taken_;
  return now >= call.until || taken || (request.waits() && (more || IsComplete(now)));
}

v1::AttachAnswer Session::AnswerTo(const Waiting& call, Clock::time_point now) const {
  const v1::AttachRequest& request = call.order.request();
  v1::AttachAnswer answer;
  answer.set_call(call.order.call());
  answer.set_epoch(call.order.epoch());
  v1::AttachReply& reply = *answer.mutable_reply();
  reply.set_attempt(call.order.id().attempt());
  reply.set_rank(request.rank());
  reply.set_number(taken_);
  reply.set_offset(std::max(request.offset(), out_.begin()));
  reply.set_error_offset(std::max(request.error_offset(), err_.begin()));
  if (request.waits()) {
    reply.set_output(out_.From(reply.offset()));
    reply.set_error_output(err_.From(reply.error_offset()));
  }
  const bool all = reply.offset() + reply.output().size() >= out_.end() &&
                   reply.error_offset() + reply.error_output().size() >= err_.end();
  if (IsComplete(now) && request.waits() && all) {
    reply.set_exit_code(*exit_code_);
  }
  return answer;
}

// ------------------------------------------------------------------------------------------- bytes

void Session::Feed() {
  while (!pending_.empty() && input_.open()) {
    const ssize_t written = write(input_.get(), pending_.data(), pending_.size());
    if (written < 0 && IsOnlyLater(errno)) {
      return;
    }
    if (written < 0) {
      pending_.clear();  // nobody reads it any more
      break;
    }
    pending_.erase(0, static_cast<std::size_t>(written));
  }
  if (input_ends_ && pending_.empty() && !terminal_) {
    input_.Close();
  }
}

// A log never keeps its process waiting, a client may.
bool Session::IsOpen(const io::Descriptor& from, const OutputBuffer& buffer) const {
  return from.open() && (log_.open() || !buffer.full());
}

// Whether there was anything.
bool Session::Fetch(io::Descriptor& from, OutputBuffer& buffer) {
  std::array<char, kChunk> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  constexpr int kRounds = 16;      // others want to be served, too
  bool any = false;
  for (int round = 0; round < kRounds && IsOpen(from, buffer); ++round) {
    const ssize_t got = read(from.get(), bytes.data(), bytes.size());
    if (got < 0 && IsOnlyLater(errno)) {
      return any;
    }
    if (got <= 0) {  // a terminal that nobody has open fails
      from.Close();
      return any;
    }
    any = true;
    const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
    if (log_.open()) {
      [[maybe_unused]] const ssize_t written = write(log_.get(), text.data(), text.size());
      if (buffer.full()) {
        buffer.DropOldest();
      }
    }
    buffer.Append(text);
  }
  return any;
}

// All of its output is here: what it has left running may hold the other end open.
bool Session::IsComplete(Clock::time_point now) const {
  const bool closed = !output_.open() && !errors_.open() && (!terminal_ || !input_.open());
  return exit_code_ && (closed || now >= ended_at_ + kLateOutput);
}

void Session::AddAwaited(std::vector<pollfd>& polls) const {
  const bool feeds = input_.open() && !pending_.empty();
  const bool reads = terminal_ && IsOpen(input_, out_);
  if (feeds || reads) {
    polls.push_back({.fd = input_.get(),
                     .events = static_cast<short>((feeds ? POLLOUT : 0) | (reads ? POLLIN : 0))});
  }
  if (IsOpen(output_, out_)) {
    polls.push_back({.fd = output_.get(), .events = POLLIN});
  }
  if (IsOpen(errors_, err_)) {
    polls.push_back({.fd = errors_.get(), .events = POLLIN});
  }
}

std::optional<Session::Clock::time_point> Session::NextDue() const {
  std::optional<Clock::time_point> due;
  const auto add = [&due](Clock::time_point at) { due = std::min(due.value_or(at), at); };
  for (const Waiting& call : waiting_) {
    add(call.until);
  }
  if (exit_code_ && !waiting_.empty()) {
    add(ended_at_ + kLateOutput);
  }
  return due;
}

Session::Clock::time_point Session::forsaken_at() const { return last_call_ + kPatience; }

}  // namespace trainyard::supervisor
