// SPDX-License-Identifier: Apache-2.0
// The sub-commands. Each adds itself to the program; its callback says what is to be done.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::daemon {
struct ControllerOptions;
}

namespace trainyard::cli {

// What the command line asks for. It runs after the plug-ins are loaded.
struct Command {
  std::function<Status()> run;
  std::string command_line;  // as given
  // What follows "--" in `submit`, `run`, `attach`, `replay-live` and `profile`: a command of its
  // own, which is not parsed.
  std::vector<std::string> rest{};
  std::vector<std::string> plugins{};  // absolute paths of those that are loaded
  int exit_status = 0;                 // where `run` has succeeded: that of a job
  // Of `controller` and `agent`: the options that the command line and its --config give, by their
  // names; of `controller` also what they mean.
  std::map<std::string, std::string> given{};
  std::shared_ptr<const daemon::ControllerOptions> controller{};
  // The same command line with its --config as it is now. Errors: what is wrong with it.
  std::function<Result<std::shared_ptr<const Command>>()> read_again{};
};

// Adds one command to the program, or several.
struct CommandMaker {
  std::string_view names;  // separated by blanks
  void (*add)(CLI::App& app, Command& chosen);
};

// All that follow, and an example for each.
void AddAllCommands(CLI::App& app, Command& chosen);
// Those made with the one of that name, which is all that a run of it needs: to make all of them
// takes a third of the time of a start. All, where the name is none or of a command about commands.
void AddCommand(CLI::App& app, Command& chosen, std::string_view name);
void AddSimulate(CLI::App& app, Command& chosen);
void AddCompare(CLI::App& app, Command& chosen);
void AddReport(CLI::App& app, Command& chosen);
void AddTrace(CLI::App& app, Command& chosen);
// reproduce
void AddReproduce(CLI::App& app, Command& chosen);
// sweep
void AddSweep(CLI::App& app, Command& chosen);
// loader: fit, predict, allocate
void AddLoader(CLI::App& app, Command& chosen);
void AddLoaderPredictions(CLI::App& loader, Command& chosen);
// profile: sensitivity, throughput, overhead, stages, loader
void AddProfile(CLI::App& app, Command& chosen);
// replay-live, fidelity
void AddReplayLive(CLI::App& app, Command& chosen);
// controller, agent, up
void AddLive(CLI::App& app, Command& chosen);
// policies, placements, admissions, presets
void AddCatalogs(CLI::App& app, Command& chosen);
// About all commands.
inline constexpr std::string_view kWordsAboutAll = "help completion manual";
void AddHelpCommands(CLI::App& app, Command& chosen);
// What calls the controller of a live cluster: submit, status and so on.
[[nodiscard]] std::span<const CommandMaker> ClientCommands();

// trace convert, generate, generate-profiles and generate-failures
void AddConvert(CLI::App& trace, Command& chosen);
void AddGenerate(CLI::App& trace, Command& chosen);
void AddGenerateProfiles(CLI::App& trace, Command& chosen);
void AddGenerateFailures(CLI::App& trace, Command& chosen);

// Writes what `trace generate --KEY=VALUE ...` gives to the file.
[[nodiscard]] Status GenerateTraceFile(
    const std::vector<std::pair<std::string, std::string>>& options, const std::string& path);

// The formats that are read, which of them are written too, and where they are documented: below
// the help of `trace`.
[[nodiscard]] std::string ListOfFormats();

}  // namespace trainyard::cli
