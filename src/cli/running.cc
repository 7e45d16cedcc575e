// SPDX-License-Identifier: Apache-2.0
#include "cli/running.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/try.h"
#include "io/file.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

volatile sig_atomic_t interrupted = 0;  // NOLINT: what a signal handler may touch

}  // namespace

void StopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool StopWanted() { return interrupted != 0; }

std::string DefaultReference() {
  const char* const set = std::getenv("TRAINYARD_REFERENCE");  // NOLINT(concurrency-mt-unsafe)
  return set == nullptr || *set == '\0' ? "../shared" : set;
}

Result<std::string> ProgramDigest(const std::vector<std::string>& plugins) {
  std::vector<std::string> files{"/proc/self/exe"};
  files.insert(files.end(), plugins.begin(), plugins.end());
  std::string digests;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string digest, io::Sha256OfFile(file));
    digests += digest;
  }
  return io::Sha256Hex(digests);
}

std::string ThisProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

Result<std::string> ProgramName(const std::vector<std::string>& plugins) {
  constexpr std::size_t kDigits = 12;
  std::vector<std::string> names;
  for (const std::string& plugin : plugins) {
    ASSIGN_OR_RETURN(const std::string digest, io::Sha256OfFile(plugin));
    names.push_back(fmt::format("{} ({})", std::filesystem::path(plugin).filename().string(),
                                digest.substr(0, kDigits)));
  }
  std::sort(names.begin(), names.end());
  return names.empty() ? TRAINYARD_VERSION
                       : fmt::format(TRAINYARD_VERSION " with {}", fmt::join(names, ", "));
}

}  // namespace trainyard::cli
