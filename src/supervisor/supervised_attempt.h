// SPDX-License-Identifier: Apache-2.0
// The agent's view of an attempt that has a supervisor: started, connected to, lost and found.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/attempt.h"
#include "supervisor/launch/launcher_calls.h"
#include "supervisor/process_table.h"
#include "supervisor/unix_socket.h"

namespace trainyard::supervisor {

class SupervisedAttempt final : public Attempt {
 public:
  struct Options {
    std::string program;  // has the command `supervise`
    // A supervisor that holds the attempt for so much longer than it may is killed, and with it
    // its workers.
    Clock::duration patience = std::chrono::seconds(30);
    LauncherCalls launcher = LauncherCalls({});
  };

  // A new one, whose folder is there.
  SupervisedAttempt(AttemptFolder folder, Options options, const v1::StartAttempt& start);
  // One that lies on the disk, in whatever state.
  SupervisedAttempt(AttemptFolder found, Options options);
  // One that has no folder, because none could be made.
  SupervisedAttempt(AttemptFolder folder, const Error& why);
  ~SupervisedAttempt() override;

  void Advance(Clock::time_point now) override;
  [[nodiscard]] pollfd Awaited() const override;
  [[nodiscard]] Clock::time_point NextDue() const override;
  void Stop(Clock::time_point now, Clock::time_point end) override;
  void Tune(Clock::time_point now, const v1::TuneAttempt& tune) override;
  void Go(v1::Stage stage) override;
  bool Attach(const v1::AttachOrder& order) override;
  void Signal(int signal) override;

 private:
  enum class Phase : unsigned char {
    kNew,         // to be started
    kLaunching,   // the supervisor does not hold the lock yet
    kConnecting,  // a supervisor may be there, but does not answer
    kConnected,
    kClearing,  // the supervisor is gone without a report; this object holds the lock
    kExited,
  };

  void AdvanceAlone(Clock::time_point now);
  void Launch(Clock::time_point now);
  void AwaitLauncher(Clock::time_point now);
  void Look(Clock::time_point now);
  [[nodiscard]] bool TakeEnd();
  void TakeReports(Clock::time_point now);
  void Lose(Clock::time_point retry);
  void LeaveTurns();
  void LoseSupervisor();
  void SendStop(Clock::time_point now);
  void SendTune();
  [[nodiscard]] Clock::time_point PatienceEnd() const;
  void SetLimits();
  void KillSupervisor();
  [[nodiscard]] bool AwaitEnd(Clock::time_point now);
  void NoteFailedEnd(Clock::time_point now, bool refused);
  void Clear(Clock::time_point now);
  [[nodiscard]] std::optional<std::vector<Process>> LeftProcesses() const;
  [[nodiscard]] bool AreContainersRemoved(Clock::time_point now);
  [[nodiscard]] std::string LastWords() const;
  void End(int exit_code, std::string message, v1::AttemptReport::Cause cause);

  Phase phase_ = Phase::kConnecting;
  Options options_;
  bool has_processes_ = true;
  pid_t starter_ = 0;
  // podman, where containers are left: what runs it, and until when it may.
  bool removal_begun_ = false;
  pid_t removal_ = 0;
  Clock::time_point removal_end_;
  // With which what was to become its supervisor has failed; 0: it has not, or was killed.
  int start_status_ = 0;
  std::optional<Connection> supervisor_;
  std::map<std::uint64_t, std::uint64_t> calls_;  // that it has not answered, with their epochs
  io::Descriptor lock_;
  Clock::time_point due_;
  Clock::duration pause_ = std::chrono::milliseconds(5);
  Clock::duration end_pause_ = std::chrono::seconds(1);  // before the launcher is asked once more
  std::optional<Clock::time_point> stop_end_;
  std::optional<v1::TuneAttempt> tune_;  // the last
  // With a launcher: what it is to start, and its calls that are under way.
  v1::StartAttempt start_;
  pid_t ending_ = 0;
  io::Descriptor end_words_;  // what it says of the end
  int refused_ends_ = 0;
  bool ended_ = false;  // no process of the attempt is left, and none can come
  pid_t limiting_ = 0;
  bool limits_changed_ = false;
};

}  // namespace trainyard::supervisor
