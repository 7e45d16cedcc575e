// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/text.h"
#include "io/csv_reader.h"
#include "trace/csv_format.h"
#include "trace/jsonl.h"

namespace trainyard {
namespace {

// All formats of tables, in the order in which they are listed.
std::span<const CsvFormat> CsvFormats() {
  static const std::array kFormats{NativeFormat(), ElasticflowFormat(), ItpFormat(),
                                   TiresiasFormat()};
  return kFormats;
}

std::string FormatList(std::span<const CsvFormat> formats) {
  std::string list;
  for (const CsvFormat& format : formats) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : "; ", format.shown.name,
                        RequiredColumns(format));
  }
  return list;
}

Result<CsvFormat> FindByName(std::string_view name) {
  for (const CsvFormat& format : CsvFormats()) {
    if (format.shown.name == name) {
      return format;
    }
  }
  std::vector<std::string_view> known;
  for (const TraceFormat& format : TraceFormats()) {
    known.push_back(format.name);
  }
  return InvalidArgument(UnknownName("trace format", name, known));
}

Result<CsvFormat> Recognise(const CsvTable& table) {
  std::vector<CsvFormat> fitting;
  for (const CsvFormat& format : CsvFormats()) {
    if (JobColumns::Find(format, table).ok()) {
      fitting.push_back(format);
    }
  }
  // Raw ITP columns can all be native ones; they then mean the same.
  const bool native = !fitting.empty() && fitting.front().shown.name == NativeFormat().shown.name;
  if (native || fitting.size() == 1) {
    return fitting.front();
  }
  if (fitting.empty()) {
    const std::vector<std::string_view> columns(table.header().begin(), table.header().end());
    return table.BadHeader(fmt::format("the columns {} fit no trace format; expected one of: {}",
                                       Join(columns, ", "), FormatList(CsvFormats())));
  }
  return table.BadHeader(fmt::format("the columns fit more than one trace format; name one of: {}",
                                     FormatList(fitting)));
}

Result<CsvFormat> ChooseFormat(const CsvTable& table, const TraceOptions& options) {
  return options.format.empty() ? Recognise(table) : FindByName(options.format);
}

// Finds jobs by name. Jobs are known by their position, as the vector of jobs moves their names
// about; a flat table, as a million nodes would cost more than reading the file.
class NameTable {
 public:
  explicit NameTable(std::size_t jobs) : slots_(std::bit_ceil(jobs * 2 + 2)) {}

  // The position of an earlier job with the name of jobs.back(), or that of jobs.back().
  [[nodiscard]] std::size_t Insert(const std::vector<JobSpec>& jobs) {
    if (jobs.size() * 2 > slots_.size()) {
      Grow();
    }
    const std::string& name = jobs.back().name;
    const Slot added{.hash = std::hash<std::string>{}(name), .number = jobs.size()};
    for (std::size_t i = added.hash & Mask();; i = (i + 1) & Mask()) {
      Slot& slot = slots_[i];
      if (slot.number == 0) {
        slot = added;
        return jobs.size() - 1;
      }
      if (slot.hash == added.hash && jobs[slot.number - 1].name == name) {
        return slot.number - 1;
      }
    }
  }

 private:
  struct Slot {
    std::size_t hash = 0;
    std::size_t number = 0;  // position + 1; 0: free
  };

  [[nodiscard]] std::size_t Mask() const { return slots_.size() - 1; }

  Slot& FreeSlot(std::size_t hash) {
    std::size_t i = hash & Mask();
    while (slots_[i].number != 0) {
      i = (i + 1) & Mask();
    }
    return slots_[i];
  }

