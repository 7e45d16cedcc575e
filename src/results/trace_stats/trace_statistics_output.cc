// SPDX-License-Identifier: Apache-2.0
// Statistics of a trace as text, JSON and CSV.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/csv_field.h"
#include "results/metrics/metrics.h"
#include "results/trace_stats/trace_statistics.h"
#include "results/write/json_value.h"
#include "results/write/output_file.h"

namespace trainyard::results {
namespace {

constexpr double kSecondsOfHour = 3600;
constexpr std::size_t kMostListed = 10;  // users, queues, models and reasons that are listed
constexpr std::array kDays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::array kQuantiles{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};

double ShareOf(double part, double all) { return all > 0 ? part / all : 0; }
double Count(std::size_t count) { return static_cast<double>(count); }

// None of no values.
std::optional<double> MeanOf(const std::vector<double>& values) {
  return values.empty() ? std::nullopt
                        : std::optional(std::accumulate(values.begin(), values.end(), 0.0) /
                                        Count(values.size()));
}
std::optional<double> QuantileOf(const std::vector<double>& sorted, double fraction) {
  return sorted.empty() ? std::nullopt : std::optional(Percentile(sorted, fraction));
}

// A name where a trace states none.
std::string NameOrNone(const std::string& name) { return name.empty() ? "(none)" : name; }

using NamedGroup = std::pair<std::string, JobTotal>;

std::size_t SizeOf(const JobTotal& group) { return group.jobs; }
std::size_t SizeOf(std::size_t rows) { return rows; }

// By jobs or rows, most first, then by name.
template <typename Value>
std::vector<std::pair<std::string, Value>> Ranked(
    const std::map<std::string, Value, std::less<>>& named) {
  std::vector<std::pair<std::string, Value>> ranked(named.begin(), named.end());
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return SizeOf(a.second) > SizeOf(b.second);
  });
  return ranked;
}

double PeakDemand(const TraceStatistics& statistics) {
  double most = 0;
  for (const TraceStatistics::TimeBin& bin : statistics.OverTime()) {
    most = std::max(most, bin.demand / statistics.bin_seconds());
  }
  return most;
}

