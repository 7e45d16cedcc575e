// SPDX-License-Identifier: Apache-2.0
// Takes connections, within limits for each address from which they come: one machine cannot use up
// what a server has for all, nor keep it busy with the beginnings of TLS.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "service/rate_limit.h"
#include "trainyard/status.h"

namespace trainyard::rpc {

// An IPv6 address counts by its first 64 bits.
struct ConnectionLimits {
  int open = 1024;  // at a time; less where the process may have few descriptors open
  service::Rate opens{.per_s = 100, .burst = 1000};  // new ones
  // Those of the machine itself are all its users': no limit.
  bool on_loopback = false;
};

class Listener {
 public:
  // Gets a connection, which does not block and is its own. From the listener's thread.
  using Take = std::function<void(int fd)>;
  // Hears of refusals, once for each row of them from an address; may be empty.
  using Log = std::function<void(const std::string& line)>;

  virtual ~Listener() = default;  // ends it
  // `address`: HOST:PORT, port 0: any free one. Errors: it is taken, or is none of this machine.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> Open(const std::string& address,
                                                              ConnectionLimits limits, Log log);
  [[nodiscard]] virtual int port() const = 0;
  // Once. What has come meanwhile has waited.
  virtual void Serve(Take take) = 0;
  // No more is taken.
  virtual void End() = 0;
};

}  // namespace trainyard::rpc
