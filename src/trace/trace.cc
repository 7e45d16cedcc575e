// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "io/table_faults.h"
#include "io/text_check.h"
#include "trace/column_map.h"
#include "trace/csv_format.h"
#include "trace/log_format.h"
#include "trace/own_format.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

// All others. Those that are found by content are found in this order.
std::span<const OwnFormat> OwnFormats() {
  static const std::array kFormats{kSacctFormat, kBatsimFormat,     kGavelFormat,
                                   kJsonlFormat, kPhillyFormat,     kSiaPhillyFormat,
                                   kSwfFormat,   kTorchloaderFormat};
  return kFormats;
}

// Public traces that are known and not read: a column that gives them away, and why.
struct Refused {
  std::string_view column;
  std::string_view why;
};
constexpr std::array kRefused{
    Refused{.column = "collection_id",
            .why = "Google 2019 tables: their jobs have no GPUs, and CPUs only as shares of an "
                   "unnamed machine; expected a trace of GPU jobs"},
    Refused{.column = "vmTypeId",
            .why = "Azure 2020 tables: virtual machines without GPUs, which no training could be "
                   "read from; expected a trace of GPU jobs"},
    Refused{.column = "gmem_util",
            .why = "Lucid's measurements of jobs that share a GPU are no trace; expected jobs"},
};

std::string FormatList(std::span<const CsvFormat> formats) {
  std::string list;
  for (const CsvFormat& format : formats) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : "; ", format.shown.name,
                        RequiredColumns(format));
  }
  return list;
}

bool Has(const io::CsvHeader& table, std::string_view name) { return table.Column({name}) >= 0; }

bool Has(const io::CsvHeader& table, const ColumnRule& rule) {
  return Has(table, rule.name) || (!rule.other_name.empty() && Has(table, rule.other_name));
}

// The columns that a format needs and a table does not have.
std::vector<std::string_view> MissingFrom(const io::CsvHeader& table, const CsvFormat& format) {
  std::vector<std::string_view> missing;
  for (const ColumnRule& rule : format.columns) {
    if (rule.required && !Has(table, rule)) {
      missing.push_back(rule.name);
    }
  }
  return missing;
}

std::vector<std::string_view> MissingFrom(const io::CsvHeader& table, const LogFormat& format) {
  std::vector<std::string_view> missing;
  std::copy_if(format.columns.begin(), format.columns.end(), std::back_inserter(missing),
               [&](std::string_view name) { return !Has(table, name); });
  return missing;
}

// The format of which fewest columns are missing, and then most are there.
class NearestFormat {
 public:
  explicit NearestFormat(const io::CsvHeader& table) {
    for (const CsvFormat& format : CsvFormats()) {
      const auto needed = std::count_if(format.columns.begin(), format.columns.end(),
                                        [](const ColumnRule& rule) { return rule.required; });
      Consider(format.shown.name, MissingFrom(table, format), static_cast<std::size_t>(needed));
    }
    for (const LogFormat& format : LogFormats()) {
      Consider(format.shown.name, MissingFrom(table, format), format.columns.size());
    }
  }

  // "nearest is x, which needs also a, b", or nothing.
  [[nodiscard]] std::string Text() const {
    return name_.empty() ? ""
                         : fmt::format("nearest is {}, which needs also {}", name_,
                                       base::Join(missing_, ", "));
  }

 private:
  void Consider(std::string_view name, std::vector<std::string_view> missing, std::size_t needed) {
    if (!missing.empty() && missing.size() * 2 < needed &&
        (name_.empty() || missing.size() < missing_.size() ||
         (missing.size() == missing_.size() && needed > needed_))) {
      name_ = name;
      needed_ = needed;
      missing_ = std::move(missing);
    }
  }

  std::string_view name_;
  std::size_t needed_ = 0;
  std::vector<std::string_view> missing_;
};

// Columns without a meaning in the format, and columns that it needs and are not there.
struct Slips {
  std::vector<std::string_view> unknown;
  std::vector<std::string_view> missing;
  std::vector<std::string_view> unused;  // names of the format that the table does not have

  [[nodiscard]] std::size_t count() const { return unknown.size() + missing.size(); }
};

Slips SlipsFrom(const CsvFormat& format, const io::CsvHeader& table) {
  Slips slips{.missing = MissingFrom(table, format)};
  std::vector<std::string_view> known;
  for (const ColumnRule& rule : format.columns) {
    known.push_back(rule.name);
    known.push_back(rule.other_name);
    if (!Has(table, rule)) {
      slips.unused.push_back(rule.name);
    }
  }
  for (const std::string& name : table.header()) {
    if (!format.ignores_others && !io::IsIndexColumn(name) &&
        std::find(known.begin(), known.end(), name) == known.end()) {
      slips.unknown.push_back(name);
    }
  }
  return slips;
}

