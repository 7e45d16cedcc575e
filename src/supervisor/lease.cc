// SPDX-License-Identifier: Apache-2.0
#include "supervisor/lease.h"

#include <time.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>

namespace trainyard {

Duration TimeSinceBoot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + Duration{now.tv_nsec / 1000};
}

// Not synced: with the machine its processes go too.
Status WriteLease(const std::string& state_folder, const Lease& lease) {
  constexpr int kWidth = 20;  // always as long: on a full disk it is written over the last one
  std::error_code error;
  std::filesystem::create_directories(state_folder, error);
  const std::string path = state_folder + "/lease";
  const std::string draft = path + ".new";
  const auto written_to = [&lease](const std::string& name, std::ios::openmode mode) {
    std::ofstream file(name, mode);
    file << std::setw(kWidth) << lease.end.count() << ' ' << std::setw(kWidth)
         << lease.grace.count() << '\n';
    return static_cast<bool>(file.flush());
  };
  if (!written_to(draft, std::ios::trunc)) {
    return written_to(path, std::ios::in | std::ios::out) ? Status()
                                                          : Failed(path + ": cannot be written");
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
