// SPDX-License-Identifier: Apache-2.0
// How an attempt has something started on its other nodes: the daemons of mpirun without ssh, and
// the steps of a script.
//
//   first node                                            node R
//   supervisor   -- mpirun                                supervisor
//   (NodeDesk)        `-- launch rsh nodeR ORTED...          `-- launch daemon -> ORTED...
//   supervisor   -- the script                            supervisor
//   (NodeDesk)        `-- srun                               `-- launch hold -> tasks of the step
//
// Each node's supervisor starts its part of the attempt as for any job; on the other nodes that is
// a process that asks the desk of the first node for the commands of its node, one after the other.
// They are brought there by processes of the first node. The desk listens on the attempt's master
// port: that of mpirun until all nodes have their daemon, as workers may then use the port; that of
// a script, whose workers are not told of it, to the end. Both sides prove that they know the
// attempt's secret: nobody else is told a command, or has one run.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/unix_socket.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

class NodeDesk {
 public:
  // Listens at the attempt's master address and port. Error: that is not possible.
  [[nodiscard]] static Result<NodeDesk> Open(const v1::StartAttempt& start);

  // Takes what has come and answers what can be answered; never waits.
  void Serve();
  void AddAwaited(std::vector<pollfd>& polls) const { callers_.AddAwaited(polls); }
  // Who has called without knowing the secret, for the log; the 1st, 2nd, 4th, 8th ... time only,
  // so that nobody fills it. Empty: nothing new is to be told.
  [[nodiscard]] std::string TakeRefusal();
  // All nodes have had a command, and have hung up.
  [[nodiscard]] bool done() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Caller {
    std::string nonce;  // sent to it
    Clock::time_point since;
    v1::DeskCall call;  // what it has said; its node_rank is 0 until then
    bool answered = false;
  };

  NodeDesk(io::Descriptor socket, const v1::StartAttempt& start);
  void Greet(Connection& connection);
  [[nodiscard]] bool ServeOne(Connection& connection);
  [[nodiscard]] bool IsStranger(const Connection& connection) const;
  void Refuse(const Connection& connection);
  [[nodiscard]] bool Take(Caller& caller, v1::DeskCall call);
  void Answer(Caller& caller, Connection& connection);

  std::string secret_;
  int nodes_;
  Connections callers_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Caller> by_number_;
  std::uint64_t last_command_ = 0;
  // By node_rank and number. What a node has had goes when it asks for the next.
  std::map<int, std::map<std::uint64_t, std::string>> commands_;
  std::map<int, bool> told_;  // nodes that have been sent a command
  bool news_ = false;         // a command has come
  std::uint64_t refused_ = 0;
  std::string refusal_;  // to be told
};

// What only processes of the attempt know.
[[nodiscard]] std::string SecretOf(const v1::StartAttempt& start);
// So many random bits, in hex, that nobody has seen them before.
[[nodiscard]] std::string NewNonce();

// The other nodes' side: waits until the desk has a command of this node behind the number `after`,
// or until `waker` can be read (-1: never), which gives none.
struct NodeCommand {
  std::uint64_t number = 0;
  std::string text;
};
[[nodiscard]] std::optional<NodeCommand> AwaitNodeCommand(const v1::StartAttempt& start,
                                                          std::uint64_t after, int waker);

// The side of those who want something started: brings the command of that node to the desk. Error:
// the desk is not there, or is another attempt's.
[[nodiscard]] Status BringNodeCommand(const v1::StartAttempt& start, int node_rank,
                                      const std::string& command);

// The address of the connected socket's other end, as text.
[[nodiscard]] std::string PeerOf(int socket);
// A connection to that port of the attempt's master address; not open: errno says why.
[[nodiscard]] io::Descriptor ConnectToMaster(const v1::StartAttempt& start, int port);
// A listening socket at that address, or at all of this machine where others have another name for
// it. Port 0: any. Not open: errno says why.
[[nodiscard]] io::Descriptor ListenAtMaster(const v1::StartAttempt& start, int port);

}  // namespace trainyard::supervisor
