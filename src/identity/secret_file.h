// SPDX-License-Identifier: Apache-2.0
// Files that their owner alone may read: keys, tokens.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::identity {

// All bytes of a file with the mode 0600 or less. Errors: it is not there or no plain file; others
// than its owner may read or write it; it belongs to neither this user nor root; more than 1 MiB.
[[nodiscard]] Result<std::string> ReadSecretFile(const std::string& path);

// Writes the file with the mode 0600, durably, at once or not at all.
[[nodiscard]] Status WriteSecretFile(const std::string& path, std::string_view bytes);

// The same with the mode 0644, for what others may know: public keys, certificates.
[[nodiscard]] Status WritePublicFile(const std::string& path, std::string_view bytes);

}  // namespace trainyard::identity
