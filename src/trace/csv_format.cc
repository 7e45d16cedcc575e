// SPDX-License-Identifier: Apache-2.0
#include "trace/csv_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostLoaderWorkers = 1'000'000'000;

std::string Spellings(const ColumnRule& rule) {
  return rule.other_name.empty() ? std::string(rule.name)
                                 : fmt::format("{} or {}", rule.name, rule.other_name);
}

bool Has(const CsvFormat& format, std::string_view name) {
  return std::any_of(format.columns.begin(), format.columns.end(), [name](const ColumnRule& rule) {
    return rule.name == name || (!rule.other_name.empty() && rule.other_name == name);
  });
}

Status CheckNoOthers(const CsvFormat& format, const CsvHeader& table) {
  std::vector<std::string_view> known;
  for (const ColumnRule& rule : format.columns) {
    known.push_back(rule.name);
  }
  for (const std::string& name : table.header()) {
    if (!Has(format, name)) {
      return table.BadHeader(UnknownName("column", name, known));
    }
  }
  return {};
}

// Reads the fields of one row into a job.
class JobReader {
 public:
  JobReader(const JobColumns& columns, const CsvRow& row, DeviceLists& devices)
      : columns_(columns), row_(row), devices_(devices) {}

  [[nodiscard]] Result<JobSpec> Read() {
    for (const auto part :
         {&JobReader::ReadNames, &JobReader::ReadSubmit, &JobReader::ReadHandover,
          &JobReader::ReadGpus, &JobReader::ReadDuration, &JobReader::ReadIterations,
          &JobReader::ReadIterationTime, &JobReader::ReadBatchSize, &JobReader::ReadBestEffort,
          &JobReader::ReadDeadline, &JobReader::ReadTargets, &JobReader::ReadPriority,
          &JobReader::ReadStages, &JobReader::ReadDataSet, &JobReader::ReadGpuTypes,
          &JobReader::ReadDevices, &JobReader::ReadLoaderWorkers, &JobReader::ReadRange}) {
      if (Status status = (this->*part)(); !status.ok()) {
        return status.error();
      }
    }
    if (columns_.needs_work() && !job_.duration.has_value() && !job_.iterations.has_value()) {
      return row_.BadRow("neither duration nor iterations; expected one of them at least");
    }
    return std::move(job_);
  }

 private:
  [[nodiscard]] std::string_view Text(JobField field) const {
    return row_.Text(columns_.at(field));
  }
  [[nodiscard]] bool IsLeftOut(JobField field) const {
    return Text(field).empty() && !columns_.required(field);
  }

  Status ReadNames() {
    job_.name = Text(JobField::kJobId);
    job_.user = Text(JobField::kUser);
    job_.queue = Text(JobField::kQueue);
    job_.model = Text(JobField::kModel);
    if (job_.name.empty()) {
      return row_.Bad(columns_.at(JobField::kJobId), "the id of the job");
    }
    if (job_.model.empty() && columns_.required(JobField::kModel)) {
      return row_.Bad(columns_.at(JobField::kModel), "the name of a model");
    }
    return {};
  }

  [[nodiscard]] Error BadTime(JobField field, std::string_view least) const {
    const bool milliseconds = columns_.milliseconds(field);
    return row_.Bad(
        columns_.at(field),
        fmt::format("a number of {} {} and <= {}", milliseconds ? "milliseconds" : "seconds", least,
                    kMostTraceSeconds * (milliseconds ? 1000 : 1)));
  }

  [[nodiscard]] Result<double> SecondsFrom0(JobField field) const {
    const Result<double> read = row_.Number(columns_.at(field), 0);
    if (read.ok()) {
      const double seconds =
          columns_.milliseconds(field) ? read.value() / 1000 : read.value() * columns_.unit(field);
      if (seconds <= kMostTraceSeconds) {
        return seconds;
      }
    }
    return BadTime(field, ">= 0");
  }

