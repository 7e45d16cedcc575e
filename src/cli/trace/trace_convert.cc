// SPDX-License-Identifier: Apache-2.0
// trainyard trace convert: a trace in another format.
#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/reading.h"
#include "io/archive/pack.h"
#include "io/json.h"
#include "io/table_faults.h"
#include "results/write/output_file.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::cli {
namespace {

struct ConvertCommand {
  std::string in;
  std::string out;
  trace::TraceOptions reading;
  std::string to;
  bool force = false;
  bool json = false;
};

// What the name of a file says about its format; empty: nothing.
std::string_view FormatOfName(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kEnds{
      {{".csv", "native"}, {".jsonl", "jsonl"}, {".json", "batsim"}, {".swf", "swf"}}};
  for (const auto& [end, format] : kEnds) {
    if (io::UnpackedName(path).ends_with(end)) {
      return format;
    }
  }
  return {};
}

Result<std::string> ChooseTarget(const ConvertCommand& command) {
  if (!command.to.empty()) {
    return command.to;
  }
  if (const std::string_view named = FormatOfName(command.out); !named.empty()) {
    return std::string(named);
  }
  return InvalidArgument(fmt::format(
      "{}: the name says no format; expected --to FORMAT, or a name that ends with .csv (native), "
      ".jsonl, .json (batsim) or .swf",
      command.out));
}

Status CheckTarget(const ConvertCommand& command) {
  std::error_code ignored;
  if (!command.force && std::filesystem::exists(command.out, ignored)) {
    return InvalidArgument(command.out + ": is there already; expected --force, or another name");
  }
  return {};
}

// What is lost in the new file. It is read before it takes its name.
Result<std::vector<std::string>> WriteOut(const ConvertCommand& command, const trace::Trace& trace,
                                          const std::string& to) {
  ASSIGN_OR_RETURN(std::string text, trace::WriteTrace(trace, to));
  Result<std::string> packed = io::Pack(std::move(text), io::CompressionOf(command.out));
  if (!packed.ok()) {
    return Failed(fmt::format("{}: {}", command.out, packed.error().message));
  }
  results::OutputFile file(command.out);
  file.text() = std::move(packed).value();
  RETURN_IF_ERROR(file.Close());
  ASSIGN_OR_RETURN(const trace::Trace back, trace::ReadTrace(file.partial_path(), {.format = to}));
  ASSIGN_OR_RETURN(std::vector<std::string> lost, trace::LostBetween(trace, back));
  RETURN_IF_ERROR(file.Publish());
  return lost;
}

// "job_id, gpus, user of all jobs, time_limit of 24132, cpus of 7"
std::string TakenText(const std::vector<std::pair<std::string, std::size_t>>& taken,
                      std::size_t jobs) {
  std::string of_all;
  std::string of_some;
  for (const auto& [column, count] : taken) {
    if (count == jobs) {
      of_all += (of_all.empty() ? "" : ", ") + column;
    } else {
      of_some += fmt::format(", {} of {}", column, count);
    }
  }
  return of_all + " of all jobs" + of_some;
}

void ReportConversion(const ConvertCommand& command, const trace::Trace& trace,
                      const std::string& to, const std::vector<std::string>& lost) {
  if (!lost.empty()) {
    fmt::print(stderr, "not in format {}: {}\n", to, fmt::join(lost, ", "));
  }
  const std::vector<std::pair<std::string, std::size_t>> taken = trace::StatedIn(trace);
  if (command.json) {
    nlohmann::ordered_json counts = nlohmann::ordered_json::object();
    for (const auto& [column, jobs] : taken) {
      counts[column] = jobs;
    }
    const nlohmann::ordered_json json{
        {"in", command.in}, {"out", command.out},        {"from", trace.format},
        {"to", to},         {"jobs", trace.jobs.size()}, {"skipped_rows", trace.skipped_rows},
        {"taken", counts},  {"left", trace.unread},      {"lost", lost}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}: {} jobs, {} rows skipped, {} to {}\n", command.out, trace.jobs.size(),
             trace.skipped_rows, trace.format, to);
  fmt::print("taken: {}\n", TakenText(taken, trace.jobs.size()));
  if (!trace.unread.empty()) {
    fmt::print("left:  {}\n", io::NameList(trace.unread));
  }
}

Status Convert(const ConvertCommand& command) {
  ASSIGN_OR_RETURN(const std::string to, ChooseTarget(command));
  RETURN_IF_ERROR(CheckTarget(command));
  ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(command.in, command.reading));
  ReportReading(trace);
  ASSIGN_OR_RETURN(const std::vector<std::string> lost, WriteOut(command, trace, to));
  ReportConversion(command, trace, to, lost);
  return {};
}

}  // namespace

std::string ListOfFormats() {
  const std::span<const trace::TraceWriter> writers = trace::TraceWriters();
  std::string list =
      "Formats that are read (*: and written); docs/formats/README.md names their pages:\n";
  for (const trace::TraceFormat& format : trace::TraceFormats()) {
    const auto writer =
        std::find_if(writers.begin(), writers.end(),
                     [&](const trace::TraceWriter& one) { return one.name == format.name; });
    const bool is_written = writer != writers.end();
    fmt::format_to(std::back_inserter(list), "  {:<12} {} {}\n", format.name,
                   is_written ? '*' : ' ', format.help);
    if (is_written && !writer->loses.empty()) {
      fmt::format_to(std::back_inserter(list), "{:17}it has no place for {}\n", "", writer->loses);
    }
  }
  return list;
}

void AddConvert(CLI::App& trace, Command& chosen) {
  auto command = std::make_shared<ConvertCommand>();
  CLI::App* app = trace.add_subcommand("convert", "write a trace in another format");
  app->add_option("IN", command->in, "trace to read")->required();
  app->add_option("OUT", command->out, "file to write; packed if it ends with .gz or .zst")
      ->required();
  app->add_option("--from,--format", command->reading.format, "format of IN (default: recognised)");
  app->add_option("--to", command->to,
                  "format of OUT (default: by its name: .csv native, .jsonl, .json batsim, .swf)");
  AddReadingOptions(*app, command->reading);
  app->add_flag("--force", command->force, "replace OUT if it is there");
  app->add_flag("--json", command->json, "print JSON");
  app->callback([command, &chosen] { chosen.run = [command] { return Convert(*command); }; });
}

}  // namespace trainyard::cli
