// SPDX-License-Identifier: Apache-2.0
#include "profile/throughput_table.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/bad_rows.h"
#include "io/csv_reader.h"
#include "profile/gavel_table.h"

namespace trainyard::profile {
namespace {

constexpr std::string_view kFolderKey = "global_batch_size";
constexpr std::string_view kGpuType = "gpu_type";  // may be missing
constexpr std::array<std::string_view, 5> kNativeColumns{"model", "batch_size", "gpus",
                                                         "iterations_per_second", kGpuType};
constexpr std::string_view kNativeName = "throughput.csv";  // in a folder

bool IsNan(std::string_view text) {
  constexpr std::string_view kNan = "nan";
  return std::equal(text.begin(), text.end(), kNan.begin(), kNan.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

struct TableCell {
  double rate = 0;       // 0: does not run
  bool written = false;  // not 'nan'
};

Result<TableCell> ReadCell(const io::CsvRow& row, int column) {
  const std::string_view text = row.Text(column);
  const TableCell blank{.rate = 0, .written = !IsNan(text)};
  if (text.empty() || !blank.written) {
    return blank;
  }
  const Result<double> rate = row.Number(column, 0);
  if (!rate.ok()) {
    return row.Bad(column, "iterations per second >= 0, 'nan' or nothing");
  }
  return TableCell{.rate = rate.value(), .written = true};
}

// Collects cells in any order and makes sorted rows of them.
class Builder {
 public:
  struct Place {
    std::string model;
    std::int64_t batch_size = 0;
    int gpus = 0;
    std::string gpu_type{};  // empty: all that have no cells of their own
  };
  // False: the cell is already there. `place`: "file:line".
  [[nodiscard]] bool Add(const Place& at, TableCell cell, std::string place) {
    Entry& entry = entries_[{at.model, at.batch_size}];
    if (entry.by_type.empty()) {
      entry.place = std::move(place);
    }
    columns_[at.model].insert(at.gpus);
    return entry.by_type[at.gpu_type].emplace(at.gpus, cell).second;
  }

  // That the cells name, ascending.
  [[nodiscard]] std::vector<std::string> GpuTypes() const {
    std::set<std::string> types;
    for (const auto& [key, entry] : entries_) {
      for (const auto& [type, cells] : entry.by_type) {
        types.insert(type);
      }
    }
    types.erase("");
    return {types.begin(), types.end()};
  }

  [[nodiscard]] Result<std::vector<ThroughputRow>> Build(
      std::span<const std::string> gpu_types) const {
    std::vector<ThroughputRow> rows;
    for (const auto& [key, entry] : entries_) {
      if (!RunsSomewhere(entry)) {
        return BadInput(
            fmt::format("{}: '{}' with batch size {} runs on no number of GPUs; expected a "
                        "rate > 0",
                        entry.place, key.first, key.second));
      }
      ThroughputRow row = MakeRow(key.first, key.second, entry, gpu_types);
      if (!row.levels.empty()) {
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }

 private:
  using Cells = std::map<int, TableCell>;  // by GPU count
  struct Entry {
    std::string place;                     // of its first cell, "file:line"
    std::map<std::string, Cells> by_type;  // the empty one: of all types
  };

  static bool RunsSomewhere(const Entry& entry) {
    return std::any_of(entry.by_type.begin(), entry.by_type.end(), [](const auto& one) {
      return std::any_of(one.second.begin(), one.second.end(),
                         [](const auto& cell) { return cell.second.rate > 0; });
    });
  }

  // The cells of each type that matters, those of all types among them.
  static std::map<std::string, Cells> ByType(const Entry& entry,
                                             std::span<const std::string> gpu_types) {
    const auto of_all = entry.by_type.find("");
    std::map<std::string, Cells> by_type;
    if (gpu_types.empty()) {
      by_type = entry.by_type;
      by_type.erase("");
    }
    for (const std::string& type : gpu_types) {
      const auto own = entry.by_type.find(type);
      by_type[type] = own == entry.by_type.end() ? Cells() : own->second;
    }
    for (auto& [type, cells] : by_type) {
      if (of_all != entry.by_type.end()) {
        cells.insert(of_all->second.begin(), of_all->second.end());
      }
    }
    return by_type;
  }

  [[nodiscard]] ThroughputRow MakeRow(const std::string& model, std::int64_t batch_size,
                                      const Entry& entry,
                                      std::span<const std::string> gpu_types) const {
    const std::set<int>& columns = columns_.at(model);
    ThroughputRow row{.model = model,
                      .batch_size = batch_size,
                      .columns = std::vector<int>(columns.begin(), columns.end())};
    const bool typed = entry.by_type.size() > 1 || !entry.by_type.contains("");
    const std::map<std::string, Cells> by_type = typed ? ByType(entry, gpu_types) : entry.by_type;
    Cells fastest;
    for (const auto& [type, cells] : by_type) {
      for (const auto& [gpus, cell] : cells) {
        TableCell& most = fastest[gpus];
        most = {.rate = std::max(most.rate, cell.rate), .written = most.written || cell.written};
      }
    }
    for (const auto& [gpus, cell] : fastest) {
      if (cell.rate > 0) {
        row.levels.push_back(gpus);
        row.rates.push_back(cell.rate);
      }
      row.largest_written = cell.written ? gpus : row.largest_written;
    }
    for (const auto& [type, cells] : by_type) {
      if (typed) {
        row.by_type.push_back({type, RatesAt(row.levels, cells)});
      }
    }
    return row;
  }

  static std::vector<double> RatesAt(std::span<const int> levels, const Cells& cells) {
    std::vector<double> rates;
    for (const int gpus : levels) {
      const auto cell = cells.find(gpus);
      rates.push_back(cell == cells.end() ? 0 : cell->second.rate);
    }
    return rates;
  }

  std::map<std::string, std::set<int>> columns_;
  std::map<std::pair<std::string, std::int64_t>, Entry> entries_;
};

std::string PlaceOf(const io::CsvTable& table, const io::CsvRow& row) {
  return fmt::format("{}:{}", table.path(), row.line());
}

// The GPU counts in the header of a folder's file, one for each column but the first.
Result<std::vector<int>> ReadLevels(const io::CsvTable& table) {
  std::vector<int> levels;
  for (const std::string& name : table.header().subspan(1)) {
    int gpus = 0;
    const auto [stop, code] = std::from_chars(name.data(), name.data() + name.size(), gpus);
    const bool whole = code == std::errc{} && stop == name.data() + name.size();
    if (!whole || gpus < 1 || gpus > kMostProfiledGpus ||
        (!levels.empty() && gpus <= levels.back())) {
      return table.BadHeader(fmt::format(
          "column '{}'; expected ascending numbers of GPUs after '{}'", name, kFolderKey));
    }
    levels.push_back(gpus);
  }
  if (levels.empty()) {
    return table.BadHeader(
        fmt::format("no columns after '{}'; expected ascending numbers of GPUs", kFolderKey));
  }
  return levels;
}

Status AddWideRow(const io::CsvTable& table, const io::CsvRow& row, std::span<const int> levels,
                  const std::string& model, Builder& builder) {
  ASSIGN_OR_RETURN(const std::int64_t batch_size, row.Integer(0, 1));
  for (std::size_t i = 0; i < levels.size(); ++i) {
    ASSIGN_OR_RETURN(const TableCell cell, ReadCell(row, static_cast<int>(i) + 1));
    if (!builder.Add({model, batch_size, levels[i]}, cell, PlaceOf(table, row))) {
      return row.BadRow(
          fmt::format("batch size {} is there twice; expected one row for each", batch_size));
    }
  }
  return {};
}

// `<model>.csv` with a row for each batch size and a column for each number of GPUs.
Status AddWideFile(const io::CsvTable& table, const std::string& model, Builder& builder) {
  ASSIGN_OR_RETURN(const std::vector<int> levels, ReadLevels(table));
  return io::ForEachTold(
      table, [&](const io::CsvRow& row) { return AddWideRow(table, row, levels, model, builder); });
}

Status AddNativeRow(const io::CsvTable& table, const io::CsvRow& row, Builder& builder) {
  const std::string model(row.Text(row.Column("model")));
  if (model.empty()) {
    return row.Bad(row.Column("model"), "the name of a model");
  }
  ASSIGN_OR_RETURN(const std::int64_t batch_size, row.Integer(row.Column("batch_size"), 1));
  ASSIGN_OR_RETURN(const std::int64_t gpus, row.Integer(row.Column("gpus"), 1));
  if (gpus > kMostProfiledGpus) {
    return row.Bad(row.Column("gpus"), fmt::format("an integer <= {}", kMostProfiledGpus));
  }
  ASSIGN_OR_RETURN(const TableCell cell, ReadCell(row, row.Column("iterations_per_second")));
  const std::string gpu_type(row.Text(row.Column(kGpuType)));
  if (!builder.Add({model, batch_size, static_cast<int>(gpus), gpu_type}, cell,
                   PlaceOf(table, row))) {
    return row.BadRow(fmt::format(
        "'{}' with batch size {} on {} GPUs{} is there twice; expected one row for each", model,
        batch_size, gpus, gpu_type.empty() ? "" : " of type " + gpu_type));
  }
  return {};
}

Status AddNativeFile(const io::CsvTable& table, Builder& builder) {
  if (table.header().front() == kFolderKey) {
    return table.BadHeader(
        "the profile of one model; expected the folder that it lies in, or a native profile file");
  }
  RETURN_IF_ERROR(table.CheckKnown(kNativeColumns));
  for (const std::string_view name : kNativeColumns) {
    if (name != kGpuType) {
      RETURN_IF_ERROR(table.Require({name}));
    }
  }
  return io::ForEachTold(table,
                         [&](const io::CsvRow& row) { return AddNativeRow(table, row, builder); });
}

// Of two jobs together.
struct GavelPair {
  std::string place;  // "file:line"
  GavelRow row;
};

Status AddGavelFile(const io::CsvTable& table, Builder& builder, std::vector<GavelPair>& pairs) {
  return ReadGavelTable(table, [&](const io::CsvRow& row, const GavelRow& read) -> Status {
    if (read.other) {
      pairs.push_back({PlaceOf(table, row), read});
      return {};
    }
    if (!builder.Add({read.job.model, read.job.batch_size, read.gpus, read.gpu_type},
                     {.rate = read.rate, .written = true}, PlaceOf(table, row))) {
      return row.BadRow(
          fmt::format("'{}' with batch size {} on {} GPUs of type {} is there twice; "
                      "expected one row for each",
                      read.job.model, read.job.batch_size, read.gpus, read.gpu_type));
    }
    return {};
  });
}

Status ReadFolder(const std::string& path, Builder& builder) {
  std::error_code code;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
    if (entry.path().extension() == ".csv") {
      files.push_back(entry.path());
    }
  }
  if (code) {
    return BadInput(fmt::format("{}: cannot be read: {}", path, code.message()));
  }
  std::sort(files.begin(), files.end());  // the order of a folder is the file system's whim
  bool found = false;
  for (const std::filesystem::path& file : files) {
    ASSIGN_OR_RETURN(io::TextFile text, io::TextFile::Read(file.string()));
    const bool is_native = file.filename() == kNativeName;
    const bool names_key =
        text.text.substr(0, io::kMaxLineBytes).find(kFolderKey) != std::string::npos;
    Result<io::CsvTable> read = io::CsvTable::Of(std::move(text));
    if (!read.ok() && !is_native && !names_key) {
      continue;  // some other file
    }
    ASSIGN_OR_RETURN(const io::CsvTable table, std::move(read));
    if (is_native) {
      found = true;
      RETURN_IF_ERROR(AddNativeFile(table, builder));
      continue;
    }
    if (table.header().front() != kFolderKey) {
      continue;  // some other table, such as a trace
    }
    found = true;
    RETURN_IF_ERROR(AddWideFile(table, file.stem().string(), builder));
  }
  if (!found) {
    return BadInput(
        fmt::format("{}: no profiles; expected <model>.csv files with a header '{},1,2,...'", path,
                    kFolderKey));
  }
  return {};
}

// The rate at the level of so many GPUs; 0: there is no such level.
double RateAt(std::span<const int> levels, std::span<const double> rates, int gpus) {
  const auto level = std::lower_bound(levels.begin(), levels.end(), gpus);
  return level == levels.end() || *level != gpus
             ? 0
             : rates[static_cast<std::size_t>(level - levels.begin())];
}

}  // namespace

double ThroughputRow::Rate(int gpus) const { return RateAt(levels, rates, gpus); }

double ThroughputRow::RateOn(std::string_view gpu_type, int gpus) const {
  const auto typed = std::find_if(by_type.begin(), by_type.end(), [&](const TypedRates& rates_of) {
    return rates_of.gpu_type == gpu_type;
  });
  return typed == by_type.end() ? 0 : RateAt(levels, typed->rates, gpus);
}

int ThroughputRow::UsefulMaximum() const {
  const auto best = std::max_element(rates.begin(), rates.end());
  return best == rates.end() ? 0 : levels[static_cast<std::size_t>(best - rates.begin())];
}

bool ThroughputRow::RunsWithin(const GpuRange& range) const {
  return std::any_of(levels.begin(), levels.end(), [&](int gpus) { return range.Holds(gpus); });
}

std::string RangeText(const GpuRange& range) {
  return range.most == 0    ? fmt::format("{} or more", range.least)
         : range.least == 0 ? fmt::format("{} or fewer", range.most)
                            : fmt::format("{} to {}", range.least, range.most);
}

Result<ThroughputTable> ThroughputTable::Read(const std::string& path,
                                              std::span<const std::string> gpu_types) {
  std::error_code code;
  Builder builder;
  std::vector<GavelPair> pairs;
  if (std::filesystem::is_directory(path, code)) {
    RETURN_IF_ERROR(ReadFolder(path, builder));
  } else {
    ASSIGN_OR_RETURN(const io::CsvTable file, io::CsvTable::Open(path));
    RETURN_IF_ERROR(IsGavelTable(file) ? AddGavelFile(file, builder, pairs)
                                       : AddNativeFile(file, builder));
  }
  ThroughputTable table;
  ASSIGN_OR_RETURN(table.rows_, builder.Build(gpu_types));
  if (table.rows_.empty()) {
    const std::vector<std::string> types = builder.GpuTypes();
    if (types.empty()) {
      return BadInput(fmt::format("{}: no rows; expected a profile", path));
    }
    std::vector<std::string> named(gpu_types.begin(), gpu_types.end());
    std::erase(named, "");
    return BadInput(fmt::format(
        "{}: it has rates on GPUs of type {}, and the cluster has {}; expected a cluster of these "
        "types, such as --cluster 4x8:{}",
        path, fmt::join(types, ", "),
        named.empty() ? "GPUs of no stated type"
                      : fmt::format("GPUs of type {}", fmt::join(named, ", ")),
        types.front()));
  }
  for (const auto& [place, row] : pairs) {
    const bool matters = gpu_types.empty() || std::find(gpu_types.begin(), gpu_types.end(),
                                                        row.gpu_type) != gpu_types.end();
    const int first = table.Find(row.job.model, row.job.batch_size);
    const int second = table.Find(row.other->model, row.other->batch_size);
    if (!matters || first < 0 || second < 0) {
      continue;
    }
    const bool in_order = first <= second;
    const PairRate rate{in_order ? row.rate : row.other_rate, in_order ? row.other_rate : row.rate};
    const auto [known, is_new] = table.pairs_.emplace(
        PairKey{std::min(first, second), std::max(first, second), row.gpus, row.gpu_type}, rate);
    if (!is_new && (known->second.first != rate.first || known->second.second != rate.second)) {
      return BadInput(
          fmt::format("{}: '{}' and '{}' on {} GPUs of type {} have other rates in a row before; "
                      "expected the same, whichever comes first",
                      place, row.job.model, row.other->model, row.gpus, row.gpu_type));
    }
  }
  return table;
}

double ThroughputTable::RateBeside(int row, int other, int gpus, std::string_view gpu_type) const {
  const auto pair =
      pairs_.find({std::min(row, other), std::max(row, other), gpus, std::string(gpu_type)});
  return pair == pairs_.end() ? 0 : row <= other ? pair->second.first : pair->second.second;
}

bool ThroughputTable::IsAt(const std::string& folder) {
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / kNativeName);
}

int ThroughputTable::Find(std::string_view model, std::int64_t batch_size) const {
  const auto before = [](const ThroughputRow& row, const auto& key) {
    return std::tuple<std::string_view, std::int64_t>(row.model, row.batch_size) < key;
  };
  const std::tuple<std::string_view, std::int64_t> key(model, batch_size);
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), key, before);
  if (found == rows_.end() || found->model != model || found->batch_size != batch_size) {
    return -1;
  }
  return static_cast<int>(found - rows_.begin());
}

bool ThroughputTable::HasModel(std::string_view model) const {
  const auto before = [](const ThroughputRow& row, std::string_view name) {
    return row.model < name;
  };
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), model, before);
  return found != rows_.end() && found->model == model;
}

}  // namespace trainyard::profile
