// SPDX-License-Identifier: Apache-2.0
// Explanations as tables of the page, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "results/explain/explain.h"
#include "results/metrics/metrics.h"
#include "results/write/json_value.h"
#include "results/write/table.h"

namespace trainyard::results {
namespace {

using TableCell = ReportTable::Cell;
constexpr auto kSeconds = ReportTable::Unit::kSeconds;

TableCell CellOf(std::optional<Duration> time) {
  return time ? TableCell(Seconds(*time)) : TableCell();
}

ReportTable JobsTable(const std::string& title, const std::vector<ExplainedJob>& jobs,
                      const Explanation& explanation) {
  ReportTable table{
      .title = title,
      .caption = "JCT under " + explanation.run->label + " less that under " +
                 explanation.other->label +
                 ", for jobs that completed in both; the parts sum to it.",
      .columns = {{"job"}, {"JCT", kSeconds}, {"other JCT", kSeconds}, {"difference", kSeconds}}};
  for (const JctPartName& name : kJctParts) {
    table.columns.push_back({name.heading, kSeconds});
  }
  table.columns.push_back({"why"});
  for (const ExplainedJob& job : jobs) {
    std::vector<TableCell>& row = table.rows.emplace_back();
    row = {job.job->spec->name, CellOf(Jct(*job.job, *explanation.run)),
           CellOf(Jct(*job.other, *explanation.other)), CellOf(job.parts.sum())};
    for (const JctPartName& name : kJctParts) {
      row.push_back(CellOf(job.parts.*name.part));
    }
    row.emplace_back(SentenceOf(job, explanation));
  }
  return table;
}

ReportTable ChangesTable(const Explanation& explanation) {
  ReportTable table{.title = "Completed in one run only",
                    .caption = "Such jobs have no difference of JCTs.",
                    .columns = {{"job"},
                                {explanation.run->label},
                                {explanation.other->label},
                                {"JCT", kSeconds},
                                {"other JCT", kSeconds}}};
  for (const OutcomeChange& change : explanation.changes) {
    table.rows.push_back({change.job->spec->name, std::string(Name(change.job->outcome)),
                          std::string(Name(change.other->outcome)),
                          CellOf(Jct(*change.job, *explanation.run)),
                          CellOf(Jct(*change.other, *explanation.other))});
  }
  return table;
}

std::string Signed(double seconds) {
  return (seconds > 0 ? "+" : "") + base::ShortDuration(seconds);
}

// The table as aligned lines, below them its last column, the sentences.
std::string TableOfJobs(const std::vector<ExplainedJob>& jobs, const Explanation& explanation) {
  constexpr std::size_t kFirstDifference = 3;  // of the columns
  const ReportTable table = JobsTable("", jobs, explanation);
  std::vector<std::vector<std::string>> lines(1);
  std::string sentences;
  for (const ReportTable::Column& column : table.columns) {
    lines[0].push_back(column.name);
  }
  lines[0].pop_back();
  for (const std::vector<TableCell>& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(std::get<std::string>(row.front()));
    for (std::size_t i = 1; i + 1 < row.size(); ++i) {
      const double seconds = std::get<double>(row[i]);
      line.push_back(i < kFirstDifference ? base::ShortDuration(seconds) : Signed(seconds));
    }
    sentences += "  - " + std::get<std::string>(row.back()) + "\n";
  }
  std::string text;
  for (const std::string& line : AlignedLines(lines, 1)) {
    text += "  " + line + "\n";
  }
  return text + sentences;
}

std::string MeanText(const Explanation& explanation) {
  const RunResult& run = *explanation.run;
  const RunResult& other = *explanation.other;
  const auto mean = [](std::optional<double> seconds) {
    return seconds ? base::ShortDuration(*seconds) : "none";
  };
  std::string text = fmt::format("{} against {}: mean JCT {} against {}\n", run.label, other.label,
                                 mean(explanation.jct_mean), mean(explanation.other_jct_mean));
  if (explanation.completed_in_both > 0) {
    const JctParts& total = explanation.total;
    const auto part = [&](Duration sum) {
      return Signed(Seconds(sum / explanation.completed_in_both));
    };
    text += fmt::format(
        "  {} jobs completed in both, on average {}: first wait {}, later waits {}, running {}, "
        "restarts {}",
        explanation.completed_in_both, part(total.sum()), part(total.queued), part(total.suspended),
        part(total.productive), part(total.overhead));
    text +=
        total.registered.count() == 0 ? "\n" : ", registered ends " + part(total.registered) + "\n";
  }
  if (explanation.deadlines_won + explanation.deadlines_lost > 0) {
    text +=
        fmt::format("  deadlines: {} met only by {}, {} only by {}\n", explanation.deadlines_won,
                    run.label, explanation.deadlines_lost, other.label);
  }
  return text;
}

// Not more of them than of the other jobs.
std::string ChangesText(const Explanation& explanation) {
  const std::vector<OutcomeChange>& changes = explanation.changes;
  if (changes.empty()) {
    return {};
  }
  std::string text = fmt::format("completed in one run only: {} jobs\n", changes.size());
  const std::size_t most =
      std::max<std::size_t>({explanation.gained.size(), explanation.lost.size(), 1});
  for (std::size_t i = 0; i < std::min(most, changes.size()); ++i) {
    text += "  - " + SentenceOf(changes[i], explanation) + "\n";
  }
  return text;
}

std::optional<double> InSeconds(std::optional<Duration> time) {
  return time ? std::optional(Seconds(*time)) : std::nullopt;
}

Json PartsJson(const JctParts& parts) {
  Json json{{"jct", Seconds(parts.sum())}};
  for (const JctPartName& name : kJctParts) {
    json[name.key] = Seconds(parts.*name.part);
  }
  return json;
}

Json SeenJson(const JobResult& job, const RunResult& run) {
  return {{"outcome", Name(job.outcome)},          {"jct", InSeconds(Jct(job, run))},
          {"deadline_met", DeadlineMet(job, run)}, {"preemptions", job.preemptions},
          {"migrations", job.migrations},          {"resizes", job.resizes}};
}

template <typename Job>
Json JobJson(const Job& job, const Explanation& explanation) {
  return {{"job_id", job.job->spec->name},
          {"sentence", SentenceOf(job, explanation)},
          {"run", SeenJson(*job.job, *explanation.run)},
          {"other", SeenJson(*job.other, *explanation.other)}};
}

Json JobsJson(const std::vector<ExplainedJob>& jobs, const Explanation& explanation) {
  return ArrayOf(jobs, [&explanation](const ExplainedJob& job) {
    Json json = JobJson(job, explanation);
    json["difference"] = PartsJson(job.parts);
    return json;
  });
}

}  // namespace

std::vector<ReportTable> TablesOf(const Explanation& explanation) {
  const std::string pair =
      " under " + explanation.run->label + " against " + explanation.other->label;
  std::vector<ReportTable> tables;
  if (!explanation.gained.empty()) {
    tables.push_back(JobsTable("Gained most" + pair, explanation.gained, explanation));
  }
  if (!explanation.lost.empty()) {
    tables.push_back(JobsTable("Lost most" + pair, explanation.lost, explanation));
  }
  if (!explanation.changes.empty()) {
    tables.push_back(ChangesTable(explanation));
  }
  return tables;
}

std::string ExplanationText(const Explanation& explanation) {
  std::string text = MeanText(explanation);
  if (!explanation.gained.empty()) {
    text += "gained most\n" + TableOfJobs(explanation.gained, explanation);
  }
  if (!explanation.lost.empty()) {
    text += "lost most\n" + TableOfJobs(explanation.lost, explanation);
  }
  text += ChangesText(explanation);
  text.pop_back();
  return text;
}

std::string ExplanationJson(const Explanation& explanation, int indent) {
  const Json changes = ArrayOf(explanation.changes, [&](const OutcomeChange& change) {
    return JobJson(change, explanation);
  });
  return JsonText({{"run", explanation.run->label},
                   {"other", explanation.other->label},
                   {"jct_mean", explanation.jct_mean},
                   {"other_jct_mean", explanation.other_jct_mean},
                   {"completed_in_both", explanation.completed_in_both},
                   {"difference_total", PartsJson(explanation.total)},
                   {"deadlines_won", explanation.deadlines_won},
                   {"deadlines_lost", explanation.deadlines_lost},
                   {"gained", JobsJson(explanation.gained, explanation)},
                   {"lost", JobsJson(explanation.lost, explanation)},
                   {"completed_in_one_only", changes}},
                  indent);
}

}  // namespace trainyard::results
