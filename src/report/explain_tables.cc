// SPDX-License-Identifier: Apache-2.0
#include "report/explain.h"
#include "report/metrics.h"

namespace trainyard {
namespace {

using TableCell = ReportTable::Cell;
constexpr auto kSeconds = ReportTable::Unit::kSeconds;

TableCell CellOf(std::optional<Duration> time) {
  return time ? TableCell(Seconds(*time)) : TableCell();
}

ReportTable JobsTable(const std::string& title, const std::vector<ExplainedJob>& jobs,
                      const Explanation& explanation) {
  ReportTable table{.title = title,
                    .caption = "JCT under " + explanation.run->label + " less that under " +
                               explanation.other->label +
                               ", for jobs that completed in both; the parts sum to it.",
                    .columns = {{"job"},
                                {"JCT", kSeconds},
                                {"other JCT", kSeconds},
                                {"difference", kSeconds},
                                {"first wait", kSeconds},
                                {"later waits", kSeconds},
                                {"running", kSeconds},
                                {"restarts", kSeconds},
                                {"registered", kSeconds},
                                {"why"}}};
  for (const ExplainedJob& job : jobs) {
    const JctParts& parts = job.parts;
    table.rows.push_back({job.job->spec->name, CellOf(Jct(*job.job, *explanation.run)),
                          CellOf(Jct(*job.other, *explanation.other)), CellOf(parts.sum()),
                          CellOf(parts.queued), CellOf(parts.suspended), CellOf(parts.productive),
                          CellOf(parts.overhead), CellOf(parts.registered),
                          SentenceOf(job, explanation)});
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

}  // namespace trainyard
