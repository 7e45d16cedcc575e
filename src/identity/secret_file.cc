// SPDX-License-Identifier: Apache-2.0
#include "identity/secret_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/try.h"
#include "io/descriptor.h"

namespace trainyard::identity {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

Error SystemError(const std::string& path, std::string_view what) {
  return Failed(fmt::format("{}: {}: {}", path, what, std::generic_category().message(errno)));
}

// Whose file it is and who may read it.
Status CheckOwner(const std::string& path, const struct stat& found) {
  if (!S_ISREG(found.st_mode)) {
    return Failed(fmt::format("{}: is no plain file; expected one", path));
  }
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Failed(fmt::format(
        "{}: has the mode {:04o}, so that others may use it; expected 0600 ('chmod 600 {}')", path,
        found.st_mode & 07777U, path));
  }
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return Failed(fmt::format("{}: belongs to uid {}; expected a file of uid {} or of root", path,
                              found.st_uid, geteuid()));
  }
  return {};
}

Status WriteAll(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) {
      return SystemError(path, "cannot be written");
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote < 0 ? 0 : wrote));
  }
  return fsync(fd) == 0 ? Status() : SystemError(path, "cannot be made durable");
}

// Under another name first, so that nobody sees half of it.
Status WriteFile(const std::string& path, std::string_view bytes, mode_t mode) {
  std::string beside = path + ".XXXXXX";
  const io::Descriptor fd(mkostemp(beside.data(), O_CLOEXEC));
  if (!fd.open()) {
    return SystemError(path, "cannot be written");
  }
  Status status =
      fchmod(fd.get(), mode) == 0 ? WriteAll(fd.get(), path, bytes) : SystemError(path, "chmod");
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "cannot be written");
  }
  if (!status.ok()) {
    unlink(beside.c_str());
    return status;
  }
  const std::string above = std::filesystem::path(path).parent_path();
  const io::Descriptor folder(
      open(above.empty() ? "." : above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.open() && fsync(folder.get()) == 0 ? Status()
                                                   : SystemError(path, "cannot be made durable");
}

}  // namespace

Result<std::string> ReadSecretFile(const std::string& path) {
  const io::Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found {};
  if (!fd.open() || fstat(fd.get(), &found) != 0) {
    return SystemError(path, "cannot be read");
  }
  RETURN_IF_ERROR(CheckOwner(path, found));
  std::string bytes;
  std::array<char, 4096> room{};
  while (true) {
    const ssize_t got = read(fd.get(), room.data(), room.size());
    if (got == 0) {
      return bytes;
    }
    if (got < 0 && errno != EINTR) {
      return SystemError(path, "cannot be read");
    }
    bytes.append(room.data(), static_cast<std::size_t>(got < 0 ? 0 : got));
    if (bytes.size() > kMostBytes) {
      return Failed(
          fmt::format("{}: has more than {} bytes; expected a key or a token", path, kMostBytes));
    }
  }
}

Status WriteSecretFile(const std::string& path, std::string_view bytes) {
  return WriteFile(path, bytes, S_IRUSR | S_IWUSR);
}

Status WritePublicFile(const std::string& path, std::string_view bytes) {
  return WriteFile(path, bytes, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

}  // namespace trainyard::identity
