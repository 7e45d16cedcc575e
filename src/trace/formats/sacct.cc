// SPDX-License-Identifier: Apache-2.0
// Accounting of Slurm as sacct prints it with --parsable, --parsable2 or --json:
// docs/formats/sacct.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "model/request/node_request.h"
#include "trace/column_map.h"
#include "trace/csv_format.h"
#include "trace/formats/sacct_gres.h"
#include "trace/formats/sacct_json.h"
#include "trace/formats/sacct_line.h"
#include "trace/job_times.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/timestamp.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kLaterRun = "line of its last run";  // a column that we add

// The rows of a file, each with the line of the last row that has its id. Duplicates are runs of a
// job that was requeued (sacct --duplicates).
// `Lines` is a LineStream or gives out rows as one does.
template <typename Lines>
class SacctTable {
 public:
  SacctTable(Lines lines, std::vector<std::string> names, int id)
      : lines_(std::move(lines)), names_(std::move(names)), id_(id) {
    names_.emplace_back(kLaterRun);
  }

  [[nodiscard]] const std::string& path() const { return lines_.path(); }
  [[nodiscard]] std::size_t LikelyRows() const { return lines_.LikelyRows(); }
  [[nodiscard]] std::string sha256() const { return lines_.sha256(); }

  // As CsvTable::ForEach.
  [[nodiscard]] Status ForEach(const io::RowReader& on_row,
                               const io::BadRowReader& on_bad_row = {}) {
    std::vector<Row> rows;
    std::map<std::string, std::int64_t, std::less<>> last;
    const auto keep = [&](const io::CsvRow& row) -> Status {
      Row kept{.line = row.line()};
      for (std::size_t field = 0; field + 1 < names_.size(); ++field) {
        kept.fields.emplace_back(row.Text(static_cast<int>(field)));
      }
      last[std::string(row.Text(id_))] = row.line();
      rows.push_back(std::move(kept));
      return {};
    };
    RETURN_IF_ERROR(lines_.ForEach(keep, on_bad_row));
    for (Row& row : rows) {
      const std::int64_t line = last.at(row.fields[static_cast<std::size_t>(id_)]);
      row.fields.push_back(line == row.line ? "" : std::to_string(line));
      const std::vector<std::string_view> fields(row.fields.begin(), row.fields.end());
      RETURN_IF_ERROR(
          io::GiveOut(io::CsvRow(path(), row.line, names_, fields, "field"), on_row, on_bad_row));
    }
    return {};
  }

 private:
  struct Row {
    std::int64_t line = 0;
    std::vector<std::string> fields;
  };

  Lines lines_;
  std::vector<std::string> names_;
  int id_;
};

// Where GPUs stand, the first that names some counts: what was allocated before what was requested,
// TRES before GRES (older versions count GPUs in the latter only).
enum GpuColumn : std::size_t { kAllocTres, kAllocGres, kReqTres, kReqGres, kGpuColumns };
constexpr std::array<std::array<std::string_view, 2>, kGpuColumns> kGpuColumnNames{
    {{"AllocTRES", "TRESAlloc"}, {"AllocGRES", ""}, {"ReqTRES", "TRESReq"}, {"ReqGRES", ""}}};
constexpr std::array<std::string_view, 3> kCpuColumns{"AllocCPUS", "NCPUS", "ReqCPUS"};

// Columns vary with the version and with what was asked for. -1: there is none.
struct SacctColumns {
  int id = -1;
  int user = -1;
  int account = -1;
  int label = -1;
  int partition = -1;
  int submit = -1;
  int start = -1;
  int end = -1;
  int elapsed_raw = -1;
  int elapsed = -1;
  int limit_raw = -1;
  int limit = -1;
  int state = -1;
  std::array<int, kGpuColumns> gpus{-1, -1, -1, -1};
  std::array<int, kCpuColumns.size()> cpus{-1, -1, -1};
  int nodes = -1;
  int requested_nodes = -1;
  int constraint = -1;
  int later_run = -1;
  std::vector<bool> read{};  // by their places: those that are any of these
};

