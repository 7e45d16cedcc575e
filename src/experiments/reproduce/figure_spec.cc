// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/figure_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/text.h"
#include "base/try.h"
#include "io/toml.h"

namespace trainyard::experiments {
namespace {

constexpr std::array<std::string_view, 13> kPanelKeys{
    "title", "form",        "metric",   "x",      "x_label", "y_label", "runs",
    "split", "relative_to", "relative", "divide", "log_x",   "x_max"};
constexpr std::array<std::string_view, 10> kPublishedKeys{
    "metric", "source", "kind",    "digits",      "along",
    "at",     "values", "not_run", "relative_to", "unlike"};
constexpr std::array<std::string_view, 4> kDifferenceKeys{"cause", "text", "runs", "metric"};
constexpr std::string_view kNoValue = "-";  // in a list of published values

constexpr std::array<std::string_view, 5> kForms{"bars", "lines", "steps", "cdf",
                                                 "windows"};  // by PanelForm

class Reader {
 public:
  Reader(FigureSpec& spec, const std::string& path) : spec_(spec), path_(path) {}

  Status Read() {
    for (const io::TomlTable& table : spec_.experiment.panels) {
      RETURN_IF_ERROR(ReadPanel(io::TomlSection(path_, "[[panel]]", table)));
    }
    for (const io::TomlTable& table : spec_.experiment.published) {
      RETURN_IF_ERROR(ReadPublished(io::TomlSection(path_, "[[published]]", table)));
    }
    for (const io::TomlTable& table : spec_.experiment.differences) {
      RETURN_IF_ERROR(ReadDifference(io::TomlSection(path_, "[[difference]]", table)));
    }
    return spec_.panels.empty() ? Status(BadInput(path_ + ": no [[panel]]; expected one at least"))
                                : Status();
  }

 private:
  // The keys of the table itself; all others are axes, which say where.
  Status CheckKeys(const io::TomlSection& section, std::span<const std::string_view> own) const {
    std::vector<std::string_view> known(own.begin(), own.end());
    known.emplace_back("relative");
    for (const std::string& axis : spec_.experiment.axes) {
      if (axis != kDrawAxis) {
        known.push_back(axis);
      }
    }
    return section.CheckKeys(known);
  }

  Status ReadPlace(const io::TomlSection& section, Place& place) const {
    for (const std::string& axis : spec_.experiment.axes) {
      std::string value;
      if (axis == "run") {
        continue;
      }
      RETURN_IF_ERROR(section.ReadScalar(axis, value));
      if (value.empty()) {
        continue;
      }
      RETURN_IF_ERROR(CheckValue(section, axis, value));
      place.emplace_back(axis, value);
    }
    return {};
  }

  Status CheckValue(const io::TomlSection& section, const std::string& axis,
                    const std::string& value) const {
    const std::size_t at = *spec_.experiment.AxisAt(axis);
    const bool found = std::any_of(spec_.experiment.cells.begin(), spec_.experiment.cells.end(),
                                   [&](const Cell& cell) { return cell.values[at] == value; });
    return found ? Status()
                 : section.BadKey(axis, fmt::format("no cell has the value '{}' on axis '{}'; "
                                                    "expected one of its values",
                                                    value, axis));
  }

  static Status ReadNumber(const io::TomlSection& section, std::string_view key,
                           std::optional<double>& number) {
    std::string text;
    if (Status status = section.ReadScalar(key, text); !status.ok() || text.empty()) {
      return status;
    }
    number = base::ToNumber(text);
    return number && *number >= 0
               ? Status()
               : section.BadKey(key,
                                fmt::format("'{}' is '{}'; expected a number >= 0", key, text));
  }

  Status ReadQuantity(const io::TomlSection& section, Quantity& quantity) const {
    std::string relative = "own/base";
    RETURN_IF_ERROR(io::FirstFailure({section.ReadText("metric", quantity.metric),
                                      section.ReadText("relative_to", quantity.base),
                                      section.ReadText("relative", relative)}));
    if (quantity.metric.empty()) {
      return section.Bad("no 'metric'; expected one");
    }
    if (relative != "own/base" && relative != "base/own") {
      return section.BadKey("relative", "expected \"own/base\" or \"base/own\"");
    }
    if (!quantity.base.empty() && !HasRun(quantity.base)) {
      return section.BadKey("relative_to", "no run '" + quantity.base + "'; expected a label");
    }
    quantity.base_first = relative == "base/own";
    return {};
  }

