// SPDX-License-Identifier: Apache-2.0
// Signals to the commands of an attempt's containers, their ends, and what is left of these when
// the attempt's processes are gone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// Signals go by podman: it and what has started the command take a signal for their own while the
// container is being started.
class ContainerSignals {
 public:
  // Both must outlive it.
  ContainerSignals(const v1::StartAttempt& start, const AttemptFolder& folder)
      : start_(start), folder_(folder) {}

  // To the container of the worker, which the process `podman` runs. REQUIRES: that is a child of
  // this process, which has one thread.
  void Send(int local_rank, pid_t podman, int signal, const std::vector<std::string>& environment);
  // Takes note of a child that has ended; whether it is one that was to bring a signal. Where it
  // could not, the container has not been started yet: then `podman` gets the signal.
  [[nodiscard]] bool NoteEnd(pid_t child, int exit_code);

 private:
  struct Sent {
    pid_t messenger = 0;
    pid_t podman = 0;  // 0: it has ended
    int signal = 0;
  };

  const v1::StartAttempt& start_;
  const AttemptFolder& folder_;
  std::vector<Sent> under_way_;
};

// The worker whose container has ended with this child, by its number; none: the child has watched
// no container. podman itself takes 20 s to see that while a session is open.
[[nodiscard]] std::optional<int> ContainerWatchedBy(pid_t child, const v1::StartAttempt& start,
                                                    const AttemptFolder& folder);
// Has podman see it. REQUIRES: all sessions in it have ended; this process has one thread.
void CleanUpContainer(int local_rank, const v1::StartAttempt& start, const AttemptFolder& folder,
                      const std::vector<std::string>& environment);

// What was killed cannot have removed its container. Others are gone, and that is found out. Waits
// for podman, for 20 s at most. REQUIRES: this process has one thread.
void RemoveContainers(const v1::StartAttempt& start, const AttemptFolder& folder,
                      const std::vector<std::string>& environment);

}  // namespace trainyard::supervisor
