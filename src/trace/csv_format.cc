// SPDX-License-Identifier: Apache-2.0
#include "trace/csv_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "io/table_faults.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "model/request/tasks.h"
#include "trace/job_times.h"

namespace trainyard::trace {
namespace {

std::string Spellings(const ColumnRule& rule) {
  return rule.other_name.empty() ? std::string(rule.name)
                                 : fmt::format("{} or {}", rule.name, rule.other_name);
}

bool HasColumnNamed(const CsvFormat& format, std::string_view name) {
  return std::any_of(format.columns.begin(), format.columns.end(), [&](const ColumnRule& rule) {
    return rule.name == name || (!rule.other_name.empty() && rule.other_name == name);
  });
}

Status CheckNoOthers(const CsvFormat& format, const io::CsvHeader& table) {
  for (const std::string& name : table.header()) {
    if (!io::IsIndexColumn(name) && !HasColumnNamed(format, name)) {
      return table.BadHeader(UnknownColumn(format, "column", name));
    }
  }
  return {};
}

// Reads the fields of one row into a job.
class JobReader {
 public:
  JobReader(const JobColumns& columns, const io::CsvRow& row, RowsSoFar& so_far)
      : columns_(columns), row_(row), so_far_(so_far) {}

  [[nodiscard]] Status Read(JobSpec& job) {
    Status status;
    model::ForEachJobField<model::IsInTraces>([&](const auto& field) {
      if (status.ok()) {
        if (Status taken = Take(field.info, draft_.At(field)); !taken.ok()) [[unlikely]] {
          status = std::move(taken);
        }
      }
    });
    RETURN_IF_ERROR(status);
    if (job_.gpus == 0) [[unlikely]] {
      RETURN_IF_ERROR(CheckWithoutGpus());
    }
    RETURN_IF_ERROR(TakeTasks());
    RETURN_IF_ERROR(TakeIterationTime());
    RETURN_IF_ERROR(TakeBatchPerGpu());
    RETURN_IF_ERROR(CheckDeadline());
    RETURN_IF_ERROR(CheckRange());
    if (const Status texts = model::CheckTexts(draft_.request); !texts.ok()) {
      return row_.BadRow(texts.error().message);
    }
    RETURN_IF_ERROR(CheckDevices());
    if (columns_.needs_work() && !job_.duration.has_value() && !job_.iterations.has_value()) {
      return row_.BadRow("neither duration nor iterations; expected one of them at least");
    }
    job = std::move(draft_).Take();
    return {};
  }

 private:
  [[nodiscard]] std::string_view Text(JobColumn column) const {
    return row_.Text(columns_.at(column));
  }
  [[nodiscard]] bool IsLeftOut(JobColumn column) const {
    return Text(column).empty() && !columns_.required(column);
  }
  [[nodiscard]] Error Bad(JobColumn column, std::string_view expected) const {
    return row_.Bad(columns_.at(column), expected);
  }

  // ---------------------------------------------------------------------- values by their types

  Status Take(const model::JobFieldInfo& info, std::string& text) {
    text = Text(ColumnOf(info));
    return text.empty() && columns_.required(ColumnOf(info)) ? Bad(ColumnOf(info), "a text")
                                                             : Status();
  }

  template <std::signed_integral T>
  Status Take(const model::JobFieldInfo& info, T& number) {
    const JobColumn column = ColumnOf(info);
    if (IsLeftOut(column)) {
      return {};
    }
    const Result<std::int64_t> read =
        row_.Integer(columns_.at(column), static_cast<std::int64_t>(info.bounds.least));
    if (!read.ok() || static_cast<double>(read.value()) > info.bounds.most) {
      return Bad(column, model::ExpectedInteger(info));
    }
    number = static_cast<T>(read.value());
    return {};
  }

  Status Take(const model::JobFieldInfo& info, bool& flag) {
    constexpr std::array<std::string_view, 4> kTrue{"1", "1.0", "true", "True"};
    constexpr std::array<std::string_view, 5> kFalse{"", "0", "0.0", "false", "False"};
    const std::string_view text = Text(ColumnOf(info));
    flag = std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end();
    return flag || std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()
               ? Status()
               : Bad(ColumnOf(info), "1 or 0");
  }

