// SPDX-License-Identifier: Apache-2.0
// Workloads of the Batsim simulator, as JSON: docs/formats/batsim.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/decimal.h"
#include "base/text.h"
#include "base/try.h"
#include "io/json.h"
#include "io/text_check.h"
#include "trace/csv_format.h"
#include "trace/json_cursor.h"
#include "trace/line_stream.h"
#include "trace/own_format.h"
#include "trace/trace_builder.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

using Json = nlohmann::json;

// What is read of a job, as columns.
enum Column : std::uint8_t { kId, kSubtime, kRes, kProfile, kWalltime };
constexpr std::array<const char*, 5> kBatsimNames{"id", "subtime", "res", "profile", "walltime"};
using Fields = std::array<std::string, kBatsimNames.size()>;

struct Profile {
  std::string type;
  std::string delay;  // empty: it states none
};

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return {};
  }
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A workload taken apart. Gives out its jobs as a CsvTable gives out its rows.
class BatsimTable {
 public:
  // Takes a stream that is at its first block.
  [[nodiscard]] static Result<BatsimTable> Of(io::TextStream text) {
    JsonCursor cursor(std::move(text));
    BatsimTable table;
    table.path_ = cursor.path();
    RETURN_IF_ERROR(table.Parse(cursor));
    table.sha256_ = cursor.sha256();
    return table;
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& sha256() const { return sha256_; }
  [[nodiscard]] std::size_t LikelyRows() const { return jobs_.size(); }
  // Null: there is none of that name.
  [[nodiscard]] const Profile* Find(std::string_view profile) const {
    const auto found = profiles_.find(profile);
    return found == profiles_.end() ? nullptr : &found->second;
  }

  // As CsvTable::ForEach.
  [[nodiscard]] Status ForEach(const io::CsvTable::RowReader& on_row,
                               const io::CsvTable::BadRowReader& on_bad_row = {}) const {
    const std::vector<std::string> names(kBatsimNames.begin(), kBatsimNames.end());
    for (const Job& job : jobs_) {
      const std::vector<std::string_view> fields(job.fields.begin(), job.fields.end());
      RETURN_IF_ERROR(
          io::GiveOut(io::CsvRow(path_, job.line, names, fields, "field"), on_row, on_bad_row));
    }
    return {};
  }

 private:
  struct Job {
    std::int64_t line = 0;
    Fields fields;
  };
  static constexpr int kInside = 2;  // the depth of what the lists of jobs and profiles hold

  [[nodiscard]] Error Bad(std::int64_t line, std::string_view what) const {
    return BadInput(fmt::format("{}:{}: {}", path_, line, what));
  }

  Status Parse(JsonCursor& cursor) {
    Status status;
    const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (status.ok()) {
        status = Take(depth, event, parsed, cursor.line());
      }
      // What has been taken is let go, so that it is in memory once.
      return depth < kInside || event != Json::parse_event_t::object_end;
    };
    try {
      [[maybe_unused]] const Json rest =
          Json::parse(CursorIterator(&cursor), CursorIterator(nullptr), keep);
    } catch (const Json::exception&) {
      RETURN_IF_ERROR(cursor.status());
      RETURN_IF_ERROR(status);
      return Bad(cursor.line(), "no JSON from here on; expected one object with jobs and profiles");
    }
    if (status.ok() && !has_jobs_) {
      status = Bad(1, "no list 'jobs'; expected jobs and profiles");
    }
    return status;
  }

  Status Take(int depth, Json::parse_event_t event, const Json& parsed, std::int64_t line) {
    if (event == Json::parse_event_t::key && depth == 1) {
      section_ = parsed.get<std::string>();
    } else if (section_ == "jobs") {
      return TakeJob(depth, event, parsed, line);
    } else if (section_ == "profiles" && depth == kInside) {
      TakeProfile(event, parsed);
    }
    return {};
  }

  Status TakeJob(int depth, Json::parse_event_t event, const Json& parsed, std::int64_t line) {
    has_jobs_ |= depth == 1 && event == Json::parse_event_t::array_start;
    if (depth != kInside) {
      return {};
    }
    if (event == Json::parse_event_t::object_start) {
      line_ = line;
    } else if (event == Json::parse_event_t::object_end) {
      Job job{.line = line_};
      for (std::size_t field = 0; field < kBatsimNames.size(); ++field) {
        job.fields[field] = TextOf(parsed, kBatsimNames[field]);
      }
      jobs_.push_back(std::move(job));
    } else if (event == Json::parse_event_t::value) {
      return Bad(line, "a job that is no object; expected {\"id\":...}");
    }
    return {};
  }

  void TakeProfile(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::key) {
      profile_ = parsed.get<std::string>();
    } else if (event == Json::parse_event_t::object_end) {
      profiles_[profile_] = {.type = TextOf(parsed, "type"), .delay = TextOf(parsed, "delay")};
    }
  }

  std::string path_;
  std::string sha256_;
  std::vector<Job> jobs_;
  std::map<std::string, Profile, std::less<>> profiles_;
  // While it is parsed.
  std::string section_;  // the member of the top object
  std::string profile_;
  std::int64_t line_ = 0;  // where the job began
  bool has_jobs_ = false;
};

// Of every generation of the format, the only one that states a run time.
bool IsDelay(std::string_view type) { return type == "delay" || type == "DelayProfile"; }

