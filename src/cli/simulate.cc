// SPDX-License-Identifier: Apache-2.0
// trainyard simulate: one run.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "report/json.h"
#include "report/output.h"
#include "report/table.h"
#include "scenario/scenario.h"

namespace trainyard {
namespace {

struct SimulateOptions : RunOptions {
  std::string journal;
};

Status Simulate(const SimulateOptions& options) {
  const Result<RunInputs> read = ReadRunInputs(options);
  if (!read.ok()) {
    return read.error();
  }
  const auto& [inputs, stop] = read.value();
  std::optional<ProgressBar> progress(std::in_place, "simulate");
  const Result<RunResult> run = RunScenario(
      inputs,
      {.names = options.names,
       .seed = options.seed,
       .stop = stop,
       .journal_path = options.journal,
       .keep_timeline = !options.out.empty(),
       .on_progress = [&](std::size_t done, std::size_t all) { progress->Show(done, all); }});
  progress.reset();
  if (!run.ok()) {
    return run.error();
  }
  if (!options.out.empty()) {
    if (Status status = WriteRun(run.value(), options.out); !status.ok()) {
      return status;
    }
  }
  fmt::print("{}\n", options.json ? SummaryJson(run.value()) : RunSummaryText(run.value()));
  return CheckFinished(run.value(), stop);
}

}  // namespace

void AddSimulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "run one policy on a trace");
  AddRunOptions(*command, *options);
  command->add_option("--policy", options->names.policy,
                      "NAME[:key=value,...]; see `trainyard policies`");
  command->add_option("--out", options->out, "folder for jobs.csv, summary.json, timeline.csv");
  command->add_option("--journal", options->journal, "file for the journal of facts and actions");
  command->callback([options, &chosen] { chosen.run = [options] { return Simulate(*options); }; });
}

}  // namespace trainyard
