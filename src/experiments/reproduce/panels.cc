// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/panels.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace trainyard::experiments {
namespace {

const std::string& LabelOf(const FigureSpec& spec, std::size_t cell) {
  return spec.experiment.cells[cell].values[*spec.experiment.AxisAt("run")];
}

std::optional<double> Ratio(std::optional<double> own, std::optional<double> base,
                            bool base_first) {
  if (!own || !base || (base_first ? *own : *base) == 0) {
    return std::nullopt;
  }
  return base_first ? *base / *own : *own / *base;
}

// The same run with the other draws; the cell itself where there are none.
std::vector<std::size_t> DrawsOf(const FigureSpec& spec, std::size_t cell) {
  const std::optional<std::size_t> draw = spec.DrawAxis();
  if (!draw) {
    return {cell};
  }
  std::vector<std::size_t> cells;
  std::vector<std::string> wanted = spec.experiment.cells[cell].values;
  for (std::size_t i = 0; i < spec.experiment.cells.size(); ++i) {
    const std::vector<std::string>& values = spec.experiment.cells[i].values;
    wanted[*draw] = values[*draw];
    if (values == wanted) {
      cells.push_back(i);
    }
  }
  return cells;
}

std::optional<double> ValueOfDraw(const FigureSpec& spec, const FigureData& data, std::size_t cell,
                                  const Quantity& quantity) {
  if (!data[cell]) {
    return std::nullopt;
  }
  const std::optional<double> own = data[cell]->Number(quantity.metric);
  if (quantity.base.empty()) {
    return own;
  }
  const std::string end(IsSound(LabelOf(spec, cell)) ? kSoundEnd : "");
  const std::optional<std::size_t> base = Sibling(spec, cell, quantity.base + end);
  return Ratio(own, base && data[*base] ? data[*base]->Number(quantity.metric) : std::nullopt,
               quantity.base_first);
}

std::optional<double> Stated(const FigureSpec& spec, bool artifact, std::string_view run,
                             std::size_t cell, const Quantity& quantity) {
  for (const PublishedValue& value : spec.published) {
    if (value.artifact == artifact && value.run == run && value.quantity == quantity &&
        spec.IsAt(cell, value.place)) {
      return value.value;
    }
  }
  return std::nullopt;
}

class Builder {
 public:
  Builder(const FigureSpec& spec, const PanelSpec& panel, const FigureData& data)
      : spec_(spec), panel_(panel), data_(data) {
    figure_.title = panel.title;
    figure_.x_label = panel.x_label;
    figure_.y_label = panel.y_label;
    figure_.log_x = panel.log_x;
    figure_.x_max = panel.x_max;
    FindCells();
  }

  results::Figure Build() {
    switch (panel_.form) {
      case PanelForm::kBars:
        figure_.form = results::Figure::Form::kBars;
        AddValues();
        break;
      case PanelForm::kLines:
        figure_.form = results::Figure::Form::kLines;
        AddValues();
        break;
      case PanelForm::kSteps:
      case PanelForm::kCdf:
        figure_.form = results::Figure::Form::kSteps;
        AddCurves(panel_.quantity.metric, "");
        break;
      case PanelForm::kWindows:
        figure_.form = results::Figure::Form::kSteps;
        AddCurves("submitted", "submitted");
        AddCurves(panel_.quantity.metric, "by the deadline");
        break;
    }
    return std::move(figure_);
  }

 private:
  void FindCells() {
    for (std::size_t i = 0; i < spec_.experiment.cells.size(); ++i) {
      const std::string name = WithoutEnd(LabelOf(spec_, i));
      const bool wanted = panel_.runs.empty() || std::find(panel_.runs.begin(), panel_.runs.end(),
                                                           name) != panel_.runs.end();
      if (wanted && spec_.IsFirstDraw(i) && spec_.IsAt(i, panel_.place)) {
        cells_.push_back(i);
      }
    }
  }

  // What a run is called along the x axis and in the key.
  struct Names {
    std::string category;
    std::string series;
  };
  [[nodiscard]] Names NamesOf(const std::string& run, std::optional<std::size_t> cell) const {
    if (panel_.x != "run") {
      return {
          .category =
              cell ? spec_.experiment.cells[*cell].values[*spec_.experiment.AxisAt(panel_.x)] : "",
          .series = run};
    }
    const std::size_t space = run.find(' ');
    if (!panel_.split || space == std::string::npos) {
      return {.category = run, .series = ""};
    }
    return {.category = run.substr(0, space), .series = run.substr(space + 1)};
  }

  results::FigureSeries& SeriesOf(const std::string& name, results::ValuesOf values_of) {
    for (results::FigureSeries& series : figure_.series) {
      if (series.name == name && series.values_of == values_of) {
        return series;
      }
    }
    figure_.series.push_back(
        {.name = name, .values_of = values_of, .bars = {}, .points = {}, .ranges = {}});
    return figure_.series.back();
  }

  std::size_t CategoryOf(const std::string& name) {
    const auto found = std::find(figure_.categories.begin(), figure_.categories.end(), name);
    if (found != figure_.categories.end()) {
      return static_cast<std::size_t>(found - figure_.categories.begin());
    }
    figure_.categories.push_back(name);
    return figure_.categories.size() - 1;
  }