  [[nodiscard]] bool HasRun(std::string_view name) const {
    const std::size_t at = *spec_.experiment.AxisAt("run");
    return std::any_of(spec_.experiment.cells.begin(), spec_.experiment.cells.end(),
                       [&](const Cell& cell) { return WithoutEnd(cell.values[at]) == name; });
  }

  Status ReadRuns(const io::TomlSection& section, std::vector<std::string>& runs) const {
    const io::TomlEntry* const entry = section.table().Find("runs");
    if (entry == nullptr) {
      return {};
    }
    const std::vector<io::TomlValue>* const list = entry->value.list();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      runs.push_back((*list)[i].AsText().value_or(""));
      if (!HasRun(runs.back())) {
        return section.BadAt((*list)[i].line, "no run '" + runs.back() + "'; expected labels");
      }
    }
    return runs.empty() ? section.BadKey("runs", "expected a list of labels") : Status();
  }

  Status ReadForm(const io::TomlSection& section, PanelForm& form) const {
    std::string text = "bars";
    RETURN_IF_ERROR(section.ReadText("form", text));
    const auto* const found = std::find(kForms.begin(), kForms.end(), text);
    if (found == kForms.end()) {
      return section.BadKey("form", base::UnknownName("form", text, kForms));
    }
    form = static_cast<PanelForm>(found - kForms.begin());
    return {};
  }

  Status ReadPanel(const io::TomlSection& section) {
    PanelSpec panel;
    std::optional<double> divide;
    RETURN_IF_ERROR(io::FirstFailure(
        {CheckKeys(section, kPanelKeys), section.ReadText("title", panel.title),
         ReadForm(section, panel.form), ReadQuantity(section, panel.quantity),
         section.ReadText("x", panel.x), section.ReadText("x_label", panel.x_label),
         section.ReadText("y_label", panel.y_label), ReadRuns(section, panel.runs),
         ReadPlace(section, panel.place), ReadNumber(section, "divide", divide),
         ReadNumber(section, "x_max", panel.x_max), section.ReadFlag("log_x", panel.log_x),
         section.ReadFlag("split", panel.split)}));
    panel.divide = divide.value_or(1);
    if (!(panel.divide > 0)) {
      return section.BadKey("divide", "expected a number > 0");
    }
    if (!spec_.experiment.AxisAt(panel.x) || panel.x == kDrawAxis) {
      return section.BadKey("x", "no axis '" + panel.x + "'; expected one of the experiment");
    }
    spec_.panels.push_back(std::move(panel));
    return {};
  }

  Status ReadPublished(const io::TomlSection& section) {
    PublishedValue common;
    std::string kind = "paper";
    std::string along;
    std::optional<double> digits;
    RETURN_IF_ERROR(io::FirstFailure(
        {CheckKeys(section, kPublishedKeys), ReadQuantity(section, common.quantity),
         section.ReadText("source", common.source), section.ReadText("kind", kind),
         section.ReadText("unlike", common.unlike), section.ReadText("along", along),
         ReadNumber(section, "digits", digits), ReadPlace(section, common.place)}));
    if (common.source.empty() || !digits || (kind != "paper" && kind != "artifact")) {
      return section.Bad("expected 'source', 'digits' and kind = \"paper\" or \"artifact\"");
    }
    common.digits = static_cast<int>(*digits);
    common.artifact = kind == "artifact";
    if (!common.artifact && !common.unlike.empty()) {
      return section.BadKey("unlike",
                            "'unlike' of a value of the paper; expected kind = "
                            "\"artifact\", or a [[difference]]");
    }
    std::vector<std::string> at;
    RETURN_IF_ERROR(ReadAt(section, along, at));
    return ReadValues(section, common, along, at);
  }

  Status ReadAt(const io::TomlSection& section, const std::string& along,
                std::vector<std::string>& at) const {
    const io::TomlEntry* const entry = section.table().Find("at");
    if (along.empty() != (entry == nullptr)) {
      return section.Bad("expected both or none of 'along' and 'at'");
    }
    if (entry == nullptr) {
      return {};
    }
    if (!spec_.experiment.AxisAt(along) || entry->value.list() == nullptr) {
      return section.BadKey("along", "expected an axis, and a list of its values as 'at'");
    }
    for (const io::TomlValue& value : *entry->value.list()) {
      at.push_back(value.AsText().value_or(""));
      RETURN_IF_ERROR(CheckValue(section, along, at.back()));
    }
    return {};
  }

