// SPDX-License-Identifier: Apache-2.0
#include "supervisor/lease.h"

#include <time.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace trainyard {

Duration TimeSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration{now.tv_nsec / 1000};
}

// Not synced: with the machine its processes go too.
Status WriteLease(const std::string& state_folder, const Lease& lease) {
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  const std::string path = state_folder + "/lease";
  const std::string draft = path + ".new";
  {
    std::ofstream file(draft, std::ios::trunc);
    file << lease.end.count() << ' ' << lease.grace.count() << '\n';
    if (!file.flush()) {
      return Failed(draft + ": cannot be written");
    }
  }
  return std::rename(draft.c_str(), path.c_str()) == 0 ? Status()
                                                       : Failed(path + ": cannot be written");
}

std::optional<Lease> ReadLease(const std::string& state_folder) {
  std::ifstream file(state_folder + "/lease");
  std::int64_t end = 0;
  std::int64_t grace = 0;
  if (!(file >> end >> grace)) {
    return std::nullopt;
  }
  return Lease{.end = Duration{end}, .grace = Duration{grace}};
}

}  // namespace trainyard