class SacctRows {
 public:
  SacctRows(const SacctColumns& columns, const TraceOptions& options)
      : at_(columns),
        procs_per_gpu_(options.procs_per_gpu),
        takes_cpu_jobs_(options.cpu_jobs),
        takes_node_requests_(options.node_requests) {}

  // A time of the accounting, as it writes it.
  [[nodiscard]] std::string Text(TimePoint at) const { return stamps_.Text(at); }

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) {
    JobRow read;
    read.job.name = row.Text(at_.id);
    if (read.job.name.empty()) {
      return row.Bad(at_.id, "the id of the job");
    }
    JobTraits traits;
    RETURN_IF_ERROR(CheckKind(row, read));
    if (read.left_out.empty()) {
      RETURN_IF_ERROR(ReadGpus(row, read, traits));
    }
    if (read.left_out.empty()) {
      RETURN_IF_ERROR(ReadTimes(row, read));
    }
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(ReadLimit(row, *read.job.duration, traits));
    TakeRequest(row, read, traits);
    read.job.user = row.Text(at_.user);
    read.job.queue = row.Text(at_.partition);
    traits.account = row.Text(at_.account);
    traits.label = row.Text(at_.label);
    Give(std::move(traits), read.job);
    const std::string_view state = row.Text(at_.state);
    read.state = state.substr(0, state.find(' '));  // "CANCELLED by 1000"
    return read;
  }

 private:
  Status CheckKind(const io::CsvRow& row, JobRow& read) {
    const std::string_view state = row.Text(at_.state);
    if (read.job.name.find('.') != std::string::npos) {
      read.left_out = "it is a step of a job; steps are left out";
    } else if (!row.Text(at_.later_run).empty()) {
      read.left_out = "it was requeued and ran again; only the last run of a job counts";
    } else if (IsMissing(row.Text(at_.start)) || row.Text(at_.nodes) == "None assigned") {
      // Older versions give a job that was cancelled in the queue the time of that as its start.
      read.left_out = "it never started; such jobs are left out";
    } else if (state == "RUNNING" || state == "SUSPENDED" || state == "COMPLETING") {
      read.left_out = "it had not ended when the accounting was taken; such jobs are left out";
    }
    return {};
  }

  // GPUs as the columns name them; nothing: none does. Types are those of the first that names
  // some.
  Result<std::optional<std::int64_t>> GpusNamed(const io::CsvRow& row, JobRow& read,
                                                JobTraits& traits) const {
    std::optional<std::int64_t> count;
    std::array<std::optional<SlurmGpus>, kGpuColumns> named;
    for (std::size_t i = 0; i < kGpuColumns; ++i) {
      bool bad = false;
      named[i] = SlurmGpusOf(row.Text(at_.gpus[i]), bad);
      if (bad) {
        return row.Bad(at_.gpus[i], i == kAllocTres || i == kReqTres
                                        ? "a list such as cpu=4,gres/gpu=2"
                                        : "a list such as gpu:a100:2");
      }
      if (!named[i]) {
        continue;
      }
      // Where an allocation is listed without GPUs, those of the request were not given.
      const bool was_given = i < kReqTres || row.Text(at_.gpus[i - kReqTres]).empty();
      count = count || !was_given ? count : named[i]->count;
      traits.gpu_types = traits.gpu_types.empty() ? named[i]->types : traits.gpu_types;
    }
    if (named[kAllocTres] && named[kAllocGres] &&
        named[kAllocTres]->count != named[kAllocGres]->count) {
      read.remarks.emplace_back(
          "AllocTRES and AllocGRES name different numbers of GPUs; AllocTRES counts");
    }
    return count;
  }

  Status ReadGpus(const io::CsvRow& row, JobRow& read, JobTraits& traits) {
    ASSIGN_OR_RETURN(std::optional<std::int64_t> count, GpusNamed(row, read, traits));
    if (count.value_or(0) == 0 && procs_per_gpu_ > 0) {
      ASSIGN_OR_RETURN(const std::int64_t cpus, CpusOf(row));
      count = (cpus + procs_per_gpu_ - 1) / procs_per_gpu_;
      if (*count > model::kMostGpus) {
        return row.BadRow(fmt::format("{} CPUs are {} GPUs; expected at most {} of one job", cpus,
                                      *count, model::kMostGpus));
      }
    }
    const bool on_cpus = takes_cpu_jobs_ && count.value_or(0) == 0 &&
                         SlurmCpusOf(row.Text(at_.gpus[kAllocTres])).value_or(0) > 0;
    if (count.value_or(0) == 0 && !on_cpus) {
      read.left_out = procs_per_gpu_ > 0 || takes_cpu_jobs_
                          ? "it has neither GPUs nor CPUs; such jobs are left out"
                          : "it has no GPUs; jobs on CPUs alone are left out (--cpu-jobs takes "
                            "them, --procs-per-gpu N takes N CPUs for a GPU)";
    }
    read.job.gpus = static_cast<int>(count.value_or(0));
    return {};
  }

  // CPUs and memory that it was given, and not what it asked for: where nobody states memory, that
  // is all of a node's in the request of many sites.
  void TakeRequest(const io::CsvRow& row, JobRow& read, JobTraits& traits) const {
    constexpr std::int64_t kMilli = 1000;
    const std::string_view given = row.Text(at_.gpus[kAllocTres]);
    NodeRequest request;
    if (takes_node_requests_) {
      TakeNodes(row, read, request);
    }
    request.cpus.milli = procs_per_gpu_ > 0 ? 0 : SlurmCpusOf(given).value_or(0) * kMilli;
    request.memory.mib = SlurmMemoryOf(given);
    if (request != NodeRequest{}) {
      traits.request = std::move(request);
    }
  }

  // What it asked for, as others decided what it was given. One node is what Slurm notes for jobs
  // that state no number, too.
  void TakeNodes(const io::CsvRow& row, JobRow& read, NodeRequest& request) const {
    int nodes = SlurmNodesOf(row.Text(at_.gpus[kReqTres]));
    if (nodes == 0) {
      nodes = base::ToInteger<int>(row.Text(at_.requested_nodes)).value_or(0);
    }
    if (nodes > 1 && read.job.gpus > 0 && read.job.gpus < nodes) {
      read.remarks.emplace_back(
          "it asked for more nodes than it had GPUs; its number of nodes is left");
    } else if (nodes > 1) {
      request.nodes = {.least = nodes, .most = nodes};
    }
    const std::string_view constraint = row.Text(at_.constraint);
    if (IsMissing(constraint)) {
      return;
    }
    if (model::Constraint::Parse(constraint).ok()) {
      request.constraint = constraint;
    } else {
      read.remarks.emplace_back(
          "its constraint is none of '&', '|', '!', '*' and round brackets over labels; it is "
          "left");
    }
  }

  Result<std::int64_t> CpusOf(const io::CsvRow& row) const {
    const int tres = at_.gpus[row.Text(at_.gpus[kAllocTres]).empty() ? kReqTres : kAllocTres];
    const std::optional<std::int64_t> listed = SlurmCpusOf(row.Text(tres));
    if (!listed) {
      return row.Bad(tres, "a list such as cpu=4,gres/gpu=2");
    }
    for (std::size_t i = 0; *listed == 0 && i < at_.cpus.size(); ++i) {
      if (!row.Text(at_.cpus[i]).empty()) {
        return row.Integer(at_.cpus[i], 0, 1'000'000'000);
      }
    }
    return *listed;
  }

  Status ReadTimes(const io::CsvRow& row, JobRow& read) {
    ASSIGN_OR_RETURN(const std::optional<TimePoint> submit, stamps_.Read(row, at_.submit));
    if (!submit) {
      read.left_out = "its submit is not recorded; such jobs are left out";
      return {};
    }
    ASSIGN_OR_RETURN(const std::optional<Duration> run, ReadRun(row));
    if (!run) {
      read.left_out = "its end is not recorded; such jobs are left out";
      return {};
    }
    if (*run <= Duration{0}) {
      read.left_out = "it ended when it started; jobs that took no time are left out";
    }
    read.job.submit = *submit;
    read.job.duration = run;
    return ReadWait(row, read);
  }

  Status ReadWait(const io::CsvRow& row, JobRow& read) {
    ASSIGN_OR_RETURN(const std::optional<TimePoint> start, stamps_.Read(row, at_.start));
    if (start && *start >= read.job.submit) {
      read.wait = *start - read.job.submit;
    }
    return {};
  }

  // What Slurm counted itself first: stamps are local, and clocks change.
  Result<std::optional<Duration>> ReadRun(const io::CsvRow& row) {
    for (const int column : {at_.elapsed_raw, at_.elapsed}) {
      if (IsMissing(row.Text(column))) {
        continue;
      }
      const std::optional<double> seconds = column == at_.elapsed_raw
                                                ? base::ToNumber(row.Text(column))
                                                : ParseClock(row.Text(column), true);
      if (!seconds || *seconds < 0 || *seconds > model::kMostTraceSeconds) {
        return row.Bad(column,
                       column == at_.elapsed_raw ? "seconds" : "[days-]hours:minutes:seconds");
      }
      return std::optional(FromSeconds(*seconds));
    }
    const Result<std::optional<TimePoint>> start = stamps_.Read(row, at_.start);
    const Result<std::optional<TimePoint>> end = stamps_.Read(row, at_.end);
    for (const auto* stamp : {&start, &end}) {
      if (!stamp->ok()) {
        return stamp->error();
      }
      if (!stamp->value()) {
        return std::optional<Duration>();
      }
    }
    if (*end.value() < *start.value()) {
      return row.Bad(at_.end, "a time that is not before the start");
    }
    return std::optional(*end.value() - *start.value());
  }

  // Slurm ends jobs some time behind their limit: a job that ran longer has what it ran.
  Status ReadLimit(const io::CsvRow& row, Duration run, JobTraits& traits) const {
    constexpr double kMinute = 60;
    for (const int column : {at_.limit_raw, at_.limit}) {
      const std::string_view text = row.Text(column);
      if (IsMissing(text) || text == "UNLIMITED" || text == "Partition_Limit" ||
          text == "INVALID") {
        continue;
      }
      const std::optional<double> number = base::ToNumber(text);
      const std::optional<double> seconds = column == at_.limit_raw && number
                                                ? std::optional(*number * kMinute)
                                                : ParseClock(text, true);
      if (!seconds || *seconds < 0 || *seconds > model::kMostTraceSeconds) {
        return row.Bad(column, column == at_.limit_raw ? "minutes, or UNLIMITED"
                                                       : "[days-]hours:minutes:seconds, or "
                                                         "UNLIMITED");
      }
      if (*seconds > 0) {
        traits.time_limit = std::max(run, FromSeconds(*seconds));
      }
      return {};
    }
    return {};
  }

  // Jobs one after the other often have the same.
  void Give(JobTraits traits, JobSpec& job) {
    if (traits == JobTraits{}) {
      return;
    }
    if (!last_traits_ || !(*last_traits_ == traits)) {
      last_traits_ = std::make_shared<const JobTraits>(std::move(traits));
    }
    job.traits = last_traits_;
  }

  SacctColumns at_;
  int procs_per_gpu_;
  bool takes_cpu_jobs_;
  bool takes_node_requests_;
  TimestampReader stamps_;
  std::shared_ptr<const JobTraits> last_traits_;
};

