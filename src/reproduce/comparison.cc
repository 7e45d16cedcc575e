// SPDX-License-Identifier: Apache-2.0
#include "reproduce/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

struct MetricName {
  std::string_view metric;
  std::string_view name;
  std::string_view unit;
  int digits;  // where none are published
};
constexpr std::array kMetricNames{
    MetricName{"jct_mean", "mean JCT", "s", 1},
    MetricName{"jct_p99", "p99 of JCT", "s", 1},
    MetricName{"jct_p99_rank", "p99 of JCT", "s", 1},
    MetricName{"jct_p99_ceil", "p99 of JCT", "s", 1},
    MetricName{"makespan", "makespan", "s", 1},
    MetricName{"last_end", "makespan", "s", 1},
    MetricName{"deadlines_met", "deadlines met", "", 0},
    MetricName{"deadline_ratio", "share of deadlines met", "", 4},
    MetricName{"best_effort_jct_mean", "mean JCT of best-effort jobs", "s", 1},
    MetricName{"queueing_delay_mean", "mean wait for the first GPUs", "s", 1},
    MetricName{"waiting_time_mean", "mean time without GPUs", "s", 1},
    MetricName{"preemptions", "preemptions", "", 0},
    MetricName{"gpus_used", "mean GPUs in use", "", 1},
    MetricName{"jobs_pending", "mean waiting jobs", "", 1},
    MetricName{"cluster_efficiency", "mean cluster efficiency", "", 3},
    MetricName{"throughput", "throughput", "images/s", 1}};

const MetricName* Find(std::string_view metric) {
  const auto found = std::find_if(kMetricNames.begin(), kMetricNames.end(),
                                  [&](const MetricName& name) { return name.metric == metric; });
  return found == kMetricNames.end() ? nullptr : &*found;
}

std::optional<double> PerCent(std::optional<double> value, std::optional<double> published) {
  return value && published && *published != 0 ? std::optional((*value / *published - 1) * 100)
                                               : std::nullopt;
}

class Rows {
 public:
  Rows(const FigureSpec& spec, const FigureData& data, std::span<const CellResult> results)
      : spec_(spec), data_(data), results_(results), run_(*spec.experiment.AxisAt("run")) {
    FindVaryingAxes();
  }

  std::vector<ComparisonRow> Take() {
    for (const Quantity& quantity : Quantities()) {
      for (std::size_t cell = 0; cell < spec_.experiment.cells.size(); ++cell) {
        AddRowsOf(cell, quantity);
      }
      for (const PublishedValue& value : spec_.published) {
        if (value.quantity == quantity && !value.not_run.empty()) {
          AddPublished(value);
        }
      }
    }
    return std::move(rows_);
  }

 private:
  void FindVaryingAxes() {
    for (std::size_t axis = 0; axis < spec_.experiment.axes.size(); ++axis) {
      std::set<std::string> values;
      for (const Cell& cell : spec_.experiment.cells) {
        values.insert(cell.values[axis]);
      }
      if (axis != run_ && values.size() > 1) {
        varying_.push_back(axis);
      }
    }
  }

  [[nodiscard]] std::vector<Quantity> Quantities() const {
    std::vector<Quantity> quantities;
    const auto add = [&quantities](const Quantity& quantity) {
      if (std::find(quantities.begin(), quantities.end(), quantity) == quantities.end()) {
        quantities.push_back(quantity);
      }
    };
    for (const PublishedValue& value : spec_.published) {
      add(value.quantity);
    }
    for (const PanelSpec& panel : spec_.panels) {
      // A relative panel of values that are listed as they are says nothing new.
      const Quantity plain{.metric = panel.quantity.metric, .base = "", .base_first = false};
      const bool listed =
          std::find(quantities.begin(), quantities.end(), plain) != quantities.end();
      if (IsDataNumber(panel.quantity.metric) && !listed) {
        add(panel.quantity);
      }
    }
    return quantities;
  }

  [[nodiscard]] std::string PlaceOf(std::size_t cell) const {
    std::string place;
    for (const std::size_t axis : varying_) {
      // A cluster or factor that another axis decides is no news, but harmless.
      place += (place.empty() ? "" : " ") + spec_.experiment.cells[cell].values[axis];
    }
    return place;
  }