  Status Take(const model::JobFieldInfo& info, std::optional<double>& amount) {
    const JobColumn column = ColumnOf(info);
    if (IsLeftOut(column)) {
      return {};
    }
    const Result<double> read = row_.Positive(columns_.at(column));
    if (!read.ok() || read.value() > info.bounds.most) {
      return Bad(column, model::ExpectedAmount(info));
    }
    amount = read.value();
    return {};
  }

  Status Take(const model::JobFieldInfo& info, TimePoint& time) {
    if (columns_.has_stamps()) {
      return TakeStamp(ColumnOf(info), time);
    }
    ASSIGN_OR_RETURN(const double seconds, SecondsFrom0(ColumnOf(info)));
    time = AtSeconds(seconds);
    return {};
  }

  Status Take(const model::JobFieldInfo& info, std::optional<TimePoint>& time) {
    const JobColumn column = ColumnOf(info);
    const bool is_none = column == Native("deadline") && Text(column) == kNoDeadline;
    return is_none || IsLeftOut(column) ? Status() : Take(info, time.emplace());
  }

  Status Take(const model::JobFieldInfo& info, std::optional<Duration>& time) {
    const JobColumn column = ColumnOf(info);
    if (IsLeftOut(column)) {
      return {};
    }
    const Result<double> seconds = SecondsFrom0(column);
    if (!seconds.ok() || FromSeconds(seconds.value()) <= Duration{0}) {
      return BadTime(column, "> 0");
    }
    time = FromSeconds(seconds.value());
    return {};
  }

  // All of them or none.
  Status Take(const model::JobFieldInfo& info, std::optional<StageTimes>& stages) {
    constexpr std::size_t kStages = 3;
    if (IsLeftOut(ColumnOf(info))) {
      return NothingBehind(info, kStages, "none without an iteration_time");
    }
    const Result<double> iteration = SecondsFrom0(ColumnOf(info));
    if (!iteration.ok() || iteration.value() <= 0) {
      return BadTime(ColumnOf(info), "> 0");
    }
    StageTimes& times = stages.emplace(StageTimes{.iteration = iteration.value(), .stages = {}});
    double sum = 0;
    for (std::size_t i = 1; i <= kStages; ++i) {
      ASSIGN_OR_RETURN(const double stage, SecondsFrom0(ColumnOf(info, i)));
      times.stages.push_back(stage);
      sum += stage;
    }
    return sum > 0 ? Status()
                   : row_.BadRow("all stages take no time; expected one at least that takes some");
  }

  // After submit, deadline and best_effort. The first target is the deadline.
  Status Take(const model::JobFieldInfo& info, std::vector<SoftDeadline>& deadlines) {
    if (job_.best_effort) {
      return {};
    }
    const JobColumn column = ColumnOf(info);
    if (IsLeftOut(column)) {
      return NothingBehind(info, 1, "none without target_times");
    }
    const double unit = columns_.unit(column);
    const std::optional<std::vector<double>> times = NumbersOf(column);
    if (!times || !std::is_sorted(times->begin(), times->end()) ||
        times->back() * unit > info.bounds.most) {
      return Bad(column, "times after the submit, ascending, with '-' between them");
    }
    const std::optional<std::vector<double>> values = NumbersOf(ColumnOf(info, 1));
    if (!values || values->size() != times->size() ||
        !std::is_sorted(values->rbegin(), values->rend())) {
      return Bad(ColumnOf(info, 1),
                 fmt::format("{} falling values with '-' between them, one for each of '{}'",
                             times->size(), Text(column)));
    }
    for (std::size_t i = 0; i < times->size(); ++i) {
      deadlines.push_back({job_.submit + FromSeconds((*times)[i] * unit), (*values)[i]});
    }
    const TimePoint first = deadlines.front().at;
    if (job_.deadline && *job_.deadline != first) {
      return Bad(column, fmt::format("the first of them to be the deadline, {} s after the submit",
                                     Seconds(*job_.deadline - job_.submit)));
    }
    job_.deadline = first;
    return {};
  }

  Status Take(const model::JobFieldInfo& info, std::optional<DataSet>& data) {
    const JobColumn name = ColumnOf(info);
    const JobColumn size = ColumnOf(info, 1);
    if (Text(name).empty()) {
      return NothingBehind(info, 2, "none where no data_set is named");
    }
    if (columns_.at(size) < 0) {
      return Bad(name, "none without a column data_mib");
    }
    data.emplace(
        DataSet{.name = std::string(Text(name)), .home = std::string(Text(ColumnOf(info, 2)))});
    const Result<std::int64_t> mib = row_.Integer(columns_.at(size), 1);
    if (!mib.ok() || static_cast<double>(mib.value()) > info.bounds.most) {
      return Bad(size, model::ExpectedInteger(info));
    }
    data->mib = mib.value();
    return {};
  }