// Ascending seconds of the jobs whose log says so.
std::vector<double> RecordedWaits(const trace::TraceFacts& facts) {
  std::vector<double> waits;
  for (const std::optional<Duration>& wait : facts.waits) {
    if (wait) {
      waits.push_back(Seconds(*wait));
    }
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

class TextPage {
 public:
  TextPage(const TraceStatistics& statistics, const TraceSource& source)
      : statistics_(statistics), source_(source) {}

  std::string Write() {
    Head();
    Line("");
    Gpus();
    Durations();
    Hours();
    Groups("user", statistics_.by_user());
    Groups("queue", statistics_.by_queue());
    Groups("model", statistics_.by_model());
    LeftOut();
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void Head() {
    const JobTotal& all = statistics_.all();
    const double span = statistics_.last_submit() - statistics_.first_submit();
    Line("{} ({})", source_.facts.path, source_.facts.format);
    Line("  jobs            {} ({} with deadline, {} best effort, {} rows left out)", all.jobs,
         statistics_.with_deadline(), statistics_.best_effort(), statistics_.left_out());
    Line("  submits         {:.0f} s to {:.0f} s, {:.1f} jobs per hour", statistics_.first_submit(),
         statistics_.last_submit(), span > 0 ? Count(all.jobs) / span * kSecondsOfHour : 0);
    if (!source_.facts.origin.empty()) {
      Line("  time 0          {}", source_.facts.origin);
    }
    Line("  GPU-hours       {:.1f}", all.gpu_seconds / kSecondsOfHour);
    if (const std::vector<double> durations = statistics_.Durations(); !durations.empty()) {
      Line("  duration        p10 {}, p50 {}, p90 {}, p99 {}, mean {}",
           base::ShortDuration(Percentile(durations, 0.1)),
           base::ShortDuration(Percentile(durations, 0.5)),
           base::ShortDuration(Percentile(durations, 0.9)),
           base::ShortDuration(Percentile(durations, 0.99)),
           base::ShortDuration(*MeanOf(durations)));
    }
    if (statistics_.without_duration() > 0) {
      Line("                  {} jobs state none", statistics_.without_duration());
    }
    if (const std::vector<double> factors = statistics_.DeadlineFactors(); !factors.empty()) {
      Line("  deadlines       p10 {:.2f}, p50 {:.2f}, p90 {:.2f} durations after the submit",
           Percentile(factors, 0.1), Percentile(factors, 0.5), Percentile(factors, 0.9));
    }
    Recorded();
    if (source_.cluster_gpus > 0) {
      Line("  offered load    {:.2f} of the {} GPUs between first and last submit",
           statistics_.Load(source_.cluster_gpus), source_.cluster_gpus);
      Line("  peak demand     {:.2f} of the GPUs, were every job to run from its submit on",
           PeakDemand(statistics_) / source_.cluster_gpus);
    }
  }

  // What the cluster of the log did with the jobs.
  void Recorded() {
    if (const std::vector<double> waits = RecordedWaits(source_.facts); !waits.empty()) {
      Line("  recorded wait   p50 {:.0f} s, p90 {:.0f} s", Percentile(waits, 0.5),
           Percentile(waits, 0.9));
    }
    if (source_.facts.states.empty()) {
      return;
    }
    text_ += "  recorded ends  ";
    for (const auto& [state, jobs] : source_.facts.states) {
      fmt::format_to(std::back_inserter(text_), " {}:{}", state, jobs);
    }
    text_ += '\n';
  }

  // "jobs share GPU-hours share" of a line.
  [[nodiscard]] std::string Columns(const JobTotal& group) const {
    const JobTotal& all = statistics_.all();
    return fmt::format("{:>9}  {:>6.2f} %  {:>12.1f}  {:>6.2f} %", group.jobs,
                       100 * ShareOf(Count(group.jobs), Count(all.jobs)),
                       group.gpu_seconds / kSecondsOfHour,
                       100 * ShareOf(group.gpu_seconds, all.gpu_seconds));
  }
  void Heading(std::string_view what, std::string_view more = "") {
    Line("  {:<24}     jobs     share     GPU-hours     share{}", what, more);
  }

  void Gpus() {
    Heading("GPUs", "  p50 duration");
    for (const auto& [gpus, group] : statistics_.by_gpus()) {
      const std::vector<double> durations = statistics_.Durations(gpus);
      Line("  {:<24}{}  {:>12}", gpus, Columns(group),
           durations.empty() ? "-" : base::ShortDuration(Percentile(durations, 0.5)));
    }
    Line("");
  }

  void Durations() {
    const std::vector<TraceStatistics::DurationBin> bins = statistics_.DurationBins();
    if (bins.empty()) {
      return;
    }
    Heading("duration");
    for (const TraceStatistics::DurationBin& bin : bins) {
      Line("  {:<24}{}",
           fmt::format("{} to {}", base::ShortDuration(bin.from), base::ShortDuration(bin.to)),
           Columns(bin.jobs));
    }
    Line("");
  }

  void Hours() {
    constexpr std::size_t kInLine = 8;
    const double jobs = Count(statistics_.all().jobs);
    const bool has_origin = statistics_.has_origin();
    Line("  submits by hour of the {} clock, percent of the jobs",
         has_origin ? "log's" : "trace's");
    for (std::size_t from = 0; from < statistics_.by_hour().size(); from += kInLine) {
      text_ += "  ";
      for (std::size_t hour = from; hour < from + kInLine; ++hour) {
        fmt::format_to(std::back_inserter(text_), "  {:02} h {:>5.2f}", hour,
                       100 * ShareOf(Count(statistics_.by_hour().at(hour)), jobs));
      }
      text_ += '\n';
    }
    Line("  submits by day{}", has_origin ? "" : ", if time 0 is midnight on a Monday");
    text_ += "  ";
    for (std::size_t day = 0; day < kDays.size(); ++day) {
      fmt::format_to(std::back_inserter(text_), "  {} {:>6.2f}", kDays.at(day),
                     100 * ShareOf(Count(statistics_.by_day().at(day)), jobs));
    }
    text_ += '\n';
  }

  void Groups(std::string_view what, const TraceStatistics::Groups& groups) {
    if (groups.size() == 1 && groups.begin()->first.empty()) {
      return;  // the trace states none
    }
    const std::vector<NamedGroup> ranked = Ranked(groups);
    Line("");
    Heading(
        fmt::format("{} ({} of {})", what, std::min(kMostListed, ranked.size()), ranked.size()));
    for (std::size_t i = 0; i < std::min(kMostListed, ranked.size()); ++i) {
      Line("  {:<24}{}", NameOrNone(ranked[i].first), Columns(ranked[i].second));
    }
  }

  void LeftOut() {
    if (statistics_.left_out() == 0) {
      return;
    }
    Line("\n  rows left out");
    const auto ranked = Ranked(statistics_.reasons());
    for (std::size_t i = 0; i < std::min(kMostListed, ranked.size()); ++i) {
      Line("  {:>9}  {}", ranked[i].second, ranked[i].first);
    }
  }

  const TraceStatistics& statistics_;
  const TraceSource& source_;
  std::string text_;
};

// A group with what it is of before and what is known besides behind.
Json GroupJson(Json json, const JobTotal& group, const Json& more = Json::object()) {
  json["jobs"] = group.jobs;
  json["gpu_hours"] = group.gpu_seconds / kSecondsOfHour;
  json.update(more);
  return json;
}

Json GroupsJson(const TraceStatistics::Groups& groups) {
  return ArrayOf(Ranked(groups), [](const NamedGroup& group) {
    return GroupJson({{"name", group.first}}, group.second);
  });
}

Json GpusJson(const TraceStatistics& statistics) {
  return ArrayOf(statistics.by_gpus(), [&statistics](const auto& group) {
    const std::vector<double> durations = statistics.Durations(group.first);
    return GroupJson(
        {{"gpus", group.first}}, group.second,
        {{"duration_p50", QuantileOf(durations, 0.5)}, {"duration_mean", MeanOf(durations)}});
  });
}

Json DurationsJson(const TraceStatistics& statistics) {
  return ArrayOf(statistics.DurationBins(), [](const TraceStatistics::DurationBin& bin) {
    return GroupJson({{"from", bin.from}, {"to", bin.to}}, bin.jobs);
  });
}

constexpr std::string_view kGroupColumns = "jobs,job_share,gpu_hours,gpu_hour_share";
std::string GroupCells(const JobTotal& group, const JobTotal& all) {
  return fmt::format("{},{},{},{}", group.jobs, ShareOf(Count(group.jobs), Count(all.jobs)),
                     group.gpu_seconds / kSecondsOfHour,
                     ShareOf(group.gpu_seconds, all.gpu_seconds));
}

std::string GroupsCsv(std::string_view name, const TraceStatistics::Groups& groups,
                      const JobTotal& all) {
  std::string text = fmt::format("{},{}\n", name, kGroupColumns);
  for (const auto& [one, group] : Ranked(groups)) {
    io::AppendCsvField(one, text);
    text += ',' + GroupCells(group, all) + '\n';
  }
  return text;
}

std::string OverTimeCsv(const TraceStatistics& statistics, int gpus) {
  std::string text = "time,jobs,gpu_hours,load,demand_gpus,demand\n";
  const double width = statistics.bin_seconds();
  const auto of_cluster = [&](double gpu_seconds) {
    return gpus > 0 ? fmt::format("{}", gpu_seconds / width / gpus) : std::string();
  };
  for (const TraceStatistics::TimeBin& bin : statistics.OverTime()) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n", bin.start, bin.jobs,
                   bin.offered / kSecondsOfHour, of_cluster(bin.offered), bin.demand / width,
                   of_cluster(bin.demand));
  }
  return text;
}

std::string GpusCsv(const TraceStatistics& statistics) {
  std::string text = fmt::format("gpus,{},duration_p50,duration_mean\n", kGroupColumns);
  for (const auto& [gpus, group] : statistics.by_gpus()) {
    const std::vector<double> durations = statistics.Durations(gpus);
    text += fmt::format("{},{}", gpus, GroupCells(group, statistics.all()));
    text += durations.empty()
                ? ",,\n"
                : fmt::format(",{},{}\n", Percentile(durations, 0.5), *MeanOf(durations));
  }
  return text;
}

std::string DurationsCsv(const TraceStatistics& statistics) {
  std::string text = fmt::format("from,to,{}\n", kGroupColumns);
  for (const TraceStatistics::DurationBin& bin : statistics.DurationBins()) {
    text += fmt::format("{},{},{}\n", bin.from, bin.to, GroupCells(bin.jobs, statistics.all()));
  }
  return text;
}

std::string HoursCsv(const TraceStatistics& statistics) {
  std::string text = "hour,jobs,job_share\n";
  for (std::size_t hour = 0; hour < statistics.by_hour().size(); ++hour) {
    const std::size_t count = statistics.by_hour().at(hour);
    text +=
        fmt::format("{},{},{}\n", hour, count, ShareOf(Count(count), Count(statistics.all().jobs)));
  }
  return text;
}

std::string LeftOutCsv(const TraceStatistics& statistics) {
  std::string text = "reason,rows\n";
  for (const auto& [reason, rows] : Ranked(statistics.reasons())) {
    io::AppendCsvField(reason, text);
    text += fmt::format(",{}\n", rows);
  }
  return text;
}

// NAME.csv
struct CsvFile {
  const char* name;
  std::string (*text)(const TraceStatistics& statistics, const TraceSource& source);
};
constexpr std::array kCsvFiles{
    CsvFile{"over_time", [](const auto& of,
                            const auto& source) { return OverTimeCsv(of, source.cluster_gpus); }},
    CsvFile{"hours", [](const auto& of, const auto&) { return HoursCsv(of); }},
    CsvFile{"gpus", [](const auto& of, const auto&) { return GpusCsv(of); }},
    CsvFile{"durations", [](const auto& of, const auto&) { return DurationsCsv(of); }},
    CsvFile{"users",
            [](const auto& of, const auto&) { return GroupsCsv("user", of.by_user(), of.all()); }},
    CsvFile{"queues", [](const auto& of,
                         const auto&) { return GroupsCsv("queue", of.by_queue(), of.all()); }},
    CsvFile{"models", [](const auto& of,
                         const auto&) { return GroupsCsv("model", of.by_model(), of.all()); }},
    CsvFile{"left_out", [](const auto& of, const auto&) { return LeftOutCsv(of); }}};

std::string PathOf(const std::string& folder, const CsvFile& file) {
  return (std::filesystem::path(folder) / file.name).string() + ".csv";
}

}  // namespace

