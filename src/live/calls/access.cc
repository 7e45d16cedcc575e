// SPDX-License-Identifier: Apache-2.0
#include "live/calls/access.h"

#include "identity/token.h"

namespace trainyard::live {

bool MayTouch(const v1::ClientRequest& request, const v1::JobRequest& job, Touch touch) {
  if (!request.has_caller()) {
    return true;
  }
  const v1::Caller& caller = request.caller();
  switch (caller.role()) {
    case v1::Caller::ADMIN:
      return true;
    case v1::Caller::OPERATOR:
      if (touch != Touch::kRead && touch != Touch::kEnter) {
        return true;
      }
      [[fallthrough]];
    case v1::Caller::USER:
      return job.launch().has_owner() && job.launch().owner().uid() == caller.uid();
    default:
      return false;
  }
}

bool MayDrain(const v1::ClientRequest& request) {
  return !request.has_caller() || request.caller().role() == v1::Caller::ADMIN ||
         request.caller().role() == v1::Caller::OPERATOR;
}

bool MayNameUser(const v1::ClientRequest& request, std::string_view user) {
  return !request.has_caller() || request.caller().role() == v1::Caller::ADMIN || user.empty() ||
         user == request.caller().user();
}

std::string CallerText(const v1::ClientRequest& request) {
  return request.has_caller() ? identity::NameOf(request.caller()) : std::string();
}

std::string ChangerText(const v1::ClientRequest& request) {
  if (!request.has_caller()) {
    return {};
  }
  const v1::Caller& caller = request.caller();
  return caller.user() + " (uid " + std::to_string(caller.uid()) + ", " +
         std::string(identity::RoleName(caller.role())) + ")";
}

bool MayUndo(const v1::ClientRequest& request, std::string_view changer) {
  if (!request.has_caller() || changer.empty()) {
    return true;
  }
  const v1::Caller& caller = request.caller();
  const std::string same = " (uid " + std::to_string(caller.uid()) + ", ";
  const auto has_role = [changer](v1::Caller::Role role) {
    return changer.ends_with(", " + std::string(identity::RoleName(role)) + ")");
  };
  return changer.find(same) != std::string_view::npos || caller.role() == v1::Caller::ADMIN ||
         !(has_role(v1::Caller::ADMIN) ||
           (has_role(v1::Caller::OPERATOR) && caller.role() != v1::Caller::OPERATOR));
}

}  // namespace trainyard::live
