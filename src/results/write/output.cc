// SPDX-License-Identifier: Apache-2.0
#include "results/write/output.h"

#include <fmt/format.h>

#include <filesystem>
#include <list>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/decimal.h"
#include "base/try.h"
#include "io/csv_field.h"
#include "model/slices.h"
#include "results/metrics/metrics.h"
#include "results/write/json.h"
#include "results/write/output_file.h"

namespace trainyard::results {
namespace {

constexpr const char* kJobs = "jobs.csv";
constexpr const char* kTimeline = "timeline.csv";
constexpr const char* kAllocations = "allocations.csv";
constexpr const char* kChoices = "choices.csv";
constexpr const char* kSummary = "summary.json";

// One line of CSV, field by field; a field without a value stays empty.
class CsvLine {
 public:
  explicit CsvLine(std::string& text) : text_(text) {}

  CsvLine& Text(std::string_view value) {
    io::AppendCsvField(value, text_);
    return Next();
  }
  CsvLine& Count(std::int64_t value) {
    base::AppendInteger(value, text_);
    return Next();
  }
  CsvLine& Millionths(double value) {
    base::AppendMillionths(value, text_);
    return Next();
  }
  CsvLine& Elapsed(std::optional<Duration> value) {
    if (value) {
      base::AppendSeconds(*value, text_);
    }
    return Next();
  }
  CsvLine& Time(std::optional<TimePoint> value) {
    return Elapsed(value ? std::optional(value->time_since_epoch()) : std::nullopt);
  }
  CsvLine& Flag(std::optional<bool> value) {
    if (value) {
      text_ += *value ? '1' : '0';
    }
    return Next();
  }
  void End() { text_.back() = '\n'; }

 private:
  CsvLine& Next() {
    text_ += ',';
    return *this;
  }

  std::string& text_;
};

void AppendJob(const JobResult& job, const RunResult& run, std::string& text) {
  const JobSpec& spec = *job.spec;
  CsvLine line(text);
  line.Text(spec.name).Text(spec.user).Text(spec.queue).Text(spec.model).Count(spec.gpus);
  line.Time(spec.submit).Time(job.start).Time(job.end);
  line.Elapsed(Jct(job, run)).Elapsed(QueueingDelay(job)).Millionths(job.attained_service);
  line.Count(job.preemptions).Count(job.migrations).Count(job.resizes);
  line.Time(DeadlineOf(spec)).Flag(DeadlineMet(job, run)).Text(Name(job.outcome));
  line.Elapsed(WaitingTime(job)).Elapsed(job.productive).Elapsed(job.overhead);
  line.Millionths(job.useful_service).Elapsed(job.alone);
  if (run.uses_logged_end) {
    line.Time(job.logged);
  }
  line.End();
}

void WriteJobs(const RunResult& run, OutputFile& file) {
  file.text() += kJobColumns;
  file.text() += run.uses_logged_end ? ",end_time_original\n" : "\n";
  for (const JobResult& job : run.jobs) {
    AppendJob(job, run, file.text());
    file.WriteIfLarge();
  }
}

void WriteTimeline(const RunResult& run, OutputFile& file) {
  file.text() += kTimelineColumns;
  file.text() += run.allocations ? ",gpus_fragmented\n" : "\n";
  for (const TimelineSample& sample : run.timeline) {
    CsvLine line(file.text());
    line.Time(sample.time).Count(sample.gpus_used).Count(sample.jobs_running);
    line.Count(sample.jobs_pending).Count(sample.gpus_up);
    if (run.allocations) {
      line.Millionths(sample.gpus_fragmented);
    }
    line.End();
    file.WriteIfLarge();
  }
}

// "0-3 6": numbers and ranges.
std::string GpuList(std::uint64_t gpus) {
  std::string list;
  model::ForEachRun(gpus, [&](int first, int count) {
    list += (list.empty() ? "" : " ") + std::to_string(first);
    list += count > 1 ? '-' + std::to_string(first + count - 1) : "";
  });
  return list;
}

// One line for each job, node and time without a change.
void WriteAllocations(const RunResult& run, OutputFile& file) {
  file.text() += kAllocationColumns;
  file.text() += '\n';
  for (const Holding& holding : run.allocations->holdings) {
    CsvLine line(file.text());
    line.Count(holding.job).Text(run.jobs[holding.job].spec->name);
    line.Text(run.allocations->nodes[holding.node].name).Text(GpuList(holding.gpus));
    line.Time(holding.start).Time(holding.end).End();
    file.WriteIfLarge();
  }
}

// One line for each decision and candidate.
void WriteChoices(const RunResult& run, OutputFile& file) {
  file.text() += "time,candidate,score,chosen\n";
  for (const ChoiceSample& sample : run.choices) {
    for (std::size_t i = 0; i < sample.scores.size(); ++i) {
      CsvLine line(file.text());
      line.Time(sample.time).Text(run.candidates[i]);
      const bool failed = i < sample.errors.size() && !sample.errors[i].empty();
      line.Text(failed ? "failed: " + sample.errors[i] : fmt::format("{}", sample.scores[i]));
      line.Flag(i == sample.candidate).End();
      file.WriteIfLarge();
    }
  }
}

}  // namespace

Status MakeOutputDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error && std::filesystem::is_directory(directory, error)) {
    return {};
  }
  const std::string reason = error ? error.message() : "a file of that name exists";
  return Failed("'" + directory + "': cannot make this output directory: " + reason +
                "; expected a path where a directory is or can be made");
}

Status WriteRun(const RunResult& run, const std::string& directory) {
  RETURN_IF_ERROR(MakeOutputDirectory(directory));
  const std::filesystem::path folder(directory);
  // The summary comes last: where it is, the others are whole.
  std::list<OutputFile> files;
  WriteJobs(run, files.emplace_back((folder / kJobs).string()));
  WriteTimeline(run, files.emplace_back((folder / kTimeline).string()));
  if (run.allocations) {
    WriteAllocations(run, files.emplace_back((folder / kAllocations).string()));
  }
  if (!run.candidates.empty()) {
    WriteChoices(run, files.emplace_back((folder / kChoices).string()));
  }
  files.emplace_back((folder / kSummary).string()).text() += SummaryJson(run) + '\n';
  for (OutputFile& file : files) {
    RETURN_IF_ERROR(file.Close());
  }
  for (OutputFile& file : files) {
    RETURN_IF_ERROR(file.Publish());
  }
  return {};
}

std::vector<std::string> FilesOfRun(const std::string& directory) {
  std::vector<std::string> files;
  if (directory.empty()) {
    return files;
  }
  for (const char* const name : {kJobs, kTimeline, kAllocations, kChoices, kSummary}) {
    files.push_back((std::filesystem::path(directory) / name).string());
  }
  return files;
}

}  // namespace trainyard::results
