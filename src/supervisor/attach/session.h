// SPDX-License-Identifier: Apache-2.0
// One process of an attempt with its input and its output in the hands of a client: calls come in,
// and each is answered once. Nothing here ever waits, and what is kept of input and output is
// bounded.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/descriptor.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Output from an offset on, until somebody says that it has arrived.
class OutputBuffer {
 public:
  static constexpr std::size_t kMost = std::size_t{256} << 10;

  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return begin_ + bytes_.size(); }
  [[nodiscard]] bool full() const { return bytes_.size() >= kMost; }
  void Append(std::string_view bytes) { bytes_ += bytes; }
  // What is before has arrived.
  void Drop(std::uint64_t offset);
  // Keeps no more than half of what it may hold, the newest.
  void DropOldest();
  // Some of what comes from there on, or from the beginning of what is left.
  [[nodiscard]] std::string From(std::uint64_t offset) const;

 private:
  std::uint64_t begin_ = 0;
  std::string bytes_;
};

// Both ends of what connects a process with its session: `theirs` are for the process.
struct SessionStreams {
  io::Descriptor input;   // a terminal: both ways
  io::Descriptor output;  // pipes only
  io::Descriptor errors;
  io::Descriptor their_input;
  io::Descriptor their_output;
  io::Descriptor their_errors;
  bool terminal = false;

  // Empty ones: there are no descriptors left, or no terminals.
  [[nodiscard]] static std::optional<SessionStreams> Pipes();
  [[nodiscard]] static std::optional<SessionStreams> InputOnly();
  // 0: of the usual size.
  [[nodiscard]] static std::optional<SessionStreams> Terminal(int rows = 0, int columns = 0);
};

class Session {
 public:
  using Clock = std::chrono::steady_clock;
  using Answers = std::vector<v1::AttachAnswer>;

  // `theirs` of the streams are closed. A log gets a copy of the output, which is then dropped
  // where nobody takes it; without one a process waits when too much of its output has not been
  // taken.
  Session(SessionStreams streams, pid_t pid, io::Descriptor log, Clock::time_point now);

  // What is meant is not that process, but all that were started with this environment variable
  // ("NAME=value"): a process of podman's waits for them.
  void SetMark(std::string mark) { mark_ = std::move(mark); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // A call for this session; answered now or later.
  void Take(const v1::AttachOrder& order, Clock::time_point now);
  // To the process and its group. REQUIRES: it has not ended.
  void Signal(int signal) const;
  // The process has ended.
  void End(int exit_code, Clock::time_point now);
  // Moves what can be moved, and answers what can be answered.
  [[nodiscard]] Answers Serve(Clock::time_point now);
  // Answers all calls: nothing more will come.
  [[nodiscard]] Answers Close();
  void AddAwaited(std::vector<pollfd>& polls) const;
  [[nodiscard]] std::optional<Clock::time_point> NextDue() const;

  [[nodiscard]] bool ended() const { return exit_code_.has_value(); }
  // Nobody has called for so long that nobody will; from then on.
  [[nodiscard]] bool IsForsaken(Clock::time_point now) const { return now >= forsaken_at(); }
  [[nodiscard]] Clock::time_point forsaken_at() const;

 private:
  struct Waiting {
    v1::AttachOrder order;
    Clock::time_point until;
  };

  void Control(const v1::AttachRequest& request) const;
  void Give(const v1::AttachRequest& request);
  void Feed();
  bool Fetch(io::Descriptor& from, OutputBuffer& buffer);
  [[nodiscard]] bool IsComplete(Clock::time_point now) const;
  [[nodiscard]] bool IsDue(const Waiting& call, Clock::time_point now) const;
  [[nodiscard]] v1::AttachAnswer AnswerTo(const Waiting& call, Clock::time_point now) const;
  [[nodiscard]] bool IsOpen(const io::Descriptor& from, const OutputBuffer& buffer) const;

  io::Descriptor input_;
  io::Descriptor output_;
  io::Descriptor errors_;
  bool terminal_;
  pid_t pid_;
  std::string mark_;
  io::Descriptor log_;
  OutputBuffer out_;
  OutputBuffer err_;
  std::string pending_;  // input on its way
  bool input_ends_ = false;
  std::uint64_t taken_ = 0;  // the number of the last call that gave something
  std::optional<int> exit_code_;
  Clock::time_point ended_at_;
  Clock::time_point last_call_;
  std::vector<Waiting> waiting_;
};

}  // namespace trainyard::supervisor
