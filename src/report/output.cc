// SPDX-License-Identifier: Apache-2.0
#include "report/output.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/decimal.h"
#include "io/csv_field.h"
#include "report/json.h"
#include "report/metrics.h"
#include "report/output_file.h"

namespace trainyard {
namespace {

constexpr std::string_view kJobColumns =
    "job_id,user,queue,model,gpus_requested,submit_time,start_time,end_time,jct,queueing_delay,"
    "attained_service,preemptions,migrations,resizes,deadline,deadline_met,outcome,waiting_time";
constexpr std::string_view kTimelineColumns = "time,gpus_used,jobs_running,jobs_pending,gpus_up\n";

// One line of CSV, field by field; a field without a value stays empty.
class CsvLine {
 public:
  explicit CsvLine(std::string& text) : text_(text) {}

  CsvLine& Text(std::string_view value) {
    AppendCsvField(value, text_);
    return Next();
  }
  CsvLine& Count(std::int64_t value) {
    AppendInteger(value, text_);
    return Next();
  }
  CsvLine& GpuSeconds(double value) {
    AppendMillionths(value, text_);
    return Next();
  }
  CsvLine& Elapsed(std::optional<Duration> value) {
    if (value) {
      AppendSeconds(*value, text_);
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
  line.Elapsed(Jct(job, run)).Elapsed(QueueingDelay(job)).GpuSeconds(job.attained_service);
  line.Count(job.preemptions).Count(job.migrations).Count(job.resizes);
  line.Time(DeadlineOf(spec)).Flag(DeadlineMet(job, run)).Text(Name(job.outcome));
  line.Elapsed(WaitingTime(job));
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
  for (const TimelineSample& sample : run.timeline) {
    CsvLine line(file.text());
    line.Time(sample.time).Count(sample.gpus_used).Count(sample.jobs_running);
    line.Count(sample.jobs_pending).Count(sample.gpus_up).End();
    file.WriteIfLarge();
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
  if (Status status = MakeOutputDirectory(directory); !status.ok()) {
    return status;
  }
  const std::filesystem::path folder(directory);
  // The summary comes last: where it is, the others are whole.
  std::array<OutputFile, 3> files{OutputFile((folder / "jobs.csv").string()),
                                  OutputFile((folder / "timeline.csv").string()),
                                  OutputFile((folder / "summary.json").string())};
  WriteJobs(run, files[0]);
  WriteTimeline(run, files[1]);
  files[2].text() += SummaryJson(run) + '\n';
  for (OutputFile& file : files) {
    if (Status status = file.Close(); !status.ok()) {
      return status;
    }
  }
  for (OutputFile& file : files) {
    if (Status status = file.Publish(); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace trainyard
