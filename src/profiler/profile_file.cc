// SPDX-License-Identifier: Apache-2.0
#include "profiler/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/try.h"
#include "io/csv_reader.h"
#include "results/write/output_file.h"

namespace trainyard::profiler {
namespace {

bool SameKey(const std::vector<std::string>& a, const std::vector<std::string>& b,
             std::size_t key) {
  const auto end = [key](const auto& row) {
    return row.begin() + static_cast<std::ptrdiff_t>(key);
  };
  return std::equal(a.begin(), end(a), b.begin(), end(b));
}

Result<Rows> RowsOf(const std::string& path, const std::vector<std::string>& heading) {
  Rows rows;
  if (!std::filesystem::exists(path)) {
    return rows;
  }
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  for (const std::string& name : heading) {
    if (table.Column({name}) < 0) {
      return table.BadHeader(fmt::format("no column '{}'; expected {}, or another --out", name,
                                         fmt::join(heading, ",")));
    }
  }
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const std::string& name : heading) {
      cells.emplace_back(row.Text(row.Column(name)));
    }
    return Status();
  }));
  return rows;
}

}  // namespace

std::string ProfileNumber(double value) { return fmt::format("{:.6g}", value); }

Status AddRows(const std::string& path, const std::vector<std::string>& heading, std::size_t key,
               const Rows& rows) {
  ASSIGN_OR_RETURN(Rows all, RowsOf(path, heading));
  std::erase_if(all, [&](const auto& old) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const auto& row) { return SameKey(old, row, key); });
  });
  all.insert(all.end(), rows.begin(), rows.end());
  std::string text = fmt::format("{}\n", fmt::join(heading, ","));
  for (const std::vector<std::string>& row : all) {
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return results::WriteTextFile(path, std::move(text));
}

}  // namespace trainyard::profiler
