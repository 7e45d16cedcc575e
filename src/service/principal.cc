// SPDX-License-Identifier: Apache-2.0
#include "service/principal.h"

#include "identity/token.h"

namespace trainyard::service {

Principal Principal::Of(const v1::ClientRequest& request) {
  return request.has_caller() ? Principal(request.caller()) : Principal();
}

Principal Principal::OwnerOf(const v1::JobRequest& job) {
  return job.launch().has_owner() ? Principal(job.launch().owner()) : Principal();
}

Status Principal::CheckCaller(bool is_required) const {
  if (is_required && !caller_) {
    return Error{ErrorCode::kUnauthenticated, "the call has no credentials"};
  }
  return {};
}

bool Principal::May(Access access, const v1::JobRequest& job) const {
  if (!caller_) {
    return true;
  }
  switch (caller_->role()) {
    case v1::Caller::ADMIN:
      return true;
    case v1::Caller::OPERATOR:
      if (access != Access::kRead && access != Access::kEnter) {
        return true;
      }
      [[fallthrough]];
    case v1::Caller::USER:
      return job.launch().has_owner() && job.launch().owner().uid() == caller_->uid();
    default:
      return false;
  }
}

bool Principal::MayOperate() const {
  return !caller_ || caller_->role() == v1::Caller::ADMIN ||
         caller_->role() == v1::Caller::OPERATOR;
}

bool Principal::MayAdminister() const { return !caller_ || caller_->role() == v1::Caller::ADMIN; }

bool Principal::MayNameUser(std::string_view user) const {
  return !caller_ || caller_->role() == v1::Caller::ADMIN || user.empty() ||
         user == caller_->user();
}

bool Principal::MayUndo(std::string_view changer) const {
  if (!caller_ || changer.empty()) {
    return true;
  }
  const std::string same = " (uid " + std::to_string(caller_->uid()) + ", ";
  const auto has_role = [changer](v1::Caller::Role role) {
    return changer.ends_with(", " + std::string(identity::RoleName(role)) + ")");
  };
  return changer.find(same) != std::string_view::npos || caller_->role() == v1::Caller::ADMIN ||
         !(has_role(v1::Caller::ADMIN) ||
           (has_role(v1::Caller::OPERATOR) && caller_->role() != v1::Caller::OPERATOR));
}

std::string Principal::text() const { return caller_ ? identity::NameOf(*caller_) : std::string(); }

std::string Principal::text_with_role() const {
  return caller_ ? caller_->user() + " (uid " + std::to_string(caller_->uid()) + ", " +
                       std::string(identity::RoleName(caller_->role())) + ")"
                 : std::string();
}

}  // namespace trainyard::service
