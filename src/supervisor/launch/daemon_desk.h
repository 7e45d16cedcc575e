// SPDX-License-Identifier: Apache-2.0
// How mpirun starts its daemons on the other nodes of an attempt without ssh.
//
//   first node                                      node R
//   supervisor   -- mpirun                          supervisor
//   (DaemonDesk)      `-- launch rsh nodeR ORTED...    `-- launch daemon -> ORTED...
//
// Each node's supervisor starts its part of the attempt as for any job; on the other nodes that is
// `launch daemon`, which asks the desk of the first node for its command, and becomes that. mpirun
// brings the commands to the desk, by `launch rsh`. The desk listens on the attempt's master port
// until all nodes have theirs; workers may then use the port. Both sides prove that they know the
// attempt's secret: nobody else is told a command, or has one run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "supervisor/unix_socket.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

class DaemonDesk {
 public:
  // Listens at the attempt's master address and port. Error: that is not possible.
  [[nodiscard]] static Result<DaemonDesk> Open(const v1::StartAttempt& start);

  // Takes what has come and answers what can be answered; never waits.
  void Serve();
  void AddAwaited(std::vector<pollfd>& polls) const { callers_.AddAwaited(polls); }
  // All nodes have their commands, and have hung up.
  [[nodiscard]] bool done() const;

 private:
  struct Caller {
    std::string nonce;    // sent to it
    v1::DaemonCall call;  // what it has said; its node_rank is 0 until then
    bool answered = false;
  };

  DaemonDesk(io::Descriptor socket, const v1::StartAttempt& start);
  void Greet(Connection& connection);
  [[nodiscard]] bool ServeOne(Connection& connection);
  [[nodiscard]] bool Take(Caller& caller, v1::DaemonCall call);
  void Answer(Caller& caller, Connection& connection);

  std::string secret_;
  int nodes_;
  Connections callers_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Caller> by_number_;
  std::map<int, std::string> commands_;  // by node_rank
  std::map<int, bool> told_;             // nodes that have been sent theirs
  bool news_ = false;                    // a command has come
};

// The other nodes' side: waits, for as long as it takes, until the desk has the command of this
// node's daemon.
[[nodiscard]] std::string AwaitDaemonCommand(const v1::StartAttempt& start);

// mpirun's side: brings the command of that node's daemon to the desk. Error: it is not there, or
// is another attempt's.
[[nodiscard]] Status BringDaemonCommand(const v1::StartAttempt& start, int node_rank,
                                        const std::string& command);

}  // namespace trainyard::supervisor
