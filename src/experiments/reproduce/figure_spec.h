// SPDX-License-Identifier: Apache-2.0
// A figure or table of a paper as experiments/SYSTEM/ID.toml states it: an experiment, how the
// paper draws it, and what was published (docs/formats/experiment.md, docs/reproduce.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/sweep/experiment.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

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
  int digits = 0;         // after the point, as printed
  bool artifact = false;  // the published program was run again; else printed in the paper, its
                          // README, its drawing scripts or its logs
  std::string source;
  std::string unlike;   // of an artifact's value: the settings that ours does not have; else empty
  std::string not_run;  // why this run is not in the experiment; else empty
};

// Why values of ours differ from the paper's by more than kNotableDifference.
struct DifferenceReason {
  std::string cause;  // a name of kCauses
  std::string text;
  std::vector<std::string> runs;                                         // empty: all
  std::string metric;                                                    // empty: all
  std::vector<std::pair<std::string, std::vector<std::string>>> places;  // axis and values

  [[nodiscard]] bool Applies(const Quantity& quantity, std::string_view run,
                             const Place& place) const;
};

inline constexpr double kNotableDifference = 5;  // per cent
inline constexpr std::string_view kDrawCause = "draw";
inline constexpr std::string_view kUnknownCause = "unknown";
// testbed: the paper measured on machines, ours is a simulation; inputs: the paper's trace is not
// the published one; draw: the paper's trace was drawn without a seed, and its value is among those
// of other draws; solver: optima that are not unique; code: the published program is not the one of
// the paper; defect: of the paper's figure or program; rules: ours departs from
// the program's.
inline constexpr std::array<std::string_view, 8> kCauses{
    "testbed", "inputs", kDrawCause, "solver", "code", "defect", "rules", kUnknownCause};

inline constexpr std::string_view kDrawAxis = "draw";

struct FigureSpec {
  std::string id;  // "elasticflow/fig8a"
  Experiment experiment;
  std::vector<PanelSpec> panels;
  std::vector<PublishedValue> published;      // one of the paper and one of the artifact at most
  std::vector<DifferenceReason> differences;  // the first that applies counts

  // The axis of draws, over which values are means; none if each run is one of its own.
  [[nodiscard]] std::optional<std::size_t> DrawAxis() const { return experiment.AxisAt(kDrawAxis); }
  // The first draw of a place stands for all of them.
  [[nodiscard]] bool IsFirstDraw(std::size_t cell) const;
  [[nodiscard]] bool IsAt(std::size_t cell, const Place& place) const;
  // The cell at a place of the run with this label, of the first draw; none if there is none.
  // REQUIRES: not more than one.
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view label, const Place& place) const;
};

// Runs in sound mode have labels with this end.
inline constexpr std::string_view kSoundEnd = " (sound)";
[[nodiscard]] bool IsSound(std::string_view label);
[[nodiscard]] std::string WithoutEnd(std::string_view label);

// The files of experiments/, built into the program; written by CMake.
struct EmbeddedFigure {
  std::string_view id;  // "elasticflow/fig8a"
  std::string_view text;
};

// In the order of their ids, numbers by size.
[[nodiscard]] std::span<const EmbeddedFigure> EmbeddedFigures();

// The ids of all figures that the program knows, in order.
[[nodiscard]] std::vector<std::string> FigureIds();

// Errors: unknown id (kInvalidArgument); whatever is wrong in its file, among that a published
// value that names no cell, or more than one, or stands there twice.
[[nodiscard]] Result<FigureSpec> ReadFigure(std::string_view id, const std::string& reference);
[[nodiscard]] Result<FigureSpec> ParseFigure(const std::string& id, const std::string& path,
                                             std::string_view text, const std::string& reference);

}  // namespace trainyard::experiments
