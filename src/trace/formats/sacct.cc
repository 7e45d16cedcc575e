// SPDX-License-Identifier: Apache-2.0
// Accounting of Slurm as sacct prints it with --parsable or --parsable2: docs/formats/sacct.md.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "trace/csv_format.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/timestamp.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

constexpr char kSeparator = '|';
constexpr std::string_view kLaterRun = "line of its last run";  // a column that we add

std::optional<std::int64_t> ToInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// The CPUs of "cpu=4,gres/gpu=2"; 0: it states none. Nothing: it is no such list.
std::optional<std::int64_t> CpusOf(std::string_view tres) {
  constexpr std::string_view kCpu = "cpu=";
  constexpr std::int64_t kMostCpus = 1'000'000'000;
  for (const std::string_view entry : base::Split(tres, ",")) {
    if (entry.starts_with(kCpu)) {
      const std::optional<std::int64_t> cpus = ToInteger(entry.substr(kCpu.size()));
      return cpus && *cpus >= 0 && *cpus <= kMostCpus ? cpus : std::nullopt;
    }
  }
  return 0;
}

// The GPUs of "cpu=4,gres/gpu:a100=2,gres/gpu=2": the plain entry is the total, typed ones count
// only without it. Nothing: it is no such list.
std::optional<std::int64_t> GpusOf(std::string_view tres) {
  constexpr std::string_view kPlain = "gres/gpu";
  std::optional<std::int64_t> plain;
  std::int64_t typed = 0;
  for (const std::string_view entry : base::Split(tres, ",")) {
    const std::size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    const bool is_typed = name.starts_with("gres/gpu:");
    if (name != kPlain && !is_typed) {  // gres/gpumem and gres/gpuutil are no GPUs either
      continue;
    }
    const auto count =
        equals == std::string_view::npos ? std::nullopt : ToInteger(entry.substr(equals + 1));
    if (!count || *count < 0 || *count > model::kMostGpus) {
      return std::nullopt;
    }
    if (is_typed) {
      typed += *count;
    } else {
      plain = count;
    }
  }
  return plain.value_or(typed);
}

// "1-02:03:04", "02:03:04", "03:04", with decimals or without.
std::optional<double> ToElapsed(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<double> number = base::ToNumber(text.substr(0, dash));
    if (!number) {
      return std::nullopt;
    }
    days = *number;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  const std::vector<std::string_view> parts = base::Split(text, ":");
  for (const std::string_view part : parts) {
    const std::optional<double> number = base::ToNumber(part);
    if (!number || *number < 0) {
      return std::nullopt;
    }
    seconds = seconds * 60 + *number;
  }
  constexpr double kDay = 86400;
  return parts.size() < 2 || parts.size() > 3 ? std::nullopt : std::optional(days * kDay + seconds);
}

// The rows of a file, each with the line of the last row that has its id. Duplicates are runs of a
// job that was requeued (sacct --duplicates).
class SacctTable {
 public:
  SacctTable(LineStream lines, std::vector<std::string> names, int id)
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

  LineStream lines_;
  std::vector<std::string> names_;
  int id_;
};

// Columns vary with the version and with what was asked for. -1: there is none.
struct SacctColumns {
  int id = -1;
  int user = -1;
  int partition = -1;
  int submit = -1;
  int start = -1;
  int end = -1;
  int elapsed_raw = -1;
  int elapsed = -1;
  int state = -1;
  int allocated = -1;
  int requested = -1;
  int nodes = -1;
  int later_run = -1;
};

class SacctRows {
 public:
  // `procs_per_gpu`: as TraceOptions say.
  SacctRows(const SacctColumns& columns, int procs_per_gpu)
      : at_(columns), procs_per_gpu_(procs_per_gpu) {}