  Status ReadSubmit() {
    const Result<double> seconds = SecondsFrom0(JobField::kSubmit);
    if (!seconds.ok()) {
      return seconds.error();
    }
    job_.submit = AtSeconds(seconds.value());
    return {};
  }

  Status ReadGpus() {
    const Result<std::int64_t> gpus = row_.Integer(columns_.at(JobField::kGpus), 1);
    if (!gpus.ok()) {
      return gpus.error();
    }
    if (gpus.value() > kMostGpus) {
      return row_.Bad(columns_.at(JobField::kGpus), fmt::format("an integer <= {}", kMostGpus));
    }
    job_.gpus = static_cast<int>(gpus.value());
    return {};
  }

  Status ReadDuration() {
    if (IsLeftOut(JobField::kDuration)) {
      return {};
    }
    const Result<double> seconds = SecondsFrom0(JobField::kDuration);
    if (!seconds.ok() || FromSeconds(seconds.value()) <= Duration{0}) {
      return BadTime(JobField::kDuration, "> 0");
    }
    job_.duration = FromSeconds(seconds.value());
    return {};
  }

  Status ReadIterations() {
    if (IsLeftOut(JobField::kIterations)) {
      return {};
    }
    const Result<double> iterations = row_.Positive(columns_.at(JobField::kIterations));
    if (!iterations.ok()) {
      return iterations.error();
    }
    job_.iterations = iterations.value();
    return {};
  }

  // After ReadIterations.
  Status ReadIterationTime() {
    if (columns_.iteration_time() <= 0 || !job_.iterations) {
      return {};
    }
    double seconds = columns_.iteration_time();
    if (!IsLeftOut(JobField::kIterationTime)) {
      const Result<double> stated = row_.Positive(columns_.at(JobField::kIterationTime));
      if (!stated.ok()) {
        return stated.error();
      }
      seconds = stated.value();
    }
    if (*job_.iterations * seconds > kMostTraceSeconds) {
      return row_.Bad(columns_.at(JobField::kIterations),
                      "a number of iterations that take 9000000000 s at most");
    }
    job_.duration = FromSeconds(*job_.iterations * seconds);
    return {};
  }

  Status ReadHandover() {
    if (IsLeftOut(JobField::kHandover)) {
      return {};
    }
    const Result<double> seconds = SecondsFrom0(JobField::kHandover);
    if (!seconds.ok()) {
      return seconds.error();
    }
    job_.handover = AtSeconds(seconds.value());
    return {};
  }

  // After ReadGpus.
  Status ReadBatchSize() {
    constexpr std::int64_t kMostPerGpu = 1'000'000'000;
    const bool per_gpu = columns_.at(JobField::kBatchPerGpu) >= 0;
    const JobField field = per_gpu ? JobField::kBatchPerGpu : JobField::kBatchSize;
    if (IsLeftOut(field)) {
      return {};
    }
    const Result<std::int64_t> batch_size = row_.Integer(columns_.at(field), 1);
    if (!batch_size.ok()) {
      return batch_size.error();
    }
    if (per_gpu && batch_size.value() > kMostPerGpu) {
      return row_.Bad(columns_.at(field), fmt::format("an integer <= {}", kMostPerGpu));
    }
    job_.batch_size = batch_size.value() * (per_gpu ? job_.gpus : 1);
    return {};
  }

  Status ReadPriority() {
    constexpr std::int64_t kLeast = std::numeric_limits<int>::min();
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    if (columns_.at(JobField::kPriority) < 0 || IsLeftOut(JobField::kPriority)) {
      return {};
    }
    const Result<std::int64_t> priority = row_.Integer(columns_.at(JobField::kPriority), kLeast);
    if (!priority.ok() || priority.value() > kMost) {
      return row_.Bad(columns_.at(JobField::kPriority),
                      fmt::format("an integer from {} to {}", kLeast, kMost));
    }
    job_.priority = static_cast<int>(priority.value());
    return {};
  }