  template <model::HasText T>
  Status Take(const model::JobFieldInfo& info, T& value) {
    const JobColumn column = ColumnOf(info);
    if constexpr (model::HasPer<T>) {
      if (model::ReadPerTask(Text(column), value)) {
        per_task_.emplace_back([this, &value](int tasks_per_node) {
          value = model::ForTasks(value, tasks_per_node, job_.gpus);
        });
        return {};
      }
    }
    return IsLeftOut(column) || model::ReadText(Text(column), value)
               ? Status()
               : Bad(column, model::ExpectedOfJob(value));
  }

  // A set of names.
  Status Take(const model::JobFieldInfo& info, std::vector<std::string>& names) {
    const JobColumn column = ColumnOf(info);
    if (IsLeftOut(column)) {
      return {};
    }
    for (const std::string_view name : base::Split(Text(column), "|")) {
      names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    std::vector<std::string> all = model::TypesOf(names).names;
    const bool is_mixed = names.size() > 1 && all.size() > names.size();
    std::sort(all.begin(), all.end());
    return all.front().empty() || is_mixed ||
                   std::adjacent_find(all.begin(), all.end()) != all.end()
               ? Bad(column,
                     "different names with '|' between them, or in an order with ',', or nothing "
                     "for any")
               : Status();
  }

  Status Take(const model::JobFieldInfo& info, Slices& slices) {
    if (IsLeftOut(ColumnOf(info))) {
      return {};
    }
    ASSIGN_OR_RETURN(slices, so_far_.devices.Read(row_, columns_.at(ColumnOf(info))));
    return {};
  }

  // ----------------------------------------------------------------- what only some formats have

  // Of formats whose work is iterations x iteration time.
  Status TakeIterationTime() {
    if (columns_.iteration_time() <= 0 || !job_.iterations) {
      return {};
    }
    double seconds = columns_.iteration_time();
    if (!IsLeftOut(JobColumn::kIterationTime)) {
      ASSIGN_OR_RETURN(seconds, row_.Positive(columns_.at(JobColumn::kIterationTime)));
    }
    if (*job_.iterations * seconds > model::kMostTraceSeconds) {
      return row_.Bad(columns_.at(Native("iterations")),
                      "a number of iterations that take 9000000000 s at most");
    }
    job_.duration = FromSeconds(*job_.iterations * seconds);
    return {};
  }

  // What the job asks for each of its tasks, once all else of it is known.
  Status TakeTasks() {
    if (IsLeftOut(JobColumn::kTasks) && IsLeftOut(JobColumn::kTasksPerNode) && per_task_.empty()) {
      return {};
    }
    model::TaskCounts counts;
    for (const auto& [column, count, most] :
         {std::tuple(JobColumn::kTasks, &counts.tasks, model::kMostGpus),
          std::tuple(JobColumn::kTasksPerNode, &counts.per_node,
                     std::int64_t{model::kMostTasksOnNode})}) {
      if (!IsLeftOut(column)) {
        ASSIGN_OR_RETURN(const std::int64_t stated, row_.Integer(columns_.at(column), 1, most));
        *count = static_cast<int>(stated);
      }
    }
    const Result<model::TasksOnNodes> settled =
        model::SettleTasks(counts, draft_.request, job_.gpus);
    if (!settled.ok()) {
      return row_.BadRow(settled.error().message);
    }
    draft_.request.nodes = settled.value().nodes;
    for (const auto& settle : per_task_) {
      settle(settled.value().per_node);
    }
    return {};
  }

  Status TakeBatchPerGpu() {
    constexpr std::int64_t kMost = 1'000'000'000;
    if (columns_.at(JobColumn::kBatchPerGpu) < 0 || IsLeftOut(JobColumn::kBatchPerGpu)) {
      return {};
    }
    ASSIGN_OR_RETURN(const std::int64_t size,
                     row_.Integer(columns_.at(JobColumn::kBatchPerGpu), 1, kMost));
    job_.batch_size = size * job_.gpus;
    return {};
  }

  // ------------------------------------------------------------------------ what goes together

  Status CheckDeadline() {
    if (job_.best_effort) {
      job_.deadline.reset();
    }
    return job_.deadline && *job_.deadline < job_.submit
               ? Bad(Native("deadline"),
                     fmt::format("a time not before the submit at {}", Text(Native("submit_time"))))
               : Status();
  }

  [[nodiscard]] Status CheckWithoutGpus() const {
    if (!columns_.takes_cpu_jobs()) {
      return Bad(Native("gpus"), fmt::format("an integer from 1 to {}", model::kMostGpus));
    }
    return draft_.traits.range == GpuRange{}
               ? Status()
               : row_.BadRow("it asks for no GPUs and states a range of them; expected none");
  }

  Status CheckRange() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto bad = [this](JobColumn column, std::int64_t least, std::int64_t most) {
      return Bad(column, fmt::format("an integer from {} to {}; the job asks for {} GPUs", least,
                                     most, job_.gpus));
    };
    const GpuRange& range = draft_.traits.range;
    if (range.least > job_.gpus) {
      return bad(Native("min_gpus"), 1, job_.gpus);
    }
    return range.Holds(job_.gpus) ? Status() : bad(Native("max_gpus"), job_.gpus, kMost);
  }