  Status ReadValues(const io::TomlSection& section, const PublishedValue& common,
                    const std::string& along, const std::vector<std::string>& at) {
    const io::TomlEntry* const entry = section.table().Find("values");
    const io::TomlTable* const values = entry == nullptr ? nullptr : entry->value.table();
    if (values == nullptr || values->entries.empty()) {
      return section.BadKey("values", "expected [published.values] with a value for each run");
    }
    for (const io::TomlEntry& row : values->entries) {
      PublishedValue value = common;
      value.run = row.key;
      value.not_run = ReasonOf(section, row.key);
      const std::vector<io::TomlValue> single{row.value};
      const std::vector<io::TomlValue>* const list = row.value.list();
      const std::vector<io::TomlValue>& numbers = list == nullptr ? single : *list;
      if (!FitsPlaces(numbers, list != nullptr, at.size())) {
        return section.BadAt(row.line, "expected one number for each place of 'at'");
      }
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!at.empty()) {
          value.place = common.place;
          value.place.emplace_back(along, at[i]);
        }
        if (list != nullptr && numbers[i].AsText() == kNoValue) {
          continue;
        }
        RETURN_IF_ERROR(AddValue(section, numbers[i], value));
      }
    }
    return {};
  }

  static bool FitsPlaces(const std::vector<io::TomlValue>& numbers, bool is_list,
                         std::size_t places) {
    return numbers.size() == std::max<std::size_t>(1, places) && is_list == (places > 0);
  }

  static std::string ReasonOf(const io::TomlSection& section, const std::string& run) {
    const io::TomlEntry* const entry = section.table().Find("not_run");
    const io::TomlTable* const reasons = entry == nullptr ? nullptr : entry->value.table();
    const io::TomlEntry* const reason = reasons == nullptr ? nullptr : reasons->Find(run);
    return reason == nullptr ? "" : reason->value.AsText().value_or("");
  }

  Status AddValue(const io::TomlSection& section, const io::TomlValue& number,
                  PublishedValue value) {
    const std::optional<double> parsed = base::ToNumber(number.AsText().value_or(""));
    if (!parsed) {
      return section.BadAt(number.line, "expected a number");
    }
    value.value = *parsed;
    const std::size_t run = *spec_.experiment.AxisAt("run");
    std::size_t cells = 0;
    for (std::size_t i = 0; i < spec_.experiment.cells.size(); ++i) {
      const bool meant = spec_.experiment.cells[i].values[run] == value.run &&
                         spec_.IsAt(i, value.place) && spec_.IsFirstDraw(i);
      cells += meant ? 1U : 0U;
    }
    if (cells != (value.not_run.empty() ? 1 : 0)) {
      return section.BadAt(
          number.line,
          fmt::format("a value of '{}', of which {} cells are meant; expected one, or none and a "
                      "reason in [published.not_run]",
                      value.run, cells));
    }
    if (std::any_of(spec_.published.begin(), spec_.published.end(),
                    [&value](const PublishedValue& other) { return IsSamePlace(value, other); })) {
      return section.BadAt(number.line,
                           fmt::format("a second value of '{}' at the same place; expected one of "
                                       "the paper and one of the artifact at most",
                                       value.run));
    }
    spec_.published.push_back(std::move(value));
    return {};
  }

  static bool IsSamePlace(const PublishedValue& a, const PublishedValue& b) {
    return a.artifact == b.artifact && a.run == b.run && a.quantity == b.quantity &&
           a.place == b.place;
  }

  Status ReadDifference(const io::TomlSection& section) {
    DifferenceReason reason;
    RETURN_IF_ERROR(io::FirstFailure(
        {CheckKeys(section, kDifferenceKeys), section.ReadText("cause", reason.cause),
         section.ReadText("text", reason.text), section.ReadText("metric", reason.metric),
         ReadRunNames(section, reason.runs), ReadPlaces(section, reason)}));
    if (std::find(kCauses.begin(), kCauses.end(), reason.cause) == kCauses.end()) {
      return section.BadKey("cause", base::UnknownName("cause", reason.cause, kCauses));
    }
    if (reason.text.empty()) {
      return section.Bad("no 'text'; expected the reason in words");
    }
    const bool meant = std::any_of(spec_.published.begin(), spec_.published.end(),
                                   [&reason](const PublishedValue& value) {
                                     return !value.artifact && value.not_run.empty() &&
                                            reason.Applies(value.quantity, value.run, value.place);
                                   });
    if (!meant) {
      return section.Bad("it is the reason of no value of the paper; expected one at least");
    }
    spec_.differences.push_back(std::move(reason));
    return {};
  }

  // Absent: all runs.
  Status ReadRunNames(const io::TomlSection& section, std::vector<std::string>& runs) const {
    return section.Has("runs") ? ReadRuns(section, runs) : Status();
  }

  // A value of an axis, or a list of them.
  Status ReadPlaces(const io::TomlSection& section, DifferenceReason& reason) const {
    for (const std::string& axis : spec_.experiment.axes) {
      const io::TomlEntry* const entry = section.table().Find(axis);
      if (entry == nullptr || axis == "run") {
        continue;
      }
      const std::vector<io::TomlValue> single{entry->value};
      const std::vector<io::TomlValue>* const list = entry->value.list();
      std::vector<std::string> values;
      for (const io::TomlValue& value : list == nullptr ? single : *list) {
        values.push_back(value.AsText().value_or(""));
        RETURN_IF_ERROR(CheckValue(section, axis, values.back()));
      }
      reason.places.emplace_back(axis, std::move(values));
    }
    return {};
  }

  FigureSpec& spec_;
  const std::string& path_;
};

}  // namespace

