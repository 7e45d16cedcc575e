// SPDX-License-Identifier: Apache-2.0
// What steps of one attempt on one node hold of its CPUs and GPUs while they run side by side. A
// claim is a lock on a file of the attempt: it ends with the process that has it, however that
// ends.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.h"

namespace trainyard::supervisor {

struct Claimed {
  std::vector<std::string> names{};  // ascending, as they were given
  std::vector<io::Descriptor> locks{};
};

// So many of `names` that no other process has claimed. None: there are not so many; nothing is
// claimed then. `kind` keeps apart what has the same names: "gpu", "cpu".
[[nodiscard]] std::optional<Claimed> TryClaim(const std::string& folder, const std::string& kind,
                                              std::span<const std::string> names,
                                              std::size_t count);

}  // namespace trainyard::supervisor