  Status CheckDevices() {
    const Slices& devices = draft_.traits.devices;
    return devices.empty() || model::CountGpus(devices) == job_.gpus
               ? Status()
               : Bad(Native("devices"),
                     fmt::format("{} GPUs, as many as the job asks for", job_.gpus));
  }

  // ------------------------------------------------------------------------------------- helpers

  [[nodiscard]] Error BadTime(JobColumn column, std::string_view least) const {
    const bool milliseconds = columns_.milliseconds(column);
    const std::string_view text = Text(column);
    const bool may_be_span = columns_.in_seconds(column) && !text.empty() && !base::ToNumber(text);
    return Bad(
        column,
        fmt::format("a number of {} {} and <= {}{}", milliseconds ? "milliseconds" : "seconds",
                    least, model::kMostTraceSeconds * (milliseconds ? 1000 : 1),
                    !may_be_span           ? ""
                    : ParseTimestamp(text) ? ", as in the rows before; a date in each "
                                             "row or in none"
                                           : ", or a time such as 02:00:00, "
                                             "1-02:00:00, 10m"));
  }

  // In a table whose submits are dates.
  Status TakeStamp(JobColumn column, TimePoint& time) {
    ASSIGN_OR_RETURN(const std::optional<TimePoint> stamp,
                     so_far_.stamps.Read(row_, columns_.at(column)));
    if (!stamp) {
      return Bad(column, "a time such as 2020-04-01 00:00:05, as in the rows before");
    }
    time = *stamp;
    return {};
  }

  [[nodiscard]] Result<double> SecondsFrom0(JobColumn column) const {
    const Result<double> read = row_.Number(columns_.at(column), 0);
    std::optional<double> seconds;
    if (read.ok()) {
      seconds = columns_.milliseconds(column) ? read.value() / 1000
                                              : read.value() * columns_.unit(column);
    } else if (columns_.in_seconds(column)) {
      seconds = ParseSpan(Text(column));
    }
    return seconds && *seconds <= model::kMostTraceSeconds ? Result<double>(*seconds)
                                                           : BadTime(column, ">= 0");
  }

  // Complains about the first of the columns behind that of the field that is not empty.
  [[nodiscard]] Status NothingBehind(const model::JobFieldInfo& info, std::size_t columns,
                                     std::string_view expected) const {
    for (std::size_t i = 1; i <= columns; ++i) {
      if (!Text(ColumnOf(info, i)).empty()) {
        return Bad(ColumnOf(info, i), expected);
      }
    }
    return {};
  }

  // Numbers >= 0 with '-' between them, one at least.
  [[nodiscard]] std::optional<std::vector<double>> NumbersOf(JobColumn column) const {
    std::vector<double> numbers;
    std::string_view rest = Text(column);
    while (true) {
      const std::size_t dash = rest.find('-');
      const std::optional<double> number = base::ToNumber(rest.substr(0, dash));
      if (!number || !(*number >= 0) || std::isinf(*number)) {
        return std::nullopt;
      }
      numbers.push_back(*number);
      if (dash == std::string_view::npos) {
        return numbers;
      }
      rest.remove_prefix(dash + 1);
    }
  }

