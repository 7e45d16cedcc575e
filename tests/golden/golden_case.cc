// SPDX-License-Identifier: Apache-2.0
#include "golden/golden_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <unordered_map>

#include "base/text.h"
#include "io/csv_reader.h"
#include "originals/results/original.h"
#include "originals/results/published.h"
#include "results/metrics/curves.h"
#include "results/metrics/metrics.h"
#include "results/write/output.h"

namespace trainyard {
namespace {

// "name:path" below the root of that name, else below "ref"; an empty path stays empty.
Result<std::string> Locate(std::string_view path, const std::map<std::string, std::string>& roots) {
  if (path.empty()) {
    return std::string();
  }
  const std::size_t colon = path.find(':');
  const std::string name(colon == std::string_view::npos ? "ref" : path.substr(0, colon));
  const auto root = roots.find(name);
  if (root == roots.end()) {
    return InvalidArgument("path '" + std::string(path) + "' needs --root " + name + "=DIR");
  }
  return root->second + "/" +
         std::string(colon == std::string_view::npos ? path : path.substr(colon + 1));
}

// The manifest's columns by name; a missing column is an empty text.
class Fields {
 public:
  Fields(const io::CsvTable& table, const io::CsvRow& row) : table_(table), row_(row) {}
  [[nodiscard]] std::string Text(std::string_view name) const {
    return std::string(row_.Text(table_.Column({name})));
  }
  [[nodiscard]] std::optional<double> Number(std::string_view name) const {
    return base::ToNumber(Text(name));
  }

