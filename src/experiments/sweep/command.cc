// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/text.h"
#include "io/descriptor.h"

namespace trainyard::experiments {
namespace {

std::string ContentOf(const io::Descriptor& file) {
  std::string text;
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = pread(file.get(), buffer.data(), buffer.size(),
                        static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

Error CannotStart(const std::string& program, int why) {
  return Failed(program + ": cannot be started: " + std::generic_category().message(why));
}

}  // namespace

Result<CommandOutput> RunCommand(const std::vector<std::string>& words) {
  // Files in memory: however much it says, it never waits for a reader.
  const io::Descriptor output(memfd_create("output", MFD_CLOEXEC));
  const io::Descriptor errors(memfd_create("errors", MFD_CLOEXEC));
  if (output.get() < 0 || errors.get() < 0) {
    return CannotStart(words.front(), errno);
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // exec does not change it
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors.get(), STDERR_FILENO);
  // A group of its own: who interrupts this program from the keyboard does not mean that one.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  const int failed =
      posix_spawnp(&pid, words.front().c_str(), &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    return CannotStart(words.front(), failed);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  CommandOutput result{.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                       .output = ContentOf(output),
                       .errors = ContentOf(errors)};
  result.errors.erase(result.errors.find_last_not_of('\n') + 1);
  return result;
}

std::string QuotedForShell(const std::string& word) {
  return "'" + base::ReplaceAll(word, "'", "'\\''") + "'";
}

}  // namespace trainyard::experiments
