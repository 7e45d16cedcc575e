// SPDX-License-Identifier: Apache-2.0
// trainyard compare: the same trace under several policies, as a table and an HTML report.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/run_pages.h"
#include "results/write/html.h"
#include "results/write/json.h"
#include "results/write/output.h"
#include "results/write/table.h"
#include "scenario/scenario.h"

namespace trainyard::cli {
namespace {

struct CompareOptions : RunOptions {
  std::vector<std::string> policies;
  ExplainOptions explain;
  std::string command_line;
};

Result<std::vector<results::RunResult>> RunAll(const CompareOptions& options,
                                               const scenario::Inputs& inputs,
                                               const world::StopRule& stop) {
  for (const std::string& policy : options.policies) {
    scenario::PresetRequest names = options.names;
    names.policy = policy;
    RETURN_IF_ERROR(WarnOfUnstated(names, inputs));
  }
  std::vector<results::RunResult> runs;
  for (std::size_t i = 0; i < options.policies.size(); ++i) {
    const std::string& policy = options.policies[i];
    scenario::PresetRequest names = options.names;
    names.policy = policy;
    ProgressBar progress(fmt::format("{} ({}/{})", policy, i + 1, options.policies.size()));
    ASSIGN_OR_RETURN(
        results::RunResult run,
        scenario::RunScenario(inputs, {.names = names,
                                       .seed = options.seed,
                                       .stop = stop,
                                       .keep_allocations = true,
                                       .on_progress = [&](std::size_t done, std::size_t all) {
                                         progress.Show(done, all);
                                       }}));
    runs.push_back(std::move(run));
  }
  return runs;
}

// Runs are labelled with their policies.
std::string FolderOfRunNamed(const CompareOptions& options, const std::string& label) {
  return (std::filesystem::path(options.out) / base::FileNameOf(label)).string();
}

std::string PageOf(const CompareOptions& options) {
  return (std::filesystem::path(options.out) / "report.html").string();
}

Status CheckCompared(const CompareOptions& options) {
  std::vector<NamedPath> outputs{{.name = "--out", .path = PageOf(options)}};
  for (const std::string& policy : options.policies) {
    AddPaths("--out", results::FilesOfRun(FolderOfRunNamed(options, policy)), outputs);
  }
  return CheckRunOutputs(options, outputs);
}

Status WriteAll(const CompareOptions& options, const std::vector<results::RunResult>& runs,
                const std::optional<results::Explanation>& explanation) {
  for (const results::RunResult& run : runs) {
    RETURN_IF_ERROR(results::WriteRun(run, FolderOfRunNamed(options, run.label)));
  }
  const std::string path = PageOf(options);
  RETURN_IF_ERROR(results::WriteReport(runs, options.command_line, path, ReportPage(),
                                       PageTables(explanation)));
  fmt::print(stderr, "report: {}\n", path);
  return {};
}

// Before anything is run: the runs are called by their policies.
Status CheckExplained(const CompareOptions& options) {
  std::vector<results::RunResult> runs(options.policies.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].label = options.policies[i];
  }
  RETURN_IF_ERROR(results::RunsToExplain(runs, options.explain.runs));
  return {};
}

Status Compare(const CompareOptions& options) {
  const std::set<std::string> distinct(options.policies.begin(), options.policies.end());
  if (distinct.size() != options.policies.size()) {
    return InvalidArgument("a policy is given twice; expected different ones (or other options)");
  }
  RETURN_IF_ERROR(CheckExplained(options));
  RETURN_IF_ERROR(CheckCompared(options));
  ASSIGN_OR_RETURN(const RunInputs read, ReadRunInputs(options));
  const auto& [inputs, stop] = read;
  ASSIGN_OR_RETURN(const std::vector<results::RunResult> runs, RunAll(options, inputs, stop));
  ASSIGN_OR_RETURN(const std::optional<results::Explanation> explanation,
                   ExplainRuns(options.explain, runs));
  // Whoever reads what is printed may stop before its end.
  RETURN_IF_ERROR(WriteAll(options, runs, explanation));
  PrintRuns(results::ComparisonTable(runs), results::CompareJson(runs), options.json,
            options.explain, explanation);
  for (const results::RunResult& run : runs) {
    RETURN_IF_ERROR(results::CheckFinished(run));
  }
  return {};
}

}  // namespace

void AddCompare(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<CompareOptions>();
  options->out = "trainyard-out";
  CLI::App* command = app.add_subcommand("compare", "run several policies on the same trace");
  AddRunOptions(*command, *options);
  command
      ->add_option("--policy", options->policies,
                   "NAME[:key=value,...], once for each policy; see `trainyard policies`")
      ->required()
      ->expected(1)
      ->take_all()
      ->check(NotEmpty());
  AddExplainOptions(*command, options->explain);
  command->add_option("--out", options->out, "folder for report.html and one folder per run")
      ->capture_default_str();
  command->callback([options, &chosen] {
    options->command_line = chosen.command_line;
    chosen.run = [options] { return Compare(*options); };
  });
}

}  // namespace trainyard::cli
