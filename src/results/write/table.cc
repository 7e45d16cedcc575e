// SPDX-License-Identifier: Apache-2.0
#include "results/write/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "results/metrics/metrics.h"
#include "results/metrics/settings.h"

namespace trainyard::results {
namespace {

constexpr std::size_t kTerminalWidth = 120;
constexpr const char* kNone = "-";

std::string DurationOrNone(std::optional<double> seconds) {
  return seconds ? base::ShortDuration(*seconds) : kNone;
}

std::string PercentOrNone(std::optional<double> share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : kNone;
}

std::string SlowdownText(const Metrics& metrics) {
  return metrics.bounded_slowdown_mean
             ? fmt::format("mean {:.2f} (bounded)", *metrics.bounded_slowdown_mean)
             : kNone;
}

std::string CountOrNone(std::optional<std::int64_t> count) {
  return count ? std::to_string(*count) : kNone;
}

// Neighbours with the same `top` are a group and share that heading.
struct Column {
  std::string top;
  std::vector<std::string> cells;  // the lower heading, then one cell for each run
  std::size_t width = 0;
};

struct Gaps {
  std::size_t groups = 2;
  std::size_t inside = 2;  // of a group
};

class TextTable {
 public:
  // `cell_of(run)` gives the text of one cell.
  template <typename CellOf>
  void Add(std::string top, std::string bottom, const std::vector<Metrics>& runs, CellOf cell_of) {
    Column column{.top = std::move(top), .cells = {std::move(bottom)}};
    for (const Metrics& run : runs) {
      column.cells.push_back(cell_of(run));
    }
    AddColumn(std::move(column));
  }

  void AddColumn(Column column) {
    for (const std::string& cell : column.cells) {
      column.width = std::max(column.width, cell.size());
    }
    columns_.push_back(std::move(column));
  }

  // The first column is flush left, the others right, headings of groups in their middle. The
  // widest gaps that fit the terminal.
  [[nodiscard]] std::string Text() {
    WidenToHeadings();
    Gaps gaps;
    for (const Gaps narrower : {Gaps{2, 1}, Gaps{1, 1}}) {
      gaps = Width(gaps) > kTerminalWidth ? narrower : gaps;
    }
    std::string text = TopLine(gaps);
    for (std::size_t row = 0; row < columns_.front().cells.size(); ++row) {
      text += fmt::format("\n{:<{}}", columns_[0].cells[row], columns_[0].width);
      for (std::size_t i = 1; i < columns_.size(); ++i) {
        text += std::string(Gap(i, gaps), ' ');
        text += fmt::format("{:>{}}", columns_[i].cells[row], columns_[i].width);
      }
    }
    return text;
  }

 private:
  [[nodiscard]] bool Continues(std::size_t i) const {
    return !columns_[i].top.empty() && columns_[i].top == columns_[i - 1].top;
  }

  // Left of column i.
  [[nodiscard]] std::size_t Gap(std::size_t i, Gaps gaps) const {
    return Continues(i) ? gaps.inside : gaps.groups;
  }

  // The first column that is not of the group which column i begins.
  [[nodiscard]] std::size_t EndOfGroup(std::size_t i) const {
    do {
      ++i;
    } while (i < columns_.size() && Continues(i));
    return i;
  }

  [[nodiscard]] std::size_t WidthOfGroup(std::size_t i, std::size_t inside) const {
    const std::size_t end = EndOfGroup(i);
    std::size_t width = inside * (end - i - 1);
    for (; i < end; ++i) {
      width += columns_[i].width;
    }
    return width;
  }

  void WidenToHeadings() {
    for (std::size_t i = 0; i < columns_.size(); i = EndOfGroup(i)) {
      const std::size_t width = WidthOfGroup(i, 1);
      columns_[i].width += std::max(width, columns_[i].top.size()) - width;
    }
  }

  [[nodiscard]] std::size_t Width(Gaps gaps) const {
    std::size_t width = columns_[0].width;
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      width += Gap(i, gaps) + columns_[i].width;
    }
    return width;
  }

