// SPDX-License-Identifier: Apache-2.0
#include "report/fidelity.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "io/csv_reader.h"

namespace trainyard {
namespace {

struct Row {
  std::string job;
  std::string outcome;
  std::optional<double> jct;
  std::optional<double> queueing_delay;
};

struct Columns {
  int job = -1;
  int outcome = -1;
  int jct = -1;
  int delay = -1;
};

Result<Columns> ColumnsOf(const CsvTable& table) {
  Columns columns;
  for (const auto& [name, place] : {std::pair{"job_id", &columns.job},
                                    {"outcome", &columns.outcome},
                                    {"jct", &columns.jct},
                                    {"queueing_delay", &columns.delay}}) {
    const Result<int> column = table.Require({name});
    if (!column.ok()) {
      return column.error();
    }
    *place = column.value();
  }
  return columns;
}

Result<std::optional<double>> Seconds(const CsvRow& row, int column) {
  if (row.Text(column).empty()) {
    return std::optional<double>();
  }
  const Result<double> number = row.Number(column, -1e18);
  if (!number.ok()) {
    return number.error();
  }
  return std::optional(number.value());
}

Result<std::vector<Row>> ReadJobs(const std::string& folder) {
  const Result<CsvTable> table = CsvTable::Open(folder + "/jobs.csv");
  if (!table.ok()) {
    return table.error();
  }
  const Result<Columns> columns = ColumnsOf(table.value());
  if (!columns.ok()) {
    return columns.error();
  }
  const Columns& at = columns.value();
  std::vector<Row> rows;
  const Status status = table.value().ForEach([&](const CsvRow& row) -> Status {
    const Result<std::optional<double>> jct = Seconds(row, at.jct);
    const Result<std::optional<double>> delay = Seconds(row, at.delay);
    if (!jct.ok() || !delay.ok()) {
      return jct.ok() ? delay.error() : jct.error();
    }
    rows.push_back({.job = std::string(row.Text(at.job)),
                    .outcome = std::string(row.Text(at.outcome)),
                    .jct = jct.value(),
                    .queueing_delay = delay.value()});
    return {};
  });
  if (!status.ok()) {
    return status.error();
  }
  return rows;
}

std::optional<double> Mean(const std::vector<FidelityRow>& rows,
                           std::optional<double> FidelityRow::*value) {
  double sum = 0;
  std::int64_t count = 0;
  for (const FidelityRow& row : rows) {
    sum += (row.*value).value_or(0);
    count += (row.*value) ? 1 : 0;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

}  // namespace

Result<Fidelity> CompareRuns(const std::string& folder_a, const std::string& folder_b) {
  const Result<std::vector<Row>> a = ReadJobs(folder_a);
  const Result<std::vector<Row>> b = ReadJobs(folder_b);
  if (!a.ok() || !b.ok()) {
    return a.ok() ? b.error() : a.error();
  }
  std::map<std::string, const Row*> of_b;
  for (const Row& row : b.value()) {
    of_b[row.job] = &row;
  }
  Fidelity fidelity;
  for (const Row& row : a.value()) {
    const auto other = of_b.find(row.job);
    if (other == of_b.end()) {
      return BadInput(fmt::format("{}/jobs.csv: has no job '{}'; expected the jobs of {}", folder_b,
                                  row.job, folder_a));
    }
    const Row& same = *other->second;
    fidelity.rows.push_back({.job = row.job,
                             .outcome_a = row.outcome,
                             .outcome_b = same.outcome,
                             .jct_a = row.jct,
                             .jct_b = same.jct,
                             .queueing_delay_a = row.queueing_delay,
                             .queueing_delay_b = same.queueing_delay});
    fidelity.same_outcome += row.outcome == same.outcome ? 1 : 0;
    constexpr double kMillisecond = 1e-3;
    fidelity.same_jct += row.jct && same.jct && std::abs(*row.jct - *same.jct) < kMillisecond;
  }
  if (of_b.size() != fidelity.rows.size()) {
    return BadInput(folder_b + "/jobs.csv: has " + std::to_string(of_b.size()) +
                    " jobs; expected the " + std::to_string(fidelity.rows.size()) + " of " +
                    folder_a);
  }
  fidelity.jct_mean_a = Mean(fidelity.rows, &FidelityRow::jct_a);
  fidelity.jct_mean_b = Mean(fidelity.rows, &FidelityRow::jct_b);
  if (fidelity.jct_mean_a && fidelity.jct_mean_b && *fidelity.jct_mean_a > 0) {
    fidelity.jct_difference =
        std::abs(*fidelity.jct_mean_b - *fidelity.jct_mean_a) / *fidelity.jct_mean_a;
  }
  return fidelity;
}

}  // namespace trainyard
