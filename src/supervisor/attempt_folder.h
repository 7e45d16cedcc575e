// SPDX-License-Identifier: Apache-2.0
// What lies on a node's disk, and what of it agent and supervisor tell each other by it:
//
//   STATE/attempts/JOB-ATTEMPT/start           v1::StartAttempt, before anything is started
//                              lock            flock; its holder speaks for the attempt: the
//                                              supervisor while it lives, then the agent
//                              report          v1::AttemptReport: EXITED once no process is left
//                                              and then for good; before that the last checkpoint
//                              pgid            the process group of the workers
//                              control.sock    supervisor <-> agent (control_server.h)
//                              job.sock        supervisor <-> workers (job_protocol.h)
//                              supervisor.log
//                              spare           room for the last report on a full disk
//                              hostfile        for mpirun (launch/launch_command.h); it keeps its
//                                              own files here, too
//   STATE/attempts/JOB-ATTEMPT.start           the agent's own copy of `start`, and
//                  JOB-ATTEMPT.launcher        what the launcher says, where jobs are started by it
//   STATE/logs/JOB-ATTEMPT/rank-RANK.log       stays when the attempt is forgotten
//   STATE/checkpoints/JOB/                     the job's own; all its attempts share it
//   STATE/lease                                how long attempts may run (Lease)
//
// An attempt's folder appears and goes as a whole. A supervisor starts nothing where a report says
// EXITED: so an agent that has found none alive, and has said so, cannot be proved wrong by one
// that was slow to come up.
//
// Where a launcher starts jobs (launch/launcher_calls.h) the attempt's folder belongs to the job's
// user, and the agent reads and writes in it as a member of its group. So nothing in it is followed
// if it is a link, waited for if it is no plain file, or believed where others are concerned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/descriptor.h"
#include "supervisor/process_table.h"
#include "supervisor/processes.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::supervisor {

// Lets the attempts of a state folder keep their checkpoints in `shared`, which is made if need be.
// Error: they have another folder already.
[[nodiscard]] Status LinkCheckpoints(const std::string& state_folder, const std::string& shared);

// Makes the folders of a state folder, such that users whom a launcher starts reach their own
// attempts, and see of others nothing but numbers.
[[nodiscard]] Status OpenForUsers(const std::string& state_folder);

// Whether what is written survives a crash of the machine, which takes the disk its time.
enum class Durability : unsigned char { kSynced, kUnsynced };

class AttemptFolder {
 public:
  AttemptFolder(const std::string& state_folder, v1::AttemptId id,
                Durability durability = Durability::kSynced);
  // The one with this path. Error: its name is not that of an attempt.
  [[nodiscard]] static Result<AttemptFolder> At(const std::string& path);
  // All that are there; what is left of others that were being made or removed goes.
  [[nodiscard]] static std::vector<AttemptFolder> AllIn(const std::string& state_folder);

  [[nodiscard]] const v1::AttemptId& id() const { return id_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& state_folder() const { return state_folder_; }
  [[nodiscard]] std::string PathOf(const char* name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string LogFolder() const;
  [[nodiscard]] std::string PathOfLog(int rank) const;
  [[nodiscard]] std::string CheckpointFolder() const;
  // JOB-ATTEMPT-DIGEST: no other attempt on this machine has it, whichever agent's it is.
  [[nodiscard]] std::string UniqueName() const;
  // For files that processes share in memory: made by who wants it, removed with the attempt.
  [[nodiscard]] std::string SharedMemoryFolder() const;
  // The environment variable that all processes of the attempt are started with.
  static constexpr const char* kMarkVariable = "TRAINYARD_ATTEMPT_FOLDER";
  [[nodiscard]] std::string Mark() const { return std::string(kMarkVariable) + "=" + path_; }

  // The folder belongs to the job's user, and the agent has a share in it.
  [[nodiscard]] bool IsShared() const;
  // What the supervisor has made in a shared folder is the agent's to read and write, too.
  void Share(int descriptor) const;
  [[nodiscard]] std::string LauncherLog() const { return path_ + ".launcher"; }

  // Makes the folder with its start, and the folders for logs and checkpoints.
  [[nodiscard]] Status Create(const v1::StartAttempt& start) const;
  [[nodiscard]] Status Remove() const;
  [[nodiscard]] bool Exists() const;
  // None: another process has it.
  [[nodiscard]] std::optional<io::Descriptor> TryLock() const;

  // Keeps the start where the job's user cannot change it; ReadStart finds it there first.
  [[nodiscard]] Status KeepStart(const v1::StartAttempt& start) const;
  [[nodiscard]] Result<v1::StartAttempt> ReadStart() const;
  [[nodiscard]] Status WriteReport(const v1::AttemptReport& report) const;
  [[nodiscard]] std::optional<v1::AttemptReport> ReadReport() const;
  [[nodiscard]] Status WriteText(const char* name, const std::string& text) const;
  [[nodiscard]] Status WriteGroup(const ProcessGroup& group) const;
  [[nodiscard]] std::optional<ProcessGroup> ReadGroup() const;
  // The bytes of a small plain file. Error: it is none.
  [[nodiscard]] static Result<std::string> ReadPlain(const std::string& path);

 private:
  v1::AttemptId id_;
  std::string name_;
  std::string path_;
  std::string state_folder_;
  Durability durability_;
};

// How long the attempts of a node may run without a word from the controller: kept in a file, so
// that supervisors know it while no agent is there.
struct Lease {
  Duration end{0};    // of the time since the machine has started, sleep included
  Duration grace{0};  // from the notice to the kill when it is over
};

// Since the machine has started, sleep included: all processes of it read the same.
[[nodiscard]] Duration TimeSinceBoot();

[[nodiscard]] Status WriteLease(const std::string& state_folder, const Lease& lease);
// None: no lease has been set, or it cannot be read.
[[nodiscard]] std::optional<Lease> ReadLease(const std::string& state_folder);

}  // namespace trainyard::supervisor
