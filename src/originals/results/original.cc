// SPDX-License-Identifier: Apache-2.0
#include "originals/results/original.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "trace/csv_format.h"

namespace trainyard::originals {
namespace {

constexpr std::array<std::pair<Original, std::string_view>, 6> kOriginalNames{
    {{Original::kBlox, "blox"},
     {Original::kChronus, "chronus"},
     {Original::kElasticflow, "elasticflow"},
     {Original::kMuri, "muri"},
     {Original::kSynergy, "synergy"},
     {Original::kTiresias, "tiresias"}}};

constexpr double kNoTime = 9.2e18;  // 2^63 - 1 and its neighbours

// A form of table: what tells it from the others, and where its values are.
struct Layout {
  Original program;
  std::vector<std::string_view> signature;
  ResultColumns columns;
};

// The first that fits counts. Programs whose own files are not tables, or have no row for rejected
// jobs, have a second form: one table with a row for each job.
const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> kLayouts{
      {Original::kElasticflow,
       {"ddl", "executed_time", "JCT", "best_effort_job"},
       {.id = "job_id",
        .submit = "submit_time",
        .start = "start_time",
        .end = "end_time",
        .gpus = "num_gpu",
        .deadline = "ddl",
        .best_effort = "best_effort_job",
        .preemptions = "preempt"}},
      {Original::kElasticflow,
       {"last_num_gpu", "ddl", "best_effort_job", "outcome"},
       {.id = "job_id",
        .submit = "submit_time",
        .start = "start_time",
        .end = "end_time",
        .outcome = "outcome",
        .gpus = "last_num_gpu",
        .deadline = "ddl",
        .best_effort = "best_effort_job",
        .preemptions = "preempt"}},
      {Original::kMuri,
       {"real_executed_time", "JCT", "promote"},
       {.id = "job_id",
        .submit = "submit_time",
        .start = "start_time",
        .end = "end_time",
        .gpus = "num_gpu"}},
      {Original::kMuri,
       {"running_wall_s", "pending_s", "jct_s"},
       {.id = "job_id",
        .submit = "submit_s",
        .start = "start_s",
        .end = "end_s",
        .gpus = "num_gpu"}},
      {Original::kTiresias,
       {"executed_time", "JCT", "duration", "promote"},
       {.id = "job_id",
        .submit = "submit_time",
        .start = "start_time",
        .end = "end_time",
        .gpus = "num_gpu",
        .preemptions = "preempt"}},
      {Original::kSynergy,
       {"arrival_s", "first_start_s", "attained_rounds"},
       {.id = "job_id",
        .submit = "arrival_s",
        .start = "first_start_s",
        .end = "finish_s",
        .gpus = "gpus",
        .counted = "tracked"}},
      {Original::kBlox,
       {"first_metric_s", "finish_s", "responsiveness_s"},
       {.id = "job_id", .submit = "submit_s", .start = "first_metric_s-300", .end = "finish_s"}},
      {Original::kChronus,
       {"total_executed_time", "gt_miss_ddl", "queue_priority"},
       {.id = "job_id",
        .submit = "submit_time",
        .end = "end_time",
        .gpus = "num_gpu",
        .best_effort = "best_effort",
        .preemptions = "preempt"}}};
  return kLayouts;
}

bool Fits(const io::CsvTable& table, const Layout& layout) {
  return std::all_of(layout.signature.begin(), layout.signature.end(),
                     [&](std::string_view name) { return table.Column({name}) >= 0; });
}

const Layout* LayoutOf(const io::CsvTable& table, std::optional<Original> program) {
  for (const Layout& layout : Layouts()) {
    if ((!program || layout.program == *program) && Fits(table, layout)) {
      return &layout;
    }
  }
  return nullptr;
}

// A column with the offset that its name carries.
struct NamedColumn {
  int index = -1;
  double offset = 0;
};

Result<NamedColumn> ColumnOf(const io::CsvTable& table, const std::string& name) {
  if (name.empty()) {
    return NamedColumn{};
  }
  if (const int whole = table.Column({name}); whole >= 0) {
    return NamedColumn{.index = whole};
  }
  const std::size_t sign = name.find_last_of("+-");
  if (sign != std::string::npos) {
    const std::string_view digits =
        std::string_view(name).substr(sign + (name[sign] == '+' ? 1 : 0));
    if (const std::optional<double> offset = base::ToNumber(digits)) {
      const Result<int> index = table.Require({name.substr(0, sign)});
      return index.ok()
                 ? Result<NamedColumn>(NamedColumn{.index = index.value(), .offset = *offset})
                 : index.error();
    }
  }
  return table.Require({name}).error();
}

struct NamedColumns {
  NamedColumn id, submit, start, end, outcome, gpus, deadline, best_effort, preemptions, counted;
};

Result<NamedColumns> ColumnsOf(const io::CsvTable& table, const ResultColumns& names) {
  NamedColumns columns;
  for (const auto& [name, into] :
       {std::pair{&names.id, &columns.id}, std::pair{&names.submit, &columns.submit},
        std::pair{&names.start, &columns.start}, std::pair{&names.end, &columns.end},
        std::pair{&names.outcome, &columns.outcome}, std::pair{&names.gpus, &columns.gpus},
        std::pair{&names.deadline, &columns.deadline},
        std::pair{&names.best_effort, &columns.best_effort},
        std::pair{&names.preemptions, &columns.preemptions},
        std::pair{&names.counted, &columns.counted}}) {
    ASSIGN_OR_RETURN(const NamedColumn column, ColumnOf(table, *name));
    *into = column;
  }
  return columns;
}

// The cells of one row; the first complaint is kept.
class Cells {
 public:
  explicit Cells(const io::CsvRow& row) : row_(row) {}
  [[nodiscard]] const Status& status() const { return status_; }

