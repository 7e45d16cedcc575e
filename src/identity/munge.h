// SPDX-License-Identifier: Apache-2.0
// Who somebody is on a machine of the same munge realm.
#pragma once

#include <sys/types.h>

#include <string>

#include "trainyard/status.h"

namespace trainyard::identity {

// A credential of this process's user, good once and for a few minutes. `socket`: munged's; empty:
// its usual one. Error: munged says why not.
[[nodiscard]] Result<std::string> MakeMungeCredential(const std::string& socket);
// The user who has made it, for this purpose. Errors: forged, replayed, expired, for another
// purpose.
[[nodiscard]] Result<uid_t> ReadMungeCredential(const std::string& credential,
                                                const std::string& socket);

}  // namespace trainyard::identity
