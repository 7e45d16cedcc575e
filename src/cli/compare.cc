// SPDX-License-Identifier: Apache-2.0
// trainyard compare: the same trace under several policies, as a table and an HTML report.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/explain_options.h"
#include "cli/progress_bar.h"
#include "cli/report_page.h"
#include "cli/run_options.h"
#include "report/html.h"
#include "report/json.h"
#include "report/output.h"
#include "report/table.h"
#include "scenario/scenario.h"

namespace trainyard {
namespace {

struct CompareOptions : RunOptions {
  std::vector<std::string> policies;
  ExplainOptions explain;
  std::string command_line;
};

Result<std::vector<RunResult>> RunAll(const CompareOptions& options, const Inputs& inputs,
                                      const StopRule& stop) {
  for (const std::string& policy : options.policies) {
    PresetRequest names = options.names;
    names.policy = policy;
    if (Status warned = WarnOfUnstated(names, inputs); !warned.ok()) {
      return warned.error();
    }
  }
  std::vector<RunResult> runs;
  for (std::size_t i = 0; i < options.policies.size(); ++i) {
    const std::string& policy = options.policies[i];
    PresetRequest names = options.names;
    names.policy = policy;
    ProgressBar progress(fmt::format("{} ({}/{})", policy, i + 1, options.policies.size()));
    Result<RunResult> run = RunScenario(
        inputs,
        {.names = names,
         .seed = options.seed,
         .stop = stop,
         .keep_allocations = true,
         .on_progress = [&](std::size_t done, std::size_t all) { progress.Show(done, all); }});
    if (!run.ok()) {
      return run.error();
    }
    runs.push_back(std::move(run).value());
  }
  return runs;
}

// Runs are labelled with their policies.
std::string FolderOfRunNamed(const CompareOptions& options, const std::string& label) {
  return (std::filesystem::path(options.out) / FileNameOf(label)).string();
}

std::string PageOf(const CompareOptions& options) {
  return (std::filesystem::path(options.out) / "report.html").string();
}

Status CheckCompared(const CompareOptions& options) {
  std::vector<NamedPath> outputs{{.name = "--out", .path = PageOf(options)}};
  for (const std::string& policy : options.policies) {
    AddPaths("--out", FilesOfRun(FolderOfRunNamed(options, policy)), outputs);
  }
  return CheckRunOutputs(options, outputs);
}

Status WriteAll(const CompareOptions& options, const std::vector<RunResult>& runs,
                const std::optional<Explanation>& explanation) {
  for (const RunResult& run : runs) {
    if (Status status = WriteRun(run, FolderOfRunNamed(options, run.label)); !status.ok()) {
      return status;
    }
  }
  const std::string path = PageOf(options);
  if (Status status =
          WriteReport(runs, options.command_line, path, ReportPage(), PageTables(explanation));
      !status.ok()) {
    return status;
  }
  fmt::print(stderr, "report: {}\n", path);
  return {};
}

// Before anything is run: the runs are called by their policies.
Status CheckExplained(const CompareOptions& options) {
  std::vector<RunResult> runs(options.policies.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].label = options.policies[i];
  }
  const auto pair = RunsToExplain(runs, options.explain.runs);
  return pair.ok() ? Status() : pair.error();
}

Status Compare(const CompareOptions& options) {
  const std::set<std::string> distinct(options.policies.begin(), options.policies.end());
  if (distinct.size() != options.policies.size()) {
    return InvalidArgument("a policy is given twice; expected different ones (or other options)");
  }
  if (Status status = CheckExplained(options); !status.ok()) {
    return status;
  }
  if (Status status = CheckCompared(options); !status.ok()) {
    return status;
  }
  const Result<RunInputs> read = ReadRunInputs(options);
  if (!read.ok()) {
    return read.error();
  }
  const auto& [inputs, stop] = read.value();
  const Result<std::vector<RunResult>> runs = RunAll(options, inputs, stop);
  if (!runs.ok()) {
    return runs.error();
  }
  const Result<std::optional<Explanation>> explanation = ExplainRuns(options.explain, runs.value());
  if (!explanation.ok()) {
    return explanation.error();
  }
  PrintRuns(ComparisonTable(runs.value()), CompareJson(runs.value()), options.json, options.explain,
            explanation.value());
  if (Status status = WriteAll(options, runs.value(), explanation.value()); !status.ok()) {
    return status;
  }
  for (const RunResult& run : runs.value()) {
    if (Status status = CheckFinished(run); !status.ok()) {
      return status;
    }
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
      ->take_all();
  AddExplainOptions(*command, options->explain);
  command->add_option("--out", options->out, "folder for report.html and one folder per run")
      ->capture_default_str();
  command->callback([options, &chosen] {
    options->command_line = chosen.command_line;
    chosen.run = [options] { return Compare(*options); };
  });
}

}  // namespace trainyard