bool IsSound(std::string_view label) { return label.ends_with(kSoundEnd); }

std::string WithoutEnd(std::string_view label) {
  return std::string(label.substr(0, label.size() - (IsSound(label) ? kSoundEnd.size() : 0)));
}

bool DifferenceReason::Applies(const Quantity& quantity, std::string_view run,
                               const Place& place) const {
  const auto holds = [](const auto& values, const auto& value) {
    return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
  };
  return holds(runs, run) && (metric.empty() || metric == quantity.metric) &&
         std::all_of(places.begin(), places.end(), [&](const auto& wanted) {
           return std::any_of(place.begin(), place.end(), [&](const auto& at) {
             return at.first == wanted.first && holds(wanted.second, at.second);
           });
         });
}

bool FigureSpec::IsFirstDraw(std::size_t cell) const {
  const std::optional<std::size_t> draw = DrawAxis();
  return !draw || experiment.cells[cell].values[*draw] == experiment.cells.front().values[*draw];
}

bool FigureSpec::IsAt(std::size_t cell, const Place& place) const {
  return std::all_of(place.begin(), place.end(), [&](const auto& at) {
    return experiment.cells[cell].values[*experiment.AxisAt(at.first)] == at.second;
  });
}

std::optional<std::size_t> FigureSpec::Find(std::string_view label, const Place& place) const {
  const std::size_t run = *experiment.AxisAt("run");
  for (std::size_t i = 0; i < experiment.cells.size(); ++i) {
    if (experiment.cells[i].values[run] == label && IsAt(i, place)) {
      return i;
    }
  }
  return std::nullopt;
}

Result<FigureSpec> ParseFigure(const std::string& id, const std::string& path,
                               std::string_view text, const std::string& reference) {
  ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(path, text, reference));
  FigureSpec spec{.id = id, .experiment = std::move(experiment)};
  RETURN_IF_ERROR(Reader(spec, path).Read());
  return spec;
}

std::vector<std::string> FigureIds() {
  std::vector<std::string> ids;
  for (const EmbeddedFigure& figure : EmbeddedFigures()) {
    ids.emplace_back(figure.id);
  }
  return ids;
}

Result<FigureSpec> ReadFigure(std::string_view id, const std::string& reference) {
  std::vector<std::string_view> known;
  for (const EmbeddedFigure& figure : EmbeddedFigures()) {
    if (figure.id == id) {
      return ParseFigure(std::string(id), fmt::format("experiments/{}.toml", id), figure.text,
                         reference);
    }
    known.push_back(figure.id);
  }
  return InvalidArgument(base::UnknownName("figure", id, known));
}

}  // namespace trainyard::experiments
