// SPDX-License-Identifier: Apache-2.0
#include "results/read/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "io/json.h"
#include "results/metrics/metrics.h"
#include "results/read/json_text.h"
#include "results/write/json.h"
#include "results/write/output.h"
#include "trace/csv_format.h"

namespace trainyard::results {
namespace {

constexpr double kMostNumber = 1e15;  // GPU-seconds
constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();

// Takes the cells of one row by the names of their columns; the first complaint is kept.
class RunRowReader {
 public:
  RunRowReader(const std::map<std::string_view, int>& columns, const io::CsvRow& row)
      : columns_(columns), row_(row) {}

  [[nodiscard]] const Status& status() const { return status_; }

  std::string Text(std::string_view column) { return std::string(row_.Text(At(column))); }
  std::optional<Duration> Elapsed(std::string_view column) {
    const std::optional<double> seconds = Number(column, -model::kMostTraceSeconds);
    return seconds ? std::optional(FromSeconds(*seconds)) : std::nullopt;
  }
  std::optional<TimePoint> Time(std::string_view column) {
    const std::optional<Duration> since_zero = Elapsed(column);
    return since_zero ? std::optional(TimePoint{*since_zero}) : std::nullopt;
  }
  std::optional<double> Number(std::string_view column, double least) {
    if (row_.Text(At(column)).empty()) {
      return std::nullopt;
    }
    const Result<double> number = row_.Number(At(column), least);
    if (!number.ok()) {
      Complain(number.error());
      return std::nullopt;
    }
    if (number.value() > kMostNumber) {
      Complain(row_.Bad(At(column), "a smaller number"));
      return std::nullopt;
    }
    return number.value();
  }
  std::int64_t Count(std::string_view column) {
    const Result<std::int64_t> count = row_.Integer(At(column), 0);
    if (!count.ok()) {
      Complain(count.error());
      return 0;
    }
    if (count.value() > kMostCount) {
      Complain(row_.Bad(At(column), "a smaller number"));
      return 0;
    }
    return count.value();
  }
  void Complain(std::string_view column, std::string_view expected) {
    Complain(row_.Bad(At(column), expected));
  }
  void Complain(Error error) {
    if (status_.ok()) {
      status_ = std::move(error);
    }
  }

 private:
  [[nodiscard]] int At(std::string_view column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? -1 : found->second;
  }