  [[nodiscard]] std::optional<std::size_t> Other(std::size_t cell, const std::string& label) const {
    const std::vector<Cell>& cells = spec_.experiment.cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::vector<std::string> wanted = cells[cell].values;
      wanted[run_] = label;
      if (cells[i].values == wanted) {
        return i;
      }
    }
    return std::nullopt;
  }

  // A row for each value that was published there; one where none was. Runs in sound mode share
  // the row of their preset's, if there is one.
  void AddRowsOf(std::size_t cell, const Quantity& quantity) {
    const std::string& label = spec_.experiment.cells[cell].values[run_];
    const std::string name = WithoutEnd(label);
    if (IsSound(label) && Other(cell, name)) {
      return;
    }
    const std::optional<std::size_t> sound =
        IsSound(label) ? cell : Other(cell, name + std::string(kSoundEnd));
    ComparisonRow row{.run = name, .place = PlaceOf(cell), .quantity = quantity};
    if (!IsSound(label)) {
      row.preset = ValueOf(spec_, data_, cell, quantity);
    }
    if (sound) {
      row.sound = ValueOf(spec_, data_, *sound, quantity);
    }
    row.note = NoteOf(cell, sound);
    const std::size_t before = rows_.size();
    for (const PublishedValue& value : spec_.published) {
      if (value.run == name && value.quantity == quantity && value.not_run.empty() &&
          spec_.Find(name, value.place) == cell) {
        rows_.push_back(row);
        SetPublished(rows_.back(), value);
      }
    }
    if (rows_.size() == before && (row.preset || row.sound || !row.note.empty())) {
      rows_.push_back(std::move(row));
    }
  }

  [[nodiscard]] std::string NoteOf(std::size_t cell, std::optional<std::size_t> sound) const {
    if (!results_[cell].reason.empty()) {
      return results_[cell].reason;
    }
    return sound ? results_[*sound].reason : "no counterpart in sound mode";
  }

  static void SetPublished(ComparisonRow& row, const PublishedValue& value) {
    row.published = value.value;
    row.digits = value.digits;
    row.rerun = value.rerun;
    row.source = value.source;
  }

  void AddPublished(const PublishedValue& value) {
    ComparisonRow row{.run = value.run, .quantity = value.quantity, .note = value.not_run};
    for (const auto& [axis, at] : value.place) {
      row.place += (row.place.empty() ? "" : " ") + at;
    }
    SetPublished(row, value);
    rows_.push_back(std::move(row));
  }

  const FigureSpec& spec_;
  const FigureData& data_;
  const std::span<const CellResult> results_;
  const std::size_t run_;
  std::vector<std::size_t> varying_;
  std::vector<ComparisonRow> rows_;
};