std::string StatisticsText(const TraceStatistics& statistics, const TraceSource& source) {
  return TextPage(statistics, source).Write();
}

std::string StatisticsJson(const TraceStatistics& statistics, const TraceSource& source) {
  Json json{{"path", source.facts.path},
            {"format", source.facts.format},
            {"sha256", source.facts.sha256},
            {"jobs", statistics.all().jobs},
            {"skipped_rows", statistics.left_out()},
            {"deadline_jobs", statistics.with_deadline()},
            {"best_effort_jobs", statistics.best_effort()},
            {"first_submit", statistics.first_submit()},
            {"last_submit", statistics.last_submit()},
            {"gpu_hours", statistics.all().gpu_seconds / kSecondsOfHour}};
  const std::vector<double> durations = statistics.Durations();
  for (const double fraction : kQuantiles) {
    json[fmt::format("duration_p{:02.0f}", 100 * fraction)] = QuantileOf(durations, fraction);
  }
  json["duration_mean"] = MeanOf(durations);
  json["deadline_factor_p50"] = QuantileOf(statistics.DeadlineFactors(), 0.5);
  json["origin"] = source.facts.origin.empty() ? Json() : Json(source.facts.origin);
  const std::vector<double> waits = RecordedWaits(source.facts);
  json["recorded_wait_p50"] = QuantileOf(waits, 0.5);
  json["recorded_wait_p90"] = QuantileOf(waits, 0.9);
  for (const auto& [state, jobs] : source.facts.states) {
    json["jobs_by_recorded_state"][state] = jobs;
  }
  const bool has_load =
      source.cluster_gpus > 0 && statistics.last_submit() > statistics.first_submit();
  json["load"] = has_load ? Json(statistics.Load(source.cluster_gpus)) : Json();
  json["peak_demand"] =
      source.cluster_gpus > 0 ? Json(PeakDemand(statistics) / source.cluster_gpus) : Json();
  for (const auto& [gpus, group] : statistics.by_gpus()) {
    json["jobs_by_gpus"][std::to_string(gpus)] = group.jobs;
  }
  for (const auto& [model, group] : statistics.by_model()) {
    json["jobs_by_model"][NameOrNone(model)] = group.jobs;
  }
  json["gpus"] = GpusJson(statistics);
  json["durations"] = DurationsJson(statistics);
  json["jobs_by_hour_of_day"] = statistics.by_hour();
  json["jobs_by_day_of_week"] = statistics.by_day();
  json["users"] = GroupsJson(statistics.by_user());
  json["queues"] = GroupsJson(statistics.by_queue());
  json["models"] = GroupsJson(statistics.by_model());
  json["left_out"] = Json::object();
  for (const auto& [reason, rows] : Ranked(statistics.reasons())) {
    json["left_out"][reason] = rows;
  }
  return JsonText(json, 2);
}

Status WriteStatisticsCsv(const TraceStatistics& statistics, const TraceSource& source,
                          const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);  // else the first file says what is wrong
  for (const CsvFile& file : kCsvFiles) {
    RETURN_IF_ERROR(WriteTextFile(PathOf(folder, file), file.text(statistics, source)));
  }
  return {};
}

std::vector<std::string> FilesOfStatistics(const std::string& folder) {
  std::vector<std::string> files;
  files.reserve(kCsvFiles.size());
  for (const CsvFile& file : kCsvFiles) {
    files.push_back(PathOf(folder, file));
  }
  return files;
}

}  // namespace trainyard::results
