// SPDX-License-Identifier: Apache-2.0
#include "trace/own_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/bad_rows.h"
#include "io/csv_reader.h"
#include "io/file.h"
#include "trace/log_format.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

namespace fs = std::filesystem;

enum PaiColumn : int { kJobName, kJobInstance, kJobUser, kJobStatus, kJobSubmit, kJobEnd };
constexpr std::array<std::string_view, 6> kJobColumns{"job_name", "inst_id",    "user",
                                                      "status",   "start_time", "end_time"};
enum TaskColumn : int {
  kTaskJob,
  kTaskName,
  kTaskInstances,
  kTaskStatus,
  kTaskStart,
  kTaskEnd,
  kTaskCpu,
  kTaskMemory,
  kTaskGpu,
  kTaskGpuType
};
constexpr std::array<std::string_view, 10> kTaskColumns{
    "job_name", "task_name", "inst_num", "status",   "start_time",
    "end_time", "plan_cpu",  "plan_mem", "plan_gpu", "gpu_type"};
enum TagColumn : int { kTagInstance, kTagUser, kTagGpuType, kTagGroup, kTagWorkload };
constexpr std::array<std::string_view, 5> kTagColumns{"inst_id", "user", "gpu_type_spec", "group",
                                                      "workload"};

// "" where the folder has no table of that name, with one of the endings of a download.
std::string FindTable(const fs::path& folder, std::string_view name) {
  for (const char* const ending : {".csv", ".tar.gz", ".csv.gz", ".csv.zst", ".tar"}) {
    const fs::path file = folder / fmt::format("{}{}", name, ending);
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) {
      return file.string();
    }
  }
  return "";
}

std::string FindJobs(const fs::path& folder) { return FindTable(folder, "pai_job_table"); }

Result<io::CsvTable> OpenTable(const std::string& path, std::span<const std::string_view> columns) {
  ASSIGN_OR_RETURN(io::TextFile file, io::TextFile::Read(path));
  return io::CsvTable::Headerless(std::move(file), columns);
}

// The tasks of one job together.
struct Tasks {
  std::string job;
  double gpu_percent = 0;
  double cpu_percent = 0;
  double memory_gib = 0;
  std::optional<TimePoint> start;  // the first, other than 0
  bool starts_at_0 = false;        // some: never started, unless the log begins there
};

bool ByJob(const Tasks& a, const Tasks& b) { return a.job < b.job; }

// What a job is tagged with.
struct Tag {
  std::string instance;
  std::string gpu_type;
  std::string workload;
};

template <class Item>
const Item* Find(const std::vector<Item>& sorted, std::string_view name,
                 std::string Item::*member) {
  const auto found = std::lower_bound(
      sorted.begin(), sorted.end(), name,
      [member](const Item& item, std::string_view wanted) { return item.*member < wanted; });
  return found != sorted.end() && (*found).*member == name ? &*found : nullptr;
}

// Puts together what is said of one job, of items that are sorted by job.
void Merge(std::vector<Tasks>& tasks) {
  std::stable_sort(tasks.begin(), tasks.end(), ByJob);
  std::size_t last = 0;
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    Tasks& item = tasks[i];
    if (item.job != tasks[last].job) {
      ++last;
      if (last != i) {
        tasks[last] = std::move(item);
      }
      continue;
    }
    Tasks& sum = tasks[last];
    sum.gpu_percent += item.gpu_percent;
    sum.cpu_percent += item.cpu_percent;
    sum.memory_gib += item.memory_gib;
    sum.starts_at_0 |= item.starts_at_0;
    if (item.start) {
      sum.start = std::min(sum.start.value_or(*item.start), *item.start);
    }
  }
  tasks.resize(std::min(tasks.size(), last + 1));
}

class PaiReader {
 public:
  PaiReader(const TraceOptions& options, const io::CsvTable& jobs, std::string sha256)
      : options_(options),
        jobs_(jobs),
        sha256_(std::move(sha256)),
        builder_({.path = jobs.path(), .format = std::string(kPaiFormat.name)}, jobs.LikelyRows(),
                 nullptr) {}

  Status ReadTasks(const io::CsvTable& table) {
    Status read = ForEach(table, [this](const io::CsvRow& row) { return ReadTask(row); });
    Merge(tasks_);
    return read;
  }

  Status ReadTags(const io::CsvTable& table) {
    Status read = ForEach(table, [this](const io::CsvRow& row) -> Status {
      Tag tag{.instance = std::string(row.Text(kTagInstance))};
      tag.gpu_type = IsMissing(row.Text(kTagGpuType)) ? "" : row.Text(kTagGpuType);
      tag.workload = IsMissing(row.Text(kTagWorkload)) ? "" : row.Text(kTagWorkload);
      if (!tag.gpu_type.empty() || !tag.workload.empty()) {
        tags_.push_back(std::move(tag));
      }
      return {};
    });
    std::stable_sort(tags_.begin(), tags_.end(),
                     [](const Tag& a, const Tag& b) { return a.instance < b.instance; });
    return read;
  }

  [[nodiscard]] Result<Trace> ReadJobs() {
    RETURN_IF_ERROR(ForEach(jobs_, [this](const io::CsvRow& row) -> Status {
      ASSIGN_OR_RETURN(JobRow job, ReadJob(row));
      return builder_.Add(row, std::move(job));
    }));
    builder_.SetOrigin(SecondsText(builder_.StartAtFirstSubmit()));
    return builder_.Take(sha256_);
  }

