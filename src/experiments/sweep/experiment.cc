// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.h"
#include "base/try.h"
#include "io/file.h"
#include "trace/clusters/cluster_file.h"

namespace trainyard::experiments {
namespace {

constexpr std::size_t kMostCells = 1'000'000;  // those left out included
constexpr double kMostSeconds = 9e9;           // as in traces

using Names = std::vector<std::string_view>;

// What an axis can be.
struct Axis {
  std::string name;
  std::vector<std::string> values;
};

// A combination to leave out or to keep: per axis the values that match; an axis that is not named
// matches.
using Pattern = std::map<std::size_t, std::set<std::string>>;

bool Matches(const Pattern& pattern, const std::vector<std::string>& values) {
  return std::all_of(pattern.begin(), pattern.end(),
                     [&](const auto& at) { return at.second.contains(values[at.first]); });
}

template <typename T>
Names ViewsOf(const std::vector<T>& items, std::string T::*name) {
  Names names;
  for (const T& item : items) {
    names.push_back(item.*name);
  }
  return names;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
}

// The values of one cell, for the placeholders in texts.
class Substitution {
 public:
  explicit Substitution(std::map<std::string, std::string, std::less<>> values)
      : values_(std::move(values)) {}

  void Set(const std::string& name, const std::string& value) { values_[name] = value; }

  // "{load}" becomes the value of the axis; braces around anything but a name stay.
  [[nodiscard]] Result<std::string> operator()(std::string_view text) const {
    std::string result;
    while (true) {
      const std::size_t open = text.find('{');
      const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
      if (close == std::string_view::npos) {
        return result.append(text);
      }
      const std::string_view name = text.substr(open + 1, close - open - 1);
      if (!IsName(name)) {
        result += text.substr(0, open + 1);
        text.remove_prefix(open + 1);
        continue;
      }
      const auto value = values_.find(name);
      if (value == values_.end()) {
        Names known;
        for (const auto& entry : values_) {
          known.push_back(entry.first);
        }
        return BadInput(base::UnknownName("placeholder", name, known));
      }
      result.append(text.substr(0, open)).append(value->second);
      text.remove_prefix(close + 1);
    }
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// A table whose texts are substituted for one cell after the other.
class CellTable {
 public:
  CellTable(io::TomlSection section, const Substitution& values)
      : section_(std::move(section)), values_(values) {}

  [[nodiscard]] const io::TomlSection& section() const { return section_; }

  Status Read(std::string_view key, std::string& text) const {
    std::string raw;
    RETURN_IF_ERROR(section_.ReadScalar(key, raw));
    return raw.empty() ? Status() : Substitute(key, raw, text);
  }

  Status ReadSeconds(std::string_view key, std::optional<double>& number) const {
    std::string text;
    if (Status status = Read(key, text); !status.ok() || text.empty()) {
      return status;
    }
    number = base::ToSpan(text);
    return number && *number >= 0 && *number <= kMostSeconds
               ? Status()
               : section_.BadKey(
                     key,
                     fmt::format(
                         "'{}' is '{}'; expected seconds from 0 to {:.0f}, or a time such as 12h",
                         key, text, kMostSeconds));
  }

  Status ReadSeed(std::uint64_t& seed) const {
    std::string text;
    if (Status status = Read("seed", text); !status.ok() || text.empty()) {
      return status;
    }
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, seed);
    return error == std::errc() && stop == end
               ? Status()
               : section_.BadKey("seed",
                                 fmt::format("'seed' is '{}'; expected an integer >= 0", text));
  }

  Status ReadGenerate(GenerateOptions& options) const {
    const io::TomlEntry* const entry = section_.table().Find("generate");
    if (entry == nullptr) {
      return {};
    }
    const io::TomlTable* const table = entry->value.table();
    if (table == nullptr || table->entries.empty()) {
      return section_.BadKey("generate",
                             "expected generate = {style = ..., ...}: options of `trace generate`");
    }
    for (const io::TomlEntry& option : table->entries) {
      const std::optional<std::string> raw = option.value.AsText();
      const Result<std::string> text = raw ? values_(*raw) : BadInput("expected a number or text");
      if (!text.ok()) {
        return section_.BadAt(option.line,
                              fmt::format("'{}': {}", option.key, text.error().message));
      }
      if (option.key == "out") {
        return section_.BadAt(option.line, "'out' is given; expected none: the sweep chooses it");
      }
      options.emplace_back(option.key, text.value());
    }
    return {};
  }

 private:
  Status Substitute(std::string_view key, const std::string& raw, std::string& text) const {
    Result<std::string> result = values_(raw);
    if (!result.ok()) {
      return section_.BadKey(key, fmt::format("'{}': {}", key, result.error().message));
    }
    text = std::move(result).value();
    return {};
  }

  io::TomlSection section_;
  const Substitution& values_;
};

// A path of the file is relative to the folder that it lies in.
std::string Resolved(const std::string& path, const std::string& experiment) {
  return path.empty() ? path : (std::filesystem::path(experiment).parent_path() / path).string();
}

// "16x8" is no path; "cluster.xml:gpus=4" begins with one.
std::string ResolvedCluster(const std::string& spec, const std::string& experiment) {
  return trace::IsShortForm(spec) ? spec : Resolved(spec, experiment);
}

class Parser {
 public:
  Parser(const std::string& path, const io::TomlTable& root, const std::string& reference)
      : path_(path), root_(path, "top-level", root) {
    experiment_.path = path;
    experiment_.reference = reference;
  }

