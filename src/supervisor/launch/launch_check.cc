// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

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
  const std::vector<std::string_view> folders =
      base::Split(std::string_view(*path).substr(kPath.size()), ":");
  return std::any_of(folders.begin(), folders.end(), [&name](std::string_view folder) {
    return MayBeRun(fmt::format("{}/{}", folder, name));
  });
}

StartFailure Missing(std::string message) {
  return {kCommandNotFound, std::move(message), v1::AttemptReport::NO_PROGRAM};
}

}  // namespace

std::optional<StartFailure> WhyNotLaunched(const v1::StartAttempt& start,
                                           const std::string& program,
                                           const std::vector<std::string>& environment) {
  const v1::LaunchSpec& launch = start.launch();
  if (!launch.venv().empty() && !MayBeRun(launch.venv() + "/bin/python")) {
    return Missing(fmt::format(
        "virtual environment '{}': it has no program bin/python here; expected one that is on each "
        "node, made by 'python3 -m venv {}'",
        launch.venv(), launch.venv()));
  }
  if (launch.launcher() != v1::LaunchSpec::MPI) {
    return std::nullopt;
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
  return std::nullopt;
}

}  // namespace trainyard::supervisor
