// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "io/find_program.h"
#include "supervisor/data/data_store.h"

namespace trainyard::supervisor {
namespace {

bool MayBeRun(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

bool IsOnPath(const std::string& name, const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  const auto path =
      std::find_if(environment.begin(), environment.end(),
                   [&](const std::string& variable) { return variable.starts_with(kPath); });
  if (path == environment.end()) {
    return false;
  }
  return !io::FindProgram(name, std::string_view(*path).substr(kPath.size())).empty();
}

StartFailure Missing(std::string message) {
  return {kCommandNotFound, std::move(message), v1::AttemptReport::NO_PROGRAM};
}

// What torchrun and mpirun are to start: they would hide among many lines that it is not there.
std::optional<StartFailure> CheckCommand(const v1::LaunchSpec& launch,
                                         const std::vector<std::string>& environment) {
  if (launch.launcher() == v1::LaunchSpec::PLAIN || launch.has_container() ||
      launch.command().empty()) {
    return std::nullopt;
  }
  const std::string& word = launch.command(0);
  if (word.find('/') == std::string::npos) {
    return IsOnPath(word, environment)
               ? std::nullopt
               : std::optional(Missing(fmt::format("command '{}': it is not on the PATH{}", word,
                                                   HintForScript(word))));
  }
  const std::string path = word.starts_with('/') ? word : launch.working_directory() + "/" + word;
  return MayBeRun(path) ? std::nullopt
                        : std::optional(Missing(fmt::format("command '{}': {}{}", word,
                                                            std::generic_category().message(errno),
                                                            HintForScript(word))));
}

// A copy is the agent's matter.
std::optional<StartFailure> CheckData(const v1::StartAttempt& start) {
  const std::string folder = start.data_folder().empty() ? DataFolderOf(start) : std::string();
  std::error_code error;
  if (!folder.starts_with('/') || std::filesystem::exists(folder, error)) {
    return std::nullopt;
  }
  return StartFailure{
      kNotStarted,
      fmt::format("data set '{}': its folder {} is not here; expected one that is on each node, or "
                  "nodes that fetch it (agent --data-cache)",
                  start.data_set().name(), folder),
      v1::AttemptReport_Cause_NO_DATA};  // netdb.h has a macro NO_DATA
}

}  // namespace

std::optional<StartFailure> CheckLaunch(const v1::StartAttempt& start, const std::string& program,
                                        const std::vector<std::string>& environment) {
  const v1::LaunchSpec& launch = start.launch();
  if (std::optional<StartFailure> no_data = CheckData(start)) {
    return no_data;
  }
  if (!launch.venv().empty() && !MayBeRun(launch.venv() + "/bin/python")) {
    return Missing(fmt::format(
        "virtual environment '{}': it has no program bin/python here; expected one that is on each "
        "node, made by 'python3 -m venv {}'",
        launch.venv(), launch.venv()));
  }
  if (launch.launcher() != v1::LaunchSpec::MPI) {
    return CheckCommand(launch, environment);
  }
  for (const char* const name : {"mpirun", "orted"}) {
    if (!IsOnPath(name, environment)) {
      return Missing(fmt::format(
          "command '{}' is not on the PATH; --launcher mpi needs Open MPI 4 on each node", name));
    }
  }
  if (program.find_first_of(" :") != std::string::npos) {  // mpirun would cut it there
    return StartFailure{kNotStarted,
                        fmt::format("the path of Trainyard, '{}', has a blank or a colon; expected "
                                    "none for --launcher mpi",
                                    program),
                        v1::AttemptReport::NO_PROGRAM};
  }
  return CheckCommand(launch, environment);
}

}  // namespace trainyard::supervisor
