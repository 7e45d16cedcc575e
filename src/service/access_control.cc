// SPDX-License-Identifier: Apache-2.0
#include "service/access_control.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "identity/token.h"

namespace trainyard::service {
namespace {

Status CheckOpen(std::size_t open, int most, std::string_view what) {
  if (open < static_cast<std::size_t>(most)) {
    return {};
  }
  return Failed(fmt::format("trainyard: {} {} are open already; try again later", open, what));
}

}  // namespace

Result<std::optional<v1::Caller>> AccessControl::CallerOf(const Credential& credential) const {
  if (authority_ == nullptr) {
    return std::optional<v1::Caller>();
  }
  Result<v1::Caller> caller = authority_->CallerOf(credential.token);
  if (!caller.ok()) {
    return caller.error();
  }
  return std::optional(std::move(caller).value());
}

Result<std::string> AccessControl::NodeOf(const Credential& credential) const {
  if (authority_ == nullptr) {
    return std::string();
  }
  if (!credential.certificate.empty()) {
    return authority_->NodeOf(credential.certificate);
  }
  ASSIGN_OR_RETURN(const std::optional<v1::Caller> caller, CallerOf(credential));
  if (identity::Authority::MayBeAgent(*caller)) {
    return std::string();
  }
  return Failed(
      fmt::format("{} may not join as a node; expected an agent with a certificate, of the "
                  "controller's own user or of root",
                  identity::NameOf(*caller)));
}

Status AccessControl::CheckHello(const std::string& node, const v1::Hello& hello) {
  if (node.empty() || hello.node() == node) {
    return {};
  }
  return Failed(
      fmt::format("the certificate is that of node '{}', and the agent says that it is '{}'", node,
                  hello.node()));
}

Status AccessControl::CheckCall(const Credential& credential) const {
  RETURN_IF_ERROR(CallerOf(credential));
  return {};
}

Status AccessControl::CheckAgent(const Credential& credential) const {
  if (!credential.certificate.empty()) {
    RETURN_IF_ERROR(NodeOf(credential));
  }
  return {};
}

Status AccessControl::CheckOpenCalls(std::size_t open) const {
  return CheckOpen(open, limits_.max_calls, "calls");
}

Status AccessControl::CheckOpenAgents(std::size_t open) const {
  return CheckOpen(open, limits_.max_agents, "agents");
}

std::optional<AccessControl::TooSoon> AccessControl::CountCall(const v1::Caller& caller,
                                                               double now_s) {
  if (caller.role() != v1::Caller::USER) {
    return std::nullopt;
  }
  const std::string name = identity::NameOf(caller);
  const std::optional<RateLimit::Refusal> refusal = user_calls_.Take(name, now_s);
  if (!refusal) {
    return std::nullopt;
  }
  return TooSoon{
      .error = Failed(fmt::format("{} makes more than {:g} calls per second; try again in "
                                  "{:.0f} s",
                                  name, user_calls_.rate().per_s, std::ceil(refusal->wait_s))),
      .wait_s = refusal->wait_s,
      .first = refusal->first};
}

}  // namespace trainyard::service
