// SPDX-License-Identifier: Apache-2.0
#include "golden/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "io/csv_field.h"
#include "io/csv_reader.h"
#include "io/file.h"
#include "profile/sensitivity_table.h"
#include "results/write/output_file.h"
#include "scenario/preset.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The columns of a manifest (docs/golden.md) without those of no use to a comparison.
constexpr std::string_view kColumns =
    "case,trace,format,cluster,profiles,preset,policy,placement,admission,"
    "expected,id_column,start_column,end_column,outcome_column,"
    "kind,tol_jct_mean,tol_makespan,tol_jct_p99,tol_accepted,original_cpu_s,original_wall_s,"
    "jct_mean,jct_p99,makespan,accepted,declined";

// The CSV files of a folder of profiles that the readers of the case take: profiles, and the prior
// samples that its policy names. Other tables may lie beside them.
Status AddProfiles(const GoldenCase& golden, std::set<std::string>& paths) {
  const Result<scenario::ResolvedPreset> preset = scenario::ResolvePreset(golden.names);
  if (!preset.ok()) {
    return preset.error();
  }
  for (const auto& [key, value] : preset.value().policy.values) {
    if (key == "prior") {
      paths.insert(golden.inputs.profiles + "/" + value);
    }
  }
  const bool sensitivity = profile::SensitivityTable::IsAt(golden.inputs.profiles);
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(golden.inputs.profiles, code)) {
    if (entry.path().extension() != ".csv") {
      continue;
    }
    const std::string name = entry.path().filename();
    const Result<io::CsvTable> table = io::CsvTable::Open(entry.path());
    const bool throughput =
        table.ok() && table.value().Column({"global_batch_size"}) == 0 && !sensitivity;
    if (throughput ||
        (sensitivity && (name == "model_profiles.csv" || name == "throughput_matrix.csv"))) {
      paths.insert(entry.path());
    }
  }
  return code ? BadInput(golden.inputs.profiles + ": cannot be read: " + code.message()) : Status();
}

// The figures of one case, and what its row of the manifest says of them.
struct Figures {
  std::string text;
  std::string start_column;
  std::string end_column;
  std::string outcome_column;
};

Result<Figures> FiguresOf(const GoldenCase& golden) {
  const Result<std::vector<originals::ResultRow>> rows = ReadExpected(golden, 1);
  if (!rows.ok()) {
    return rows.error();
  }
  const bool all_completed =
      std::all_of(rows.value().begin(), rows.value().end(),
                  [](const originals::ResultRow& row) { return row.completed; });
  Figures figures{.text = "job",
                  .start_column = golden.start_column.empty() ? "" : "start",
                  .end_column = golden.end_column.empty() ? "" : "end",
                  .outcome_column = all_completed ? "" : "outcome"};
  for (const std::string* column :
       {&figures.outcome_column, &figures.start_column, &figures.end_column}) {
    figures.text += column->empty() ? "" : "," + *column;
  }
  figures.text += '\n';
  for (const originals::ResultRow& row : rows.value()) {
    io::AppendCsvField(row.name, figures.text);
    if (!all_completed) {
      figures.text += row.completed ? ",completed" : ",rejected";
    }
    for (const auto& [column, time] :
         {std::pair{&golden.start_column, row.start}, std::pair{&golden.end_column, row.end}}) {
      if (!column->empty()) {
        figures.text += time ? fmt::format(",{}", *time) : ",";
      }
    }
    figures.text += '\n';
  }
  return figures;
}

Status WriteBelow(const std::string& folder, const std::string& name, std::string text) {
  std::error_code code;
  const fs::path path = fs::path(folder) / name;
  fs::create_directories(path.parent_path(), code);
  return code ? Failed(path.string() + ": cannot be written: " + code.message())
              : results::WriteTextFile(path, std::move(text));
}

// The row of the manifest, with the figures of the case in place of the original's file.
void AppendCase(const io::CsvTable& table, const io::CsvRow& row, const Figures& figures,
                std::string& text) {
  const std::string_view name = row.Text(table.Column({"case"}));
  const std::map<std::string_view, std::string> own{
      {"expected", fmt::format("here:expected/{}.csv", name)},
      {"id_column", "job"},
      {"start_column", figures.start_column},
      {"end_column", figures.end_column},
      {"outcome_column", figures.outcome_column}};
  std::string_view between;
  for (const std::string_view column : base::Split(kColumns, ",")) {
    const auto found = own.find(column);
    text += between;
    io::AppendCsvField(
        found != own.end() ? std::string_view(found->second) : row.Text(table.Column({column})),
        text);
    between = ",";
  }
  text += '\n';
}

Status WriteInputs(const std::vector<InputFile>& inputs, const std::string& folder) {
  std::string text = "path,bytes,sha256\n";
  for (const InputFile& input : inputs) {
    text += fmt::format("{},{},{}\n", input.path, input.bytes, input.sha256);
  }
  return WriteBelow(folder, "inputs.csv", std::move(text));
}

}  // namespace

Result<std::vector<InputFile>> InputsOf(const std::vector<GoldenCase>& cases,
                                        const std::string& reference) {
  std::set<std::string> paths;
  for (const GoldenCase& golden : cases) {
    paths.insert({golden.inputs.trace, golden.inputs.cluster});
    if (golden.inputs.profiles.empty()) {
      continue;
    }
    if (!fs::is_directory(golden.inputs.profiles)) {
      paths.insert(golden.inputs.profiles);
    } else if (Status added = AddProfiles(golden, paths); !added.ok()) {
      return added.error();
    }
  }
  std::vector<InputFile> inputs;
  for (const std::string& path : paths) {
    if (!path.starts_with(reference + "/")) {
      return InvalidArgument(path + " is an input; expected it in " + reference);
    }
    const Result<std::string> bytes = io::ReadFile(path);
    if (!bytes.ok()) {
      return bytes.error();
    }
    inputs.push_back({.path = path.substr(reference.size() + 1),
                      .bytes = bytes.value().size(),
                      .sha256 = io::Sha256Hex(bytes.value())});
  }
  return inputs;
}

Status WriteFigures(const std::string& manifest, const std::map<std::string, std::string>& roots,
                    const std::string& folder) {
  const Result<io::CsvTable> table = io::CsvTable::Open(manifest);
  const Result<std::vector<GoldenCase>> cases = ReadManifest(manifest, roots);
  if (!table.ok() || !cases.ok()) {
    return table.ok() ? cases.error() : table.error();
  }
  const Result<std::vector<InputFile>> inputs = InputsOf(cases.value(), roots.at("ref"));
  if (!inputs.ok()) {
    return inputs.error();
  }
  std::string text = fmt::format("{}\n", kColumns);
  std::size_t next = 0;
  Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const GoldenCase& golden = cases.value()[next++];
    Result<Figures> figures = FiguresOf(golden);
    if (!figures.ok()) {
      return figures.error();
    }
    AppendCase(table.value(), row, figures.value(), text);
    return WriteBelow(folder, "expected/" + golden.name + ".csv", std::move(figures).value().text);
  });
  if (status.ok()) {
    status = WriteBelow(folder, "manifest.csv", std::move(text));
  }
  return status.ok() ? WriteInputs(inputs.value(), folder) : status;
}

}  // namespace trainyard
