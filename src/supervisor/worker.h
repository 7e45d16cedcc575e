// SPDX-License-Identifier: Apache-2.0
// Starting one worker process.
#pragma once

#include <sys/types.h>

#include <string>
#include <variant>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

struct WorkerCommand {
  std::vector<std::string> command;      // looked for along the PATH of `environment`
  std::vector<std::string> environment;  // "NAME=value"
  std::string working_directory;         // empty: that of this process
  std::string log;                       // stdout and stderr are appended to it
  pid_t group = 0;                       // the process group to join; 0: a new one
  mode_t mask = 0;                       // of the files that it makes
  // What it has in place of nothing to read and of the log; -1: those.
  struct Streams {
    int input = -1;
    int output = -1;
    int errors = -1;
    bool own_session = false;  // and so a group of its own
    bool terminal = false;     // the input is its controlling terminal
  } streams{};
};

// As a shell tells it: 127 for a command that is not there, 126 for all else.
inline constexpr int kNotStarted = 126;
inline constexpr int kCommandNotFound = 127;
struct StartFailure {
  int exit_code = 0;
  std::string message;
  v1::AttemptReport::Cause cause = v1::AttemptReport::CAUSE_UNSPECIFIED;
};

// What to say behind the complaint that `word` cannot be run: of a Python script how it can be.
[[nodiscard]] std::string HintForScript(const std::string& word);

// Starts it as a child that gets SIGKILL when this process ends, whatever ends it. Its own children
// do not. REQUIRES: this process has one thread.
[[nodiscard]] std::variant<pid_t, StartFailure> StartWorker(const WorkerCommand& worker);

}  // namespace trainyard::supervisor
