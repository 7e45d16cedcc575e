// SPDX-License-Identifier: Apache-2.0
// What both ends agree on beside the messages.
#pragma once

#include <grpc/support/log.h>

#include <cstddef>
#include <cstdlib>

namespace trainyard::rpc {

// Metadata that the controller adds where it speaks itself: to errors, which would otherwise look
// like those of the transport, and to the head of an agent stream that it has taken.
inline constexpr char kOwnWords[] = "trainyard";

// Metadata of each call: who makes it, as a token of the controller.
inline constexpr char kAuthorization[] = "authorization";

// Metadata of a refusal: milliseconds after which the same call is worth trying again.
inline constexpr char kRetryAfterMs[] = "trainyard-retry-ms";

// A peer that does not answer a ping in time is dead; pings also go out while no call is open.
inline constexpr int kPingEveryMs = 10'000;
inline constexpr int kPingTimeoutMs = 5'000;
inline constexpr int kLeastPingGapMs = kPingEveryMs / 2;  // of the peer; more often is abuse

// A stream that lets more than this pile up is cut.
inline constexpr std::size_t kMostQueuedBytes = std::size_t{64} << 20;

// gRPC's log goes to stderr, and repeats what errors say. Silent unless GRPC_VERBOSITY is set.
inline void QuietGrpc() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args* /*line*/) {});
  }
}

}  // namespace trainyard::rpc