  std::optional<double> Number(const NamedColumn& column) {
    if (row_.Text(column.index).empty()) {
      return std::nullopt;
    }
    const Result<double> number = row_.Number(column.index, -kNoTime);
    if (!number.ok()) {
      Complain(number.error());
      return std::nullopt;
    }
    return number.value();
  }
  std::optional<double> Time(const NamedColumn& column, double unit) {
    const std::optional<double> number = Number(column);
    if (!number || *number >= kNoTime) {
      return std::nullopt;
    }
    const double seconds = *number * unit + column.offset;
    if (std::abs(seconds) > model::kMostTraceSeconds) {
      Complain(row_.Bad(column.index, "seconds, less than 9e9"));
      return std::nullopt;
    }
    return seconds;
  }
  std::optional<std::int64_t> Count(const NamedColumn& column) {
    constexpr double kMost = 1e9;
    const std::optional<double> number = Number(column);
    if (number && (*number < 0 || *number > kMost || *number != std::floor(*number))) {
      Complain(row_.Bad(column.index, "a whole number, at most 1e9"));
      return std::nullopt;
    }
    return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
  }
  void Complain(Error error) {
    if (status_.ok()) {
      status_ = std::move(error);
    }
  }

 private:
  const io::CsvRow& row_;
  Status status_;
};

Result<ResultRow> ReadOriginalRow(const io::CsvRow& row, const NamedColumns& at, double unit) {
  Cells cells(row);
  const ResultRow job{
      .name = std::string(row.Text(at.id.index)),
      .completed = at.outcome.index < 0 || row.Text(at.outcome.index) == "completed",
      .submit = cells.Time(at.submit, unit),
      .start = cells.Time(at.start, unit),
      .end = cells.Time(at.end, unit),
      .deadline = cells.Time(at.deadline, unit),
      .best_effort = cells.Count(at.best_effort).value_or(0) != 0,
      .counted = at.counted.index < 0 || cells.Count(at.counted).value_or(0) != 0,
      .gpus = static_cast<int>(cells.Count(at.gpus).value_or(0)),
      .preemptions = cells.Count(at.preemptions)};
  if (!cells.status().ok()) {
    return cells.status().error();
  }
  for (const NamedColumn& column : {at.submit, at.end}) {
    if (job.completed && column.index >= 0 && row.Text(column.index).empty()) {
      return row.Bad(column.index, "seconds, since the job completed");
    }
  }
  return job;
}

Error NoSuchTable(const io::CsvTable& table, std::optional<Original> program) {
  if (program) {
    return table.BadHeader(fmt::format("is not a table of results of {}: {}", Name(*program),
                                       "expected the columns of docs/formats/original-results.md"));
  }
  return table.BadHeader(
      "is neither jobs.csv of a run nor a table of results of blox, chronus, elasticflow, muri, "
      "synergy or tiresias; expected the columns of docs/formats/original-results.md");
}

// Where jobs have them; otherwise nothing.
std::optional<std::int64_t> SumOfPreemptions(const std::vector<ResultRow>& rows) {
  std::optional<std::int64_t> sum;
  for (const ResultRow& row : rows) {
    if (row.preemptions) {
      sum = sum.value_or(0) + *row.preemptions;
    }
  }
  return sum;
}

TimePoint FirstSubmit(const OriginalResult& result) {
  std::optional<double> first;
  for (const ResultRow& row : result.rows) {
    if (row.submit) {
      first = std::min(first.value_or(*row.submit), *row.submit);
    }
  }
  return AtSeconds(first.value_or(0));
}

std::optional<TimePoint> TimeOf(std::optional<double> seconds) {
  return seconds ? std::optional(AtSeconds(*seconds)) : std::nullopt;
}

}  // namespace

