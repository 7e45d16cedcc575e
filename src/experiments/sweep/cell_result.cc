// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/cell_result.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "io/csv_field.h"
#include "results/write/json.h"
#include "results/write/json_value.h"

namespace trainyard::experiments {
namespace {

constexpr std::array<std::string_view, 4> kCosts{"wall_seconds", "cpu_seconds", "peak_rss_mb",
                                                 "jobs_per_second"};

std::vector<CellMetric> MetricsOf(const results::Json& object) {
  std::vector<CellMetric> metrics;
  for (const auto& [name, value] : object.items()) {
    const bool is_text = value.is_string();
    metrics.push_back({.name = name,
                       .text = is_text           ? value.get<std::string>()
                               : value.is_null() ? ""
                                                 : value.dump(),
                       .is_text = is_text});
  }
  return metrics;
}

// Numbers keep their digits.
results::Json CellJson(const CellMetric& metric) {
  if (metric.is_text) {
    return metric.text;
  }
  return metric.text.empty() ? results::Json() : results::Json::parse(metric.text, nullptr, false);
}

results::Json CellJson(const std::vector<CellMetric>& metrics) {
  results::Json object = results::Json::object();
  for (const CellMetric& metric : metrics) {
    object[metric.name] = CellJson(metric);
  }
  return object;
}

results::Json AxesObject(const std::vector<std::string>& axes,
                         const std::vector<std::string>& values, const std::vector<bool>& numeric) {
  results::Json object = results::Json::object();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    object[axes[i]] =
        numeric[i] ? results::Json::parse(values[i], nullptr, false) : results::Json(values[i]);
  }
  return object;
}

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string TextAt(const results::Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

constexpr std::array<std::string_view, 3> kStatusNames{"ok", "failed", "not run"};

}  // namespace

std::string_view Name(CellStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

std::optional<double> CellResult::Number(std::string_view metric) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [metric](const CellMetric& m) { return m.name == metric; });
  return found == metrics.end() || found->is_text ? std::nullopt : base::ToNumber(found->text);
}

std::vector<CellMetric> MetricsOf(const results::RunResult& run) {
  return MetricsOf(results::Json::parse(results::SummaryJson(run)));
}

std::string MetricsJson(const std::vector<CellMetric>& metrics) {
  return results::JsonText(CellJson(metrics));
}

Result<std::vector<CellMetric>> ParseMetrics(std::string_view json) {
  const results::Json object = results::Json::parse(json, nullptr, false);
  if (!object.is_object()) {
    return BadInput("metrics are no JSON object; expected one");
  }
  return MetricsOf(object);
}

std::string OutcomeJson(const CellOutcome& outcome, const std::string& digest) {
  return results::JsonText({{"format", "trainyard-cell/1"},
                            {"digest", digest},
                            {"status", std::string(Name(outcome.status))},
                            {"reason", outcome.reason},
                            {"metrics", CellJson(outcome.metrics)},
                            {"extra", outcome.extra}});
}

Result<CellOutcome> ParseOutcome(std::string_view json, const std::string& digest) {
  const results::Json object = results::Json::parse(json, nullptr, false);
  if (!object.is_object() || TextAt(object, "format") != "trainyard-cell/1") {
    return BadInput("no result of a cell; expected a JSON object of format trainyard-cell/1");
  }
  const auto* const status =
      std::find(kStatusNames.begin(), kStatusNames.end(), TextAt(object, "status"));
  const auto metrics = object.find("metrics");
  if (status == kStatusNames.end() || metrics == object.end() || !metrics->is_object() ||
      TextAt(object, "digest") != digest) {
    return BadInput("the result of another cell; expected digest " + digest);
  }
  return CellOutcome{.status = static_cast<CellStatus>(status - kStatusNames.begin()),
                     .reason = TextAt(object, "reason"),
                     .metrics = MetricsOf(*metrics),
                     .extra = TextAt(object, "extra")};
}

std::vector<bool> NumericAxes(std::size_t axes, std::span<const std::vector<std::string>> values) {
  std::vector<bool> numeric(axes, !values.empty());
  for (const std::vector<std::string>& of_cell : values) {
    for (std::size_t i = 0; i < axes; ++i) {
      numeric[i] = numeric[i] && results::Json::parse(of_cell[i], nullptr, false).is_number();
    }
  }
  return numeric;
}

std::string AxesJson(const std::vector<std::string>& axes, const std::vector<std::string>& values,
                     const std::vector<bool>& numeric) {
  return results::JsonText(AxesObject(axes, values, numeric));
}

std::vector<std::string> ResultColumns(const std::vector<std::string>& axes,
                                       const std::vector<CellResult>& results) {
  std::vector<std::string> columns;
  const auto add = [&](const std::vector<CellMetric>& metrics) {
    for (const CellMetric& metric : metrics) {
      if (!Contains(kCosts, metric.name) && !Contains(axes, metric.name) &&
          !Contains(columns, metric.name)) {
        columns.push_back(metric.name);
      }
    }
  };
  add(MetricsOf(results::RunResult()));
  for (const CellResult& result : results) {
    add(result.metrics);
  }
  return columns;
}

std::string ResultsCsv(const std::vector<std::string>& axes,
                       const std::vector<CellResult>& results) {
  const std::vector<std::string> columns = ResultColumns(axes, results);
  std::string text;
  const auto add = [&text](std::string_view field) {
    io::AppendCsvField(field, text);
    text += ',';
  };
  std::for_each(axes.begin(), axes.end(), add);
  add("status");
  add("reason");
  std::for_each(columns.begin(), columns.end(), add);
  text.back() = '\n';
  for (const CellResult& result : results) {
    std::for_each(result.values.begin(), result.values.end(), add);
    add(Name(result.status));
    add(result.reason);
    for (const std::string& column : columns) {
      const auto metric = std::find_if(result.metrics.begin(), result.metrics.end(),
                                       [&column](const CellMetric& m) { return m.name == column; });
      add(metric == result.metrics.end() ? "" : std::string_view(metric->text));
    }
    text.back() = '\n';
  }
  return text;
}

std::string ResultsJson(const std::vector<std::string>& axes,
                        const std::vector<CellResult>& results) {
  std::vector<std::vector<std::string>> values;
  values.reserve(results.size());
  for (const CellResult& result : results) {
    values.push_back(result.values);
  }
  const std::vector<bool> numeric = NumericAxes(axes.size(), values);
  const results::Json cells =
      results::ArrayOf(results, [&](const CellResult& result) -> results::Json {
        return {{"id", result.id},
                {"axes", AxesObject(axes, result.values, numeric)},
                {"status", Name(result.status)},
                {"reason", result.reason},
                {"metrics", CellJson(result.metrics)}};
      });
  return results::JsonText(cells, 2);
}

}  // namespace trainyard::experiments