  Result<Experiment> Parse() {
    for (const auto part : {&Parser::ReadRoot, &Parser::ReadTables, &Parser::ReadAxes,
                            &Parser::ReadPatterns, &Parser::MakeCells}) {
      RETURN_IF_ERROR((this->*part)());
    }
    return std::move(experiment_);
  }

 private:
  static constexpr std::array<std::string_view, 11> kRootKeys{
      "title", "note",    "trace", "cluster",   "run",       "axes",
      "only",  "exclude", "panel", "published", "difference"};
  static constexpr std::array<std::string_view, 10> kTraceKeys{
      "name",      "path",          "generate", "format",   "map",
      "time_unit", "skip_bad_rows", "at_once",  "profiles", "obtain"};
  static constexpr std::array<std::string_view, 3> kClusterKeys{"name", "spec", "profiles"};
  // Columns of the results, and the placeholder.
  static constexpr std::array<std::string_view, 5> kReserved{"reference", "id", "position",
                                                             "status", "reason"};
  static constexpr std::array<std::string_view, 12> kRunKeys{
      "label",  "policy", "placement", "admission", "tuning", "profiles",
      "preset", "seed",   "until",     "track",     "path",   "format"};

  Status ReadRoot() {
    return io::FirstFailure(
        {root_.CheckKeys(kRootKeys), root_.ReadText("title", experiment_.title),
         root_.ReadText("note", experiment_.note), Copy("panel", experiment_.panels),
         Copy("published", experiment_.published), Copy("difference", experiment_.differences)});
  }

  Status Copy(std::string_view key, std::vector<io::TomlTable>& tables) const {
    ASSIGN_OR_RETURN(const std::vector<const io::TomlTable*> found, root_.Tables(key));
    for (const io::TomlTable* const table : found) {
      tables.push_back(*table);
    }
    return {};
  }

  Status ReadTables() {
    return io::FirstFailure({ReadTable("trace", "name", kTraceKeys),
                             ReadTable("cluster", "name", kClusterKeys),
                             ReadTable("run", "label", kRunKeys)});
  }

