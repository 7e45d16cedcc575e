// SPDX-License-Identifier: Apache-2.0
// What a client gives to a session of a job: standard input, signals and the size of the terminal.
#pragma once

#include <sys/signalfd.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cli/live/client_calls.h"
#include "io/descriptor.h"
#include "rpc/client.h"
#include "trainyard/live.pb.h"

namespace trainyard::cli {

// While it lives the signals are blocked, also in threads that are started from now on, and can be
// read from it.
class BlockedSignals {
 public:
  BlockedSignals(std::initializer_list<int> signals);
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals();

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // 0: none has come.
  [[nodiscard]] int Take() const;
  // The next one that comes within this time; 0: none.
  [[nodiscard]] int Await(std::chrono::milliseconds patience) const;

 private:
  sigset_t before_{};
  io::Descriptor descriptor_;
};

// While it lives what is typed comes as it is typed: the other end has the terminal that echoes and
// knows of Ctrl-C. Nothing where standard input is no terminal.
class RawTerminal {
 public:
  RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

 private:
  std::optional<termios> before_;
};

// The name of a session that nobody guesses: 32 hex digits.
[[nodiscard]] std::string NewSessionName();

// Calls of one session, each repeated until it has arrived. The attempt is that of the session's
// target, or, where that says none, the one that runs.
class SessionInput {
 public:
  struct Options {
    bool reads_input = true;  // standard input goes to the session
    bool terminal = false;    // and so does the size of this terminal
    // What is done about a signal, from the thread of this object. It may call Signal().
    std::function<void(SessionInput& input, int signal)> on_signal{};
  };

  // `target`: job, attempt, rank and session. `signals` must outlive it.
  SessionInput(const ClusterOptions& cluster, v1::AttachRequest target,
               const BlockedSignals& signals, Options options);
  SessionInput(const SessionInput&) = delete;
  SessionInput& operator=(const SessionInput&) = delete;
  ~SessionInput();

  // Passes the signal on to the session. Only from within on_signal.
  void Signal(int signal);

 private:
  void Run();
  [[nodiscard]] bool TakeInput();
  void TakeSignal();
  void Give(v1::AttachRequest call);
  void Tell(v1::AttachRequest call);
  void Address(v1::AttachRequest& call) const;
  [[nodiscard]] bool FindAttempt();
  void LookForRestart();
  [[nodiscard]] bool Pause(int milliseconds);
  void TellSize();

  const ClusterOptions cluster_;
  v1::AttachRequest target_;
  const bool follows_;  // the attempts of the job
  const BlockedSignals& signals_;
  const Options options_;
  const io::Descriptor stop_;
  std::unique_ptr<rpc::ClusterClient> client_;
  std::uint64_t number_ = 0;
  bool input_ended_ = false;
  bool over_ = false;   // the session or the job has ended
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace trainyard::cli
