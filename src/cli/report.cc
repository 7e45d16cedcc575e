// SPDX-License-Identifier: Apache-2.0
// trainyard report: finished runs, of this program and of the published ones, as tables and a page.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/output_paths.h"
#include "cli/run_pages.h"
#include "originals/results/published.h"
#include "originals/results/published_json.h"
#include "originals/results/results.h"
#include "results/write/html.h"
#include "results/write/json.h"
#include "results/write/output_file.h"
#include "results/write/table.h"

namespace trainyard::cli {
namespace {

struct ReportOptions {
  originals::ResultsRequest request;
  std::string format;
  std::string out = "report.html";
  ExplainOptions explain;
  bool json = false;
  std::string command_line;
};

// The comparison, then a table for each run of a published program.
std::string TablesOf(const originals::Results& results) {
  std::string text = results::ComparisonTable(results.runs);
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    if (const std::optional<originals::OriginalResult>& original = results.originals[i]) {
      text += "\n\n" + originals::PublishedTable(results.runs[i].label, *original,
                                                 results::Measure(results.runs[i]));
    }
  }
  return text;
}

// How each table begins that CompareCsv makes.
constexpr std::string_view kCsvBegin = "label,jobs,completed,";

// The user names the page only: what lies under the name of the table may be anything.
Status CheckCsv(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return {};
  }
  std::string line;
  std::ifstream file(path, std::ios::binary);
  std::getline(file, line);
  return line.starts_with(kCsvBegin)
             ? Status()
             : InvalidArgument(path +
                               ": is there already and is no table of report, which goes beside "
                               "the page under this name; expected another name for --out");
}

Status CheckReported(const ReportOptions& options, const std::string& csv) {
  std::vector<NamedPath> inputs;
  for (const std::string& path : options.request.paths) {
    // The page may lie in the folder of the runs: there CheckCsv keeps their tables.
    if (std::error_code ignored; !std::filesystem::is_directory(path, ignored)) {
      inputs.push_back({.name = "OUT", .path = path});
    }
  }
  RETURN_IF_ERROR(CheckOutputs(
      inputs, {{.name = "--out", .path = options.out}, {.name = "--out", .path = csv}}));
  return CheckCsv(csv);
}

Status Report(ReportOptions options) {
  if (!options.format.empty()) {
    ASSIGN_OR_RETURN(const originals::Original program, originals::ParseOriginal(options.format));
    options.request.program = program;
  }
  const std::filesystem::path page(options.out);
  if (page.extension() != ".html") {
    return InvalidArgument("--out is '" + options.out + "'; expected the name of a page, *.html");
  }
  const std::string csv = std::filesystem::path(page).replace_extension(".csv").string();
  RETURN_IF_ERROR(CheckReported(options, csv));
  ASSIGN_OR_RETURN(const originals::Results results, originals::ReadResults(options.request));
  ASSIGN_OR_RETURN(const std::optional<results::Explanation> explanation,
                   ExplainRuns(options.explain, results.runs));
  PrintRuns(TablesOf(results), originals::ResultsJson(results), options.json, options.explain,
            explanation);
  RETURN_IF_ERROR(results::WriteReport(results.runs, options.command_line, options.out,
                                       ReportPage(), PageTables(explanation)));
  RETURN_IF_ERROR(results::WriteTextFile(csv, results::CompareCsv(results.runs)));
  fmt::print(stderr, "report: {}, {}\n", options.out, csv);
  return {};
}

}  // namespace

void AddReport(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "read finished runs back: a table, an HTML report, what jobs gained and lost");
  command
      ->add_option(
          "OUT", options->request.paths,
          "folders that simulate, compare or sweep --keep-runs wrote, or with results of Blox, "
          "Chronus, ElasticFlow, Muri, Synergy or Tiresias; or single tables of these")
      ->required();
  command
      ->add_option("--out", options->out,
                   "the page; beside it comes a CSV table with the metrics of all runs")
      ->capture_default_str();
  command->add_option("--format", options->format,
                      "blox, chronus, elasticflow, muri, synergy or tiresias: whose results the "
                      "tables are (default: recognised by their columns)");
  command
      ->add_option("--time-unit", options->request.time_unit,
                   "seconds in a unit of the times in tables of published programs (Chronus: 60)")
      ->transform(Span())
      ->check(Positive())
      ->capture_default_str();
  AddExplainOptions(*command, options->explain);
  command->add_flag("--json", options->json, "print JSON instead of tables");
  command->callback([options, &chosen] {
    options->command_line = chosen.command_line;
    chosen.run = [options] { return Report(*options); };
  });
}

}  // namespace trainyard::cli