  const std::map<std::string_view, int>& columns_;
  const io::CsvRow& row_;
  Status status_;
};

// The positions of `required`, which are separated by commas, and of `optional` if it is there.
Result<std::map<std::string_view, int>> Columns(const io::CsvTable& table,
                                                std::string_view required,
                                                std::string_view optional = {}) {
  std::map<std::string_view, int> columns;
  for (const std::string_view name : base::Split(required, ",")) {
    ASSIGN_OR_RETURN(const int column, table.Require({name}));
    columns[name] = column;
  }
  if (const int column = table.Column({optional}); column >= 0) {
    columns[optional] = column;
  }
  return columns;
}

struct RunJob {
  JobSpec spec;
  JobResult result;
  // As the file has them; they follow from the others.
  std::optional<Duration> jct;
  std::optional<Duration> queueing_delay;
  std::string deadline_met;
  std::int64_t line = 0;
};

Outcome OutcomeIn(RunRowReader& row) {
  const std::optional<Outcome> outcome = OutcomeNamed(row.Text("outcome"));
  if (!outcome) {
    row.Complain("outcome", "completed, rejected, cancelled, failed or unfinished");
  }
  return outcome.value_or(Outcome::kUnfinished);
}

Result<RunJob> ReadJob(RunRowReader row, bool logged, std::int64_t line) {
  RunJob job{.spec = {.name = row.Text("job_id"),
                      .user = row.Text("user"),
                      .queue = row.Text("queue"),
                      .model = row.Text("model"),
                      .gpus = static_cast<int>(row.Count("gpus_requested")),
                      .submit = row.Time("submit_time").value_or(TimePoint{}),
                      .deadline = row.Time("deadline")},
             .result = {.outcome = OutcomeIn(row),
                        .start = row.Time("start_time"),
                        .end = row.Time("end_time"),
                        .logged = row.Time(logged ? "end_time_original" : "end_time"),
                        .waited = row.Elapsed("waiting_time").value_or(Duration{0}),
                        .productive = row.Elapsed("productive_time").value_or(Duration{0}),
                        .overhead = row.Elapsed("overhead_time").value_or(Duration{0}),
                        .attained_service = row.Number("attained_service", 0).value_or(0),
                        .useful_service = row.Number("useful_service", 0).value_or(0),
                        .alone = row.Elapsed("jct_alone"),
                        .preemptions = static_cast<std::uint32_t>(row.Count("preemptions")),
                        .migrations = static_cast<std::uint32_t>(row.Count("migrations")),
                        .resizes = static_cast<std::uint32_t>(row.Count("resizes"))},
             .jct = row.Elapsed("jct"),
             .queueing_delay = row.Elapsed("queueing_delay"),
             .deadline_met = row.Text("deadline_met"),
             .line = line};
  if (row.Text("submit_time").empty()) {
    row.Complain("submit_time", "seconds");
  }
  if (job.result.outcome == Outcome::kCompleted && !(job.result.end && job.result.logged)) {
    row.Complain(job.result.end ? "end_time_original" : "end_time",
                 "seconds, since the job completed");
  }
  RETURN_IF_ERROR(row.status());
  return job;
}

std::string Met(const JobResult& job, const RunResult& run) {
  const std::optional<bool> met = DeadlineMet(job, run);
  return !met ? "" : *met ? "1" : "0";
}

// Some presets judge deadlines by the exact end though JCTs follow from the registered one.
bool DeadlinesAreExact(const std::vector<RunJob>& rows, RunResult run) {
  const auto differ = [&] {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (Met(run.jobs[i], run) != rows[i].deadline_met) {
        return true;
      }
    }
    return false;
  };
  if (!run.uses_logged_end || !differ()) {
    return false;
  }
  run.exact_deadlines = true;
  return !differ();
}

std::string ShownTime(std::optional<Duration> time) {
  return time ? fmt::format("{}", Seconds(*time)) : "nothing";
}

// What is derived in the file must be what follows from it here.
Status CheckDerived(const std::string& path, const std::vector<RunJob>& rows,
                    const RunResult& run) {
  const auto bad = [&](const RunJob& row, std::string_view column, const std::string& is,
                       const std::string& expected) {
    return BadInput(fmt::format("{}:{}: {} is {}; expected {} by the times of job '{}'", path,
                                row.line, column, is, expected, row.spec.name));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunJob& row = rows[i];
    const JobResult& job = run.jobs[i];
    if (const std::optional<Duration> jct = Jct(job, run); jct != row.jct) {
      return bad(row, "jct", ShownTime(row.jct), ShownTime(jct));
    }
    if (const std::optional<Duration> delay = QueueingDelay(job); delay != row.queueing_delay) {
      return bad(row, "queueing_delay", ShownTime(row.queueing_delay), ShownTime(delay));
    }
    if (const std::string met = Met(job, run); met != row.deadline_met) {
      return bad(row, "deadline_met", "'" + row.deadline_met + "'", "'" + met + "'");
    }
  }
  return {};
}

void SetJobs(const std::vector<RunJob>& rows, RunResult& run) {
  auto specs = std::make_shared<std::vector<JobSpec>>();
  specs->reserve(rows.size());
  for (const RunJob& row : rows) {
    specs->push_back(row.spec);
    run.jobs.push_back(row.result);
    run.jobs.back().spec = &specs->back();
  }
  run.jobs_of_trace = std::move(specs);
}

Status ReadTimeline(const std::string& path, RunResult& run) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const auto columns, Columns(table, kTimelineColumns, "gpus_fragmented"));
  return table.ForEach([&](const io::CsvRow& line) -> Status {
    RunRowReader row(columns, line);
    const std::optional<TimePoint> time = row.Time("time");
    run.timeline.push_back({.time = time.value_or(TimePoint{}),
                            .gpus_used = row.Count("gpus_used"),
                            .jobs_running = row.Count("jobs_running"),
                            .jobs_pending = row.Count("jobs_pending"),
                            .gpus_up = row.Count("gpus_up"),
                            .gpus_fragmented = row.Number("gpus_fragmented", 0).value_or(0)});
    if (!time || (run.timeline.size() > 1 && *time < run.timeline[run.timeline.size() - 2].time)) {
      row.Complain("time", "seconds, not before those of the row above");
    }
    return row.status();
  });
}

