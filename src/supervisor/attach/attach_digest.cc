// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attach/attach_digest.h"

#include "supervisor/launch/launch_digest.h"

namespace trainyard::supervisor {

std::string AttachDigest(const v1::AttachRequest& request) {
  v1::LaunchSpec all;
  for (const std::string& word :
       {request.session(), std::to_string(request.rank()),
        std::string(request.terminal() ? "terminal" : "pipes"), request.term()}) {
    all.add_command(word);
  }
  all.mutable_command()->MergeFrom(request.command());
  *all.mutable_environment() = request.environment();
  return "attach-" + LaunchDigest(all);
}

}  // namespace trainyard::supervisor