// What is wrong with the columns of a table that is nearest to the native form and has most of its
// columns from there; nothing: it is not.
std::optional<std::string> SlipInNative(const io::CsvHeader& table) {
  const Slips native = SlipsFrom(kNativeFormat, table);
  const bool another_is_nearer =
      std::any_of(CsvFormats().begin(), CsvFormats().end(),
                  [&](const CsvFormat& format) {
                    return SlipsFrom(format, table).count() < native.count();
                  }) ||
      std::any_of(LogFormats().begin(), LogFormats().end(), [&](const LogFormat& format) {
        return MissingFrom(table, format).size() < native.count();
      });
  if (another_is_nearer || 2 * native.unknown.size() >= table.header().size()) {
    return std::nullopt;
  }
  for (const std::string_view name : native.unknown) {
    if (const std::string_view near = base::NearestName(name, native.unused); !near.empty()) {
      return fmt::format(
          "unknown column '{}'; did you mean '{}'? The other columns are of format "
          "native",
          name, near);
    }
  }
  if (!native.missing.empty()) {
    return fmt::format("no column {}; the others are of format native, which needs {}",
                       native.missing.front(), RequiredColumns(kNativeFormat));
  }
  if (!native.unknown.empty()) {
    return UnknownColumn(kNativeFormat, "column", native.unknown.front());
  }
  return "no column duration or iterations; expected one of them at least";
}

// The log that the user names, or else that has its columns; null: none. Errors: the one that is
// named has other columns.
Result<const LogFormat*> FindLog(const io::CsvHeader& table, const TraceOptions& options) {
  for (const LogFormat& format : LogFormats()) {
    const std::vector<std::string_view> missing = MissingFrom(table, format);
    if (missing.empty() && (options.format.empty() || options.format == format.shown.name)) {
      return &format;
    }
    if (options.format == format.shown.name) {
      return table.BadHeader(fmt::format("no column {}; format {} needs {}", missing.front(),
                                         format.shown.name, base::Join(format.columns, ", ")));
    }
  }
  return nullptr;
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
  return InvalidArgument(base::UnknownName("trace format", name, known));
}

Result<CsvFormat> Recognise(const io::CsvHeader& table) {
  std::vector<CsvFormat> fitting;
  for (const CsvFormat& format : CsvFormats()) {
    if (JobColumns::Find(format, table).ok()) {
      fitting.push_back(format);
    }
  }
  // Raw ITP columns can all be native ones; they then mean the same.
  const bool native = !fitting.empty() && fitting.front().shown.name == kNativeFormat.shown.name;
  if (native || fitting.size() == 1) {
    return fitting.front();
  }
  if (fitting.empty()) {
    for (const Refused& refused : kRefused) {
      if (Has(table, refused.column)) {
        return table.BadHeader(refused.why);
      }
    }
    if (const std::optional<std::string> slip = SlipInNative(table)) {
      return table.BadHeader(*slip);
    }
    const std::string nearest = NearestFormat(table).Text();
    return table.BadHeader(fmt::format(
        "the columns {} fit no trace format; {}", io::NameList(table.header()),
        !nearest.empty() ? nearest + " (`trainyard trace --help` lists all formats)"
                         : fmt::format("expected {} (--map gpus=NAME,... reads columns with names "
                                       "of their own; `trainyard trace --help` lists all formats)",
                                       RequiredColumns(kNativeFormat))));
  }
  return table.BadHeader(fmt::format("the columns fit more than one trace format; name one of: {}",
                                     FormatList(fitting)));
}

Result<CsvFormat> ChooseFormat(const io::CsvHeader& table, const TraceOptions& options) {
  return options.format.empty() ? Recognise(table) : FindByName(options.format);
}

std::vector<std::string_view> NamesOf(const CsvFormat& format) {
  std::vector<std::string_view> names;
  for (const ColumnRule& rule : format.columns) {
    names.push_back(rule.name);
    if (!rule.other_name.empty()) {
      names.push_back(rule.other_name);
    }
  }
  return names;
}

