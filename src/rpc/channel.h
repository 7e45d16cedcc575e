// SPDX-License-Identifier: Apache-2.0
// Connections along a route.
#pragma once

#include <memory>

#include "rpc/route.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace trainyard::rpc {

// Each with a connection of its own. A channel that has failed makes calls wait in ways that cannot
// be chosen; a new one tries at once.
[[nodiscard]] std::shared_ptr<grpc::Channel> NewChannel(const Route& route);

// The call says by the route's token who makes it.
void Authorize(grpc::ClientContext& context, const Route& route);

}  // namespace trainyard::rpc