// "0-3 6": the numbers of GPUs of one node.
std::optional<std::uint64_t> GpusIn(std::string_view list) {
  std::uint64_t gpus = 0;
  for (const std::string_view range : base::Split(list, " ")) {
    const std::size_t dash = range.find('-');
    const std::optional<double> first = base::ToNumber(range.substr(0, dash));
    const std::optional<double> last =
        dash == std::string_view::npos ? first : base::ToNumber(range.substr(dash + 1));
    constexpr double kLast = 63;
    if (!first || !last || *first < 0 || *last < *first || *last > kLast) {
      return std::nullopt;
    }
    for (auto gpu = static_cast<unsigned>(*first); gpu <= static_cast<unsigned>(*last); ++gpu) {
      gpus |= std::uint64_t{1} << gpu;
    }
  }
  return gpus;
}

// Names with numbers at their ends are in the order of the numbers.
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

// The nodes that somebody held; each is as large as what was held of it, or where the cluster is
// of that size as the largest of them.
void SetNodes(const std::vector<std::string>& node_of, RunResult& run) {
  std::map<std::string, int, ByNumber> sizes;
  int largest = 0;
  for (std::size_t i = 0; i < node_of.size(); ++i) {
    int& size = sizes[node_of[i]];
    size = std::max(size, static_cast<int>(std::bit_width(run.allocations->holdings[i].gpus)));
    largest = std::max(largest, size);
  }
  std::map<std::string_view, std::uint32_t> places;
  const bool alike = run.nodes * largest == run.gpus;
  for (const auto& [name, size] : sizes) {
    places[name] = static_cast<std::uint32_t>(run.allocations->nodes.size());
    run.allocations->nodes.push_back({.name = name, .gpus = alike ? largest : size});
  }
  for (std::size_t i = 0; i < node_of.size(); ++i) {
    run.allocations->holdings[i].node = places.at(node_of[i]);
  }
}

Status ReadAllocations(const std::string& path, RunResult& run) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const auto columns, Columns(table, kAllocationColumns));
  run.allocations.emplace();
  std::vector<std::string> nodes;
  Status status = table.ForEach([&](const io::CsvRow& line) -> Status {
    RunRowReader row(columns, line);
    const auto job = static_cast<std::size_t>(row.Count("row"));
    const std::optional<std::uint64_t> gpus = GpusIn(row.Text("gpus"));
    const std::optional<TimePoint> start = row.Time("start_time");
    const std::optional<TimePoint> end = row.Time("end_time");
    if (job >= run.jobs.size() || run.jobs[job].spec->name != row.Text("job_id")) {
      row.Complain("row", "the row of the job in jobs.csv, from 0");
    }
    if (!gpus) {
      row.Complain("gpus", "numbers from 0 to 63 and ranges of them, as in '0-3 6'");
    }
    if (!start || !end || *end < *start) {
      row.Complain("end_time", "seconds, not before start_time");
    }
    if (row.status().ok()) {
      nodes.push_back(row.Text("node"));
      run.allocations->holdings.push_back(
          {.job = static_cast<std::uint32_t>(job), .gpus = *gpus, .start = *start, .end = *end});
    }
    return row.status();
  });
  if (status.ok()) {
    SetNodes(nodes, run);
  }
  return status;
}

// What a selector chose among: the names in choices.csv, which has all of them at each decision.
Status ReadCandidates(const std::string& path, RunResult& run) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const int column, table.Require({"candidate"}));
  return table.ForEach([&](const io::CsvRow& line) -> Status {
    const std::string_view name = line.Text(column);
    if (std::find(run.candidates.begin(), run.candidates.end(), name) == run.candidates.end()) {
      run.candidates.emplace_back(name);
    }
    return {};
  });
}

