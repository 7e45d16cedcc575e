// SPDX-License-Identifier: Apache-2.0
#include "rpc/identity_service.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "rpc/wire.h"
#include "trainyard/identity.grpc.pb.h"

namespace trainyard::rpc {
namespace {

class IdentityService final : public v1::Identity::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  IdentityService(identity::Authority& authority, std::function<void(const std::string&)> log,
                  std::function<void()> changed)
      : authority_(authority), log_(std::move(log)), changed_(std::move(changed)) {}

  Reactor* Buy(Context* context, const v1::BuyRequest* request, v1::BuyReply* reply) override {
    Result<std::string> token = authority_.Sell(*request);
    if (!token.ok()) {
      return Refuse(*context, token.error());
    }
    reply->set_token(std::move(token).value());
    return Done(*context);
  }

  Reactor* Join(Context* context, const v1::JoinRequest* request,
                v1::CertificateReply* reply) override {
    return Answer(*context, authority_.Join(*request), *reply);
  }

  Reactor* Renew(Context* context, const v1::RenewRequest* request,
                 v1::CertificateReply* reply) override {
    const Result<std::string> node = authority_.NodeOf(PeerCertificate(*context));
    return node.ok() ? Answer(*context, authority_.Renew(node.value(), *request), *reply)
                     : Refuse(*context, node.error());
  }

  Reactor* Manage(Context* context, const v1::ManageRequest* request,
                  v1::ManageReply* reply) override {
    const Result<v1::Caller> caller = authority_.CallerOf(TokenOf(*context));
    if (!caller.ok()) {
      return Refuse(*context, caller.error());
    }
    Result<v1::ManageReply> managed = authority_.Manage(caller.value(), *request);
    changed_();
    return Answer(*context, std::move(managed), *reply);
  }

 private:
  template <typename Reply>
  Reactor* Answer(Context& context, Result<Reply> result, Reply& reply) {
    if (!result.ok()) {
      return Refuse(context, result.error());
    }
    reply = std::move(result).value();
    return Done(context);
  }

  static Reactor* Done(Context& context) {
    Reactor* const reactor = context.DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Reactor* Refuse(Context& context, const Error& error) const {
    if (log_) {
      log_(fmt::format("refused {}: {}", context.peer(), error.message));
    }
    Reactor* const reactor = context.DefaultReactor();
    reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, error.message});
    return reactor;
  }

  identity::Authority& authority_;
  const std::function<void(const std::string&)> log_;
  const std::function<void()> changed_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeIdentityService(identity::Authority& authority,
                                                   std::function<void(const std::string&)> log,
                                                   std::function<void()> changed) {
  return std::make_unique<IdentityService>(authority, std::move(log), std::move(changed));
}

std::string PeerCertificate(const grpc::ServerContextBase& context) {
  const auto found = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return context.auth_context()->IsPeerAuthenticated() && !found.empty()
             ? std::string(found.front().data(), found.front().size())
             : std::string();
}

std::string TokenOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto token = metadata.find(kAuthorization);
  return token == metadata.end() ? std::string()
                                 : std::string(token->second.data(), token->second.size());
}

}  // namespace trainyard::rpc