  // All of them or none.
  Status ReadStages() {
    if (columns_.at(JobField::kStageIteration) < 0 || IsLeftOut(JobField::kStageIteration)) {
      return NothingIn({JobField::kStage0, JobField::kStage1, JobField::kStage2},
                       "none without an iteration_time");
    }
    const Result<double> iteration = SecondsFrom0(JobField::kStageIteration);
    if (!iteration.ok() || iteration.value() <= 0) {
      return BadTime(JobField::kStageIteration, "> 0");
    }
    StageTimes times{.iteration = iteration.value(), .stages = {}};
    double sum = 0;
    for (const JobField field : {JobField::kStage0, JobField::kStage1, JobField::kStage2}) {
      const Result<double> stage = SecondsFrom0(field);
      if (!stage.ok()) {
        return stage.error();
      }
      times.stages.push_back(stage.value());
      sum += stage.value();
    }
    if (sum <= 0) {
      return row_.BadRow("all stages take no time; expected one at least that takes some");
    }
    Traits().stages = std::move(times);
    return {};
  }

  Status ReadBestEffort() {
    const std::string_view text = Text(JobField::kBestEffort);
    if (!text.empty() && text != "0" && text != "1") {
      return row_.Bad(columns_.at(JobField::kBestEffort), "1 or 0");
    }
    job_.best_effort = text == "1";
    return {};
  }

  // After ReadSubmit and ReadBestEffort.
  Status ReadDeadline() {
    if (IsLeftOut(JobField::kDeadline) || Text(JobField::kDeadline) == kNoDeadline) {
      return {};
    }
    const Result<double> seconds = SecondsFrom0(JobField::kDeadline);
    if (!seconds.ok()) {
      return seconds.error();
    }
    if (job_.best_effort) {
      return {};
    }
    if (AtSeconds(seconds.value()) < job_.submit) {
      return row_.Bad(columns_.at(JobField::kDeadline),
                      fmt::format("a time not before the submit at {}", Text(JobField::kSubmit)));
    }
    job_.deadline = AtSeconds(seconds.value());
    return {};
  }

  // After ReadSubmit and ReadBestEffort. The first target is the deadline.
  Status ReadTargets() {
    if (job_.best_effort) {
      return {};
    }
    if (IsLeftOut(JobField::kTargets)) {
      return NothingIn({JobField::kTargetValues}, "none without target_times");
    }
    const std::optional<std::vector<double>> times = NumbersOf(JobField::kTargets);
    if (!times || !std::is_sorted(times->begin(), times->end()) ||
        times->back() * columns_.unit(JobField::kTargets) > kMostTraceSeconds) {
      return row_.Bad(columns_.at(JobField::kTargets),
                      "times after the submit, ascending, with '-' between them");
    }
    const std::optional<std::vector<double>> values = NumbersOf(JobField::kTargetValues);
    if (!values || values->size() != times->size() ||
        !std::is_sorted(values->rbegin(), values->rend())) {
      return row_.Bad(columns_.at(JobField::kTargetValues),
                      fmt::format("{} falling values with '-' between them, one for each of '{}'",
                                  times->size(), Text(JobField::kTargets)));
    }
    const double unit = columns_.unit(JobField::kTargets);
    std::vector<SoftDeadline>& deadlines = Traits().deadlines;
    for (std::size_t i = 0; i < times->size(); ++i) {
      deadlines.push_back({job_.submit + FromSeconds((*times)[i] * unit), (*values)[i]});
    }
    const TimePoint first = deadlines.front().at;
    if (job_.deadline && *job_.deadline != first) {
      return row_.Bad(columns_.at(JobField::kTargets),
                      fmt::format("the first of them to be the deadline, {} s after the submit",
                                  Seconds(*job_.deadline - job_.submit)));
    }
    job_.deadline = first;
    return {};
  }

