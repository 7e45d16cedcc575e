// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <utility>

namespace trainyard::supervisor {

std::optional<Claimed> TryClaim(const std::string& folder, const std::string& kind,
                                std::span<const std::string> names, std::size_t count) {
  constexpr mode_t kMine = 0600;
  Claimed claimed;
  for (const std::string& name : names) {
    if (claimed.names.size() == count) {
      break;
    }
    const std::string path = fmt::format("{}/step-{}-{}", folder, kind, name);
    io::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMine));
    if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      claimed.names.push_back(name);
      claimed.locks.push_back(std::move(file));
    }
  }
  return claimed.names.size() == count ? std::optional(std::move(claimed)) : std::nullopt;
}

}  // namespace trainyard::supervisor