  [[nodiscard]] std::string TopLine(Gaps gaps) const {
    std::string line(columns_[0].width, ' ');
    for (std::size_t i = 1; i < columns_.size(); i = EndOfGroup(i)) {
      const bool group = EndOfGroup(i) > i + 1;
      line += std::string(gaps.groups, ' ');
      line += group ? fmt::format("{:^{}}", columns_[i].top, WidthOfGroup(i, gaps.inside))
                    : fmt::format("{:>{}}", columns_[i].top, columns_[i].width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

  std::vector<Column> columns_;
};

void AddDurations(const std::vector<Metrics>& runs, TextTable& table) {
  using Value = std::optional<double> Metrics::*;
  const auto add = [&](const char* top, const char* bottom, Value value) {
    table.Add(top, bottom, runs, [&](const Metrics& run) { return DurationOrNone(run.*value); });
  };
  add("JCT", "mean", &Metrics::jct_mean);
  add("JCT", "p50", &Metrics::jct_p50);
  add("JCT", "p90", &Metrics::jct_p90);
  add("JCT", "p99", &Metrics::jct_p99);
  add("queue", "delay", &Metrics::queueing_delay_mean);
  add("make-", "span", &Metrics::makespan);
}

template <typename Value>
void AddCount(const char* top, const char* bottom, Value Metrics::*value,
              const std::vector<Metrics>& runs, TextTable& table) {
  table.Add(top, bottom, runs, [&](const Metrics& run) { return CountOrNone(run.*value); });
}

// Accepted and declined as ElasticFlow counts them; what was declined is split.
void AddDeadlines(const std::vector<Metrics>& runs, TextTable& table) {
  table.Add("deadlines met", "accepted", runs, [](const Metrics& run) {
    return fmt::format("{}/{}", run.accepted, run.deadline_jobs);
  });
  table.Add("deadlines met", "ratio", runs,
            [](const Metrics& run) { return PercentOrNone(run.deadline_ratio); });
  AddCount("declined", "rejected", &Metrics::rejected, runs, table);
  AddCount("declined", "late", &Metrics::deadlines_late, runs, table);
}

std::string TraceText(const RunResult& run) {
  std::string text = fmt::format("{} ({} jobs", run.trace_path, run.jobs.size());
  if (!run.trace_sha256.empty()) {
    text += ", sha256 " + run.trace_sha256.substr(0, 12);
  }
  return text + ")";
}

std::string JobsText(const Metrics& metrics) {
  std::string text =
      fmt::format("{} of {} completed, {} rejected, {} unfinished", metrics.completed, metrics.jobs,
                  metrics.rejected, metrics.unfinished);
  const std::int64_t others =
      metrics.jobs - metrics.completed - metrics.rejected - metrics.unfinished;
  return others == 0 ? text : text + fmt::format(", {} cancelled or failed", others);
}

std::string CostText(const RunResult& run) {
  const std::optional<double> rate = JobsPerSecond(run);
  return fmt::format("{} wall, {} CPU, {:.0f} MB, {} jobs/s", base::ShortDuration(run.wall_seconds),
                     base::ShortDuration(run.cpu_seconds), run.peak_rss_mb,
                     rate ? fmt::format("{:.0f}", *rate) : kNone);
}

using Line = std::pair<const char*, std::string>;

std::vector<Line> SettingLines(const RunResult& run) {
  std::vector<Line> lines{
      {"run", run.label},
      {"trace", TraceText(run)},
      {"cluster", fmt::format("{} ({} nodes, {} GPUs)", run.cluster_name, run.nodes, run.gpus)},
      {"policy", run.policy}};
  if (!run.changes_path.empty()) {
    lines.emplace_back("changes by", ChangesText(run));
  }
  if (!run.candidates.empty()) {
    lines.emplace_back("choosing among", fmt::format("{}", fmt::join(run.candidates, " | ")));
  }
  lines.emplace_back("placement", run.placement);
  lines.emplace_back("admission", run.admission);
  if (!run.grouping.empty()) {
    lines.emplace_back("grouping", run.grouping);
  }
  if (!run.tuning.empty()) {
    lines.emplace_back("tuning", run.tuning);
  }
  lines.emplace_back("preset", run.preset.empty() ? "none" : PresetText(run));
  lines.emplace_back("seed", std::to_string(run.seed));
  return lines;
}

std::vector<Line> MetricLines(const Metrics& metrics) {
  std::vector<Line> lines{
      {"jobs", JobsText(metrics)},
      {"JCT", fmt::format("mean {}, p50 {}, p90 {}, p99 {}", DurationOrNone(metrics.jct_mean),
                          DurationOrNone(metrics.jct_p50), DurationOrNone(metrics.jct_p90),
                          DurationOrNone(metrics.jct_p99))},
      {"queueing delay", "mean " + DurationOrNone(metrics.queueing_delay_mean)},
      {"waiting time", "mean " + DurationOrNone(metrics.waiting_time_mean)},
      {"slowdown", SlowdownText(metrics)},
      {"makespan", DurationOrNone(metrics.makespan)},
      {"GPU use", fmt::format("{} held, {} useful", PercentOrNone(metrics.gpu_utilization),
                              PercentOrNone(metrics.gpu_utilization_useful))},
      {"changes",
       fmt::format("{} preemptions, {} migrations, {} resizes", CountOrNone(metrics.preemptions),
                   CountOrNone(metrics.migrations), CountOrNone(metrics.resizes))}};
  if (metrics.deadline_jobs > 0) {
    lines.emplace_back("deadlines",
                       fmt::format("{} of {} met ({}), {} late, {} rejected", metrics.deadlines_met,
                                   metrics.deadline_jobs, PercentOrNone(metrics.deadline_ratio),
                                   metrics.deadlines_late, metrics.deadlines_rejected));
  }
  return lines;
}

std::vector<Line> EngineLines(const RunResult& run) {
  std::string engine = fmt::format("{} decisions, {} events", run.decisions, run.events);
  if (run.bounded_decisions > 0) {
    engine += fmt::format("; {} by a search that ended at its bound", run.bounded_decisions);
  }
  return {{"engine", std::move(engine)}, {"cost", CostText(run)}, {"digest", run.journal_digest}};
}

}  // namespace

std::vector<std::string> AlignedLines(const std::vector<std::vector<std::string>>& rows,
                                      std::size_t to_the_left) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? "" : "  ";
      line += i < to_the_left ? fmt::format("{:<{}}", row[i], widths[i])
                              : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

std::string ComparisonTable(std::span<const RunResult> runs) {
  std::vector<Metrics> metrics;
  Column labels{.top = "", .cells = {"run"}};
  for (const RunResult& run : runs) {
    metrics.push_back(Measure(run));
    labels.cells.push_back(run.label);
  }
  const bool deadlines = std::any_of(metrics.begin(), metrics.end(),
                                     [](const Metrics& run) { return run.deadline_jobs > 0; });
  TextTable table;
  table.AddColumn(std::move(labels));
  table.Add("jobs", "completed", metrics,
            [](const Metrics& run) { return fmt::format("{}/{}", run.completed, run.jobs); });
  if (!deadlines) {
    AddCount("re-", "jected", &Metrics::rejected, metrics, table);
  }
  AddDurations(metrics, table);
  table.Add("GPU", "use", metrics,
            [](const Metrics& run) { return PercentOrNone(run.gpu_utilization); });
  AddCount("pre-", "empted", &Metrics::preemptions, metrics, table);
  AddCount("migra-", "tions", &Metrics::migrations, metrics, table);
  if (deadlines) {
    AddDeadlines(metrics, table);
  }
  const std::string settings = SettingsText(runs);
  return table.Text() + (settings.empty() ? "" : "\n\n" + settings);
}

std::string RunSummaryText(const RunResult& run) {
  std::string text;
  for (const std::vector<Line>& lines :
       {SettingLines(run), MetricLines(Measure(run)), EngineLines(run)}) {
    for (const auto& [key, value] : lines) {
      text += text.empty() ? "" : "\n";
      text += fmt::format("{:<16}{}", std::string(key) + ':', value);
    }
  }
  return text;
}

}  // namespace trainyard::results