// ------------------------------------------------------------------------------------------ lines

struct Header {
  std::vector<std::string> names;
  LineRules rules{.separator = '|', .first_is_header = true};
  bool is_fixed = false;  // columns of fixed widths, under which lines of dashes stand
};

bool IsIdName(std::string_view name) { return name == "JobID" || name == "JobIDRaw"; }

// "------------ ----------": what stands under the header of fixed widths.
bool IsRuler(std::string_view line) {
  return line.find("---") != std::string_view::npos &&
         line.find_first_not_of("- \t") == std::string_view::npos;
}

// The first line. --parsable ends each line with a separator, --parsable2 does not; --delimiter
// says another one.
Header HeaderOf(std::string_view head) {
  Header header;
  Lines lines(head, '\0');
  if (!lines.Next()) {
    return header;
  }
  const std::string_view line = lines.text();
  for (const char separator : {'|', ';', '\t', '^', '~', ',', ' '}) {
    const LineRules rules{.separator = separator, .first_is_header = true};
    const std::vector<std::string_view> fields = FieldsOf(line, rules);
    if (fields.size() > 1 && std::any_of(fields.begin(), fields.end(), IsIdName)) {
      header.rules = rules;
      break;
    }
  }
  header.rules.ends_rows = header.rules.separator != ' ' && header.rules.separator != ',' &&
                           line.ends_with(header.rules.separator);
  for (const std::string_view name : FieldsOf(line, header.rules)) {
    header.names.emplace_back(name);
  }
  header.is_fixed = header.rules.separator == ' ' && lines.Next() && IsRuler(lines.text());
  return header;
}