  // A time of the accounting, as it writes it.
  [[nodiscard]] std::string Text(TimePoint at) const { return stamps_.Text(at); }

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) {
    JobRow read;
    read.job.name = row.Text(at_.id);
    if (read.job.name.empty()) {
      return row.Bad(at_.id, "the id of the job");
    }
    for (const auto part : {&SacctRows::CheckKind, &SacctRows::ReadGpus, &SacctRows::ReadTimes}) {
      RETURN_IF_ERROR((this->*part)(row, read));
      if (!read.left_out.empty()) {
        return read;
      }
    }
    read.job.user = row.Text(at_.user);
    read.job.queue = row.Text(at_.partition);
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

  Status ReadGpus(const io::CsvRow& row, JobRow& read) {
    const int column = row.Text(at_.allocated).empty() ? at_.requested : at_.allocated;
    std::optional<std::int64_t> gpus = GpusOf(row.Text(column));
    if (gpus && *gpus == 0 && procs_per_gpu_ > 0) {
      gpus = CpusOf(row.Text(column));
      gpus = gpus ? std::optional((*gpus + procs_per_gpu_ - 1) / procs_per_gpu_) : std::nullopt;
    }
    if (!gpus || *gpus > model::kMostGpus) {
      return row.Bad(column, "a list such as cpu=4,gres/gpu=2");
    }
    if (*gpus == 0) {
      read.left_out = procs_per_gpu_ > 0
                          ? "it has neither GPUs nor CPUs; such jobs are left out"
                          : "it has no GPUs; jobs on CPUs alone are left out (--procs-per-gpu N "
                            "takes N CPUs for a GPU)";
    }
    read.job.gpus = static_cast<int>(*gpus);
    return {};
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
                                                : ToElapsed(row.Text(column));
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

  SacctColumns at_;
  int procs_per_gpu_;
  TimestampReader stamps_;
};

struct Header {
  std::vector<std::string> names;
  LineRules rules{.separator = kSeparator, .first_is_header = true};
};

// The first line. --parsable ends each line with a separator, --parsable2 does not.
Header HeaderOf(std::string_view head) {
  Header header;
  Lines lines(head, '\0');
  if (lines.Next()) {
    header.rules.ends_rows = lines.text().ends_with(kSeparator);
    for (const std::string_view name : FieldsOf(lines.text(), header.rules)) {
      header.names.emplace_back(name);
    }
  }
  return header;
}

bool HasColumn(const Header& header, std::string_view name) {
  return std::find(header.names.begin(), header.names.end(), name) != header.names.end();
}

bool LooksLikeSacct(std::string_view head) {
  const Header header = HeaderOf(head);
  return header.names.size() > 1 && (HasColumn(header, "JobID") || HasColumn(header, "JobIDRaw"));
}

Result<SacctColumns> FindColumns(const LineStream& lines, std::size_t columns) {
  const auto first_of = [&](std::string_view name, std::string_view other) {
    const int column = lines.Column(name);
    return column >= 0 ? column : lines.Column(other);
  };
  const SacctColumns found{.id = first_of("JobIDRaw", "JobID"),
                           .user = lines.Column("User"),
                           .partition = lines.Column("Partition"),
                           .submit = lines.Column("Submit"),
                           .start = lines.Column("Start"),
                           .end = lines.Column("End"),
                           .elapsed_raw = lines.Column("ElapsedRaw"),
                           .elapsed = lines.Column("Elapsed"),
                           .state = lines.Column("State"),
                           .allocated = first_of("AllocTRES", "TRESAlloc"),
                           .requested = first_of("ReqTRES", "TRESReq"),
                           .nodes = lines.Column("NodeList"),
                           .later_run = static_cast<int>(columns)};
  const bool has_run = found.end >= 0 || found.elapsed_raw >= 0 || found.elapsed >= 0;
  const bool has_gpus = found.allocated >= 0 || found.requested >= 0;
  if (found.id < 0 || found.submit < 0 || found.start < 0 || !has_run || !has_gpus) {
    return BadInput(fmt::format(
        "{}:1: no header with the columns that are needed; expected JobIDRaw or JobID, Submit, "
        "Start, ElapsedRaw, Elapsed or End, and AllocTRES or ReqTRES, separated by '|' (sacct "
        "--parsable2 without --noheader)",
        lines.path()));
  }
  return found;
}

Result<Trace> ReadSacct(io::TextStream text, const TraceOptions& options) {
  Header header = HeaderOf(text.block());
  LineStream lines(std::move(text), header.names, header.rules);
  ASSIGN_OR_RETURN(const SacctColumns columns, FindColumns(lines, header.names.size()));
  SacctRows rows(columns, options.procs_per_gpu);
  return ReadRows(SacctTable(std::move(lines), std::move(header.names), columns.id), rows,
                  kSacctFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kSacctFormat{
    .shown = {.name = "sacct",
              .help = "Slurm accounting, sacct --parsable or --parsable2",
              .has_processors = true},
    .looks_like = LooksLikeSacct,
    .read = ReadSacct};

}  // namespace trainyard::trace
