// SPDX-License-Identifier: Apache-2.0
// What an agent asks of trainyard-launcher, by which it runs jobs as their users without having any
// rights itself (src/launcher, docs/security.md).
#pragma once

#include <sys/types.h>

#include <string>

#include "io/descriptor.h"
#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class LauncherCalls {
 public:
  // `program`: its path. Empty: there is none, and jobs run as the agent's user.
  explicit LauncherCalls(std::string program) : program_(std::move(program)) {}
  [[nodiscard]] bool there() const { return !program_.empty(); }

  // Begins a call. An error number or 0; what comes of it is the exit status of the process, and
  // what `start` says is in the attempt's launcher.log.
  [[nodiscard]] int BeginStart(const AttemptFolder& folder, const v1::StartAttempt& start,
                               pid_t& pid) const;
  // `words`: from which what it says can be read when it has ended, without waiting.
  [[nodiscard]] int BeginEnd(const AttemptFolder& folder, pid_t& pid, io::Descriptor& words) const;
  [[nodiscard]] int BeginLimit(const AttemptFolder& folder, const v1::NodeShare& share,
                               pid_t& pid) const;
  // Both wait for the launcher. No descriptor: there is no log (yet), or it cannot be had.
  [[nodiscard]] io::Descriptor OpenLog(const v1::AttemptId& id, int rank) const;
  void Clear(const AttemptFolder& folder) const;

 private:
  std::string program_;
};

// The other end of OpenLog and Clear: they run as the job's user, in the folder of the log, or that
// of the attempt, which is no longer looked for by its path. Both return an exit status.
[[nodiscard]] int HandOutLog(int rank);
[[nodiscard]] int ClearFolder(const std::string& attempt_folder);

}  // namespace trainyard::supervisor
