// SPDX-License-Identifier: Apache-2.0
#include "supervisor/log_limit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "io/descriptor.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = 512;  // of st_blocks
constexpr std::uint64_t kPage = 4096;

std::uint64_t RoomOf(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                           : 0;
}

std::uint64_t RoomOfAll(const fs::path& folder) {
  std::uint64_t room = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    room += RoomOf(entry->path().string());
  }
  return room;
}

}  // namespace

void TrimLog(const std::string& path, std::uint64_t limit) {
  struct stat status {};
  if (limit == 0 || stat(path.c_str(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_blocks) * kBlock <= limit) {
    return;
  }
  const io::Descriptor log(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!log.open()) {
    return;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t kept = limit / 2;
  const std::uint64_t gone = size > kept ? (size - kept) / kPage * kPage : 0;
  if (gone == 0 || fallocate(log.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                             static_cast<off_t>(gone)) != 0) {
    [[maybe_unused]] const int cut = ftruncate(log.get(), 0);
  }
}

void RemoveOldLogs(const std::string& state_folder, std::uint64_t job, std::uint64_t most) {
  const std::string prefix = std::to_string(job) + "-";
  std::map<std::uint32_t, fs::path> attempts;
  std::uint64_t room = 0;
  std::error_code error;
  for (fs::directory_iterator entry(state_folder + "/logs", error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::uint32_t attempt = 0;
    if (!name.starts_with(prefix) ||
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), attempt).ec !=
            std::errc{}) {
      continue;
    }
    attempts[attempt] = entry->path();
    room += RoomOfAll(entry->path());
  }
  for (const auto& [attempt, folder] : attempts) {
    if (room <= most) {
      return;
    }
    room -= RoomOfAll(folder);
    fs::remove_all(folder, error);
  }
}

std::uint64_t FirstKept(int log, std::uint64_t offset) {
  const off_t end = lseek(log, 0, SEEK_END);
  if (end < 0 || offset >= static_cast<std::uint64_t>(end)) {
    return offset;
  }
  const off_t data = lseek(log, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) {
    return errno == ENXIO ? static_cast<std::uint64_t>(end)
                          : offset;  // nothing is left, or unknown
  }
  return static_cast<std::uint64_t>(data);
}

}  // namespace trainyard::supervisor