  const JobColumns& columns_;
  const io::CsvRow& row_;
  RowsSoFar& so_far_;
  std::vector<std::function<void(int)>> per_task_;
  model::JobDraft draft_;
  JobSpec& job_ = draft_.spec;
};

bool IsFailure(std::string_view status) {
  constexpr std::string_view kFailed = "failed";
  return std::equal(status.begin(), status.end(), kFailed.begin(), kFailed.end(),
                    [](char a, char b) { return a == b || a + ('a' - 'A') == b; });
}

}  // namespace

JobColumns::JobColumns(const CsvFormat& format)
    : iteration_time_(format.iteration_time),
      unit_(format.unit),
      leaves_out_gpuless_(format.leaves_out_gpuless),
      needs_work_(!format.states_no_work),
      takes_cpu_jobs_(format.takes_cpu_jobs) {
  at_.fill(-1);
  for (const ColumnRule& rule : format.columns) {
    required_[static_cast<std::size_t>(rule.field)] = rule.required;
    milliseconds_[static_cast<std::size_t>(rule.field)] = rule.milliseconds;
  }
}

Result<JobColumns> JobColumns::Find(const CsvFormat& format, const io::CsvHeader& table) {
  JobColumns found(format);
  for (const ColumnRule& rule : format.columns) {
    int& at = found.at_[static_cast<std::size_t>(rule.field)];
    at = table.Column({rule.name});
    if (at < 0 && !rule.other_name.empty()) {
      at = table.Column({rule.other_name});
    }
    if (rule.required && at < 0) {
      return table.BadHeader(fmt::format("no column {}; format {} needs {}", Spellings(rule),
                                         format.shown.name, RequiredColumns(format)));
    }
  }
  if (!format.ignores_others) {
    RETURN_IF_ERROR(CheckNoOthers(format, table));
  }
  if (found.needs_work_ && found.at(Native("duration")) < 0 && found.at(Native("iterations")) < 0) {
    return table.BadHeader("no column duration or iterations; expected one of them at least");
  }
  return found;
}

JobColumns JobColumns::InOrder(const CsvFormat& format) {
  JobColumns columns(format);
  for (std::size_t i = 0; i < format.columns.size(); ++i) {
    columns.at_[static_cast<std::size_t>(format.columns[i].field)] = static_cast<int>(i);
  }
  return columns;
}

void JobColumns::UseStampsLike(std::string_view first_submit) {
  has_stamps_ = in_seconds(Native("submit_time")) && ParseTimestamp(first_submit).has_value();
}

void JobColumns::UseUnit(double unit) {
  if (unit_ > 0 && unit > 0) {
    unit_ = unit;
  }
}

std::string RequiredColumns(const CsvFormat& format) {
  std::string list;
  bool has_work = format.states_no_work;
  for (const ColumnRule& rule : format.columns) {
    if (rule.required) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", Spellings(rule));
      has_work |= rule.field == Native("duration") || rule.field == Native("iterations");
    }
  }
  return has_work ? list : list + ", and duration or iterations";
}

std::string UnknownColumn(const CsvFormat& format, std::string_view noun, std::string_view name) {
  std::vector<std::string_view> known;
  for (const ColumnRule& rule : format.columns) {
    known.push_back(rule.name);
  }
  std::string text = fmt::format("unknown {} '{}'", noun, io::Shown(name));
  if (const std::string_view near = base::NearestName(name, known); !near.empty()) {
    return text + fmt::format("; did you mean '{}'?", near);
  }
  return text + fmt::format(
                    "; format {} has {} (docs/formats lists all), and --map NAME={} says "
                    "which of them it is",
                    format.shown.name, RequiredColumns(format), io::Shown(name));
}

Result<double> TraceSeconds(const io::CsvRow& row, int column) {
  return row.Number(column, 0, model::kMostTraceSeconds, "seconds");
}

Result<JobRow> ReadJobRow(const JobColumns& columns, const io::CsvRow& row, RowsSoFar& so_far) {
  const std::string_view status = row.Text(columns.at(JobColumn::kStatus));
  if (IsFailure(status)) {
    // Not read further: a job that failed early has no sensible duration.
    return JobRow{.left_out =
                      fmt::format("column 'status' is '{}'; failed jobs are left out", status)};
  }
  if (columns.leaves_out_gpuless() && row.Text(columns.at(Native("gpus"))) == "0") {
    return JobRow{.left_out = "column 'num_gpu' is '0'; jobs without GPUs are left out"};
  }
  JobRow read;
  RETURN_IF_ERROR(JobReader(columns, row, so_far).Read(read.job));
  return read;
}

}  // namespace trainyard::trace
