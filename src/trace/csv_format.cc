// SPDX-License-Identifier: Apache-2.0
#include "trace/csv_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostGpus = 100'000 * std::int64_t{kMaxGpusPerNode};

std::string Spellings(const ColumnRule& rule) {
  return rule.other_name.empty() ? std::string(rule.name)
                                 : fmt::format("{} or {}", rule.name, rule.other_name);
}

bool Has(const CsvFormat& format, std::string_view name) {
  return std::any_of(format.columns.begin(), format.columns.end(), [name](const ColumnRule& rule) {
    return rule.name == name || (!rule.other_name.empty() && rule.other_name == name);
  });
}

Status CheckNoOthers(const CsvFormat& format, const CsvTable& table) {
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
  JobReader(const JobColumns& columns, const CsvRow& row) : columns_(columns), row_(row) {}

  [[nodiscard]] Result<JobSpec> Read() {
    for (const auto part :
         {&JobReader::ReadNames, &JobReader::ReadSubmit, &JobReader::ReadGpus,
          &JobReader::ReadDuration, &JobReader::ReadIterations, &JobReader::ReadBatchSize,
          &JobReader::ReadBestEffort, &JobReader::ReadDeadline}) {
      if (Status status = (this->*part)(); !status.ok()) {
        return status.error();
      }
    }
    if (!job_.duration.has_value() && !job_.iterations.has_value()) {
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

  [[nodiscard]] Result<double> SecondsFrom0(JobField field) const {
    Result<double> seconds = row_.Number(columns_.at(field), 0);
    if (!seconds.ok() || seconds.value() > kMostTraceSeconds) {
      return row_.Bad(columns_.at(field), "a number of seconds >= 0 and <= 9000000000");
    }
    return seconds;
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
      return row_.Bad(columns_.at(JobField::kDuration),
                      "a number of seconds > 0 and <= 9000000000");
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

  Status ReadBatchSize() {
    if (IsLeftOut(JobField::kBatchSize)) {
      return {};
    }
    const Result<std::int64_t> batch_size = row_.Integer(columns_.at(JobField::kBatchSize), 1);
    if (!batch_size.ok()) {
      return batch_size.error();
    }
    job_.batch_size = batch_size.value();
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

  const JobColumns& columns_;
  const CsvRow& row_;
  JobSpec job_;
};

bool IsFailure(std::string_view status) {
  constexpr std::string_view kFailed = "failed";
  return std::equal(status.begin(), status.end(), kFailed.begin(), kFailed.end(),
                    [](char a, char b) { return a == b || a + ('a' - 'A') == b; });
}

}  // namespace

Result<JobColumns> JobColumns::Find(const CsvFormat& format, const CsvTable& table) {
  JobColumns found;
  found.at_.fill(-1);
  for (const ColumnRule& rule : format.columns) {
    const auto field = static_cast<std::size_t>(rule.field);
    found.at_[field] = table.Column({rule.name});
    if (found.at_[field] < 0 && !rule.other_name.empty()) {
      found.at_[field] = table.Column({rule.other_name});
    }
    found.required_[field] = rule.required;
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
  if (found.at(JobField::kDuration) < 0 && found.at(JobField::kIterations) < 0) {
    return table.BadHeader("no column duration or iterations; expected one of them at least");
  }
  return found;
}

JobColumns JobColumns::InOrder(const CsvFormat& format) {
  JobColumns columns;
  columns.at_.fill(-1);
  for (std::size_t i = 0; i < format.columns.size(); ++i) {
    const auto field = static_cast<std::size_t>(format.columns[i].field);
    columns.at_[field] = static_cast<int>(i);
    columns.required_[field] = format.columns[i].required;
  }
  return columns;
}

std::string HeaderLine(const CsvFormat& format) {
  std::string line;
  for (const ColumnRule& column : format.columns) {
    line += line.empty() ? "" : ",";
    line += column.name;
  }
  return line += '\n';
}

std::string RequiredColumns(const CsvFormat& format) {
  std::string list;
  bool has_work = false;
  for (const ColumnRule& rule : format.columns) {
    if (rule.required) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", Spellings(rule));
      has_work |= rule.field == JobField::kDuration || rule.field == JobField::kIterations;
    }
  }
  return has_work ? list : list + ", and duration or iterations";
}

Result<JobRow> ReadJobRow(const JobColumns& columns, const CsvRow& row) {
  const std::string_view status = row.Text(columns.at(JobField::kStatus));
  if (IsFailure(status)) {
    // Not read further: a job that failed early has no sensible duration.
    return JobRow{
        .left_out =
            row.BadRow(fmt::format("column 'status' is '{}'; failed jobs are left out", status))
                .message};
  }
  Result<JobSpec> job = JobReader(columns, row).Read();
  if (!job.ok()) {
    return job.error();
  }
  return JobRow{.job = std::move(job).value()};
}

}  // namespace trainyard
