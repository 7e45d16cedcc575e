// SPDX-License-Identifier: Apache-2.0
// Programs to which notices are handed over.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.h"
#include "daemon/notices/outbox.h"
#include "io/descriptor.h"
#include "io/find_program.h"
#include "supervisor/exec_pointers.h"
#include "supervisor/launch/last_line.h"
#include "supervisor/launch/spawn.h"

namespace trainyard::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience(60);

// Bytes that a program reads from its standard input, and that stand in no list of processes.
Result<io::Descriptor> FileOf(const std::string& bytes) {
  io::Descriptor file(memfd_create("notice", MFD_CLOEXEC));
  if (!file.open() ||
      write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0) {
    return Failed(std::generic_category().message(errno));
  }
  return file;
}

// Waits for the child, which is killed when it takes too long. Error: it has failed.
Status AwaitEnd(pid_t child, const io::Descriptor& said, const std::string& program) {
  const Clock::time_point end = Clock::now() + kPatience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return Failed(fmt::format("'{}' has not come to its end within {} s and was killed", program,
                                kPatience.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return {};
  }
  const std::string last = supervisor::LastLineIn(fmt::format("/proc/self/fd/{}", said.get()));
  const std::string how = WIFEXITED(status)
                              ? fmt::format("has ended with status {}", WEXITSTATUS(status))
                              : fmt::format("was ended by signal {}", WTERMSIG(status));
  return Failed(fmt::format("'{}' {}{}{}", program, how, last.empty() ? "" : ": ", last));
}

Status RunProgram(const std::vector<std::string>& command, const std::string& input,
                  const std::vector<std::string>& variables) {
  ASSIGN_OR_RETURN(const io::Descriptor in, FileOf(input));
  ASSIGN_OR_RETURN(const io::Descriptor said, FileOf(""));
  std::vector<std::string> environment(variables);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  pid_t child = 0;
  if (const int error = supervisor::Spawn(command, supervisor::ExecPointers(environment).data(),
                                          child, {.in = in.get(), .err = said.get()});
      error != 0) {
    return Failed(fmt::format("'{}': {}", command.front(), std::generic_category().message(error)));
  }
  return AwaitEnd(child, said, command.front());
}

// A value of curl's configuration.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace

Outbox::Deliver ByProgram(const std::string& program) {
  return [program](const live::Notice& notice, const std::string& json) {
    return RunProgram(
        {program}, json + "\n",
        {"TRAINYARD_JOB=" + std::to_string(notice.job), "TRAINYARD_NAME=" + notice.name,
         "TRAINYARD_USER=" + notice.user, "TRAINYARD_EVENT=" + notice.event,
         fmt::format("TRAINYARD_TIME={:.3f}", notice.time), "TRAINYARD_STATE=" + notice.state,
         "TRAINYARD_REASON=" + notice.reason});
  };
}

// The address may hold a secret: it comes by standard input, as all the rest.
Outbox::Deliver ByUrl(const std::string& url) {
  return [url](const live::Notice& /*notice*/, const std::string& json) {
    const std::string configuration = fmt::format(
        "url = {}\nrequest = \"POST\"\nheader = \"Content-Type: application/json\"\n"
        "data-binary = {}\noutput = \"/dev/null\"\nsilent\nshow-error\nfail\nmax-time = {}\n"
        "proto = \"=http,https\"\n",
        Quoted(url), Quoted(json), kPatience.count() / 2);
    return RunProgram({"curl", "--disable", "--config", "-"}, configuration, {});
  };
}

Status CheckDestinations(const std::string& program, const std::string& url) {
  if (!program.empty() && (!program.starts_with("/") || access(program.c_str(), X_OK) != 0)) {
    return InvalidArgument(fmt::format(
        "--notify-program is '{}'; expected the absolute path of a program that may be run",
        program));
  }
  if (url.empty()) {
    return {};
  }
  if (!(url.starts_with("http://") || url.starts_with("https://")) ||
      std::any_of(url.begin(), url.end(), [](char c) { return c <= ' ' || c == '\x7f'; })) {
    return InvalidArgument(
        "--notify-url does not begin with http:// or https://, or has spaces; "
        "expected an address that takes a POST of JSON");
  }
  return !io::FindProgram("curl").empty()
             ? Status()
             : Failed(
                   "--notify-url needs curl, which is not along PATH; expected "
                   "it to be installed (apt-get install curl)");
}

}  // namespace trainyard::daemon
