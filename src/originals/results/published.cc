// SPDX-License-Identifier: Apache-2.0
#include "originals/results/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainyard::originals {
namespace {

constexpr double kBloxRound = 300;  // seconds between a job's start and its first metric

enum class Rank : unsigned char { kInterpolated, kCeil, kTruncated };

Rank RankOf(Original program) {
  switch (program) {
    case Original::kTiresias:
    case Original::kChronus:
      return Rank::kCeil;
    case Original::kMuri:
    case Original::kBlox:
      return Rank::kTruncated;
    case Original::kElasticflow:
    case Original::kSynergy:
      return Rank::kInterpolated;
  }
  return Rank::kInterpolated;
}

// Muri, Blox and Synergy count the makespan from 0.
bool CountsFromFirstSubmit(Original program) {
  return program == Original::kElasticflow || program == Original::kTiresias ||
         program == Original::kChronus;
}

bool HasDeadline(const ResultRow& row) { return row.deadline && !row.best_effort; }

// As ElasticFlow counts: rejected jobs without a deadline are declined too.
void CountDeadlines(const OriginalResult& result, PublishedMetrics& metrics) {
  metrics.accepted = metrics.declined = 0;
  for (const ResultRow& row : result.rows) {
    const bool met = row.completed && HasDeadline(row) && row.end && *row.end <= *row.deadline;
    *metrics.accepted += met ? 1 : 0;
    *metrics.declined += !met && (HasDeadline(row) || !row.completed) ? 1 : 0;
  }
}

void MeasureTimes(const OriginalResult& result, PublishedMetrics& metrics) {
  std::vector<double> jcts;
  double sum = 0;
  std::optional<double> first;
  std::optional<double> last;
  for (const ResultRow& row : result.rows) {
    if (row.submit) {
      first = std::min(first.value_or(*row.submit), *row.submit);
    }
    if (!row.completed || !row.end || !row.submit) {
      continue;
    }
    last = std::max(last.value_or(*row.end), *row.end);
    if (row.counted) {
      jcts.push_back(*row.end - *row.submit);
      sum += jcts.back();
    }
  }
  metrics.jobs = static_cast<std::int64_t>(jcts.size());
  if (!jcts.empty()) {
    metrics.jct_mean = sum / static_cast<double>(jcts.size());
    std::sort(jcts.begin(), jcts.end());
    metrics.jct_p99 = PublishedP99(result.program, jcts);
  }
  if (last) {
    metrics.makespan = *last - (CountsFromFirstSubmit(result.program) ? *first : 0);
  }
}

std::optional<double> Responsiveness(const OriginalResult& result) {
  double sum = 0;
  for (const ResultRow& row : result.rows) {
    if (!row.start || !row.submit) {
      return std::nullopt;
    }
    sum += *row.start + kBloxRound - *row.submit;
  }
  return result.rows.empty() ? std::nullopt
                             : std::optional(sum / static_cast<double>(result.rows.size()));
}

std::string ShownValue(std::optional<double> value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

std::string ShownValue(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : "-";
}

constexpr std::string_view kRatioHere = "end <= deadline; rejected jobs are declined";

}  // namespace

double PublishedP99(Original program, std::span<const double> sorted) {
  constexpr double kFraction = 0.99;
  const double place = kFraction * static_cast<double>(sorted.size());
  switch (RankOf(program)) {
    case Rank::kCeil:
      return sorted[static_cast<std::size_t>(std::ceil(place)) - 1];
    case Rank::kTruncated:
      return sorted[static_cast<std::size_t>(place)];
    case Rank::kInterpolated:
      return results::Percentile(sorted, kFraction);
  }
  return results::Percentile(sorted, kFraction);
}

PublishedMetrics MeasureAsPublished(const OriginalResult& result) {
  PublishedMetrics metrics;
  MeasureTimes(result, metrics);
  if (result.program == Original::kElasticflow) {
    CountDeadlines(result, metrics);
  }
  if (result.program == Original::kBlox) {
    metrics.responsiveness_mean = Responsiveness(result);
  }
  metrics.preemptions = result.preemptions;
  return metrics;
}

PublishedDefinitions DefinitionsOf(Original program) {
  PublishedDefinitions definitions{.jct = "end - submit, completed jobs"};
  switch (RankOf(program)) {
    case Rank::kCeil:
      definitions.p99 = "value at rank ceil(0.99 n)";
      break;
    case Rank::kTruncated:
      definitions.p99 = "value at place int(0.99 n), counted from 0";
      break;
    case Rank::kInterpolated:
      definitions.p99 = "linear interpolation";
      break;
  }
  definitions.makespan =
      CountsFromFirstSubmit(program) ? "last end - first submit" : "last end, counted from 0";
  if (program == Original::kElasticflow) {
    definitions.jct = "registered end (ef: whole slots, overhead included) - submit";
    definitions.deadlines = "by the end in the file; ef-accessctrl itself judges by a finer one";
  }
  if (program == Original::kSynergy) {
    definitions.jct = "end of round - arrival, tracked jobs";
  }
  if (program == Original::kBlox) {
    definitions.jct = "end of round - submit, tracked jobs";
  }
  return definitions;
}

std::string PublishedTable(const std::string& label, const OriginalResult& result,
                           const results::Metrics& ours) {
  const PublishedMetrics theirs = MeasureAsPublished(result);
  const PublishedDefinitions definitions = DefinitionsOf(result.program);
  std::string text = fmt::format("{}: {}\n{:<22} {:>16} {:>16}  {}\n", label, result.path,
                                 "seconds", Name(result.program), "trainyard", "definitions");
  const auto line = [&](std::string_view what, const std::string& first, const std::string& second,
                        std::string_view how, std::string_view our_way) {
    text += fmt::format("{:<22} {:>16} {:>16}", what, first, second);
    if (!how.empty() || !our_way.empty()) {
      text += fmt::format("  {}", how);
      text += how.empty() || our_way.empty() || how == our_way ? "" : " / ";
      text += how == our_way ? "" : our_way;
    }
    text += '\n';
  };
  line("jobs completed", std::to_string(theirs.jobs), std::to_string(ours.completed), "", "");
  line("JCT mean", ShownValue(theirs.jct_mean), ShownValue(ours.jct_mean), definitions.jct,
       "end - submit, completed jobs");
  line("JCT p99", ShownValue(theirs.jct_p99), ShownValue(ours.jct_p99), definitions.p99,
       "linear interpolation");
  line("makespan", ShownValue(theirs.makespan), ShownValue(ours.makespan), definitions.makespan,
       "last end - first submit");
  line("queueing delay mean", "-", ShownValue(ours.queueing_delay_mean), "",
       "first start - submit");
  if (theirs.responsiveness_mean) {
    line("responsiveness mean", ShownValue(theirs.responsiveness_mean), "-",
         "first metric - submit", "");
  }
  if (theirs.accepted) {
    line("deadlines accepted", ShownValue(theirs.accepted), std::to_string(ours.accepted),
         definitions.deadlines, kRatioHere);
    line("deadlines declined", ShownValue(theirs.declined), std::to_string(ours.declined), "", "");
  }
  if (theirs.preemptions) {
    line("preemptions", ShownValue(theirs.preemptions), "-", "as the program counts them", "");
  }
  text.pop_back();
  return text;
}

}  // namespace trainyard::originals
