// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "io/csv_field.h"
#include "results/write/json_value.h"
#include "results/write/table.h"

namespace trainyard::experiments {
namespace {

std::optional<double> PerCent(const std::optional<Measured>& value, std::optional<double> base) {
  return value && base && *base != 0 ? std::optional((value->value / *base - 1) * 100)
                                     : std::nullopt;
}

bool DigitsEqual(double value, const Printed& published) {
  constexpr double kRounding = 1e-9;  // of decimal fractions in binary
  return std::abs(value - published.value) <=
         0.5 * std::pow(10, -published.digits) +
             kRounding * std::max(1.0, std::abs(published.value));
}

bool IsNotable(const ComparisonRow& row) {
  const std::optional<double> difference = row.PaperDifference();
  return difference && std::abs(*difference) > kNotableDifference &&
         !DigitsEqual(row.ours->value, *row.paper);
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
      if (axis != run_ && axis != spec_.DrawAxis() && values.size() > 1) {
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
      if (FindMetric(panel.quantity.metric) != nullptr && !listed) {
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

  // Runs in sound mode share the row of their preset's, if there is one; so do all draws.
  void AddRowsOf(std::size_t cell, const Quantity& quantity) {
    const std::string& label = spec_.experiment.cells[cell].values[run_];
    const std::string name = WithoutEnd(label);
    if (!spec_.IsFirstDraw(cell) || (IsSound(label) && Sibling(spec_, cell, name))) {
      return;
    }
    const std::optional<std::size_t> sound =
        IsSound(label) ? cell : Sibling(spec_, cell, name + std::string(kSoundEnd));
    ComparisonRow row{.run = name, .place = PlaceOf(cell), .quantity = quantity};
    if (!IsSound(label)) {
      row.ours = ValueOf(spec_, data_, cell, quantity);
    }
    if (sound) {
      row.sound = ValueOf(spec_, data_, *sound, quantity);
    }
    row.note = NoteOf(cell, sound);
    for (const PublishedValue& value : spec_.published) {
      if (value.run == name && value.quantity == quantity && value.not_run.empty() &&
          spec_.Find(name, value.place) == cell) {
        SetPublished(row, value);
      }
    }
    if (row.paper || row.artifact || row.ours || row.sound || !row.note.empty()) {
      rows_.push_back(std::move(row));
    }
  }

  [[nodiscard]] std::string NoteOf(std::size_t cell, std::optional<std::size_t> sound) const {
    if (!results_[cell].reason.empty()) {
      return results_[cell].reason;
    }
    return sound ? results_[*sound].reason : "no counterpart in sound mode";
  }

  void SetPublished(ComparisonRow& row, const PublishedValue& value) const {
    std::optional<Printed>& printed = value.artifact ? row.artifact : row.paper;
    printed = Printed{.value = value.value,
                      .digits = value.digits,
                      .source = value.source,
                      .unlike = value.unlike};
    if (!value.artifact && IsNotable(row)) {
      SetCause(row, value);
    }
  }

  // The first reason of the file that applies. That of a draw does only to a value among the draws.
  void SetCause(ComparisonRow& row, const PublishedValue& paper) const {
    row.cause = kUnknownCause;
    for (const DifferenceReason& reason : spec_.differences) {
      if (reason.Applies(paper.quantity, paper.run, paper.place) &&
          (reason.cause != kDrawCause || row.Agrees(*row.paper))) {
        row.cause = reason.cause;
        row.reason = reason.text;
        return;
      }
    }
  }

  // Of a run that is not in the experiment: one row for the paper, its artifact and sound mode.
  void AddPublished(const PublishedValue& value) {
    ComparisonRow row{.run = value.run, .quantity = value.quantity, .note = value.not_run};
    for (const auto& [axis, at] : value.place) {
      row.place += (row.place.empty() ? "" : " ") + at;
    }
    const auto same = std::find_if(rows_.begin(), rows_.end(), [&row](const ComparisonRow& other) {
      return other.run == row.run && other.quantity == row.quantity && other.place == row.place;
    });
    if (same != rows_.end()) {
      SetPublished(*same, value);
      same->note = value.not_run;
      return;
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

std::string CsvField(std::string_view text) {
  std::string field;
  io::AppendCsvField(text, field);
  return field;
}

std::string Exact(std::optional<double> per_cent) {
  return per_cent ? fmt::format("{:.3f}", *per_cent) : std::string();
}

results::Json JsonOf(const std::optional<Printed>& value) {
  return value ? results::Json{{"value", value->value},
                               {"source", value->source},
                               {"unlike", value->unlike}}
               : results::Json();
}

results::Json JsonOf(const std::optional<Measured>& value) {
  return value ? results::Json{{"value", value->value},
                               {"low", value->low},
                               {"high", value->high},
                               {"draws", value->draws}}
               : results::Json();
}

results::Json JsonOf(const Against& against) {
  return {{"values", against.values},
          {"compared", against.compared},
          {"agree", against.agree},
          {"median_percent", against.median},
          {"largest_percent", against.largest}};
}

results::Json RowJson(const ComparisonRow& row) {
  return {{"run", row.run},
          {"place", row.place},
          {"metric", row.quantity.metric},
          {"relative_to", row.quantity.base},
          {"paper", JsonOf(row.paper)},
          {"artifact", JsonOf(row.artifact)},
          {"ours", JsonOf(row.ours)},
          {"sound", JsonOf(row.sound)},
          {"paper_difference", row.PaperDifference()},
          {"artifact_difference", row.ArtifactDifference()},
          {"sound_difference", row.SoundDifference()},
          {"cause", row.cause},
          {"reason", row.reason},
          {"note", row.note}};
}

using RowList = std::vector<const ComparisonRow*>;

// The published values of one kind.
Against AgainstOf(const RowList& rows, std::optional<Printed> ComparisonRow::*published,
                  std::optional<double> (ComparisonRow::*difference_of)() const) {
  Against against;
  std::vector<double> differences;
  for (const ComparisonRow* row : rows) {
    against.values += row->*published ? 1U : 0U;
    if (const std::optional<double> difference = (row->*difference_of)()) {
      ++against.compared;
      against.agree += row->Agrees(*(row->*published)) ? 1U : 0U;
      differences.push_back(std::abs(*difference));
    }
  }
  if (!differences.empty()) {
    against.largest = *std::max_element(differences.begin(), differences.end());
  }
  against.median = Median(std::move(differences));
  return against;
}

// Without a headline.
Agreement AgreementOfRows(const RowList& rows) {
  Agreement agreement{
      .paper = AgainstOf(rows, &ComparisonRow::paper, &ComparisonRow::PaperDifference),
      .artifact = AgainstOf(rows, &ComparisonRow::artifact, &ComparisonRow::ArtifactDifference)};
  std::vector<double> sound;
  for (const ComparisonRow* row : rows) {
    agreement.notable += row->cause.empty() ? 0U : 1U;
    agreement.unknown += row->cause == kUnknownCause ? 1U : 0U;
    if (const std::optional<double> difference = row->SoundDifference()) {
      sound.push_back(std::abs(*difference));
    }
  }
  agreement.sound_median = Median(std::move(sound));
  return agreement;
}

const ComparisonRow* HeadlineOf(std::span<const ComparisonRow> rows) {
  const auto last = [rows](auto is_wanted) {
    const ComparisonRow* headline = nullptr;
    for (const ComparisonRow& row : rows) {
      if (row.ours && is_wanted(row) &&
          (headline == nullptr || row.quantity == headline->quantity)) {
        headline = &row;
      }
    }
    return headline;
  };
  const ComparisonRow* const of_paper =
      last([](const ComparisonRow& row) { return row.paper.has_value(); });
  return of_paper != nullptr
             ? of_paper
             : last([](const ComparisonRow& row) { return row.artifact.has_value(); });
}

}  // namespace

std::string CountOf(std::size_t part, std::size_t all) {
  return all == 0 ? "-" : fmt::format("{} of {}", part, all);
}

std::optional<double> ComparisonRow::PaperDifference() const {
  return PerCent(ours, paper ? std::optional(paper->value) : std::nullopt);
}
std::optional<double> ComparisonRow::ArtifactDifference() const {
  return PerCent(
      ours, artifact && artifact->unlike.empty() ? std::optional(artifact->value) : std::nullopt);
}
std::optional<double> ComparisonRow::SoundDifference() const {
  return PerCent(sound, ours ? std::optional(ours->value) : std::nullopt);
}

bool ComparisonRow::Agrees(const Printed& published) const {
  const double half = 0.5 * std::pow(10, -published.digits);
  return DigitsEqual(ours->value, published) ||
         (ours->draws > 1 && ours->low - half <= published.value &&
          published.value <= ours->high + half);
}

std::vector<ComparisonRow> RowsOf(const FigureSpec& spec, const FigureData& data,
                                  std::span<const CellResult> results) {
  return Rows(spec, data, results).Take();
}

Agreement AgreementOf(std::span<const ComparisonRow> rows) {
  RowList list;
  for (const ComparisonRow& row : rows) {
    list.push_back(&row);
  }
  Agreement agreement = AgreementOfRows(list);
  agreement.headline = HeadlineOf(rows);
  return agreement;
}

Agreement AgreementOf(std::span<const FigureOutcome> figures) {
  RowList list;
  for (const FigureOutcome& figure : figures) {
    for (const ComparisonRow& row : figure.rows) {
      list.push_back(&row);
    }
  }
  return AgreementOfRows(list);
}

std::string DifferencesText(std::span<const FigureOutcome> figures) {
  std::map<std::string, std::size_t> causes;
  for (const FigureOutcome& figure : figures) {
    for (const ComparisonRow& row : figure.rows) {
      causes[row.cause] += row.cause.empty() ? 0U : 1U;
    }
  }
  const Agreement all = AgreementOf(figures);
  std::string text = fmt::format(
      "{} values of ours have one of the paper to compare with; {} differ from it by more than {} "
      "%",
      all.paper.compared, all.notable, kNotableDifference);
  if (all.notable == 0) {
    return text + ".";
  }
  text += ". Causes:";
  for (const std::string_view cause : kCauses) {
    if (const auto found = causes.find(std::string(cause)); found != causes.end()) {
      text += fmt::format(" {} {},", cause, found->second);
    }
  }
  text.back() = '.';
  return text;
}

std::string NameOf(const Quantity& quantity) {
  const MetricName* const known = FindMetric(quantity.metric);
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
  const MetricName* const known = FindMetric(row.quantity.metric);
  int digits = !row.quantity.base.empty() || known == nullptr ? kOfRatios : known->digits;
  if (row.paper || row.artifact) {
    digits = std::max(row.paper ? row.paper->digits : 0, row.artifact ? row.artifact->digits : 0);
  }
  return fmt::format("{:.{}f}", *value, digits);
}

std::string ValueText(const std::optional<Measured>& value, const ComparisonRow& row) {
  if (!value || value->draws <= 1) {
    return ValueText(value ? std::optional(value->value) : std::nullopt, row);
  }
  return fmt::format("{} ({} to {})", ValueText(value->value, row), ValueText(value->low, row),
                     ValueText(value->high, row));
}

std::string ValueText(const std::optional<Printed>& value) {
  return value ? fmt::format("{:.{}f}", value->value, value->digits) : "-";
}

std::string DifferenceText(std::optional<double> per_cent) {
  return per_cent ? fmt::format("{:+.1f} %", std::abs(*per_cent) < 0.05 ? 0.0 : *per_cent) : "-";
}

std::vector<std::pair<std::string, std::string>> ReasonsOf(const FigureOutcome& figure) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const ComparisonRow& row : figure.rows) {
    const std::pair<std::string, std::string> reason(row.cause, row.reason);
    if (!row.reason.empty() && std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }
  return reasons;
}

std::string FigureTable(const FigureOutcome& figure) {
  std::vector<std::vector<std::string>> lines{{"quantity", "run", "at", "paper", "artifact", "ours",
                                               "sound", "ours/paper", "ours/artifact", "sound/ours",
                                               "cause"}};
  for (const ComparisonRow& row : figure.rows) {
    lines.push_back({NameOf(row.quantity), row.run, row.place, ValueText(row.paper),
                     ValueText(row.artifact), ValueText(row.ours, row), ValueText(row.sound, row),
                     DifferenceText(row.PaperDifference()),
                     DifferenceText(row.ArtifactDifference()),
                     DifferenceText(row.SoundDifference()), row.cause});
  }
  std::string text = fmt::format("{}: {}\n{}", figure.spec.id, figure.spec.experiment.title,
                                 fmt::join(results::AlignedLines(lines, 3), "\n"));
  for (const auto& [cause, reason] : ReasonsOf(figure)) {
    text += fmt::format("\n  {}: {}", cause, reason);
  }
  std::set<std::string> notes;
  for (const ComparisonRow& row : figure.rows) {
    if (row.ours && row.sound) {
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
  std::vector<std::vector<std::string>> lines{{"figure", "of paper", "agree", "median", "above 5 %",
                                               "unknown", "of artifact", "agree", "median",
                                               "sound/ours", "runs", "not run"}};
  const auto per_cent = [](std::optional<double> value) {
    return value ? fmt::format("{:.1f} %", *value) : std::string("-");
  };
  const auto add = [&](const std::string& name, const Agreement& agreement, std::size_t ok,
                       std::size_t cells) {
    const Against& paper = agreement.paper;
    const Against& artifact = agreement.artifact;
    lines.push_back({name, fmt::format("{}", paper.values), CountOf(paper.agree, paper.compared),
                     per_cent(paper.median), fmt::format("{}", agreement.notable),
                     fmt::format("{}", agreement.unknown), fmt::format("{}", artifact.values),
                     CountOf(artifact.agree, artifact.compared), per_cent(artifact.median),
                     per_cent(agreement.sound_median), fmt::format("{}", ok),
                     fmt::format("{}", cells - ok)});
  };
  std::size_t ok = 0;
  std::size_t cells = 0;
  for (const FigureOutcome& figure : figures) {
    add(figure.spec.id, AgreementOf(figure.rows), figure.ok, figure.spec.experiment.cells.size());
    ok += figure.ok;
    cells += figure.spec.experiment.cells.size();
  }
  add("all", AgreementOf(figures), ok, cells);
  return fmt::format("{}\n{}", fmt::join(results::AlignedLines(lines, 1), "\n"),
                     DifferencesText(figures));
}

std::string ValuesCsv(std::span<const FigureOutcome> figures) {
  std::string csv =
      "figure,metric,relative_to,run,place,paper,artifact,ours,ours_low,ours_high,draws,sound,"
      "sound_low,sound_high,paper_difference_percent,artifact_difference_percent,"
      "sound_difference_percent,cause,reason,note,paper_source,artifact_source,artifact_unlike\n";
  const auto measured = [](const std::optional<Measured>& value) {
    return value ? fmt::format("{},{},{}", value->value, value->low, value->high)
                 : std::string(",,");
  };
  const auto number = [](const std::optional<Printed>& value) {
    return value ? fmt::format("{}", value->value) : std::string();
  };
  for (const FigureOutcome& figure : figures) {
    for (const ComparisonRow& row : figure.rows) {
      fmt::format_to(
          std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
          figure.spec.id, row.quantity.metric, CsvField(row.quantity.base), CsvField(row.run),
          CsvField(row.place), number(row.paper), number(row.artifact), measured(row.ours),
          row.ours ? row.ours->draws : 0, measured(row.sound), Exact(row.PaperDifference()),
          Exact(row.ArtifactDifference()), Exact(row.SoundDifference()), row.cause,
          CsvField(row.reason), CsvField(row.note), CsvField(row.paper ? row.paper->source : ""),
          CsvField(row.artifact ? row.artifact->source : ""),
          CsvField(row.artifact ? row.artifact->unlike : ""));
    }
  }
  return csv;
}

std::string SummaryCsv(std::span<const FigureOutcome> figures) {
  std::string csv =
      "figure,title,paper_values,paper_compared,paper_agree,paper_median_percent,"
      "paper_largest_percent,above_5_percent,unknown,artifact_values,artifact_compared,"
      "artifact_agree,artifact_median_percent,artifact_largest_percent,sound_median_percent,cells,"
      "ok,failed,not_run\n";
  const auto against = [](const Against& value) {
    return fmt::format("{},{},{},{},{}", value.values, value.compared, value.agree,
                       Exact(value.median), Exact(value.largest));
  };
  for (const FigureOutcome& figure : figures) {
    const Agreement agreement = AgreementOf(figure.rows);
    const std::size_t cells = figure.spec.experiment.cells.size();
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{},{}\n", figure.spec.id,
                   CsvField(figure.spec.experiment.title), against(agreement.paper),
                   agreement.notable, agreement.unknown, against(agreement.artifact),
                   Exact(agreement.sound_median), cells, figure.ok, figure.failed.size(),
                   cells - figure.ok - figure.failed.size());
  }
  return csv;
}

std::string FiguresJson(std::span<const FigureOutcome> figures) {
  const results::Json json =
      results::ArrayOf(figures, [](const FigureOutcome& figure) -> results::Json {
        const Agreement agreement = AgreementOf(figure.rows);
        return {{"id", figure.spec.id},
                {"title", figure.spec.experiment.title},
                {"note", figure.spec.experiment.note},
                {"cells", figure.spec.experiment.cells.size()},
                {"ok", figure.ok},
                {"failed", figure.failed},
                {"missing", figure.missing},
                {"paper", JsonOf(agreement.paper)},
                {"artifact", JsonOf(agreement.artifact)},
                {"above_5_percent", agreement.notable},
                {"unknown", agreement.unknown},
                {"sound_median_percent", agreement.sound_median},
                {"values", results::ArrayOf(figure.rows, RowJson)}};
      });
  return json.dump(2);
}

}  // namespace trainyard::experiments
