// SPDX-License-Identifier: Apache-2.0
// trainyard compare: the same trace under several policies, as a table and an HTML report.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "cli/commands.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "report/html.h"
#include "report/json.h"
#include "report/output.h"
#include "report/table.h"
#include "scenario/scenario.h"

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded page
extern "C" {
extern const char report_template_begin;
extern const char report_template_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard {
namespace {

struct CompareOptions : RunOptions {
  std::vector<std::string> policies;
  std::string command_line;
};

// A folder name: letters, digits and a few signs stay, the rest becomes '-'.
std::string FolderOf(const std::string& label) {
  std::string folder = label;
  for (char& c : folder) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       c == '.' || c == '=';
    c = plain ? c : '-';
  }
  return folder;
}

Result<std::vector<RunResult>> RunAll(const CompareOptions& options, const Inputs& inputs,
                                      const StopRule& stop) {
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
         .on_progress = [&](std::size_t done, std::size_t all) { progress.Show(done, all); }});
    if (!run.ok()) {
      return run.error();
    }
    runs.push_back(std::move(run).value());
  }
  return runs;
}

Status WriteAll(const CompareOptions& options, const std::vector<RunResult>& runs) {
  for (const RunResult& run : runs) {
    const std::string folder = (std::filesystem::path(options.out) / FolderOf(run.label)).string();
    if (Status status = WriteRun(run, folder); !status.ok()) {
      return status;
    }
  }
  const std::string_view page(
      &report_template_begin,
      static_cast<std::size_t>(&report_template_end - &report_template_begin));
  const std::string path = (std::filesystem::path(options.out) / "report.html").string();
  if (Status status = WriteReport(runs, options.command_line, path, page); !status.ok()) {
    return status;
  }
  fmt::print(stderr, "report: {}\n", path);
  return {};
}

Status Compare(const CompareOptions& options) {
  const std::set<std::string> distinct(options.policies.begin(), options.policies.end());
  if (distinct.size() != options.policies.size()) {
    return InvalidArgument("a policy is given twice; expected different ones (or other options)");
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
  fmt::print("{}\n", options.json ? CompareJson(runs.value()) : ComparisonTable(runs.value()));
  std::fflush(stdout);
  if (Status status = WriteAll(options, runs.value()); !status.ok()) {
    return status;
  }
  for (const RunResult& run : runs.value()) {
    if (Status status = CheckFinished(run, stop); !status.ok()) {
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
  command->add_option("--out", options->out, "folder for report.html and one folder per run")
      ->capture_default_str();
  command->callback([options, &chosen] {
    options->command_line = chosen.command_line;
    chosen.run = [options] { return Compare(*options); };
  });
}

}  // namespace trainyard