  Status ReadDataSet() {
    DataSet data{.name = std::string(Text(JobField::kDataSet)),
                 .home = std::string(Text(JobField::kDataHome))};
    if (data.name.empty()) {
      return NothingIn({JobField::kDataMib, JobField::kDataHome},
                       "none where no data_set is named");
    }
    if (columns_.at(JobField::kDataMib) < 0) {
      return row_.Bad(columns_.at(JobField::kDataSet), "none without a column data_mib");
    }
    const Result<std::int64_t> mib = row_.Integer(columns_.at(JobField::kDataMib), 1);
    if (!mib.ok() || mib.value() > kMostDataMib) {
      return row_.Bad(columns_.at(JobField::kDataMib),
                      fmt::format("an integer from 1 to {}", kMostDataMib));
    }
    data.mib = mib.value();
    Traits().data_set = std::move(data);
    return {};
  }

  Status ReadGpuTypes() {
    if (IsLeftOut(JobField::kGpuTypes)) {
      return {};
    }
    std::vector<std::string> types;
    for (const std::string_view type : Split(Text(JobField::kGpuTypes), "|")) {
      types.emplace_back(type);
    }
    std::sort(types.begin(), types.end());
    if (types.front().empty() || std::adjacent_find(types.begin(), types.end()) != types.end()) {
      return row_.Bad(columns_.at(JobField::kGpuTypes),
                      "different GPU types with '|' between them, or nothing for any");
    }
    Traits().gpu_types = std::move(types);
    return {};
  }

  // After ReadGpus.
  Status ReadDevices() {
    const int column = columns_.at(JobField::kDevices);
    if (column < 0 || IsLeftOut(JobField::kDevices)) {
      return {};
    }
    Result<Slices> named = devices_.Read(row_, column);
    if (!named.ok()) {
      return named.error();
    }
    if (CountGpus(named.value()) != job_.gpus) {
      return row_.Bad(column, fmt::format("{} GPUs, as many as the job asks for", job_.gpus));
    }
    Traits().devices = std::move(named).value();
    return {};
  }

  Status ReadLoaderWorkers() {
    const int column = columns_.at(JobField::kLoaderWorkers);
    if (column < 0 || IsLeftOut(JobField::kLoaderWorkers)) {
      return {};
    }
    const Result<std::int64_t> workers = row_.Integer(column, 1);
    if (!workers.ok() || workers.value() > kMostLoaderWorkers) {
      return row_.Bad(column, fmt::format("an integer from 1 to {}", kMostLoaderWorkers));
    }
    Traits().loader_workers = static_cast<int>(workers.value());
    return {};
  }

  // After ReadGpus, which the range holds.
  Status ReadRange() {
    const auto read = [&](JobField field, std::int64_t least, std::int64_t most, int& end) {
      if (IsLeftOut(field)) {
        return Status();
      }
      const Result<std::int64_t> count = row_.Integer(columns_.at(field), least);
      if (!count.ok() || count.value() > most) {
        return Status(row_.Bad(columns_.at(field),
                               fmt::format("an integer from {} to {}; the job asks for {} GPUs",
                                           least, most, job_.gpus)));
      }
      end = static_cast<int>(count.value());
      return Status();
    };
    GpuRange range;
    if (Status status = read(JobField::kMinGpus, 1, job_.gpus, range.least); !status.ok()) {
      return status;
    }
    constexpr int kMost = std::numeric_limits<int>::max();
    if (Status status = read(JobField::kMaxGpus, job_.gpus, kMost, range.most); !status.ok()) {
      return status;
    }
    if (range != GpuRange{}) {
      Traits().range = range;
    }
    return {};
  }

  // Complains about the first of the fields that is not empty.
  [[nodiscard]] Status NothingIn(std::initializer_list<JobField> fields,
                                 std::string_view expected) const {
    for (const JobField field : fields) {
      if (!Text(field).empty()) {
        return row_.Bad(columns_.at(field), expected);
      }
    }
    return {};
  }

  [[nodiscard]] JobTraits& Traits() {
    if (traits_ == nullptr) {
      traits_ = std::make_shared<JobTraits>();
      job_.traits = traits_;
    }
    return *traits_;
  }

