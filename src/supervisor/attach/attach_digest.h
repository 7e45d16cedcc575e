// SPDX-License-Identifier: Apache-2.0
// What of a session the controller signs.
#pragma once

#include <string>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// What stands in the credential's line "launch": no digest of what a job runs looks like it, so
// that a credential for one is none for the other.
[[nodiscard]] std::string AttachDigest(const v1::AttachRequest& request);

}  // namespace trainyard::supervisor