  // The tables of one axis, each with a name of its own.
  Status ReadTable(const std::string& key, std::string_view name_key,
                   std::span<const std::string_view> known) {
    ASSIGN_OR_RETURN(const std::vector<const io::TomlTable*> tables, root_.Tables(key));
    if (tables.empty()) {
      return BadInput(fmt::format("{}: no [[{}]]; expected one at least", path_, key));
    }
    Axis axis{.name = key, .values = {}};
    for (const io::TomlTable* const table : tables) {
      const io::TomlSection section(path_, fmt::format("[[{}]]", key), *table);
      std::string name;
      RETURN_IF_ERROR(
          io::FirstFailure({section.CheckKeys(known), section.ReadText(name_key, name)}));
      if (name.empty()) {
        return section.Bad(fmt::format("no '{}'; expected one", name_key));
      }
      RETURN_IF_ERROR(AddValue(section, name_key, name, axis));
      sections_[key].push_back(section);
    }
    axes_.push_back(std::move(axis));
    return {};
  }

  static Status AddValue(const io::TomlSection& section, std::string_view key,
                         const std::string& value, Axis& axis) {
    if (std::any_of(value.begin(), value.end(),
                    [](unsigned char c) { return std::iscntrl(c) != 0; })) {
      return section.BadKey(key, fmt::format("a value on axis '{}' has a line end or another "
                                             "control character; expected none",
                                             axis.name));
    }
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end()) {
      return section.BadKey(
          key, fmt::format("a second '{}' on axis '{}'; expected another", value, axis.name));
    }
    axis.values.push_back(value);
    return {};
  }

  Status ReadAxes() {
    const io::TomlEntry* const entry = root_.table().Find("axes");
    const io::TomlTable* const table = entry == nullptr ? nullptr : entry->value.table();
    if (entry != nullptr && table == nullptr) {
      return root_.BadKey("axes", "'axes' is no table; expected [axes]");
    }
    for (std::size_t i = 0; table != nullptr && i < table->entries.size(); ++i) {
      RETURN_IF_ERROR(AddAxis(io::TomlSection(path_, "[axes]", *table), table->entries[i]));
    }
    for (const Axis& axis : axes_) {
      experiment_.axes.push_back(axis.name);
    }
    return {};
  }

  Status AddAxis(const io::TomlSection& section, const io::TomlEntry& entry) {
    const auto same = [&entry](const Axis& axis) { return axis.name == entry.key; };
    const bool reserved =
        std::find(kReserved.begin(), kReserved.end(), entry.key) != kReserved.end();
    if (!IsName(entry.key) || reserved || std::any_of(axes_.begin(), axes_.end(), same)) {
      return section.BadAt(
          entry.line, fmt::format("an axis '{}'; expected a name of letters, digits, '_' and '-' "
                                  "other than trace, cluster, run, {}",
                                  entry.key, base::Join(kReserved, ", ")));
    }
    const std::vector<io::TomlValue>* const list = entry.value.list();
    if (list == nullptr || list->empty()) {
      return section.BadAt(entry.line,
                           fmt::format("axis '{}' has no list of values; expected one", entry.key));
    }
    Axis axis{.name = entry.key, .values = {}};
    for (const io::TomlValue& value : *list) {
      const std::optional<std::string> text = value.AsText();
      if (!text || text->empty()) {
        return section.BadAt(value.line, fmt::format("a value of axis '{}' is no number or text; "
                                                     "expected one",
                                                     entry.key));
      }
      RETURN_IF_ERROR(AddValue(section, entry.key, *text, axis));
    }
    axes_.push_back(std::move(axis));
    return {};
  }

  Status ReadPatterns() {
    return io::FirstFailure({ReadPatterns("only", only_), ReadPatterns("exclude", exclude_)});
  }

  Status ReadPatterns(std::string_view key, std::vector<Pattern>& patterns) {
    ASSIGN_OR_RETURN(const std::vector<const io::TomlTable*> tables, root_.Tables(key));
    for (const io::TomlTable* const table : tables) {
      const io::TomlSection section(path_, fmt::format("[[{}]]", key), *table);
      RETURN_IF_ERROR(section.CheckKeys(ViewsOf(axes_, &Axis::name)));
      Pattern pattern;
      for (const io::TomlEntry& entry : table->entries) {
        RETURN_IF_ERROR(AddTo(pattern, section, entry));
      }
      if (pattern.empty()) {
        return section.Bad("names no axis; expected one at least");
      }
      patterns.push_back(std::move(pattern));
    }
    return {};
  }

