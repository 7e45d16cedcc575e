// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/script_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/try.h"
#include "io/file.h"

namespace trainyard::requests {

namespace fs = std::filesystem;

Result<std::string> ScriptText(const std::string& path) {
  constexpr off_t kMost = off_t{1} << 20;
  const auto none = [&path](std::string_view why) {
    return InvalidArgument(fmt::format(
        "'{0}' is no script that begins with #!{1}; expected one, or -- before the job's command: "
        "trainyard submit [OPTIONS] -- {0}",
        path, why));
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return none(" (there is no such file)");
  }
  if (S_ISDIR(status.st_mode)) {
    return none(" (it is a folder)");
  }
  if (!S_ISREG(status.st_mode)) {
    return InvalidArgument(fmt::format(
        "'{}' is no file that stays, as a pipe is none: nothing of a script is copied, and the job "
        "reads it where it runs; expected the name of a file, or -- before a command: trainyard "
        "submit [OPTIONS] -- sh -c 'COMMAND'",
        path));
  }
  if (status.st_size > kMost) {
    return none(" (it has more than 1 MiB)");
  }
  ASSIGN_OR_RETURN(std::string text, io::ReadBytes(path));
  if (!text.starts_with("#!")) {
    return none(text.empty()                         ? " (it is empty)"
                : text.starts_with("\xEF\xBB\xBF#!") ? " (a byte order mark comes before it)"
                                                     : "");
  }
  return text;
}

std::string RealPath(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  if (!absolute.starts_with("/dev/") && !absolute.starts_with("/proc/")) {
    return path;
  }
  const std::string real = fs::canonical(absolute, error).string();
  return error ? path : real;
}

}  // namespace trainyard::requests
