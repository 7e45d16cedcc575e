// SPDX-License-Identifier: Apache-2.0
// What the fault simulation has come to: in which states of attempts and at which steps of their
// launchers each kind of fault has hit, and in which orders messages have arrived.
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

// What starts the workers of an attempt.
enum class Starter : std::uint8_t { kEmulated, kPlain, kTorchrun, kMpi };
inline constexpr std::size_t kStarters = 4;

// How far a node's part of an attempt has come with those of other nodes: it comes up, waits for
// the others (plain: it does both at once), and works with them.
enum class LaunchStep : std::uint8_t {
  kPlainMeets,
  kPlainWorks,
  kTorchrunComes,
  kTorchrunMeets,
  kTorchrunWorks,
  kMpiComes,  // other nodes than the first: their part asks for their daemon's command
  kMpiMeets,
  kMpiWorks,
};
inline constexpr int kLaunchSteps = 8;

class Coverage {
 public:
  void Hit(FaultKind fault, AttemptState state) {
    states_.set(static_cast<std::size_t>(fault) * kAttemptStates + static_cast<std::size_t>(state));
  }
  void Hit(FaultKind fault, LaunchStep step) {
    steps_.set(static_cast<std::size_t>(fault) * kLaunchSteps + static_cast<std::size_t>(step));
  }
  // A message has arrived over that connection; `starter`: of the job that it is about, if any.
  void Arrived(std::uint64_t connection, const v1::AgentMessage& message, Starter starter);
  void Arrived(std::uint64_t connection, const v1::ControllerMessage& message, Starter starter);
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
  // Fault kinds x steps of launchers.
  [[nodiscard]] Share steps() const;
  // Pairs of kinds of messages that arrived one after the other: over a connection, and of those
  // about one attempt, by what starts its workers.
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
  struct About {
    const v1::AttemptId* id = nullptr;  // null: the message is about none
    Starter starter{};
  };
  void Note(std::size_t kind, std::uint64_t connection, const About& about, Last& last);

  std::bitset<static_cast<std::size_t>(kFaultKinds) * kAttemptStates> states_;
  std::bitset<static_cast<std::size_t>(kFaultKinds) * kLaunchSteps> steps_;
  Pairs over_connections_;
  std::array<Pairs, kStarters> about_attempts_;
  Last up_;
  Last down_;
};

}  // namespace trainyard::faults
