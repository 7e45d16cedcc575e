// SPDX-License-Identifier: Apache-2.0
// The program: runs what the command line asks for and turns outcomes into exit statuses.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/plugins.h"
#include "cli/slurm/slurm_commands.h"
#include "supervisor/launch/launch_steps.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

int ExitStatus(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return kStatusWrongUsage;
    case ErrorCode::kBadInput:
      return kStatusBadInput;
    default:
      return kStatusFailed;
  }
}

int Main(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string_view called = argc > 0 ? argv[0] : "";
  if (const std::optional<int> status =
          RunSlurmCommand(called.substr(called.rfind('/') + 1), words)) {
    return *status;
  }
  if (!words.empty() && words.front() == "launch") {  // by mpirun and supervisors only
    return supervisor::RunLaunchStep({words.begin() + 1, words.end()});
  }
  CommandLine line(std::move(words));
  const CommandLine::Outcome parsed = line.Parse();
  fmt::print("{}", parsed.out);
  fmt::print(stderr, "{}", parsed.errors);
  if (!parsed.runs) {
    return parsed.status;
  }
  Command& chosen = line.chosen();
  const Status status = [&]() -> Status {
    ASSIGN_OR_RETURN(chosen.plugins, LoadPlugins(line.plugins()));
    return chosen.run();
  }();
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.error().message);
    return ExitStatus(status.error());
  }
  return chosen.exit_status;
}

// A failed write to standard output, which AfterOutput tells of.
bool IsOfStandardOutput(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && std::ferror(stdout) != 0 && system->code().value() != EPIPE;
}

// Out of memory, a file or thread that the system refuses; anything else is a fault of the program,
// of which the library's own words would tell a user nothing.
void TellOf(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    std::fputs("trainyard: out of memory\n", stderr);  // fmt would throw once more
  } else if (const auto* const system = dynamic_cast<const std::system_error*>(&error)) {
    std::fprintf(stderr, "trainyard: the system has refused something that the command needs: %s\n",
                 system->code().message().c_str());
  } else {
    std::fprintf(stderr,
                 "trainyard: a fault of the program has ended the command (%s, version %s); please "
                 "report the command line, and nothing may be taken as done\n",
                 typeid(error).name(), TRAINYARD_VERSION);
  }
}

int Guarded(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    if (!IsOfStandardOutput(error)) {
      TellOf(error);
    }
    return kStatusFailed;
  }
}

// The last of what was printed leaves the program only here: an exit status of 0 must not say that
// it arrived where it did not. A reader that has closed its pipe wants no more, and no complaint.
int AfterOutput(int status) {
  int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (reason == 0 && std::ferror(stdout) != 0) {
    // An earlier write failed, and nobody has kept why: one more tells it.
    reason = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
  }
  if (reason == 0 || reason == EPIPE) {
    return status;
  }
  std::fprintf(stderr, "standard output: writing failed: %s\n",
               std::generic_category().message(reason).c_str());
  return status == kStatusSuccess ? kStatusFailed : status;
}

}  // namespace
}  // namespace trainyard::cli

int main(int argc, char** argv) {
  return trainyard::cli::AfterOutput(trainyard::cli::Guarded(argc, argv));
}
