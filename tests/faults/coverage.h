// SPDX-License-Identifier: Apache-2.0
// What the fault simulation has come to: in which states of attempts each kind of fault has hit,
// and in which orders messages have arrived.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "trainyard/live.pb.h"

namespace trainyard::faults {

enum class FaultKind : std::uint8_t {
  kControllerCrash,
  kCrashInWrite,
  kFullDisk,
  kClusterSick,
  kAgentCrash,
  kNodeCrash,
  kDiskLost,
  kBrokenConnection,
  kPartition,
  kNodeSick,
  kDrain,
  kUndrain,
  kClockJump,
};
inline constexpr int kFaultKinds = 13;

// What an attempt is to the controller, and what it is on a node.
enum class AttemptState : std::uint8_t {
  kWaiting,  // the job has none
  kStarting,
  kRunning,
  kStopping,
  kRunsHere,
  kLeavesHere,
  kGoneHere,  // and is not forgotten
};
inline constexpr int kAttemptStates = 7;

class Coverage {
 public:
  void Hit(FaultKind fault, AttemptState state) {
    states_.set(static_cast<std::size_t>(fault) * kAttemptStates + static_cast<std::size_t>(state));
  }
  // A message has arrived over that connection.
  void Arrived(std::uint64_t connection, const v1::AgentMessage& message);
  void Arrived(std::uint64_t connection, const v1::ControllerMessage& message);
  void Merge(const Coverage& other);

  struct Share {
    std::size_t reached = 0;
    std::size_t of = 0;
    [[nodiscard]] double part() const {
      return static_cast<double>(reached) / static_cast<double>(of);
    }
  };
  // Fault kinds x states of attempts. Of those that wait a fault of a node hits who holds its GPUs.
  [[nodiscard]] Share states() const;
  // Pairs of kinds of messages that arrived one after the other: over a connection, and of those
  // about one attempt.
  [[nodiscard]] Share orders() const;
  // Names of what was not reached, for those who widen the generator.
  [[nodiscard]] std::set<std::string> missing() const;

 private:
  static constexpr std::size_t kKinds = 16;  // of messages, of both directions
  using Pairs = std::bitset<kKinds * kKinds>;
  struct Last {
    std::map<std::uint64_t, std::size_t> of_connection;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> of_attempt;
  };
  static void Note(std::size_t kind, std::optional<std::size_t> before, Pairs& pairs);
  void Note(std::size_t kind, std::uint64_t connection, const v1::AttemptId* id, Last& last);

  std::bitset<static_cast<std::size_t>(kFaultKinds) * kAttemptStates> states_;
  Pairs over_connections_;
  Pairs about_attempts_;
  Last up_;
  Last down_;
};

}  // namespace trainyard::faults
