// SPDX-License-Identifier: Apache-2.0
#include "profile/measured_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/try.h"
#include "io/bad_rows.h"
#include "io/csv_field.h"
#include "io/csv_reader.h"
#include "profile/throughput_table.h"

namespace trainyard::profile {
namespace {

constexpr std::array<std::string_view, 6> kColumns{"model", "batch_size", "gpu_type",
                                                   "gpus",  "measure",    "value"};

std::string FileAt(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/" + std::string(kMeasuredFile)
                                                      : path;
}

Status AddRow(const io::CsvRow& row, MeasuredBook& book) {
  MeasuredKey key{.model = std::string(row.Text(row.Column("model"))),
                  .batch_size = 0,
                  .gpu_type = std::string(row.Text(row.Column("gpu_type")))};
  if (key.model.empty()) {
    return row.Bad(row.Column("model"), "the name of a model");
  }
  ASSIGN_OR_RETURN(key.batch_size, row.Integer(row.Column("batch_size"), 0));
  ASSIGN_OR_RETURN(const std::int64_t gpus, row.Integer(row.Column("gpus"), 1, kMostProfiledGpus));
  key.gpus = static_cast<int>(gpus);
  const std::optional<Measure> measure = MeasureNamed(row.Text(row.Column("measure")));
  if (!measure) {
    return row.Bad(row.Column("measure"), fmt::format("one of {}", fmt::join(kMeasureNames, ", ")));
  }
  ASSIGN_OR_RETURN(const double value, row.Positive(row.Column("value")));
  if (value > MeasuredBook::kLargest) {
    return row.Bad(row.Column("value"), fmt::format("at most {:g}", MeasuredBook::kLargest));
  }
  (void)book.Add(std::move(key), *measure, value);
  return {};
}

Result<MeasuredBook> BookOf(const io::CsvTable& csv) {
  RETURN_IF_ERROR(csv.CheckKnown(kColumns));
  for (const std::string_view name : kColumns) {
    RETURN_IF_ERROR(csv.Require({name}));
  }
  MeasuredBook book;
  RETURN_IF_ERROR(
      io::ForEachTold(csv, [&book](const io::CsvRow& row) { return AddRow(row, book); }));
  if (book.empty()) {
    return BadInput(csv.path() + ": no samples; expected what `trainyard profiles export` writes");
  }
  return book;
}

}  // namespace

Result<MeasuredBook> ReadMeasured(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable csv, io::CsvTable::Open(FileAt(path)));
  return BookOf(csv);
}

Result<MeasuredBook> MeasuredFrom(const std::string& name, std::string text) {
  ASSIGN_OR_RETURN(const io::CsvTable csv,
                   io::CsvTable::Of({.path = name, .sha256 = {}, .text = std::move(text)}));
  return BookOf(csv);
}

std::string MeasuredText(const MeasuredBook& book) {
  std::string text = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const auto& [key, entry] : book.entries()) {
    for (std::size_t i = 0; i < kMeasures; ++i) {
      for (const double value : entry.samples.at(i).values()) {
        io::AppendCsvField(key.model, text);
        text += fmt::format(",{},", key.batch_size);
        io::AppendCsvField(key.gpu_type, text);
        text += fmt::format(",{},{},{}\n", key.gpus, kMeasureNames.at(i), value);
      }
    }
  }
  return text;
}

}  // namespace trainyard::profile