template <typename Names>
SacctColumns FindColumns(const Names& names, const TraceOptions& options) {
  std::vector<bool> read(names.size());
  const auto at = [&](std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || name.empty()) {
      return -1;
    }
    read[static_cast<std::size_t>(found - names.begin())] = true;
    return static_cast<int>(found - names.begin());
  };
  const auto first_of = [&](std::string_view name, std::string_view other) {
    const int column = at(name);
    return column >= 0 ? column : at(other);
  };
  SacctColumns found{.id = first_of("JobID", "JobIDRaw"),
                     .user = at("User"),
                     .account = at("Account"),
                     .label = at("JobName"),
                     .partition = at("Partition"),
                     .submit = at("Submit"),
                     .start = at("Start"),
                     .end = at("End"),
                     .elapsed_raw = at("ElapsedRaw"),
                     .elapsed = at("Elapsed"),
                     .limit_raw = at("TimelimitRaw"),
                     .limit = at("Timelimit"),
                     .state = at("State"),
                     .nodes = at("NodeList"),
                     .requested_nodes = options.node_requests ? at("ReqNodes") : -1,
                     .constraint = options.node_requests ? at("Constraints") : -1,
                     .later_run = static_cast<int>(names.size())};
  for (std::size_t i = 0; i < kGpuColumns; ++i) {
    found.gpus[i] = first_of(kGpuColumnNames[i][0], kGpuColumnNames[i][1]);
  }
  for (std::size_t i = 0; i < kCpuColumns.size(); ++i) {
    found.cpus[i] = at(kCpuColumns[i]);
  }
  found.read = std::move(read);
  return found;
}

