// SPDX-License-Identifier: Apache-2.0
// The attempts of one node as the agent sees them: started, stopped and found again. Behind this
// lie real processes or, in the fault simulator, pretended ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::supervisor {

// An attempt as controllers and agents name it: the number of the job, and that of its attempt.
using AttemptKey = std::pair<std::uint64_t, std::uint32_t>;
[[nodiscard]] inline AttemptKey KeyOf(const v1::AttemptId& id) { return {id.job(), id.attempt()}; }

// GPUs of a node as bits; numbers that no GPU can have are passed over.
[[nodiscard]] inline std::uint64_t MaskOf(
    const google::protobuf::RepeatedField<std::int32_t>& gpus) {
  std::uint64_t mask = 0;
  for (const int gpu : gpus) {
    mask |= gpu >= 0 && gpu < kMaxGpusPerNode ? std::uint64_t{1} << gpu : 0;
  }
  return mask;
}

// What the message of an attempt begins with that the kernel has ended for its memory.
inline constexpr std::string_view kOutOfMemory = "out of memory";

class Processes {
 public:
  virtual ~Processes() = default;

  // All attempts of this node that are not forgotten, with their present state, those included that
  // only the disk knows of: what an agent that has just been started reports to its controller.
  // What ended while no agent was there has EXITED with its own exit code, or with 137 if no
  // process was left to see it. May wait for two seconds.
  [[nodiscard]] virtual std::vector<v1::AttemptReport> Recover() = 0;
  // Starts the attempt's processes; it is on disk when the call comes back. What comes of it,
  // failure to start included, is told as a report. REQUIRES: the attempt is not known yet.
  virtual void Start(const v1::StartAttempt& start) = 0;
  // Gives notice, and kills what is left of the attempt's processes after the grace period. Later
  // calls can only shorten it; 0 kills at once. An attempt that is not known or has exited is left
  // alone.
  virtual void Stop(const v1::AttemptId& attempt, Duration grace) = 0;
  // The attempt runs on with another share of the node, which its workers are told, or, if it is
  // emulated, at another rate. One that is not known or has exited is left alone.
  virtual void Tune(const v1::TuneAttempt& tune) = 0;
  // Attempts may run so much longer from now on; without a later word they are stopped with this
  // grace period, even if the agent is no longer there, and reported as lost.
  virtual void SetLease(Duration from_now, Duration grace) = 0;
  // Removes what is kept of an attempt but its logs and checkpoints; nothing where it is not known.
  // REQUIRES: it has exited.
  virtual void Forget(const v1::AttemptId& attempt) = 0;
  // Bytes of a worker's log, as many as are there (256 KiB at most); the call comes back at once.
  // Logs can be read of attempts that are forgotten, too.
  [[nodiscard]] virtual Result<v1::LogsReply> ReadLog(const v1::AttemptId& attempt, int rank,
                                                      std::uint64_t offset) = 0;
  // A call of a session of the attempt (v1::AttachRequest). False: the attempt has no processes
  // that one could attach to, or its supervisor cannot be reached just now; no answer will come.
  [[nodiscard]] virtual bool Attach(const v1::AttachOrder& /*order*/) { return false; }
  // Answers to them that have come since the last call.
  [[nodiscard]] virtual std::vector<v1::AttachAnswer> TakeAnswers() { return {}; }
  // All workers of the attempt on this node get the signal. Nothing where it is not known.
  virtual void Signal(const v1::AttemptId& /*attempt*/, int /*signal*/) {}
  // Reports that have come since the last call: each change of state, and progress at most once a
  // second for each attempt.
  [[nodiscard]] virtual std::vector<v1::AttemptReport> TakeReports() = 0;
};

}  // namespace trainyard::supervisor