  // Numbers >= 0 with '-' between them, one at least.
  [[nodiscard]] std::optional<std::vector<double>> NumbersOf(JobField field) const {
    std::vector<double> numbers;
    std::string_view rest = Text(field);
    while (true) {
      const std::size_t dash = rest.find('-');
      const std::optional<double> number = ToNumber(rest.substr(0, dash));
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
  const CsvRow& row_;
  DeviceLists& devices_;
  JobSpec job_;
  std::shared_ptr<JobTraits> traits_;  // of the job; null: none yet
};

bool IsFailure(std::string_view status) {
  constexpr std::string_view kFailed = "failed";
  return std::equal(status.begin(), status.end(), kFailed.begin(), kFailed.end(),
                    [](char a, char b) { return a == b || a + ('a' - 'A') == b; });
}

}  // namespace

Result<JobColumns> JobColumns::Find(const CsvFormat& format, const CsvHeader& table) {
  JobColumns found;
  found.at_.fill(-1);
  found.iteration_time_ = format.iteration_time;
  found.unit_ = format.unit;
  found.needs_work_ = !format.states_no_work;
  found.leaves_out_gpuless_ = format.leaves_out_gpuless;
  for (const ColumnRule& rule : format.columns) {
    const auto field = static_cast<std::size_t>(rule.field);
    found.at_[field] = table.Column({rule.name});
    if (found.at_[field] < 0 && !rule.other_name.empty()) {
      found.at_[field] = table.Column({rule.other_name});
    }
    found.required_[field] = rule.required;
    found.milliseconds_[field] = rule.milliseconds;
    if (rule.required && found.at_[field] < 0) {
      return table.BadHeader(fmt::format("no column {}; format {} needs {}", Spellings(rule),
                                         format.shown.name, RequiredColumns(format)));
    }
  }
  if (!format.ignores_others) {
    if (const Status others = CheckNoOthers(format, table); !others.ok()) {
      return others.error();
    }
  }
  if (found.needs_work_ && found.at(JobField::kDuration) < 0 &&
      found.at(JobField::kIterations) < 0) {
    return table.BadHeader("no column duration or iterations; expected one of them at least");
  }
  return found;
}

JobColumns JobColumns::InOrder(const CsvFormat& format) {
  JobColumns columns;
  columns.at_.fill(-1);
  columns.iteration_time_ = format.iteration_time;
  columns.unit_ = format.unit;
  columns.needs_work_ = !format.states_no_work;
  columns.leaves_out_gpuless_ = format.leaves_out_gpuless;
  for (std::size_t i = 0; i < format.columns.size(); ++i) {
    const auto field = static_cast<std::size_t>(format.columns[i].field);
    columns.at_[field] = static_cast<int>(i);
    columns.required_[field] = format.columns[i].required;
    columns.milliseconds_[field] = format.columns[i].milliseconds;
  }
  return columns;
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
      has_work |= rule.field == JobField::kDuration || rule.field == JobField::kIterations;
    }
  }
  return has_work ? list : list + ", and duration or iterations";
}

Result<JobRow> ReadJobRow(const JobColumns& columns, const CsvRow& row, DeviceLists& devices) {
  const std::string_view status = row.Text(columns.at(JobField::kStatus));
  if (IsFailure(status)) {
    // Not read further: a job that failed early has no sensible duration.
    return JobRow{.left_out =
                      fmt::format("column 'status' is '{}'; failed jobs are left out", status)};
  }
  if (columns.leaves_out_gpuless() && row.Text(columns.at(JobField::kGpus)) == "0") {
    return JobRow{.left_out = "column 'num_gpu' is '0'; jobs without GPUs are left out"};
  }
  Result<JobSpec> job = JobReader(columns, row, devices).Read();
  if (!job.ok()) {
    return job.error();
  }
  return JobRow{.job = std::move(job).value()};
}

std::string GpuTypesText(const JobSpec& job) {
  return HasGpuTypes(job) ? fmt::format("{}", fmt::join(job.traits->gpu_types, "|")) : "";
}

}  // namespace trainyard