 private:
  const io::CsvTable& table_;
  const io::CsvRow& row_;
};

Result<GoldenCase> CaseOf(const Fields& fields, const std::map<std::string, std::string>& roots) {
  GoldenCase golden{.name = fields.Text("case"),
                    .inputs = {.format = fields.Text("format")},
                    .names = {.preset = fields.Text("preset"),
                              .policy = fields.Text("policy"),
                              .placement = fields.Text("placement"),
                              .admission = fields.Text("admission")},
                    .id_column = fields.Text("id_column"),
                    .start_column = fields.Text("start_column"),
                    .end_column = fields.Text("end_column"),
                    .outcome_column = fields.Text("outcome_column"),
                    .kind = fields.Text("kind"),
                    .tolerance_jct_mean = fields.Number("tol_jct_mean"),
                    .tolerance_makespan = fields.Number("tol_makespan"),
                    .tolerance_jct_p99 = fields.Number("tol_jct_p99"),
                    .tolerance_accepted = fields.Number("tol_accepted"),
                    .jct_mean = fields.Number("jct_mean"),
                    .jct_p99 = fields.Number("jct_p99"),
                    .makespan = fields.Number("makespan"),
                    .accepted = fields.Number("accepted"),
                    .declined = fields.Number("declined"),
                    .original_cpu = fields.Number("original_cpu_s"),
                    .original_wall = fields.Number("original_wall_s")};
  for (const auto& [column, into] :
       {std::pair{"trace", &golden.inputs.trace}, std::pair{"cluster", &golden.inputs.cluster},
        std::pair{"profiles", &golden.inputs.profiles}, std::pair{"expected", &golden.expected}}) {
    const Result<std::string> path = Locate(fields.Text(column), roots);
    if (!path.ok()) {
      return path.error();
    }
    *into = path.value();
  }
  return golden;
}

bool Same(std::optional<double> expected, std::optional<TimePoint> got) {
  if (!expected) {
    return true;  // not recorded
  }
  return got && std::abs(Seconds(*got) - *expected) <= 1e-6 + 1e-9 * std::abs(*expected);
}

std::string Shown(std::optional<TimePoint> time) {
  return time ? fmt::format("{}", Seconds(*time)) : "none";
}

// Empty if the job is as expected.
std::string Difference(const originals::ResultRow& expected, const results::JobResult& job,
                       bool logged) {
  const bool completed = job.outcome == results::Outcome::kCompleted;
  if (completed != expected.completed) {
    return fmt::format("job {}: {}, expected {}", expected.name, results::Name(job.outcome),
                       expected.completed ? "completed" : "rejected");
  }
  if (!completed) {
    return {};
  }
  const std::optional<TimePoint> end = logged ? job.logged : job.end;
  if (!Same(expected.start, job.start)) {
    return fmt::format("job {}: start {}, expected {}", expected.name, Shown(job.start),
                       *expected.start);
  }
  if (!Same(expected.end, end)) {
    return fmt::format("job {}: end {}, expected {}", expected.name, Shown(end), *expected.end);
  }
  return {};
}

void Complain(Comparison& comparison, const std::string& note) {
  comparison.equal = false;
  if (comparison.note.empty()) {
    comparison.note = note;
  }
}

void CompareJobs(const GoldenCase& golden, const std::vector<originals::ResultRow>& expected,
                 const results::RunResult& run, Comparison& comparison) {
  std::unordered_map<std::string_view, const results::JobResult*> by_name;
  for (const results::JobResult& job : run.jobs) {
    by_name[job.spec->name] = &job;
  }
  comparison.jobs_total = expected.size();
  for (const originals::ResultRow& job : expected) {
    const auto found = by_name.find(job.name);
    const std::string difference = found == by_name.end()
                                       ? "job " + job.name + " is not in the trace"
                                       : Difference(job, *found->second, run.uses_logged_end);
    if (difference.empty()) {
      ++comparison.jobs_equal;
    } else {
      Complain(comparison, difference);
    }
  }
  if (golden.kind == "exact" && expected.size() != run.jobs.size()) {
    Complain(comparison,
             fmt::format("{} jobs expected, the trace has {}", expected.size(), run.jobs.size()));
  }
}

// accepted: deadline met; declined: deadline not met, and rejected jobs without a deadline.
void CompareVerdicts(const GoldenCase& golden, const results::RunResult& run, double tolerance,
                     Comparison& comparison) {
  if (!golden.accepted || !golden.declined) {
    return;
  }
  double accepted = 0;
  double declined = 0;
  for (const results::JobResult& job : run.jobs) {
    const std::optional<bool> met = results::DeadlineMet(job, run);
    accepted += met && *met ? 1 : 0;
    declined += (met ? !*met : job.outcome == results::Outcome::kRejected) ? 1 : 0;
  }
  comparison.accepted = accepted;
  if (std::abs(accepted - *golden.accepted) > tolerance ||
      std::abs(declined - *golden.declined) > tolerance) {
    Complain(comparison, fmt::format("accepted/declined {}/{}, expected {}/{}", accepted, declined,
                                     *golden.accepted, *golden.declined));
  }
}

// The 99th percentile of the JCT as the original defines it.
std::optional<double> PublishedP99(const GoldenCase& golden, const results::RunResult& run) {
  const Result<originals::Original> original =
      originals::ParseOriginal(golden.name.substr(0, golden.name.find('/')));
  std::vector<double> jcts = results::JctsOfCompleted(run);
  if (jcts.empty() || !original.ok()) {
    return std::nullopt;
  }
  std::sort(jcts.begin(), jcts.end());
  return originals::PublishedP99(original.value(), jcts);
}

void CompareMetrics(const GoldenCase& golden, const results::RunResult& run,
                    Comparison& comparison) {
  const results::Metrics metrics = results::Measure(run);
  comparison.jobs_equal = static_cast<std::size_t>(metrics.completed);
  if (comparison.jobs_equal < comparison.jobs_total) {
    Complain(comparison, "not every listed job completed");
  }
  const auto within = [&](std::string_view what, std::optional<double> got,
                          std::optional<double> expected, std::optional<double> tolerance) {
    if (tolerance && expected && (!got || std::abs(*got - *expected) > *tolerance * *expected)) {
      Complain(comparison, fmt::format("{} {}, expected {} within {} %", what, got.value_or(0),
                                       *expected, *tolerance * 100));
    }
  };
  within("mean JCT", metrics.jct_mean, golden.jct_mean, golden.tolerance_jct_mean);
  within("makespan", metrics.makespan, golden.makespan, golden.tolerance_makespan);
  within("p99 JCT", PublishedP99(golden, run), golden.jct_p99, golden.tolerance_jct_p99);
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Comparison NotRun(const Error& error, bool supported) {
  return {.supported = supported, .note = error.message};
}

}  // namespace

Result<std::vector<originals::ResultRow>> ReadExpected(const GoldenCase& golden, double unit) {
  const Result<io::CsvTable> table = io::CsvTable::Open(golden.expected);
  if (!table.ok()) {
    return table.error();
  }
  return originals::ReadResultRows(table.value(),
                                   {.id = golden.id_column,
                                    .start = golden.start_column,
                                    .end = golden.end_column,
                                    .outcome = golden.outcome_column},
                                   unit);
}

Result<std::vector<GoldenCase>> ReadManifest(const std::string& path,
                                             std::map<std::string, std::string> roots) {
  roots.try_emplace("here", std::filesystem::absolute(path).parent_path());
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  if (!table.ok()) {
    return table.error();
  }
  std::vector<GoldenCase> cases;
  const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    Result<GoldenCase> golden = CaseOf(Fields(table.value(), row), roots);
    if (!golden.ok()) {
      return row.BadRow(golden.error().message);
    }
    cases.push_back(std::move(golden).value());
    return {};
  });
  if (!status.ok()) {
    return status.error();
  }
  return cases;
}