  void Put(const Names& names, results::ValuesOf values_of, std::optional<Measured> value) {
    results::FigureSeries& series = SeriesOf(names.series, values_of);
    const bool ranged = spec_.DrawAxis() && value && value->draws > 0;
    const std::pair<double, double> range =
        ranged ? std::pair(value->low / panel_.divide, value->high / panel_.divide)
               : std::pair(0.0, 0.0);
    if (panel_.form == PanelForm::kBars) {
      const std::size_t at = CategoryOf(names.category);
      series.bars.resize(std::max(series.bars.size(), at + 1));
      if (ranged) {
        series.ranges.resize(series.bars.size());
        series.ranges[at] = range;
      }
      if (value) {
        series.bars[at] = value->value / panel_.divide;
      }
    } else if (const std::optional<double> x = base::ToNumber(names.category); x && value) {
      const std::pair<double, double> point(*x, value->value / panel_.divide);
      const auto at = std::upper_bound(series.points.begin(), series.points.end(), point) -
                      series.points.begin();
      series.points.insert(series.points.begin() + at, point);
      if (ranged) {
        series.ranges.insert(series.ranges.begin() + at, range);
      }
    }
  }

  void PutPublished(const Names& names, bool artifact, std::optional<double> value) {
    Put(names, artifact ? results::ValuesOf::kArtifact : results::ValuesOf::kPaper,
        value ? std::optional(Measured{.value = *value, .draws = 0}) : std::nullopt);
  }

  // Series in the order of the runs, each of the paper, its artifact, ours and sound mode.
  void AddValues() {
    for (const std::size_t cell : cells_) {
      const std::string run = WithoutEnd(LabelOf(spec_, cell));
      const Names names = NamesOf(run, cell);
      const bool sound = IsSound(LabelOf(spec_, cell));
      for (const bool artifact : {false, true}) {
        if (!sound) {
          PutPublished(names, artifact, PublishedOf(spec_, artifact, run, cell, panel_.quantity));
        }
      }
      Put(names, sound ? results::ValuesOf::kSound : results::ValuesOf::kOurs,
          ValueOf(spec_, data_, cell, panel_.quantity));
    }
    for (const PublishedValue& value : spec_.published) {
      if (!value.not_run.empty() && value.quantity == panel_.quantity && panel_.x == "run" &&
          IsShown(value.place)) {
        PutPublished(NamesOf(value.run, std::nullopt), value.artifact, value.value);
      }
    }
    for (results::FigureSeries& series : figure_.series) {
      series.bars.resize(figure_.categories.size());
      if (!series.ranges.empty() && panel_.form == PanelForm::kBars) {
        series.ranges.resize(figure_.categories.size());
      }
    }
  }

  // Nothing that the panel fixes is elsewhere.
  [[nodiscard]] bool IsShown(const Place& place) const {
    return std::none_of(place.begin(), place.end(), [this](const auto& at) {
      return std::any_of(panel_.place.begin(), panel_.place.end(), [&at](const auto& fixed) {
        return fixed.first == at.first && fixed.second != at.second;
      });
    });
  }

  void AddCurves(const std::string& metric, const std::string& name) {
    for (const std::size_t cell : cells_) {
      const std::string& label = LabelOf(spec_, cell);
      if (!data_[cell]) {
        continue;
      }
      const auto curve = data_[cell]->curves.find(metric);
      if (curve == data_[cell]->curves.end()) {
        continue;
      }
      results::FigureSeries& series =
          SeriesOf(name.empty() ? WithoutEnd(label) : name,
                   IsSound(label) ? results::ValuesOf::kSound : results::ValuesOf::kOurs);
      const double x_unit = panel_.form == PanelForm::kCdf ? 3600 : 1;
      for (std::size_t i = 0; i < curve->second.x.size(); ++i) {
        series.points.emplace_back(curve->second.x[i] / x_unit, curve->second.y[i] / panel_.divide);
      }
    }
  }

  const FigureSpec& spec_;
  const PanelSpec& panel_;
  const FigureData& data_;
  std::vector<std::size_t> cells_;
  results::Figure figure_;
};

}  // namespace

std::optional<std::size_t> Sibling(const FigureSpec& spec, std::size_t cell,
                                   std::string_view label) {
  std::vector<std::string> wanted = spec.experiment.cells[cell].values;
  wanted[*spec.experiment.AxisAt("run")] = label;
  const std::vector<Cell>& cells = spec.experiment.cells;
  const auto found = std::find_if(cells.begin(), cells.end(),
                                  [&wanted](const Cell& other) { return other.values == wanted; });
  return found == cells.end() ? std::nullopt
                              : std::optional(static_cast<std::size_t>(found - cells.begin()));
}

std::optional<Measured> ValueOf(const FigureSpec& spec, const FigureData& data, std::size_t cell,
                                const Quantity& quantity) {
  std::vector<double> values;
  for (const std::size_t draw : DrawsOf(spec, cell)) {
    if (const std::optional<double> value = ValueOfDraw(spec, data, draw, quantity)) {
      values.push_back(*value);
    }
  }
  if (values.empty()) {
    return std::nullopt;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Measured{.value = std::accumulate(values.begin(), values.end(), 0.0) /
                           static_cast<double>(values.size()),
                  .low = *low,
                  .high = *high,
                  .draws = values.size()};
}

std::optional<double> PublishedOf(const FigureSpec& spec, bool artifact, std::string_view run,
                                  std::size_t cell, const Quantity& quantity) {
  if (const std::optional<double> stated = Stated(spec, artifact, run, cell, quantity);
      stated || quantity.base.empty()) {
    return stated;
  }
  const Quantity plain{.metric = quantity.metric, .base = "", .base_first = false};
  return Ratio(Stated(spec, artifact, run, cell, plain),
               Stated(spec, artifact, quantity.base, cell, plain), quantity.base_first);
}

results::Figure FigureOf(const FigureSpec& spec, const PanelSpec& panel, const FigureData& data) {
  return Builder(spec, panel, data).Build();
}

}  // namespace trainyard::experiments