 private:
  Status ForEach(const io::CsvTable& table, const io::CsvTable::RowReader& read) {
    io::BadRows bad(table.path());
    const Status ended = table.ForEach(read, [&](std::int64_t line, Error error) -> Status {
      if (!options_.skip_bad_rows) {
        return bad.Add(line, std::move(error));
      }
      builder_.SkipBad(line, std::move(error));
      return {};
    });
    return bad.empty() ? ended : bad.Take(ended);
  }

  Status ReadTask(const io::CsvRow& row) {
    Tasks task{.job = std::string(row.Text(kTaskJob))};
    ASSIGN_OR_RETURN(const std::optional<double> percent, ReadAmount(row, kTaskGpu));
    ASSIGN_OR_RETURN(const std::optional<double> cpus, ReadAmount(row, kTaskCpu));
    ASSIGN_OR_RETURN(const std::optional<double> memory, ReadAmount(row, kTaskMemory));
    ASSIGN_OR_RETURN(const std::optional<TimePoint> start, ReadSeconds(row, kTaskStart));
    if (percent.value_or(0) > 0) {
      // The amounts are those of one instance. Tasks without GPUs (parameter servers) would not lie
      // with the gang, and what they ask for is not taken.
      ASSIGN_OR_RETURN(const double instances,
                       RequireAmount(row, kTaskInstances, "the number of instances"));
      task.gpu_percent = *percent * instances;
      task.cpu_percent = cpus.value_or(0) * instances;
      task.memory_gib = memory.value_or(0) * instances;
    }
    if (start) {
      task.starts_at_0 = *start == TimePoint{};
      task.start = task.starts_at_0 ? std::nullopt : start;
    }
    tasks_.push_back(std::move(task));
    return {};
  }

  Result<JobRow> ReadJob(const io::CsvRow& row) {
    constexpr double kWhole = 100;
    JobRow read{.state = std::string(row.Text(kJobStatus))};
    const Tasks* const tasks = Find(tasks_, row.Text(kJobName), &Tasks::job);
    if (tasks == nullptr) {
      read.left_out = "it has no tasks; such jobs are left out";
      return read;
    }
    RETURN_IF_ERROR(TakeGpus(row, kJobName, tasks->gpu_percent / kWhole, read));
    if (read.left_out.empty() && IsStillRunning(read.state)) {
      read.left_out = kStillRunning;
    }
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, kJobName, read.job));
    read.job.user = row.Text(kJobUser);
    TakeTag(row, read.job);
    constexpr double kMibPerGib = 1024;
    amounts_.Give(tasks->cpu_percent / kWhole, tasks->memory_gib * kMibPerGib, read.job);
    RETURN_IF_ERROR(ReadTimes(row, *tasks, read));
    return read;
  }

  void TakeTag(const io::CsvRow& row, JobSpec& job) {
    if (const Tag* const tag = Find(tags_, row.Text(kJobInstance), &Tag::instance)) {
      job.model = tag->workload;
      wishes_.Give(tag->gpu_type, job);
    }
  }

  // The start of a job is its submit: it runs from the first start of a task.
  static Status ReadTimes(const io::CsvRow& row, const Tasks& tasks, JobRow& read) {
    Recorded times{.start = tasks.start};
    ASSIGN_OR_RETURN(times.submit, ReadSeconds(row, kJobSubmit));
    ASSIGN_OR_RETURN(times.end, ReadSeconds(row, kJobEnd));
    if (tasks.starts_at_0 && times.submit == TimePoint{}) {
      times.start = TimePoint{};
    }
    if (times.end == TimePoint{}) {
      times.end.reset();
    }
    return TakeTimes(row, times, read);
  }

  const TraceOptions& options_;
  const io::CsvTable& jobs_;
  std::string sha256_;  // of all tables
  TraceBuilder builder_;
  std::vector<Tasks> tasks_;  // by job
  std::vector<Tag> tags_;     // by instance
  GpuTypeWishes wishes_;
  AmountWishes amounts_;
};

}  // namespace

bool LooksLikePai(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && !FindJobs(path).empty();
}

Result<Trace> ReadPai(const std::string& path, const TraceOptions& options) {
  std::error_code ignored;
  const fs::path folder =
      fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
  const std::string job_path = FindJobs(folder);
  const std::string task_path = FindTable(folder, "pai_task_table");
  const std::string tag_path = FindTable(folder, "pai_group_tag_table");
  for (const auto& [found, name] :
       {std::pair{&job_path, "pai_job_table"}, std::pair{&task_path, "pai_task_table"}}) {
    if (found->empty()) {
      return BadInput(
          fmt::format("{}: no {}; expected {}.csv, .csv.gz, .csv.zst or .tar.gz in the "
                      "folder",
                      path, name, name));
    }
  }
  ASSIGN_OR_RETURN(const io::CsvTable jobs, OpenTable(job_path, kJobColumns));
  std::string digests = jobs.sha256();
  std::vector<io::CsvTable> tables;
  for (const auto& [table_path, columns] :
       {std::pair{&task_path, std::span<const std::string_view>(kTaskColumns)},
        std::pair{&tag_path, std::span<const std::string_view>(kTagColumns)}}) {
    if (table_path->empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(io::CsvTable table, OpenTable(*table_path, columns));
    digests += table.sha256();
    tables.push_back(std::move(table));
  }
  PaiReader reader(options, jobs, io::Sha256Hex(digests));
  RETURN_IF_ERROR(reader.ReadTasks(tables.front()));
  if (tables.size() > 1) {
    RETURN_IF_ERROR(reader.ReadTags(tables.back()));
  }
  ASSIGN_OR_RETURN(Trace trace, reader.ReadJobs());
  for (const std::string_view name : {kTaskColumns[kTaskGpuType], kTagColumns[kTagGroup]}) {
    trace.unread.emplace_back(name);
  }
  return trace;
}

}  // namespace trainyard::trace