  // One value or a list of them.
  Status AddTo(Pattern& pattern, const io::TomlSection& section, const io::TomlEntry& entry) const {
    const std::size_t at = *experiment_.AxisAt(entry.key);
    const Axis& axis = axes_[at];
    const std::vector<io::TomlValue>* const list = entry.value.list();
    const std::vector<io::TomlValue> single{entry.value};
    for (const io::TomlValue& value : list == nullptr ? single : *list) {
      const std::string text = value.AsText().value_or("");
      if (std::find(axis.values.begin(), axis.values.end(), text) == axis.values.end()) {
        const Names known(axis.values.begin(), axis.values.end());
        return section.BadAt(
            value.line,
            base::UnknownName(fmt::format("value on axis '{}'", axis.name), text, known));
      }
      pattern[at].insert(text);
    }
    return {};
  }

  [[nodiscard]] bool Keeps(const std::vector<std::string>& values) const {
    const auto matches = [&values](const Pattern& pattern) { return Matches(pattern, values); };
    return (only_.empty() || std::any_of(only_.begin(), only_.end(), matches)) &&
           std::none_of(exclude_.begin(), exclude_.end(), matches);
  }

  // Counts through the matrix like an odometer.
  Status MakeCells() {
    std::size_t combinations = 1;
    for (const Axis& axis : axes_) {
      combinations *= axis.values.size();
      if (combinations > kMostCells) {
        return BadInput(
            fmt::format("{}: more than {} combinations; expected fewer", path_, kMostCells));
      }
    }
    std::vector<std::size_t> at(axes_.size(), 0);
    while (at.front() < axes_.front().values.size()) {
      std::vector<std::string> values;
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        values.push_back(axes_[i].values[at[i]]);
      }
      if (Keeps(values)) {
        RETURN_IF_ERROR(AddCell(std::move(values), at));
      }
      std::size_t turning = at.size();
      while (turning-- > 0) {
        if (++at[turning] < axes_[turning].values.size() || turning == 0) {
          break;
        }
        at[turning] = 0;
      }
    }
    return experiment_.cells.empty()
               ? Status(BadInput(fmt::format(
                     "{}: every combination is left out; expected a run at least", path_)))
               : CheckFolders();
  }

  Status CheckFolders() const {
    std::map<std::string, const Cell*> folders;
    for (const Cell& cell : experiment_.cells) {
      const auto [other, is_new] = folders.emplace(FolderOf(cell), &cell);
      if (!is_new) {
        return BadInput(
            fmt::format("{}: '{}' and '{}' differ only in signs; expected names that "
                        "differ in letters or digits",
                        path_, other->second->id, cell.id));
      }
    }
    return {};
  }

  Status AddCell(std::vector<std::string> values, const std::vector<std::size_t>& at) {
    Substitution texts({{"reference", experiment_.reference}});
    Cell cell;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      texts.Set(axes_[i].name, values[i]);
      cell.id += (i == 0 ? "" : "/") + values[i];
    }
    cell.values = std::move(values);
    const CellTable trace(sections_["trace"][at[0]], texts);
    const CellTable cluster(sections_["cluster"][at[1]], texts);
    const CellTable run(sections_["run"][at[2]], texts);
    RETURN_IF_ERROR(
        io::FirstFailure({SetTrace(trace, cell), SetCluster(cluster, cell), SetRun(run, cell)}));
    experiment_.cells.push_back(std::move(cell));
    return {};
  }

