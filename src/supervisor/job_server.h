// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of the job protocol.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/job_protocol.h"
#include "supervisor/unix_socket.h"

namespace trainyard {

// What the job has said of itself.
struct Training {
  double iterations = 0;
  double checkpointed_iterations = 0;
  bool finished = false;
  bool no_signals = false;
};

class JobServer {
 public:
  using Clock = std::chrono::steady_clock;

  JobServer(Descriptor socket, double iterations_done);

  [[nodiscard]] const Training& training() const { return training_; }
  void GiveNotice(Clock::time_point end);
  // What to wait for before calling Serve() again; it never waits itself.
  void AddAwaited(std::vector<pollfd>& polls) const;
  void Serve();

 private:
  struct Worker {
    Connection connection;
    bool skipping = false;  // the rest of a line that is too long
  };

  bool Serve(Worker& worker);
  void TakeLines(Worker& worker);
  [[nodiscard]] std::string Answer(std::string_view line);
  [[nodiscard]] std::string StopLineNow() const;

  static constexpr std::size_t kMaxConnections = 64;
  Listener listener_;
  Training training_;
  std::vector<Worker> workers_;
  std::optional<Clock::time_point> end_;  // of the notice
};

}  // namespace trainyard
