// SPDX-License-Identifier: Apache-2.0
// trainyard replay-live and fidelity: a trace on a cluster, and what came of it beside a
// simulation.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/running.h"
#include "daemon/fast_forward.h"
#include "daemon/live_replay.h"
#include "io/json.h"
#include "results/metrics/fidelity.h"
#include "results/write/output.h"
#include "rpc/address.h"

namespace trainyard::cli {
namespace {

struct ReplayCommand : RunOptions {
  daemon::ReplayOptions replay{.controller = "127.0.0.1:7077"};
  bool fast_forward = false;
  double steps = daemon::Steps{}.iterations;
  std::string state;  // with a command: for logs and checkpoints
};

Result<results::RunResult> FastForward(const ReplayCommand& options, const scenario::Inputs& inputs,
                                       const scenario::RunRequest& request) {
  if (options.replay.command.empty()) {
    return daemon::RunFastForward(inputs, request);
  }
  std::error_code error;
  if (std::filesystem::exists(options.state, error) &&
      !std::filesystem::is_empty(options.state, error)) {
    return InvalidArgument(options.state + ": is not empty; expected a new folder for --state");
  }
  StopOnSignals();
  return daemon::RunFastForward(
      inputs, request,
      daemon::SteppedCommand{.command = options.replay.command,
                             .program = ThisProgram(),
                             .folder = options.state,
                             .steps = {.iterations = options.steps, .stop_wanted = StopWanted}});
}

// What a running cluster has decided already.
Status CheckNames(const ReplayCommand& options) {
  const scenario::PresetRequest& names = options.names;
  for (const auto& [option, value] : {std::pair{"--policy", &names.policy},
                                      {"--placement", &names.placement},
                                      {"--admission", &names.admission},
                                      {"--grouping", &names.grouping},
                                      {"--tuning", &names.tuning},
                                      {"--state", &options.state}}) {
    if (!options.fast_forward && !value->empty()) {
      return InvalidArgument(
          fmt::format("{} has no effect on a running cluster, which has its own; expected it with "
                      "--fast-forward only",
                      option));
    }
  }
  return {};
}

Status ReplayLive(const ReplayCommand& options) {
  RETURN_IF_ERROR(CheckNames(options));
  std::vector<NamedPath> outputs;
  AddPaths("--out", results::FilesOfRun(options.out), outputs);
  RETURN_IF_ERROR(CheckRunOutputs(options, outputs));
  ASSIGN_OR_RETURN(const RunInputs read, ReadRunInputs(options));
  if (options.until || !options.track.empty()) {
    return InvalidArgument("--until and --track stop simulations; expected neither");
  }
  if (options.fast_forward && !options.replay.command.empty() && options.state.empty()) {
    return InvalidArgument(
        "the workers of a command leave logs and checkpoints; expected --state FOLDER");
  }
  daemon::ReplayOptions replay = options.replay;
  ASSIGN_OR_RETURN(replay.controller, rpc::ControllerAddress("--controller", replay.controller));
  const scenario::Inputs& inputs = read.inputs;
  std::optional<ProgressBar> progress(std::in_place, "replay-live");
  const scenario::RunRequest request{
      .names = options.names,
      .seed = options.seed,
      .keep_timeline = !options.out.empty(),
      .on_progress = [&](std::size_t done, std::size_t all) { progress->Show(done, all); }};
  const Result<results::RunResult> run = options.fast_forward
                                             ? FastForward(options, inputs, request)
                                             : daemon::ReplayOnCluster(inputs, request, replay);
  progress.reset();
  if (!run.ok()) {
    return run.error();
  }
  return PutOut(run.value(), options);
}

struct FidelityCommand {
  std::string a;
  std::string b;
  std::optional<double> within;
  bool json = false;
};

std::string ReplayText(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds) : "-";
}

nlohmann::json OrNull(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

void PrintFidelity(const results::Fidelity& fidelity) {
  fmt::print("{:<24} {:>11} {:>14} {:>14} {:>12}\n", "job", "outcome", "jct a", "jct b",
             "difference");
  for (const results::FidelityRow& row : fidelity.rows) {
    const bool both = row.jct_a && row.jct_b;
    fmt::print("{:<24} {:>11} {:>14} {:>14} {:>12}\n", row.job,
               row.outcome_a == row.outcome_b ? row.outcome_a : "differs", ReplayText(row.jct_a),
               ReplayText(row.jct_b), both ? fmt::format("{:+.3f}", *row.jct_b - *row.jct_a) : "-");
  }
  fmt::print("jobs {}: same outcome {}, same JCT {}\n", fidelity.rows.size(), fidelity.same_outcome,
             fidelity.same_jct);
  fmt::print("mean JCT {} against {}", ReplayText(fidelity.jct_mean_a),
             ReplayText(fidelity.jct_mean_b));
  if (fidelity.jct_difference) {
    fmt::print(": {:.3f} % apart", *fidelity.jct_difference * 100);
  }
  fmt::print("\n");
}

void PrintFidelityJson(const results::Fidelity& fidelity) {
  nlohmann::json rows = nlohmann::json::array();
  for (const results::FidelityRow& row : fidelity.rows) {
    rows.push_back({{"job_id", row.job},
                    {"outcome_a", row.outcome_a},
                    {"outcome_b", row.outcome_b},
                    {"jct_a", OrNull(row.jct_a)},
                    {"jct_b", OrNull(row.jct_b)},
                    {"queueing_delay_a", OrNull(row.queueing_delay_a)},
                    {"queueing_delay_b", OrNull(row.queueing_delay_b)}});
  }
  const nlohmann::json all = {{"jobs", fidelity.rows.size()},
                              {"same_outcome", fidelity.same_outcome},
                              {"same_jct", fidelity.same_jct},
                              {"jct_mean_a", OrNull(fidelity.jct_mean_a)},
                              {"jct_mean_b", OrNull(fidelity.jct_mean_b)},
                              {"jct_difference", OrNull(fidelity.jct_difference)},
                              {"rows", rows}};
  fmt::print("{}\n", all.dump(2));
}

Status CompareFidelity(const FidelityCommand& options) {
  ASSIGN_OR_RETURN(const results::Fidelity fidelity, results::CompareRuns(options.a, options.b));
  options.json ? PrintFidelityJson(fidelity) : PrintFidelity(fidelity);
  if (!options.within) {
    return {};
  }
  if (fidelity.same_outcome != static_cast<std::int64_t>(fidelity.rows.size())) {
    return Failed("outcomes differ");
  }
  if (fidelity.jct_difference.value_or(0) * 100 > *options.within) {
    return Failed(fmt::format("mean JCT is {:.3f} % apart; expected at most {} %",
                              *fidelity.jct_difference * 100, *options.within));
  }
  return {};
}

}  // namespace

void AddReplayLive(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ReplayCommand>();
  CLI::App* command =
      app.add_subcommand("replay-live", "play a trace to a cluster, with emulated trainers");
  AddRunOptions(*command, *options);
  command
      ->add_option("--policy", options->names.policy,
                   "with --fast-forward; a running cluster has its own")
      ->check(NotEmpty());
  command->add_option("--controller", options->replay.controller, "ADDRESS:PORT")
      ->envname("TRAINYARD_CONTROLLER")
      ->capture_default_str();
  command
      ->add_option("--time-scale", options->replay.time_scale,
                   "seconds of the trace per real second; the controller must run with the same")
      ->check(Positive())
      ->capture_default_str();
  command
      ->add_flag("--fast-forward", options->fast_forward,
                 "controller and agents in this program, in a time that jumps to what is next")
      ->excludes("--time-scale");
  command
      ->add_option("--steps", options->steps,
                   "with --fast-forward and a command: iterations that each attempt does for real "
                   "before time jumps; 0: its processes have started")
      ->transform(WholeNumber())
      ->check(NonNegative())
      ->capture_default_str();
  command->add_option("--state", options->state,
                      "with --fast-forward and a command: new folder for the workers' logs and "
                      "checkpoints");
  command->add_option("--out", options->out, "folder for jobs.csv, summary.json, timeline.csv");
  command->footer(
      "A command after the options is what all workers run, instead of emulated trainers:\n"
      "trainyard replay-live TRACE --cluster SPEC -- PROGRAM [ARGUMENT...]");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] {
      options->replay.command = chosen.rest;
      return ReplayLive(*options);
    };
  });

  auto fidelity = std::make_shared<FidelityCommand>();
  command = app.add_subcommand("fidelity", "compare two runs of the same jobs, job by job");
  command->add_option("RUN_A", fidelity->a, "folder with jobs.csv")->required();
  command->add_option("RUN_B", fidelity->b, "folder with jobs.csv")->required();
  command->add_option("--within", fidelity->within,
                      "fail if an outcome differs or mean JCT is more than so many percent apart");
  command->add_flag("--json", fidelity->json, "print JSON");
  command->callback(
      [fidelity, &chosen] { chosen.run = [fidelity] { return CompareFidelity(*fidelity); }; });
}

}  // namespace trainyard::cli