// The middle one, or the mean of the two in the middle.
std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) {
    return std::nullopt;
  }
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string Clip(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

// Columns as wide as they must be, two spaces between them; the first two to the left.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  constexpr std::size_t kToTheLeft = 3;
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      row += i == 0 ? "" : "  ";
      row += i < kToTheLeft ? fmt::format("{:<{}}", line[i], widths[i])
                            : fmt::format("{:>{}}", line[i], widths[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + row;
  }
  return text;
}

std::string CsvField(std::string_view text) {
  return text.find_first_of(",\"\n") == std::string_view::npos
             ? std::string(text)
             : "\"" + ReplaceAll(std::string(text), "\"", "\"\"") + "\"";
}

std::string CsvNumber(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : std::string();
}

std::string Exact(std::optional<double> per_cent) {
  return per_cent ? fmt::format("{:.3f}", *per_cent) : std::string();
}

Json JsonOf(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json RowJson(const ComparisonRow& row) {
  return {{"run", row.run},
          {"place", row.place},
          {"metric", row.quantity.metric},
          {"relative_to", row.quantity.base},
          {"published", JsonOf(row.published)},
          {"rerun", row.rerun},
          {"preset", JsonOf(row.preset)},
          {"preset_difference", JsonOf(row.PresetDifference())},
          {"sound", JsonOf(row.sound)},
          {"sound_difference", JsonOf(row.SoundDifference())},
          {"note", row.note},
          {"source", row.source}};
}

}  // namespace

std::optional<double> ComparisonRow::PresetDifference() const { return PerCent(preset, published); }
std::optional<double> ComparisonRow::SoundDifference() const { return PerCent(sound, published); }

bool ComparisonRow::DigitsEqual() const {
  constexpr double kRounding = 1e-9;  // of decimal fractions in binary
  return std::abs(*preset - *published) <=
         0.5 * std::pow(10, -digits) + kRounding * std::max(1.0, std::abs(*published));
}

std::vector<ComparisonRow> RowsOf(const FigureSpec& spec, const FigureData& data,
                                  std::span<const CellResult> results) {
  return Rows(spec, data, results).Take();
}

Agreement AgreementOf(std::span<const ComparisonRow> rows) {
  Agreement agreement;
  std::vector<double> preset;
  std::vector<double> sound;
  for (const ComparisonRow& row : rows) {
    agreement.published += row.published ? 1U : 0U;
    if (const auto difference = row.PresetDifference()) {
      preset.push_back(std::abs(*difference));
      agreement.digits_equal += row.DigitsEqual() ? 1U : 0U;
      if (agreement.headline == nullptr || row.quantity == agreement.headline->quantity) {
        agreement.headline = &row;
      }
    }
    if (const auto difference = row.SoundDifference()) {
      sound.push_back(std::abs(*difference));
    }
  }
  agreement.compared = preset.size();
  if (!preset.empty()) {
    agreement.preset_largest = *std::max_element(preset.begin(), preset.end());
  }
  agreement.preset_median = Median(std::move(preset));
  agreement.sound_median = Median(std::move(sound));
  return agreement;
}

std::string NameOf(const Quantity& quantity) {
  const MetricName* const known = Find(quantity.metric);
  const std::string name = known == nullptr ? quantity.metric : std::string(known->name);
  if (quantity.base.empty()) {
    return known == nullptr || known->unit.empty() ? name
                                                   : fmt::format("{} ({})", name, known->unit);
  }
  return quantity.base_first ? fmt::format("{}: {} / own", name, quantity.base)
                             : fmt::format("{} / {}", name, quantity.base);
}

std::string ValueText(std::optional<double> value, const ComparisonRow& row) {
  if (!value) {
    return "-";
  }
  constexpr int kOfRatios = 3;
  const MetricName* const known = Find(row.quantity.metric);
  int digits = row.digits;
  if (!row.published) {
    digits = !row.quantity.base.empty() ? kOfRatios : known == nullptr ? kOfRatios : known->digits;
  }
  return fmt::format("{:.{}f}", *value, digits);
}

std::string DifferenceText(std::optional<double> per_cent) {
  return per_cent ? fmt::format("{:+.1f} %", std::abs(*per_cent) < 0.05 ? 0.0 : *per_cent) : "-";
}

std::string FigureTable(const FigureOutcome& figure) {
  std::vector<std::vector<std::string>> lines{
      {"quantity", "run", "at", "published", "preset", "diff", "sound", "diff", ""}};
  for (const ComparisonRow& row : figure.rows) {
    lines.push_back({NameOf(row.quantity), row.run, row.place, ValueText(row.published, row),
                     ValueText(row.preset, row), DifferenceText(row.PresetDifference()),
                     ValueText(row.sound, row), DifferenceText(row.SoundDifference()),
                     row.rerun ? "re-run" : ""});
  }
  std::string text =
      fmt::format("{}: {}\n{}", figure.spec.id, figure.spec.experiment.title, Aligned(lines));
  std::set<std::string> notes;
  for (const ComparisonRow& row : figure.rows) {
    if (row.preset && row.sound) {
      continue;
    }
    if (const std::string note = fmt::format("{}: {}", row.run, row.note);
        !row.note.empty() && notes.insert(note).second && !row.note.starts_with("missing ")) {
      text += "\n  " + note;
    }
  }
  for (const std::string& missing : figure.missing) {
    text += "\n  not run, " + missing;
  }
  for (const std::string& failed : figure.failed) {
    text += "\n  FAILED " + failed;
  }
  return text;
}

std::string SummaryTable(std::span<const FigureOutcome> figures) {
  std::vector<std::vector<std::string>> lines{{"figure", "for example", "", "published", "preset",
                                               "sound", "values", "digits equal", "median diff",
                                               "largest", "sound median", "runs", "not run"}};
  for (const FigureOutcome& figure : figures) {
    const Agreement agreement = AgreementOf(figure.rows);
    const auto per_cent = [](std::optional<double> value) {
      return value ? fmt::format("{:.1f} %", *value) : std::string("-");
    };
    std::string example;
    std::string where;
    std::array<std::string, 3> values{"-", "-", "-"};
    if (const ComparisonRow* const row = agreement.headline) {
      example = Clip(NameOf(row->quantity), 26);
      where = row->run + (row->place.empty() ? "" : " " + Clip(row->place, 18));
      values = {ValueText(row->published, *row), ValueText(row->preset, *row),
                ValueText(row->sound, *row)};
    }
    lines.push_back({figure.spec.id, example, where, values[0], values[1], values[2],
                     fmt::format("{}", agreement.published),
                     agreement.compared == 0
                         ? "-"
                         : fmt::format("{} of {}", agreement.digits_equal, agreement.compared),
                     per_cent(agreement.preset_median), per_cent(agreement.preset_largest),
                     per_cent(agreement.sound_median), fmt::format("{}", figure.ok),
                     fmt::format("{}", figure.spec.experiment.cells.size() - figure.ok)});
  }
  return Aligned(lines);
}

std::string ValuesCsv(std::span<const FigureOutcome> figures) {
  std::string csv =
      "figure,metric,relative_to,run,place,published,kind,preset,preset_difference_percent,sound,"
      "sound_difference_percent,note,source\n";
  for (const FigureOutcome& figure : figures) {
    for (const ComparisonRow& row : figure.rows) {
      fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                     figure.spec.id, row.quantity.metric, CsvField(row.quantity.base),
                     CsvField(row.run), CsvField(row.place), CsvNumber(row.published),
                     !row.published ? "" : (row.rerun ? "rerun" : "paper"), CsvNumber(row.preset),
                     Exact(row.PresetDifference()), CsvNumber(row.sound),
                     Exact(row.SoundDifference()), CsvField(row.note), CsvField(row.source));
    }
  }
  return csv;
}