  Status SetTrace(const CellTable& table, Cell& cell) const {
    CellTrace& trace = cell.trace;
    std::optional<double> unit;
    RETURN_IF_ERROR(io::FirstFailure(
        {table.Read("path", trace.path), table.ReadGenerate(trace.generate),
         table.Read("format", trace.format), table.Read("map", trace.map),
         table.ReadSeconds("time_unit", unit),
         table.section().ReadFlag("skip_bad_rows", trace.skip_bad_rows),
         table.section().ReadFlag("at_once", trace.at_once), table.Read("profiles", cell.profiles),
         table.Read("obtain", trace.obtain)}));
    if (trace.path.empty() == trace.generate.empty()) {
      return table.section().Bad("expected one of 'path' and 'generate'");
    }
    trace.time_unit = unit.value_or(0);
    trace.path = Resolved(trace.path, path_);
    for (auto& [key, value] : trace.generate) {
      if (key == "profiles" || key == "pool") {
        value = Resolved(value, path_);
      }
    }
    return {};
  }

  Status SetCluster(const CellTable& table, Cell& cell) const {
    RETURN_IF_ERROR(io::FirstFailure(
        {table.Read("spec", cell.cluster), table.Read("profiles", cell.profiles)}));
    if (cell.cluster.empty()) {
      return table.section().Bad("no 'spec'; expected what --cluster takes");
    }
    cell.cluster = ResolvedCluster(cell.cluster, path_);
    return {};
  }

  Status SetRun(const CellTable& table, Cell& cell) const {
    Status status = io::FirstFailure(
        {table.Read("policy", cell.names.policy), table.Read("placement", cell.names.placement),
         table.Read("admission", cell.names.admission), table.Read("tuning", cell.names.tuning),
         table.Read("preset", cell.names.preset), table.Read("profiles", cell.profiles),
         table.ReadSeed(cell.seed), table.ReadSeconds("until", cell.until),
         table.Read("track", cell.track), SetForm(table, cell.trace)});
    cell.profiles = cell.profiles == "none" ? "" : Resolved(cell.profiles, path_);
    if (!scenario::PresetPath(cell.names.preset).empty()) {
      cell.names.preset = Resolved(cell.names.preset, path_);
    }
    return status;
  }

  // The jobs of the trace in another form.
  Status SetForm(const CellTable& table, CellTrace& trace) const {
    std::string path;
    std::string format;
    RETURN_IF_ERROR(io::FirstFailure({table.Read("path", path), table.Read("format", format)}));
    if (path.empty() && !format.empty()) {
      return table.section().BadKey("format",
                                    "'format' of the trace's own file; expected 'path' "
                                    "beside it, or 'format' in [[trace]]");
    }
    if (!path.empty()) {
      trace.path = Resolved(path, path_);
      trace.format = format;
      trace.generate.clear();
      trace.map.clear();
    }
    return {};
  }

  const std::string& path_;
  io::TomlSection root_;
  std::vector<Axis> axes_;
  std::map<std::string, std::vector<io::TomlSection>> sections_;  // by axis
  std::vector<Pattern> only_;
  std::vector<Pattern> exclude_;
  Experiment experiment_;
};

}  // namespace

std::optional<std::size_t> Experiment::AxisAt(std::string_view name) const {
  const auto found = std::find(axes.begin(), axes.end(), name);
  return found == axes.end() ? std::nullopt
                             : std::optional(static_cast<std::size_t>(found - axes.begin()));
}

Result<Experiment> ParseExperiment(const std::string& path, std::string_view text,
                                   const std::string& reference) {
  ASSIGN_OR_RETURN(const io::TomlTable root, io::ParseToml(path, text));
  return Parser(path, root, reference).Parse();
}

Result<Experiment> ReadExperiment(const std::string& path, const std::string& reference) {
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  return ParseExperiment(path, text, reference);
}

std::string FolderOf(const Cell& cell) {
  std::string folder;
  for (const std::string& value : cell.values) {
    folder += folder.empty() ? "" : "/";
    folder += base::FileNameOf(value);
  }
  return folder;
}

}  // namespace trainyard::experiments