// The format that --map speaks of: the one that is named, or native if all names are of it.
Result<std::string> FormatOfMap(const ColumnMap& map, const TraceOptions& options) {
  if (map.empty() || (!options.format.empty() && options.format != kNativeFormat.shown.name)) {
    return options.format;
  }
  const Status is_native = map.CheckMeanings(kNativeFormat.shown.name, NamesOf(kNativeFormat));
  if (is_native.ok()) {
    return std::string(kNativeFormat.shown.name);
  }
  const std::vector<std::string_view> meanings = map.Meanings();
  const bool is_of_another =
      options.format.empty() &&
      std::any_of(CsvFormats().begin(), CsvFormats().end(), [&](const CsvFormat& format) {
        return map.CheckMeanings(format.shown.name, NamesOf(format)).ok();
      });
  return is_of_another ? Result<std::string>(std::string()) : is_native.error();
}

std::vector<std::string> NamesBeside(std::span<const std::string_view> known,
                                     const io::CsvHeader& table) {
  std::vector<std::string> others;
  for (const std::string& name : table.header()) {
    if (!io::IsIndexColumn(name) && std::find(known.begin(), known.end(), name) == known.end()) {
      others.push_back(name);
    }
  }
  return others;
}

Result<Trace> ReadTable(io::CsvStream table, const ColumnMap& map, TraceOptions options) {
  ASSIGN_OR_RETURN(options.format, FormatOfMap(map, options));
  RETURN_IF_ERROR(map.Apply(table));
  ASSIGN_OR_RETURN(const LogFormat* log, FindLog(table, options));
  if (log != nullptr) {
    Result<Trace> trace = ReadLog(table, *log, options);
    if (trace.ok()) {
      trace.value().unread = NamesBeside(NamesOf(*log), table);
    }
    return trace;
  }
  ASSIGN_OR_RETURN(CsvFormat format, ChooseFormat(table, options));
  if (!map.empty()) {
    RETURN_IF_ERROR(map.CheckMeanings(format.shown.name, NamesOf(format)));
    format.ignores_others = true;
  }
  ASSIGN_OR_RETURN(JobColumns columns, JobColumns::Find(format, table));
  columns.UseUnit(options.unit);
  columns.UseStampsLike(table.FirstValue(columns.at(Native("submit_time"))));
  Result<Trace> trace = ReadByColumns(table, columns, format.shown.name, options);
  if (!trace.ok()) {
    return trace;
  }
  trace.value().unread = NamesBeside(NamesOf(format), table);
  if (const std::vector<std::string>& unread = trace.value().unread;
      !map.empty() && !unread.empty()) {  // --map leaves them without a meaning
    trace.value().notes.push_back(
        table.BadHeader("columns that are not read: " + io::NameList(unread)).message);
  }
  return trace;
}

Status CheckNoArray(const io::TextStream& text) {
  if (!io::Beginning(text.block()).starts_with('[')) {
    return {};
  }
  return BadInput(fmt::format(
      "{0}:1: a JSON array; expected an object on each line (JSON Lines): jq -c '.[]' {0} > "
      "FILE.jsonl",
      text.path()));
}

Error NoColumnNames(const std::string& path, std::string_view format) {
  return InvalidArgument(
      fmt::format("{}: column names (--map) have no effect on format '{}', whose fields have no "
                  "names; expected none",
                  path, format));
}

Result<Trace> ReadAnyFormat(const std::string& path, const TraceOptions& options) {
  ASSIGN_OR_RETURN(const ColumnMap map, ColumnMap::Parse(options.columns));
  if (options.format == kPaiFormat.name || (options.format.empty() && LooksLikePai(path))) {
    return map.empty() ? ReadPai(path, options) : NoColumnNames(path, kPaiFormat.name);
  }
  ASSIGN_OR_RETURN(io::TextStream text, io::TextStream::Open(path));
  for (const OwnFormat& format : OwnFormats()) {
    const bool may_be = options.format.empty() || (options.format == kNativeFormat.shown.name &&
                                                   format.shown.name == kJsonlFormat.shown.name);
    if (options.format == format.shown.name || (may_be && format.looks_like(text.block()))) {
      if (!map.empty() && !format.takes_column_names) {
        return NoColumnNames(path, format.shown.name);
      }
      if (format.shown.name == kJsonlFormat.shown.name) {
        RETURN_IF_ERROR(CheckNoArray(text));
      }
      return format.read(std::move(text), options);
    }
  }
  RETURN_IF_ERROR(CheckNoArray(text));
  ASSIGN_OR_RETURN(io::CsvStream table, io::CsvStream::Of(std::move(text)));
  return ReadTable(std::move(table), map, options);
}

}  // namespace

