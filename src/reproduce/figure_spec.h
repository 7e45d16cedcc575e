// SPDX-License-Identifier: Apache-2.0
// A figure or table of a paper as experiments/SYSTEM/ID.toml states it: an experiment, how the
// paper draws it, and what was published (docs/formats/experiment.md, docs/reproduce.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "trainyard/status.h"

namespace trainyard {

// What is measured of a run; relative to that of another run at the same place where `base` names
// one.
struct Quantity {
  std::string metric;  // a name of CellData::numbers; forms with curves: of CellData::curves
  std::string base;
  bool base_first = false;  // base / own instead of own / base

  friend bool operator==(const Quantity&, const Quantity&) = default;
};

// Axis and value: which cells are meant.
using Place = std::vector<std::pair<std::string, std::string>>;

enum class PanelForm : std::uint8_t { kBars, kLines, kSteps, kCdf, kWindows };

struct PanelSpec {
  PanelForm form = PanelForm::kBars;
  std::string title;
  Quantity quantity;
  std::string x = "run";  // the axis along the x axis
  std::string x_label;
  std::string y_label;
  std::vector<std::string> runs;  // empty: all
  Place place;
  double divide = 1;
  bool log_x = false;
  std::optional<double> x_max;
  bool split = false;  // "FIFO tune": "FIFO" along x, a series "tune"
};

struct PublishedValue {
  Quantity quantity;
  std::string run;  // a label without " (sound)"
  Place place;
  double value = 0;
  int digits = 0;      // after the point, as printed
  bool rerun = false;  // by the original program, not in the paper
  std::string source;
  std::string not_run;  // why this run is not in the experiment; else empty
};

struct FigureSpec {
  std::string id;  // "elasticflow/fig8a"
  Experiment experiment;
  std::vector<PanelSpec> panels;
  std::vector<PublishedValue> published;

  // The cell at a place of the run with this label; none if there is none.
  // REQUIRES: not more than one.
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view label, const Place& place) const;
};

// Runs in sound mode have labels with this end.
inline constexpr std::string_view kSoundEnd = " (sound)";
[[nodiscard]] bool IsSound(std::string_view label);
[[nodiscard]] std::string WithoutEnd(std::string_view label);

// The ids of all figures that the program knows, in order.
[[nodiscard]] std::vector<std::string> FigureIds();

// Errors: unknown id (kInvalidArgument); whatever is wrong in its file, among that a published
// value that names no cell, or more than one.
[[nodiscard]] Result<FigureSpec> ReadFigure(std::string_view id, const std::string& reference);
[[nodiscard]] Result<FigureSpec> ParseFigure(const std::string& id, const std::string& path,
                                             std::string_view text, const std::string& reference);

}  // namespace trainyard
