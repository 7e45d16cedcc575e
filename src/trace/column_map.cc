// SPDX-License-Identifier: Apache-2.0
#include "trace/column_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "io/table_faults.h"

namespace trainyard::trace {
Result<ColumnMap> ColumnMap::Parse(std::string_view text) {
  ColumnMap map;
  if (text.empty()) {
    return map;
  }
  for (const std::string_view part : base::Split(text, ",")) {
    const std::size_t equals = part.find('=');
    const std::string_view name = base::Trim(part.substr(0, equals));
    const std::string_view own =
        equals == std::string_view::npos ? "" : base::Trim(part.substr(equals + 1));
    if (name.empty() || own.empty()) {
      return InvalidArgument(fmt::format(
          "--map '{}'; expected NAME=COLUMN with the format's name and the file's, such as "
          "gpus=n_gpus, and ',' between several",
          part));
    }
    for (const auto& [known, of_file] : map.names_) {
      if (known == name || of_file == own) {
        return InvalidArgument(fmt::format("--map: '{}' is there twice; expected each name once",
                                           known == name ? name : own));
      }
    }
    map.names_.emplace_back(name, own);
  }
  return map;
}

std::vector<std::string_view> ColumnMap::Meanings() const {
  std::vector<std::string_view> meanings;
  for (const auto& [name, own] : names_) {
    meanings.push_back(name);
  }
  return meanings;
}

std::string_view ColumnMap::MeaningOf(std::string_view own) const {
  for (const auto& [name, of_file] : names_) {
    if (of_file == own) {
      return name;
    }
  }
  return {};
}

bool ColumnMap::IsTaken(std::string_view name) const {
  return std::any_of(names_.begin(), names_.end(),
                     [name](const auto& one) { return one.first == name && one.second != name; });
}

Status ColumnMap::CheckMeanings(std::string_view format,
                                std::span<const std::string_view> known) const {
  for (const auto& [name, own] : names_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    if (std::find(known.begin(), known.end(), own) != known.end()) {
      return InvalidArgument(
          fmt::format("--map {0}={1}; expected the name of format {2} first: --map {1}={0}", name,
                      own, format));
    }
    const std::string_view near = base::NearestName(name, known);
    return InvalidArgument(
        fmt::format("--map {}={}: format {} has no column '{}'{}", name, own, format, name,
                    near.empty() ? "; expected one of: " + base::Join(known, ", ")
                                 : fmt::format("; did you mean '{}'?", near)));
  }
  return {};
}

Status ColumnMap::Apply(io::CsvHeader& table) const {
  std::vector<int> columns;
  for (const auto& [name, own] : names_) {
    const int column = table.Column({own});
    if (column < 0) {
      return table.BadHeader(fmt::format("no column '{}', which --map names; the columns are {}",
                                         own, io::NameList(table.header())));
    }
    columns.push_back(column);
  }
  for (std::size_t i = 0; i < table.header().size(); ++i) {
    if (const std::string& name = table.header()[i]; IsTaken(name)) {
      table.Rename(static_cast<int>(i), name + " (not mapped)");
    }
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    table.Rename(columns[i], names_[i].first);
  }
  return {};
}

}  // namespace trainyard::trace
