// SPDX-License-Identifier: Apache-2.0
// The other ends: a client's calls, and an agent's stream to its controller.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rpc/route.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::rpc {

// Not thread-safe.
class ClusterClient {
 public:
  virtual ~ClusterClient() = default;
  // One call. While no controller answers the call is repeated, with short pauses, for up to
  // `patience`, and the user is told so at once: for requests that may arrive twice. The user is
  // told, too, when an answer is not there after 2 s, unless the call is one that waits. Errors
  // carry what the controller says ("trainyard: job 7: ..."), or that it cannot be reached at
  // ADDRESS.
  [[nodiscard]] virtual Result<v1::ClientReply> Call(const v1::ClientRequest& request,
                                                     Duration timeout,
                                                     Duration patience = Duration{0}) = 0;
};

// `tell`: gets a line for the user when no controller answers and a patient call goes on trying;
// may be empty. Who the caller is, is proved as the route says.
[[nodiscard]] std::unique_ptr<ClusterClient> Connect(
    const std::string& address, std::function<void(const std::string& line)> tell = {},
    RouteOptions route = {});

// The agent's stream. Thread-safe. Connects again by itself, after pauses from 0.1 s to 2 s with
// jitter, for as long as it lives.
class AgentStream {
 public:
  struct Callbacks {                     // from the stream's own thread, one at a time
    std::function<void()> on_connected;  // send the Hello now
    std::function<void(v1::ControllerMessage)> on_message;
    std::function<void()> on_disconnected;  // once after each on_connected
    // Why it is not let in, each time; may be empty.
    std::function<void(const std::string& why)> on_refused{};
  };
  // Waits for the callback that runs, if any; so not from within one.
  virtual ~AgentStream() = default;
  // Never blocks. Dropped while there is no connection; a connection that lets more than 64 MiB
  // pile up is cut.
  virtual void Send(v1::AgentMessage message) = 0;
};

[[nodiscard]] std::unique_ptr<AgentStream> AttachAgent(const std::string& address,
                                                       AgentStream::Callbacks callbacks,
                                                       RouteOptions route = {});

}  // namespace trainyard::rpc
