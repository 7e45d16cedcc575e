// SPDX-License-Identifier: Apache-2.0
// Who may call, and how often: what every door asks about a call or an agent before it lets it in.
// Knows nothing of the network.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "identity/authority.h"
#include "service/rate_limit.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::service {

// What a peer has shown to a door.
struct Credential {
  std::string token;          // empty: none
  std::string certificate{};  // PEM, whose key the peer has proved to have; empty: none
};

struct AccessLimits {
  int max_calls = 4096;  // open at once
  int max_agents = 4096;
  Rate user_calls{};  // of each user who is neither operator nor admin
};

// Thread-safe.
class AccessControl {
 public:
  // `authority` must outlive it; null: authentication is off, every call is allowed.
  AccessControl(identity::Authority* authority, const AccessLimits& limits)
      : authority_(authority), limits_(limits), user_calls_(limits.user_calls) {}

  [[nodiscard]] identity::Authority* authority() const { return authority_; }

  // Who makes a call; none: authentication is off. Error: the credential proves nothing.
  [[nodiscard]] Result<std::optional<v1::Caller>> CallerOf(const Credential& credential) const;
  // The node for which an agent may speak; empty: any. Error: the credential proves nothing.
  [[nodiscard]] Result<std::string> NodeOf(const Credential& credential) const;
  // `node`: as NodeOf says. Error: the agent speaks for another one.
  [[nodiscard]] static Status CheckHello(const std::string& node, const v1::Hello& hello);

  // Errors: the credential of an open call or agent has been revoked since.
  [[nodiscard]] Status CheckCall(const Credential& credential) const;
  [[nodiscard]] Status CheckAgent(const Credential& credential) const;

  // Errors: `open` are as many as there may be.
  [[nodiscard]] Status CheckOpenCalls(std::size_t open) const;
  [[nodiscard]] Status CheckOpenAgents(std::size_t open) const;

  // A call too soon after others of its caller.
  struct TooSoon {
    Error error;
    double wait_s = 0;   // after which it may succeed
    bool first = false;  // since the caller's last call that was not too soon
  };
  // Counts a call of the caller; none: it is not too soon. `now_s`: of a monotonic clock.
  [[nodiscard]] std::optional<TooSoon> CountCall(const v1::Caller& caller, double now_s);
  // Another limit from now on.
  void SetUserCalls(Rate rate) { user_calls_.SetRate(rate); }

 private:
  identity::Authority* const authority_;
  const AccessLimits limits_;
  RateLimit user_calls_;
};

}  // namespace trainyard::service
