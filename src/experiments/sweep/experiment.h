// SPDX-License-Identifier: Apache-2.0
// An experiment: a matrix of runs over traces, clusters, policies and any other axes, as a TOML
// file describes it (docs/formats/experiment.md). Its cells are the runs, in a fixed order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/toml.h"
#include "scenario/preset.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

// Options of `trace generate` without "--", in the order of the file.
using GenerateOptions = std::vector<std::pair<std::string, std::string>>;

// Where the jobs of a cell come from.
struct CellTrace {
  std::string path;          // empty: they are generated
  GenerateOptions generate;  // empty: they are read
  std::string format;        // empty: recognised
  double time_unit = 0;      // TraceOptions::unit; 0: the preset's
  std::string map;           // TraceOptions::columns
  bool skip_bad_rows = false;
  bool at_once = false;  // InputPaths::at_once
  std::string obtain;    // where to get it; empty: it must be there
};

// One run. All placeholders are replaced; paths are absolute or relative to the working folder.
struct Cell {
  std::string id;                   // the values, separated by '/'; unique in the experiment
  std::vector<std::string> values;  // one for each of Experiment::axes
  CellTrace trace;
  std::string cluster;   // as --cluster takes it
  std::string profiles;  // empty: none
  scenario::PresetRequest names;
  std::uint64_t seed = 0;
  std::optional<double> until;    // seconds of the trace
  std::string track;              // "FIRST-LAST"; empty: all jobs
  bool keep_allocations = false;  // for `extra`: RunRequest::keep_allocations; not in files
};

struct Experiment {
  std::string path;
  std::string title;
  std::string note;
  std::string reference;          // the folder that {reference} stands for
  std::vector<std::string> axes;  // "trace", "cluster", "run", then those of [axes]
  std::vector<Cell> cells;        // the last axis changes fastest
  // [[panel]], [[published]] and [[difference]] as they stand: for figures (`reproduce`), not for
  // sweeps.
  std::vector<io::TomlTable> panels;
  std::vector<io::TomlTable> published;
  std::vector<io::TomlTable> differences;

  // Where the axis stands in Cell::values; none if there is no such axis.
  [[nodiscard]] std::optional<std::size_t> AxisAt(std::string_view name) const;
};

// `reference`: what {reference} stands for; need not exist. Errors are "file:line: what is wrong;
// what was expected". That policies, presets and files exist is not looked at: a cell may fail
// alone.
[[nodiscard]] Result<Experiment> ReadExperiment(const std::string& path,
                                                const std::string& reference);
// The same from a text; `path` is for messages and relative paths.
[[nodiscard]] Result<Experiment> ParseExperiment(const std::string& path, std::string_view text,
                                                 const std::string& reference);

// A file name for each part of an id: letters, digits and a few signs stay, the rest becomes '-'.
[[nodiscard]] std::string FolderOf(const Cell& cell);

}  // namespace trainyard::experiments