// The keys of summary.json that are not measured from the jobs; the first complaint is kept.
class SummaryReader {
 public:
  SummaryReader(const std::string& path, const nlohmann::json& summary)
      : path_(path), summary_(summary) {}

  [[nodiscard]] const Status& status() const { return status_; }

  // A text that may be missing is empty then, a number is 0, and where they are null.
  void Take(const char* key, std::string& into, bool may_be_missing = false) {
    const nlohmann::json& value = Value(key);
    if (value.is_string()) {
      into = value.get<std::string>();
    } else if (!may_be_missing || !value.is_null()) {
      Complain(key, "a text");
    }
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void Take(const char* key, Number& into, bool may_be_missing = false) {
    const nlohmann::json& value = Value(key);
    const bool whole = std::is_integral_v<Number>;
    if (whole ? value.is_number_integer() : value.is_number()) {
      into = value.get<Number>();
    } else if (!may_be_missing || !value.is_null()) {
      Complain(key, whole ? "an integer" : "a number");
    }
  }

 private:
  [[nodiscard]] const nlohmann::json& Value(const char* key) const {
    static const nlohmann::json kNothing;
    const auto found = summary_.find(key);
    return found == summary_.end() ? kNothing : *found;
  }
  void Complain(const char* key, std::string_view expected) {
    if (status_.ok()) {
      status_ =
          BadInput(fmt::format("{}: key '{}' is {}; expected {}", path_, key,
                               summary_.contains(key) ? Value(key).dump() : "missing", expected));
    }
  }

  const std::string& path_;
  const nlohmann::json& summary_;
  Status status_;
};

Status ReadSummary(const std::string& path, RunResult& run) {
  ASSIGN_OR_RETURN(const std::string text, ReadJsonObject(path));
  const nlohmann::json summary = nlohmann::json::parse(text);
  SummaryReader reader(path, summary);
  std::uint64_t jobs = 0;
  reader.Take("jobs", jobs);
  const auto take = [&reader](const char* key, auto& into, bool may_be_missing = false) {
    reader.Take(key, into, may_be_missing);
  };
  ForEachCost(run, take);
  ForEachSetting(run, take);
  reader.Take("journal_digest", run.journal_digest);
  if (reader.status().ok() && jobs != run.jobs.size()) {
    return BadInput(
        fmt::format("{}: counts {} jobs, but jobs.csv beside it has {} rows; expected "
                    "files of one run",
                    path, jobs, run.jobs.size()));
  }
  return reader.status();
}

}  // namespace

Result<RunResult> ReadJobsOfRun(const std::string& folder) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(folder + "/jobs.csv"));
  ASSIGN_OR_RETURN(const auto columns, Columns(table, kJobColumns, "end_time_original"));
  RunResult run;
  run.uses_logged_end = columns.contains("end_time_original");
  std::vector<RunJob> rows;
  std::set<std::string> names;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(RunJob job, ReadJob({columns, row}, run.uses_logged_end, row.line()));
    if (!names.insert(job.spec.name).second) {
      return row.BadRow("job '" + job.spec.name + "' is there twice; expected it once");
    }
    rows.push_back(std::move(job));
    return {};
  }));
  SetJobs(rows, run);
  run.exact_deadlines = DeadlinesAreExact(rows, run);
  RETURN_IF_ERROR(CheckDerived(table.path(), rows, run));
  return run;
}

Result<RunResult> ReadRun(const std::string& folder) {
  ASSIGN_OR_RETURN(RunResult run, ReadJobsOfRun(folder));
  RETURN_IF_ERROR(ReadSummary(folder + "/summary.json", run));
  RETURN_IF_ERROR(ReadTimeline(folder + "/timeline.csv", run));
  if (const std::string path = folder + "/allocations.csv"; std::filesystem::exists(path)) {
    RETURN_IF_ERROR(ReadAllocations(path, run));
  }
  if (const std::string path = folder + "/choices.csv"; std::filesystem::exists(path)) {
    RETURN_IF_ERROR(ReadCandidates(path, run));
  }
  run.label = run.policy;
  return run;
}

}  // namespace trainyard::results
