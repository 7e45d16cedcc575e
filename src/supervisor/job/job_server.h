// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of the job protocol.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/job/job_protocol.h"
#include "supervisor/job/stage_desk.h"
#include "supervisor/unix_socket.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// What the job has said of itself.
struct Training {
  using Clock = std::chrono::steady_clock;
  double iterations = 0;
  std::optional<Clock::time_point> first_progress;  // when it told of iterations, not of a
  std::optional<Clock::time_point> progress;        // checkpoint: first and last
  double checkpointed_iterations = 0;
  bool finished = false;
  bool no_signals = false;
  std::map<std::string, double> metrics;  // at most kMaxMetrics
  std::string note;                       // the last; or what the supervisor has to say
};

class JobServer {
 public:
  using Clock = std::chrono::steady_clock;

  // `share`: what the job has been told at its start.
  JobServer(io::Descriptor socket, double iterations_done, v1::NodeShare share);

  [[nodiscard]] const Training& training() const { return training_; }
  void GiveNotice(Clock::time_point end);
  // Tells the job, if it is another one than before.
  void Tune(const v1::NodeShare& share);
  // What to wait for before calling Serve() again; it never waits itself.
  void AddAwaited(std::vector<pollfd>& polls) const { workers_.AddAwaited(polls); }
  void Serve();
  // The stages of the workers. What comes of StageDesk::TakeTurns is for the caller.
  [[nodiscard]] StageDesk& stages() { return stages_; }
  [[nodiscard]] const StageDesk& stages() const { return stages_; }
  // It is the attempt's turn: workers that wait for it are told.
  void Go();

 private:
  void TakeLines(Connection& worker);
  [[nodiscard]] std::string Answer(std::uint64_t worker, std::string_view line);
  [[nodiscard]] std::string Greet(const JobLine& hello);
  [[nodiscard]] bool TakeMetric(const Metric& metric);
  [[nodiscard]] std::string Refuse(std::string_view line, std::string_view reason);
  [[nodiscard]] std::string StopLineNow() const;

  static constexpr std::size_t kMaxConnections = 64;
  Connections workers_;
  Training training_;
  v1::NodeShare share_;
  StageDesk stages_;
  std::uint64_t workers_seen_ = 0;
  std::uint64_t refused_ = 0;             // lines
  bool is_newer_ = false;                 // the job's version of the protocol
  std::string tune_line_;                 // the last; empty: still as at its start
  std::optional<Clock::time_point> end_;  // of the notice
};

}  // namespace trainyard::supervisor
