// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/script_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>

#include "base/try.h"
#include "io/byte_stream.h"

namespace trainyard::requests {

namespace fs = std::filesystem;

namespace {

// The first bytes of a file, or of what comes through a pipe: as many as there are up to `most`.
Result<std::string> BytesOf(const std::string& path, std::size_t most) {
  ASSIGN_OR_RETURN(io::ByteStream stream,
                   io::ByteStream::Open(path, io::ByteStream::Form::kOnDisk));
  std::string bytes(most, '\0');
  ASSIGN_OR_RETURN(const std::size_t got, stream.Read(bytes));
  bytes.resize(got);
  return bytes;
}

}  // namespace

Result<std::string> ScriptText(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
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
  ASSIGN_OR_RETURN(std::string text, BytesOf(path, kMost + 1));
  if (text.size() > kMost) {
    return none(" (it has more than 1 MiB)");
  }
  if (!text.starts_with("#!")) {
    return none(text.empty()                         ? " (it is empty)"
                : text.starts_with("\xEF\xBB\xBF#!") ? " (a byte order mark comes before it)"
                                                     : "");
  }
  return text;
}

Status CheckStays(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)
             ? Status()
             : InvalidArgument(fmt::format("'{}' is no file that stays, and has no #SBATCH line at "
                                           "its head: it would not be "
                                           "copied, and the job would read it where it runs; "
                                           "expected such a line, the name "
                                           "of a file, or -- before a command: trainyard submit "
                                           "[OPTIONS] -- sh -c 'COMMAND'",
                                           path));
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
