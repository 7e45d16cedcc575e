// SPDX-License-Identifier: Apache-2.0
#include "store/folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/try.h"

namespace trainyard::store {
namespace {

Error SystemError(std::string_view path, std::string_view what) {
  return Failed(fmt::format("{}: {}: {}", path, what, std::generic_category().message(errno)));
}

// Makes the names in a folder durable.
Status SyncFolder(const std::string& folder) {
  const io::Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.open() && fsync(fd.get()) == 0 ? Status()
                                           : SystemError(folder, "cannot be made durable");
}

// With its parents.
Status MakeFolder(const std::string& folder) {  // NOLINT(misc-no-recursion)
  struct stat found {};
  if (stat(folder.c_str(), &found) == 0) {
    return S_ISDIR(found.st_mode) ? Status()
                                  : Failed(fmt::format("{}: is a file; expected a folder", folder));
  }
  const std::string above = std::filesystem::path(folder).parent_path();
  if (!above.empty()) {
    RETURN_IF_ERROR(MakeFolder(above));
  }
  // The second is for whatever the umask took away.
  if (mkdir(folder.c_str(), S_IRWXU) == 0 && chmod(folder.c_str(), S_IRWXU) == 0) {
    return SyncFolder(above.empty() ? "." : above);
  }
  return errno == EEXIST ? Status() : SystemError(folder, "cannot be made");
}

// `blamed` is named in the error.
Result<io::Descriptor> OpenFile(const std::string& path, const std::string& blamed) {
  io::Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  struct stat found {};
  if (!fd.open() || fstat(fd.get(), &found) != 0 ||
      (found.st_size == 0 && fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0)) {
    return SystemError(blamed, "cannot be written");
  }
  return fd;
}

// The longest part of the path that is there.
std::filesystem::path ThereOf(const std::string& path) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  return there;
}

}  // namespace

Status CheckFolder(std::string_view option, const std::string& path) {
  std::error_code error;
  const std::filesystem::path there = ThereOf(path);
  if (!std::filesystem::is_directory(there, error)) {
    return InvalidArgument(
        fmt::format("{} is '{}', but {} is no folder; expected a folder, or one "
                    "that can be made",
                    option, path, there.string()));
  }
  if (access(there.c_str(), W_OK | X_OK) != 0) {
    return InvalidArgument(
        fmt::format("{} is '{}', but nothing may be written in {}; expected a "
                    "folder that may be written to",
                    option, path, there.string()));
  }
  return {};
}

Result<std::string> CheckFolderToBe(std::string_view option, const std::string& path) {
  std::error_code error;
  const std::filesystem::path there = ThereOf(path);
  const Status checked = CheckFolder(option, path);
  if (checked.ok()) {
    return std::string();
  }
  if (std::filesystem::exists(path, error) || !std::filesystem::is_directory(there, error)) {
    return checked.error();
  }
  return fmt::format(
      "{0} is '{1}', which is not there yet, and this user may make nothing in {2}: systemd makes "
      "it at the start (StateDirectory=), or root does before: install -d -m 0700 -o USER {1}",
      option, path, there.string());
}

Result<io::Descriptor> HoldFolder(const std::string& folder, std::string_view holder) {
  RETURN_IF_ERROR(MakeFolder(folder));
  Result<io::Descriptor> file = OpenFile(fmt::format("{}/{}.lock", folder, holder), folder);
  if (!file.ok() || flock(file.value().get(), LOCK_EX | LOCK_NB) == 0) {
    return file;
  }
  if (errno != EWOULDBLOCK) {
    return SystemError(folder, "cannot be locked");
  }
  return Failed(fmt::format("{}: another {} has it open; stop that one or choose another folder",
                            folder, holder));
}

Status MakeFile(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  RETURN_IF_ERROR(OpenFile(path, path));
  return SyncFolder(folder);
}

void SetAside(const std::string& folder, const std::string& name, std::int64_t bytes) {
  const std::string path = folder + "/" + name;
  const Result<io::Descriptor> file = OpenFile(path, path);
  if (!file.ok() || posix_fallocate(file.value().get(), 0, bytes) != 0) {
    unlink(path.c_str());
  }
}

}  // namespace trainyard::store