std::string_view Name(Original program) {
  for (const auto& [each, name] : kOriginalNames) {
    if (each == program) {
      return name;
    }
  }
  return "";
}

Result<Original> ParseOriginal(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [program, program_name] : kOriginalNames) {
    if (program_name == name) {
      return program;
    }
    known.push_back(program_name);
  }
  return InvalidArgument(base::UnknownName("format of results", name, known));
}

Result<std::vector<ResultRow>> ReadResultRows(const io::CsvTable& table,
                                              const ResultColumns& columns, double unit) {
  ASSIGN_OR_RETURN(const NamedColumns at, ColumnsOf(table, columns));
  std::vector<ResultRow> rows;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    Result<ResultRow> job = ReadOriginalRow(row, at, unit);
    if (!job.ok()) {
      return job.error();
    }
    rows.push_back(std::move(job).value());
    return {};
  }));
  return rows;
}

std::optional<Original> RecogniseTable(const io::CsvTable& table) {
  const Layout* layout = LayoutOf(table, std::nullopt);
  return layout == nullptr ? std::nullopt : std::optional(layout->program);
}

Result<OriginalResult> ReadOriginalTable(const std::string& path, std::optional<Original> program,
                                         double unit) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  const Layout* layout = LayoutOf(table, program);
  if (layout == nullptr) {
    return NoSuchTable(table, program);
  }
  ASSIGN_OR_RETURN(std::vector<ResultRow> rows, ReadResultRows(table, layout->columns, unit));
  std::set<std::string_view> names;
  for (const ResultRow& row : rows) {
    if (!names.insert(row.name).second) {
      return BadInput(path + ": job '" + row.name + "' is there twice; expected it once");
    }
  }
  if (rows.empty()) {
    return BadInput(path + ": has no job; expected a row for each");
  }
  // A run that tracks nobody measures everybody.
  std::vector<ResultRow>& jobs = rows;
  if (std::none_of(jobs.begin(), jobs.end(), [](const ResultRow& row) { return row.counted; })) {
    std::for_each(jobs.begin(), jobs.end(), [](ResultRow& row) { row.counted = true; });
  }
  OriginalResult result{.program = layout->program, .path = path, .rows = std::move(rows)};
  result.preemptions = SumOfPreemptions(result.rows);
  return result;
}

results::RunResult RunOf(const OriginalResult& result) {
  results::RunResult run;
  run.ends_only = true;
  run.preset = Name(result.program);
  run.trace_path = result.path;
  const TimePoint first = FirstSubmit(result);
  auto specs = std::make_shared<std::vector<JobSpec>>();
  specs->reserve(result.rows.size());
  for (const ResultRow& row : result.rows) {
    specs->push_back({.name = row.name,
                      .gpus = row.gpus,
                      .submit = TimeOf(row.submit).value_or(first),
                      .deadline = TimeOf(row.deadline),
                      .best_effort = row.best_effort});
    results::JobResult job{
        .spec = &specs->back(),
        .outcome = row.completed ? results::Outcome::kCompleted : results::Outcome::kRejected};
    if (row.completed) {
      job.start = TimeOf(row.start);
      job.end = job.logged = TimeOf(row.end);
    }
    run.jobs.push_back(job);
  }
  run.jobs_of_trace = std::move(specs);
  return run;
}

}  // namespace trainyard::originals
