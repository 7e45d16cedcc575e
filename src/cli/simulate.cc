// SPDX-License-Identifier: Apache-2.0
// trainyard simulate: one run.
#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/run_pages.h"
#include "results/write/html.h"
#include "results/write/output.h"
#include "scenario/scenario.h"

namespace trainyard::cli {
namespace {

struct SimulateOptions : RunOptions {
  std::string journal;
  std::string html;
  std::string command_line;
};

Status CheckSimulated(const SimulateOptions& options) {
  std::vector<NamedPath> outputs{{.name = "--journal", .path = options.journal},
                                 {.name = "--html", .path = options.html}};
  AddPaths("--out", results::FilesOfRun(options.out), outputs);
  return CheckRunOutputs(options, outputs);
}

Status Simulate(const SimulateOptions& options) {
  RETURN_IF_ERROR(CheckSimulated(options));
  ASSIGN_OR_RETURN(const RunInputs read, ReadRunInputs(options));
  const auto& [inputs, stop] = read;
  RETURN_IF_ERROR(WarnOfUnstated(options.names, inputs));
  scenario::RunRequest request{.names = options.names,
                               .seed = options.seed,
                               .stop = stop,
                               .journal_path = options.journal,
                               .keep_timeline = !options.out.empty() || !options.html.empty(),
                               .keep_allocations = !options.html.empty()};
  std::optional<ProgressBar> progress(std::in_place, "simulate");
  request.on_progress = [&](std::size_t done, std::size_t all) { progress->Show(done, all); };
  Result<results::RunResult> outcome = scenario::RunScenario(inputs, request);
  progress.reset();
  ASSIGN_OR_RETURN(const results::RunResult run, std::move(outcome));
  RETURN_IF_ERROR(PutOut(run, options));
  if (!options.html.empty()) {
    RETURN_IF_ERROR(
        results::WriteReport({&run, 1}, options.command_line, options.html, ReportPage()));
  }
  return results::CheckFinished(run);
}

}  // namespace

void AddSimulate(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "run one policy on a trace");
  AddRunOptions(*command, *options);
  command
      ->add_option("--policy", options->names.policy,
                   "NAME[:key=value,...]; see `trainyard policies`")
      ->check(NotEmpty());
  command->add_option("--out", options->out, "folder for jobs.csv, summary.json, timeline.csv");
  command->add_option("--html", options->html, "file for the report as a page");
  command->add_option("--journal", options->journal, "file for the journal of facts and actions");
  command->callback([options, &chosen] {
    options->command_line = chosen.command_line;
    chosen.run = [options] { return Simulate(*options); };
  });
}

}  // namespace trainyard::cli