  void Grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& slot : old) {
      if (slot.number != 0) {
        FreeSlot(slot.hash) = slot;
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
};

// Collects the jobs of one file.
class TraceBuilder {
 public:
  TraceBuilder(Trace trace, std::size_t rows) : trace_(std::move(trace)), names_(rows) {
    trace_.jobs.reserve(rows);
    trace_.lines.reserve(rows);
  }

  [[nodiscard]] Status Add(const CsvRow& row, JobRow read) {
    if (!read.left_out.empty()) {
      Skip(row.line(), std::move(read.left_out));
      return {};
    }
    trace_.jobs.push_back(std::move(read.job));
    const std::size_t first = names_.Insert(trace_.jobs);
    if (first + 1 == trace_.jobs.size()) {
      trace_.lines.push_back(row.line());
      return {};
    }
    trace_.jobs.pop_back();
    return row.BadRow(fmt::format("job_id '{}' is already in line {}; expected a new one",
                                  trace_.jobs[first].name, trace_.lines[first]));
  }

  void Skip(std::int64_t line, std::string why) {
    trace_.skipped.push_back({.line = line, .why = std::move(why)});
  }

  [[nodiscard]] Result<Trace> Take() {
    if (!trace_.jobs.empty()) {
      return std::move(trace_);
    }
    if (trace_.skipped.empty()) {
      return BadInput(fmt::format("{}: no jobs; expected a row at least", trace_.path));
    }
    return BadInput(fmt::format("{}: no jobs; all {} rows were skipped, the first because of {}",
                                trace_.path, trace_.skipped.size(), trace_.skipped.front().why));
  }

 private:
  Trace trace_;
  NameTable names_;
};

// `Table` is a CsvTable or a JsonlTable.
template <typename Table>
Result<Trace> ReadRows(const Table& table, const JobColumns& columns, const TraceFormat& format,
                       const TraceOptions& options) {
  TraceBuilder builder(
      Trace{.path = table.path(), .format = std::string(format.name), .sha256 = table.sha256()},
      table.MostRows());
  const auto read = [&](const CsvRow& row) -> Status {
    Result<JobRow> job = ReadJobRow(columns, row);
    return job.ok() ? builder.Add(row, std::move(job).value()) : Status(job.error());
  };
  const auto skip = [&](std::int64_t line, Error error) -> Status {
    builder.Skip(line, std::move(error.message));
    return {};
  };
  const Status status = options.skip_bad_rows ? table.ForEach(read, skip) : table.ForEach(read);
  if (!status.ok()) {
    return status.error();
  }
  return builder.Take();
}

}  // namespace

std::span<const TraceFormat> TraceFormats() {
  static const std::vector<TraceFormat> kShown = [] {
    std::vector<TraceFormat> shown;
    for (const CsvFormat& format : CsvFormats()) {
      shown.push_back(format.shown);
    }
    shown.insert(shown.begin() + 1, kJsonlFormat);  // behind the native tables
    return shown;
  }();
  return kShown;
}

Result<Trace> ReadTrace(const std::string& path, const TraceOptions& options) {
  Result<TextFile> file = TextFile::Read(path);
  if (!file.ok()) {
    return file.error();
  }
  const bool may_be_jsonl = options.format.empty() || options.format == NativeFormat().shown.name;
  if (options.format == kJsonlFormat.name || (may_be_jsonl && LooksLikeJsonl(file.value().text))) {
    return ReadRows(JsonlTable(std::move(file).value()), JobColumns::InOrder(NativeFormat()),
                    kJsonlFormat, options);
  }
  const Result<CsvTable> table = CsvTable::Of(std::move(file).value());
  if (!table.ok()) {
    return table.error();
  }
  const Result<CsvFormat> format = ChooseFormat(table.value(), options);
  if (!format.ok()) {
    return format.error();
  }
  const Result<JobColumns> columns = JobColumns::Find(format.value(), table.value());
  if (!columns.ok()) {
    return columns.error();
  }
  return ReadRows(table.value(), columns.value(), format.value().shown, options);
}

Status CheckFits(const Trace& trace, const Cluster& cluster) {
  const int gpus = cluster.total_gpus();
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].gpus > gpus) {
      return BadInput(fmt::format(
          "{}:{}: job '{}' asks for {} GPUs; expected at most the {} of cluster '{}'", trace.path,
          trace.lines[i], trace.jobs[i].name, trace.jobs[i].gpus, gpus, cluster.name));
    }
  }
  return {};
}

}  // namespace trainyard