std::string SummaryCsv(std::span<const FigureOutcome> figures) {
  std::string csv =
      "figure,title,published_values,compared,digits_equal,preset_median_percent,"
      "preset_largest_percent,sound_median_percent,example_metric,example_run,example_place,"
      "published,preset,sound,cells,ok,failed,not_run\n";
  for (const FigureOutcome& figure : figures) {
    const Agreement agreement = AgreementOf(figure.rows);
    const ComparisonRow none;
    const ComparisonRow& row = agreement.headline == nullptr ? none : *agreement.headline;
    const std::size_t cells = figure.spec.experiment.cells.size();
    fmt::format_to(std::back_inserter(csv),
                   "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", figure.spec.id,
                   CsvField(figure.spec.experiment.title), agreement.published, agreement.compared,
                   agreement.digits_equal, Exact(agreement.preset_median),
                   Exact(agreement.preset_largest), Exact(agreement.sound_median),
                   row.quantity.metric, CsvField(row.run), CsvField(row.place),
                   CsvNumber(row.published), CsvNumber(row.preset), CsvNumber(row.sound), cells,
                   figure.ok, figure.failed.size(), cells - figure.ok - figure.failed.size());
  }
  return csv;
}

std::string FiguresJson(std::span<const FigureOutcome> figures) {
  Json json = Json::array();
  for (const FigureOutcome& figure : figures) {
    const Agreement agreement = AgreementOf(figure.rows);
    Json rows = Json::array();
    for (const ComparisonRow& row : figure.rows) {
      rows.push_back(RowJson(row));
    }
    json.push_back({{"id", figure.spec.id},
                    {"title", figure.spec.experiment.title},
                    {"note", figure.spec.experiment.note},
                    {"cells", figure.spec.experiment.cells.size()},
                    {"ok", figure.ok},
                    {"failed", figure.failed},
                    {"missing", figure.missing},
                    {"published_values", agreement.published},
                    {"compared", agreement.compared},
                    {"digits_equal", agreement.digits_equal},
                    {"preset_median_percent", JsonOf(agreement.preset_median)},
                    {"sound_median_percent", JsonOf(agreement.sound_median)},
                    {"values", std::move(rows)}});
  }
  return json.dump(2);
}

}  // namespace trainyard