Result<std::map<std::string, KnownDifference>> ReadKnown(const std::string& path) {
  std::map<std::string, KnownDifference> known;
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  if (!table.ok()) {
    return table.error();
  }
  const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const Fields fields(table.value(), row);
    const KnownDifference within{.accepted_within = fields.Number("accepted_within"),
                                 .mean_within = fields.Number("mean_within")};
    if (!within.accepted_within && !within.mean_within) {
      return row.BadRow("neither accepted_within nor mean_within is a number; expected one");
    }
    known[fields.Text("case")] = within;
    return {};
  });
  return status.ok() ? Result<std::map<std::string, KnownDifference>>(std::move(known))
                     : status.error();
}

bool IsNear(const KnownDifference& known, const GoldenCase& golden, const Comparison& comparison) {
  const bool accepted = !known.accepted_within ||
                        (golden.accepted && std::abs(comparison.accepted - *golden.accepted) <=
                                                *known.accepted_within);
  return accepted && (!known.mean_within || comparison.mean_off <= *known.mean_within);
}

Comparison RunGolden(const GoldenCase& golden, const std::string& out) {
  // Wrong usage means a name that is not built; anything else must not happen.
  const auto supported = [](const Error& error) {
    return error.code != ErrorCode::kInvalidArgument;
  };
  if (const Result<scenario::ResolvedPreset> resolved = scenario::ResolvePreset(golden.names);
      !resolved.ok()) {
    return NotRun(resolved.error(), supported(resolved.error()));
  }
  const Result<double> unit = scenario::TraceUnit(golden.names.preset);
  if (!unit.ok()) {
    return NotRun(unit.error(), supported(unit.error()));
  }
  const Result<std::vector<originals::ResultRow>> expected =
      ReadExpected(golden, unit.value() > 0 ? unit.value() : 1);
  const double cpu_start = CpuSeconds();
  scenario::InputPaths paths = golden.inputs;
  paths.time_unit = unit.value();
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(paths);
  if (!inputs.ok()) {
    return NotRun(inputs.error(), supported(inputs.error()));
  }
  if (!expected.ok()) {
    return NotRun(expected.error(), true);
  }
  const Result<results::RunResult> run =
      scenario::RunScenario(inputs.value(), {.names = golden.names, .keep_timeline = !out.empty()});
  if (!run.ok()) {
    return NotRun(run.error(), true);
  }
  if (!out.empty()) {
    if (Status status = results::WriteRun(run.value(), out + "/" + golden.name); !status.ok()) {
      return NotRun(status.error(), true);
    }
  }
  Comparison comparison{.equal = true,
                        .cpu_seconds = CpuSeconds() - cpu_start,
                        .journal_digest = run.value().journal_digest};
  if (const results::Metrics metrics = results::Measure(run.value());
      golden.jct_mean && metrics.jct_mean) {
    comparison.mean_off = std::abs(*metrics.jct_mean / *golden.jct_mean - 1);
  }
  if (golden.kind == "metrics") {
    comparison.jobs_total = expected.value().size();
    CompareMetrics(golden, run.value(), comparison);
    const double all = golden.accepted.value_or(0) + golden.declined.value_or(0);
    if (golden.tolerance_accepted) {
      CompareVerdicts(golden, run.value(), std::max(1.0, *golden.tolerance_accepted * all),
                      comparison);
    }
    return comparison;
  }
  CompareJobs(golden, expected.value(), run.value(), comparison);
  CompareVerdicts(golden, run.value(), 0, comparison);
  return comparison;
}

}  // namespace trainyard