class BatsimRows {
 public:
  BatsimRows(const BatsimTable& table, int procs_per_gpu)
      : table_(table), procs_per_gpu_(procs_per_gpu) {}

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) const {
    JobRow read;
    read.job.name = row.Text(kId);
    if (read.job.name.empty()) {
      return row.Bad(kId, "the id of the job");
    }
    const Profile* profile = table_.Find(row.Text(kProfile));
    if (profile == nullptr) {
      return row.Bad(kProfile, "the name of one of the file's profiles");
    }
    if (!IsDelay(profile->type)) {
      read.left_out = fmt::format(
          "its profile is of type '{}', which states no run time; such jobs are left out",
          profile->type);
      return read;
    }
    RETURN_IF_ERROR(ReadNumbers(row, read.job));
    RETURN_IF_ERROR(ReadDuration(row, profile->delay, read));
    return read;
  }

 private:
  [[nodiscard]] Status ReadNumbers(const io::CsvRow& row, JobSpec& job) const {
    ASSIGN_OR_RETURN(const double subtime, TraceSeconds(row, kSubtime));
    ASSIGN_OR_RETURN(const std::int64_t res,
                     row.Integer(kRes, 1, model::kMostGpus * procs_per_gpu_));
    job.submit = AtSeconds(subtime);
    job.gpus = static_cast<int>((res + procs_per_gpu_ - 1) / procs_per_gpu_);
    return {};
  }

  [[nodiscard]] static Status ReadDuration(const io::CsvRow& row, std::string_view delay,
                                           JobRow& read) {
    const auto seconds_of = [](std::string_view text) {
      const std::optional<double> number = base::ToNumber(text);
      return number && *number <= model::kMostTraceSeconds ? number : std::nullopt;
    };
    const std::optional<double> runs = seconds_of(delay);
    if (!runs || *runs < 0) {
      return row.Bad(kProfile, fmt::format("a profile with a delay from 0 to {:.0f} s, which this "
                                           "one states as '{}'",
                                           model::kMostTraceSeconds, delay));
    }
    double seconds = *runs;
    if (!row.Text(kWalltime).empty()) {
      const std::optional<double> limit = base::ToNumber(row.Text(kWalltime));
      if (!limit) {
        return row.Bad(kWalltime, "seconds, or nothing for no limit");
      }
      seconds = *limit < 0 ? seconds : std::min(seconds, *limit);  // it is killed then; -1: never
    }
    if (FromSeconds(seconds) <= Duration{0}) {
      read.left_out = "it takes no time; such jobs are left out";
    }
    read.job.duration = FromSeconds(seconds);
    return {};
  }

  const BatsimTable& table_;
  int procs_per_gpu_;
};

// Jobs in JSON Lines begin with a brace as well, but have no such members.
bool LooksLikeBatsim(std::string_view head) {
  static constexpr std::string_view kBlanks = " \t\r\n";
  if (!io::Beginning(head).starts_with('{')) {
    return false;
  }
  constexpr std::array<std::string_view, 3> kMembers{"\"jobs\"", "\"profiles\"", "\"nb_res\""};
  return std::any_of(kMembers.begin(), kMembers.end(), [head](std::string_view member) {
    const std::size_t at = head.find(member);
    const std::size_t behind =
        at == std::string_view::npos ? at : head.find_first_not_of(kBlanks, at + member.size());
    return behind != std::string_view::npos && head[behind] == ':';
  });
}

Result<Trace> ReadBatsim(io::TextStream text, const TraceOptions& options) {
  ASSIGN_OR_RETURN(const BatsimTable table, BatsimTable::Of(std::move(text)));
  const BatsimRows rows(table, std::max(1, options.procs_per_gpu));
  return ReadRows(table, rows, kBatsimFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kBatsimFormat{.shown = {.name = "batsim",
                                            .help = "Batsim JSON (jobs whose profile is a delay)",
                                            .has_processors = true},
                                  .looks_like = LooksLikeBatsim,
                                  .read = ReadBatsim};

std::string WriteBatsim(const TraceView& trace) {
  int most_gpus = 1;
  std::set<Duration> delays;
  std::string jobs;
  for (const JobSpec& job : trace.jobs) {
    CHECK(job.duration.has_value());
    most_gpus = std::max(most_gpus, job.gpus);
    delays.insert(*job.duration);
    fmt::format_to(std::back_inserter(jobs),
                   "{}    {{\"id\":{},\"subtime\":", jobs.empty() ? "" : ",\n",
                   Json(job.name).dump());
    base::AppendSeconds(job.submit.time_since_epoch(), jobs);
    fmt::format_to(std::back_inserter(jobs), ",\"res\":{},\"profile\":\"", job.gpus);
    base::AppendSeconds(*job.duration, jobs);
    jobs += "\"}";
  }
  std::string profiles;
  for (const Duration delay : delays) {
    std::string seconds;
    base::AppendSeconds(delay, seconds);
    fmt::format_to(std::back_inserter(profiles), "{}    \"{}\":{{\"type\":\"delay\",\"delay\":{}}}",
                   profiles.empty() ? "" : ",\n", seconds, seconds);
  }
  return fmt::format(
      "{{\n  \"nb_res\":{},\n  \"jobs\":[\n{}\n  ],\n  \"profiles\":{{\n{}\n  }}\n}}\n", most_gpus,
      jobs, profiles);
}

}  // namespace trainyard::trace
