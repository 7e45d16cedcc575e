// SPDX-License-Identifier: Apache-2.0
// What is in a trace: taken in job by job, given out as text, JSON and tables. docs/formats/
// trace-statistics.md says what each number is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/write/figure.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::results {

// Amounts over time in bins of equal width, in bounded memory: when there are too many bins, each
// two become one.
class TimeBins {
 public:
  // `width` in seconds, > 0; `most` bins, even.
  TimeBins(double width, std::size_t most) : width_(width), most_(most) {}

  // At a time >= 0.
  void Add(double at, double amount);
  // So much each second. REQUIRES: from <= to.
  void AddRate(double from, double to, double rate);

  [[nodiscard]] double width() const { return width_; }
  // When the first bin begins.
  [[nodiscard]] double start() const { return static_cast<double>(first_) * width_; }
  [[nodiscard]] std::vector<double> Amounts() const;

 private:
  // Makes room for the bin at a time; gives its position.
  std::size_t Cover(double at);
  void Coarsen();

  double width_;
  std::size_t most_;
  std::int64_t first_ = 0;       // the number of the first bin, from time 0
  std::vector<double> amounts_;  // beside whole bins of rates
  std::vector<double> rates_;    // by which the rate of whole bins changes at their begin
};

// Jobs of one kind.
struct JobTotal {
  std::size_t jobs = 0;
  double gpu_seconds = 0;  // of jobs with a duration
};

class TraceStatistics {
 public:
  using Groups = std::map<std::string, JobTotal, std::less<>>;

  void Add(const JobSpec& job);
  // Rows that are no jobs, and the reason ("file:line: what is wrong").
  void AddLeftOut(std::string_view why, std::size_t rows = 1);

  [[nodiscard]] const JobTotal& all() const { return all_; }
  [[nodiscard]] std::size_t left_out() const { return left_out_; }
  // Rows by reason, without file, line and value; at most kMostReasons, the rest under
  // "other reasons".
  [[nodiscard]] const std::map<std::string, std::size_t, std::less<>>& reasons() const {
    return reasons_;
  }
  [[nodiscard]] std::size_t with_deadline() const { return with_deadline_; }
  [[nodiscard]] std::size_t best_effort() const { return best_effort_; }
  [[nodiscard]] std::size_t without_duration() const { return without_duration_; }
  [[nodiscard]] double first_submit() const { return first_submit_; }  // seconds
  [[nodiscard]] double last_submit() const { return last_submit_; }
  // The offered load between first and last submit; 0 where they are the same.
  [[nodiscard]] double Load(int gpus) const;

  // Ascending seconds; (deadline - submit) / duration.
  [[nodiscard]] std::vector<double> Durations() const;
  [[nodiscard]] std::vector<double> Durations(int gpus) const;
  [[nodiscard]] std::vector<double> DeadlineFactors() const;
  [[nodiscard]] const std::map<int, JobTotal>& by_gpus() const { return by_gpus_; }
  [[nodiscard]] const Groups& by_user() const { return by_user_; }
  [[nodiscard]] const Groups& by_queue() const { return by_queue_; }
  [[nodiscard]] const Groups& by_model() const { return by_model_; }
  // What time 0 is, as in Trace::origin: by it hours and days are counted. Without one time 0 is
  // taken for midnight on a Monday. After the last Add.
  void SetOrigin(std::string_view origin);
  [[nodiscard]] bool has_origin() const { return has_origin_; }
  [[nodiscard]] const std::array<std::size_t, 24>& by_hour() const { return by_hour_; }
  // From Monday.
  [[nodiscard]] const std::array<std::size_t, 7>& by_day() const { return by_day_; }

  // Durations from 1, 2 or 5 * 10^k up to the next.
  struct DurationBin {
    double from = 0;  // seconds
    double to = 0;
    JobTotal jobs;
  };
  [[nodiscard]] std::vector<DurationBin> DurationBins() const;

  // Bins of an hour, or of 2, 4, ... hours in traces of more than seven years.
  struct TimeBin {
    double start = 0;    // seconds
    double jobs = 0;     // submitted
    double offered = 0;  // GPU-seconds of theirs
    double demand = 0;   // GPU-seconds held if every job ran from its submit on
  };
  [[nodiscard]] std::vector<TimeBin> OverTime() const;
  [[nodiscard]] double bin_seconds() const { return demand_.width(); }

 private:
  static constexpr std::size_t kMostBins = 65'536;
  static constexpr double kHour = 3600;

  JobTotal all_;
  std::size_t left_out_ = 0;
  std::map<std::string, std::size_t, std::less<>> reasons_;
  std::size_t with_deadline_ = 0;
  std::size_t best_effort_ = 0;
  std::size_t without_duration_ = 0;
  double first_submit_ = 0;
  double last_submit_ = 0;
  std::map<int, JobTotal> by_gpus_;
  std::map<int, std::vector<double>> durations_;  // by GPUs
  std::vector<double> factors_;
  Groups by_user_;
  Groups by_queue_;
  Groups by_model_;
  void CountHour(Duration since_monday);

  std::vector<TimePoint> moments_;  // of submits, in the order of Add
  bool has_origin_ = false;
  std::array<std::size_t, 24> by_hour_{};
  std::array<std::size_t, 7> by_day_{};
  std::map<int, JobTotal> by_bin_;  // of durations
  TimeBins submits_{kHour, kMostBins};
  TimeBins offered_{kHour, kMostBins};
  TimeBins demand_{kHour, kMostBins};
};

// What is known of a trace beside its jobs.
struct TraceSource {
  trace::TraceFacts facts;
  int cluster_gpus = 0;  // 0: no cluster is given
};

// Lines for a terminal, each with a line end.
[[nodiscard]] std::string StatisticsText(const TraceStatistics& statistics,
                                         const TraceSource& source);
[[nodiscard]] std::string StatisticsJson(const TraceStatistics& statistics,
                                         const TraceSource& source);

// Writes over_time.csv, hours.csv, gpus.csv, durations.csv, users.csv, queues.csv, models.csv and
// left_out.csv. Errors: a file cannot be written.
[[nodiscard]] Status WriteStatisticsCsv(const TraceStatistics& statistics,
                                        const TraceSource& source, const std::string& folder);

// The files that it writes there.
[[nodiscard]] std::vector<std::string> FilesOfStatistics(const std::string& folder);

// Figures and the names of their files, without an ending: submits, hour_of_day, sizes,
// duration_cdf, demand; none is that of a table of WriteStatisticsCsv. Long times are drawn with at
// most 1,000 steps, each the mean of its part.
[[nodiscard]] std::vector<std::pair<std::string, Figure>> StatisticsFigures(
    const TraceStatistics& statistics, const TraceSource& source);

// Draws them into a folder, which is made. Errors: those of DrawFigure; there is no gnuplot.
[[nodiscard]] Status DrawStatistics(const TraceStatistics& statistics, const TraceSource& source,
                                    const std::string& folder);

// The files that it may write there.
[[nodiscard]] std::vector<std::string> FilesOfFigures(const std::string& folder);

}  // namespace trainyard::results
