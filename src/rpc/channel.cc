// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include "identity/certificates.h"
#include "rpc/wire.h"

namespace trainyard::rpc {
namespace {

constexpr int kMostReplyBytes = 256 << 20;  // a list of all jobs
constexpr int kConnectTimeoutMs = 5'000;
constexpr const char* kNobody = "127.0.0.1:0";  // no socket can listen at port 0

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const Route& route) {
  if (route.authority.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials({.pem_root_certs = route.authority,
                               .pem_private_key = route.key,
                               .pem_cert_chain = route.certificate});
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const Route& route) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // http_proxy is not meant for the cluster
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(kMostReplyBytes);
  if (!route.authority.empty()) {
    arguments.SetSslTargetNameOverride(identity::kControllerName);
  }
  return grpc::CreateCustomChannel(route.nobody ? kNobody : route.address, CredentialsOf(route),
                                   arguments);
}

void Authorize(grpc::ClientContext& context, const Route& route) {
  if (!route.token.empty()) {
    context.AddMetadata(kAuthorization, route.token);
  }
}

}  // namespace trainyard::rpc