std::span<const TraceFormat> TraceFormats() {
  static const std::vector<TraceFormat> kShown = [] {
    std::vector<TraceFormat> shown;
    const auto show = [&shown](const auto& formats) {
      for (const auto& format : formats) {
        shown.push_back(format.shown);
      }
    };
    show(CsvFormats());
    show(OwnFormats());
    show(LogFormats());
    shown.push_back(kPaiFormat);
    std::sort(shown.begin() + 1, shown.end(),  // behind the native one
              [](const TraceFormat& a, const TraceFormat& b) { return a.name < b.name; });
    return shown;
  }();
  return kShown;
}

namespace {

// Error: the format does not heed an option that was given. `what`: "column names (--map)".
Status CheckHeeded(const std::string& path, const std::string& format, bool TraceFormat::*heeds,
                   std::string_view what) {
  std::vector<std::string_view> names;
  for (const TraceFormat& each : TraceFormats()) {
    if (each.*heeds && each.name == format) {
      return {};
    }
    if (each.*heeds) {
      names.push_back(each.name);
    }
  }
  return InvalidArgument(
      fmt::format("{}: {} have no effect on format '{}'; expected none, or a trace of format {}",
                  path, what, format, fmt::join(names, ", ")));
}

}  // namespace

Result<Trace> ReadTrace(const std::string& path, const TraceOptions& options) {
  Result<Trace> trace = ReadAnyFormat(path, options);
  if (!trace.ok()) {
    return trace;
  }
  const std::string& format = trace.value().format;
  if (options.procs_per_gpu > 0) {
    RETURN_IF_ERROR(CheckHeeded(path, format, &TraceFormat::has_processors,
                                "processors per GPU (--procs-per-gpu)"));
  }
  if (options.cpu_jobs) {
    RETURN_IF_ERROR(
        CheckHeeded(path, format, &TraceFormat::has_cpu_jobs, "jobs on CPUs alone (--cpu-jobs)"));
  }
  if (options.node_requests) {
    RETURN_IF_ERROR(CheckHeeded(path, format, &TraceFormat::has_node_requests,
                                "numbers and labels of nodes (--node-requests)"));
  }
  return trace;
}

Result<TraceFacts> ForEachJob(const std::string& path, const TraceOptions& options,
                              const JobVisitor& visitor) {
  TraceFacts facts{.path = path};
  const JobVisitor counting{.on_job =
                                [&](JobSpec& job, std::int64_t line) {
                                  ++facts.jobs;
                                  return visitor.on_job(job, line);
                                },
                            .on_skipped = visitor.on_skipped};
  TraceOptions visiting = options;
  visiting.visitor = &counting;
  LogStart log_start;
  if (std::error_code error; std::filesystem::is_regular_file(path, error)) {
    visiting.log_start = &log_start;
  }
  Result<Trace> trace = ReadTrace(path, visiting);
  if (trace.ok() && log_start.first_submit) {
    trace = ReadTrace(path, visiting);
  }
  if (!trace.ok()) {
    return trace.error();
  }
  for (const RowGroup& rows : trace.value().skipped) {
    if (visitor.on_skipped) {
      visitor.on_skipped(rows);
    }
  }
  // What a reader has kept all the same.
  for (std::size_t i = 0; i < trace.value().jobs.size(); ++i) {
    RETURN_IF_ERROR(counting.on_job(trace.value().jobs[i], trace.value().lines[i]));
  }
  facts.format = std::move(trace.value().format);
  facts.sha256 = std::move(trace.value().sha256);
  facts.skipped = static_cast<std::size_t>(trace.value().skipped_rows);
  facts.remarks = std::move(trace.value().remarks);
  facts.origin = std::move(trace.value().origin);
  facts.waits = std::move(trace.value().waits);
  facts.states = std::move(trace.value().states);
  facts.notes = std::move(trace.value().notes);
  return facts;
}

Status CheckFits(const JobSpec& job, std::string_view where, const Cluster& cluster) {
  const int gpus = cluster.total_gpus();
  if (job.gpus <= gpus) {
    return {};
  }
  return BadInput(
      fmt::format("{}: job '{}' asks for {} GPUs; expected at most the {} of cluster '{}'", where,
                  job.name, job.gpus, gpus, cluster.name));
}

Status CheckFits(const Trace& trace, const Cluster& cluster) {
  const int gpus = cluster.total_gpus();
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].gpus > gpus) {
      return CheckFits(trace.jobs[i], fmt::format("{}:{}", trace.path, trace.lines[i]), cluster);
    }
  }
  return {};
}

}  // namespace trainyard::trace