// Those of `names` that are none of the columns.
std::vector<std::string> NamesBeside(const SacctColumns& columns,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!columns.read[i]) {
      others.push_back(names[i]);
    }
  }
  return others;
}

bool HasNeeded(const SacctColumns& columns) {
  const auto is_there = [](int column) { return column >= 0; };
  const bool has_run = columns.end >= 0 || columns.elapsed_raw >= 0 || columns.elapsed >= 0;
  return columns.id >= 0 && columns.submit >= 0 && columns.start >= 0 && has_run &&
         std::any_of(columns.gpus.begin(), columns.gpus.end(), is_there);
}

Error NoNeeded(const std::string& path) {
  return BadInput(fmt::format(
      "{}:1: no header with the columns that are needed; expected JobID or JobIDRaw, Submit, "
      "Start, ElapsedRaw, Elapsed or End, and AllocTRES, AllocGRES, ReqTRES or ReqGRES, separated "
      "by '|' (sacct --parsable2 without --noheader)",
      path));
}

bool LooksLikeSacct(std::string_view head) {
  if (LooksLikeSacctJson(head)) {
    return true;
  }
  const Header header = HeaderOf(head);
  if (!std::any_of(header.names.begin(), header.names.end(), IsIdName) || header.names.size() < 2) {
    return false;
  }
  switch (header.rules.separator) {
    case ' ':
      return header.is_fixed;
    case ',':  // any table may have a column JobID
      return HasNeeded(FindColumns(header.names, {}));
    default:
      return true;
  }
}

