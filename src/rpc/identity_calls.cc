// SPDX-License-Identifier: Apache-2.0
#include "rpc/identity_calls.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "identity/certificates.h"
#include "identity/secret_file.h"
#include "io/file.h"
#include "rpc/channel.h"
#include "rpc/wire.h"
#include "trainyard/identity.grpc.pb.h"

namespace trainyard::rpc {
namespace {

constexpr std::chrono::seconds kTimeout{30};

using Stub = v1::Identity::Stub;

// One call of the service.
template <typename Reply, typename Request>
Result<Reply> Ask(const Route& route, const Request& request,
                  grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Reply*)) {
  QuietGrpc();
  const auto stub = v1::Identity::NewStub(NewChannel(route));
  grpc::ClientContext context;
  Authorize(context, route);
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  Reply reply;
  const grpc::Status status = ((*stub).*call)(&context, request, &reply);
  if (status.ok()) {
    return reply;
  }
  if (route.nobody) {
    return Failed(fmt::format("no controller answers at {}", route.address));
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return Failed(fmt::format("no controller answers at {} that this machine may trust: {}",
                              route.address, status.error_message()));
  }
  return Failed(status.error_message());
}

// "SECRET.FINGERPRINT" in its parts.
Result<std::pair<std::string, std::string>> PartsOf(const std::string& text) {
  const std::size_t dot = text.find('.');
  const std::size_t end = std::min(text.find_last_not_of(" \n\r\t") + 1, text.size());
  if (dot == std::string::npos || dot >= end) {
    return BadInput(
        "the token is none; expected the line as 'trainyard node token' or 'trainyard "
        "user add' has printed it");
  }
  return std::pair(text.substr(0, dot), text.substr(dot + 1, end - dot - 1));
}

// Certificate last: with it the node has joined.
Status WriteNode(const std::string& folder, const std::string& key,
                 const v1::CertificateReply& reply) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  chmod(folder.c_str(), S_IRWXU);
  RETURN_IF_ERROR(identity::WritePublicFile(folder + kNodeAuthority, reply.authority()));
  RETURN_IF_ERROR(identity::WriteSecretFile(folder + kNodeKey, key + reply.certificate()));
  return identity::WritePublicFile(folder + kNodeCertificate, reply.certificate());
}

}  // namespace

Result<std::string> BuyToken(const Route& route, const v1::BuyRequest& request) {
  ASSIGN_OR_RETURN(v1::BuyReply reply, Ask<v1::BuyReply>(route, request, &Stub::Buy));
  return std::move(*reply.mutable_token());
}

Status JoinCluster(const std::string& address, const std::string& secret, const std::string& node,
                   const std::string& folder) {
  ASSIGN_OR_RETURN(const auto parts, PartsOf(secret));
  Route route{.address = address};
  ASSIGN_OR_RETURN(route.authority, identity::FetchAuthority(address, parts.second));
  const std::string key = identity::NewCertificateKey();
  v1::JoinRequest request;
  request.set_secret(parts.first);
  request.set_node(node);
  ASSIGN_OR_RETURN(*request.mutable_request(), identity::RequestFor(key));
  ASSIGN_OR_RETURN(const v1::CertificateReply reply,
                   Ask<v1::CertificateReply>(route, request, &Stub::Join));
  return WriteNode(folder, key, reply);
}

Status RenewNode(const std::string& address, const std::string& folder) {
  ASSIGN_OR_RETURN(const Route route, FindRoute(address, {.identity_folder = folder}));
  const std::string key = identity::NewCertificateKey();
  v1::RenewRequest request;
  ASSIGN_OR_RETURN(*request.mutable_request(), identity::RequestFor(key));
  ASSIGN_OR_RETURN(const v1::CertificateReply reply,
                   Ask<v1::CertificateReply>(route, request, &Stub::Renew));
  return WriteNode(folder, key, reply);
}

std::string LoginFile(const std::string& address) {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  std::string name = address;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ':'; }, '_');
  const std::string folder = config != nullptr && *config != '\0'
                                 ? std::string(config)
                                 : std::string(home == nullptr ? "." : home) + "/.config";
  return folder + "/trainyard/logins/" + name;
}

Status LogIn(const std::string& address, const std::string& secret) {
  ASSIGN_OR_RETURN(const auto parts, PartsOf(secret));
  v1::Login login;
  login.set_address(address);
  login.set_secret(parts.first);
  ASSIGN_OR_RETURN(*login.mutable_authority(), identity::FetchAuthority(address, parts.second));
  v1::BuyRequest request;
  request.set_secret(parts.first);
  RETURN_IF_ERROR(
      BuyToken({.address = address, .token = {}, .authority = login.authority()}, request));
  const std::string path = LoginFile(address);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return identity::WriteSecretFile(path, login.SerializeAsString());
}

Result<v1::ManageReply> Manage(const Route& route, const v1::ManageRequest& request) {
  return Ask<v1::ManageReply>(route, request, &Stub::Manage);
}

}  // namespace trainyard::rpc