template <typename Source>
Result<Trace> ReadFrom(Source source, std::vector<std::string> names, const TraceOptions& options) {
  const SacctColumns columns = FindColumns(names, options);
  if (!HasNeeded(columns)) {
    return NoNeeded(source.path());
  }
  SacctRows rows(columns, options);
  std::vector<std::string> unread = NamesBeside(columns, names);
  Result<Trace> trace =
      ReadRows(SacctTable<Source>(std::move(source), std::move(names), columns.id), rows,
               kSacctFormat.shown.name, options);
  if (trace.ok()) {
    trace.value().unread = std::move(unread);
  }
  return trace;
}

// A table that a spreadsheet or pandas has written: lists with commas are in quotes.
Result<Trace> ReadSacctCsv(io::TextStream text, const ColumnMap& map, const TraceOptions& options) {
  ASSIGN_OR_RETURN(io::CsvStream table, io::CsvStream::Of(std::move(text)));
  RETURN_IF_ERROR(map.Apply(table));
  std::vector<std::string> names(table.header().begin(), table.header().end());
  Result<Trace> trace = ReadFrom(std::move(table), std::move(names), options);
  if (!trace.ok() && trace.error().message.find("as in the header") != std::string::npos) {
    return BadInput(trace.error().message +
                    "\nTRES lists hold commas themselves; expected them in quotes, or another "
                    "separator (sacct --parsable2)");
  }
  return trace;
}

Result<Trace> ReadSacct(io::TextStream text, const TraceOptions& options) {
  ASSIGN_OR_RETURN(const ColumnMap map, ColumnMap::Parse(options.columns));
  if (LooksLikeSacctJson(text.block())) {
    if (!map.empty()) {
      return InvalidArgument(text.path() +
                             ": column names (--map) have no effect on what sacct --json prints; "
                             "expected none");
    }
    ASSIGN_OR_RETURN(SacctJson json, SacctJson::Of(std::move(text)));
    std::vector<std::string> names = SacctJson::Names();
    return ReadFrom(std::move(json), std::move(names), options);
  }
  Header header = HeaderOf(text.block());
  if (header.is_fixed) {
    return BadInput(fmt::format(
        "{}:1: sacct's columns of fixed widths, which cut long values off; expected what `sacct "
        "--parsable2` prints, with '|' between the columns",
        text.path()));
  }
  if (header.rules.separator == ',') {
    return ReadSacctCsv(std::move(text), map, options);
  }
  for (std::string& name : header.names) {
    if (const std::string_view meaning = map.MeaningOf(name); !meaning.empty()) {
      name = meaning;
    }
  }
  LineStream lines(std::move(text), header.names, header.rules);
  lines.UseMender([mender = SacctLines(header.names)](std::vector<std::string_view>& fields) {
    mender.Mend(fields);
  });
  return ReadFrom(std::move(lines), std::move(header.names), options);
}

}  // namespace

constexpr OwnFormat kSacctFormat{
    .shown = {.name = "sacct",
              .help = "Slurm accounting, sacct --parsable, --parsable2 or --json",
              .has_processors = true,
              .has_cpu_jobs = true,
              .has_node_requests = true},
    .looks_like = LooksLikeSacct,
    .read = ReadSacct,
    .takes_column_names = true};

}  // namespace trainyard::trace
