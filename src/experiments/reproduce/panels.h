// SPDX-License-Identifier: Apache-2.0
// The panels of a figure, from the published values and the outcomes of its cells.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "experiments/reproduce/cell_data.h"
#include "experiments/reproduce/figure_spec.h"
#include "results/write/figure.h"

namespace trainyard::experiments {

// By cell of the experiment; none: not run.
using FigureData = std::vector<std::optional<CellData>>;

// The cell that differs from `cell` in nothing but its run, which has this label; none: there is
// none.
[[nodiscard]] std::optional<std::size_t> Sibling(const FigureSpec& spec, std::size_t cell,
                                                 std::string_view label);

// Of a run. Of a figure with draws: the mean of those that were run, with the least and the
// greatest.
struct Measured {
  double value = 0;
  double low = 0;
  double high = 0;
  std::size_t draws = 1;
};

// Of the run of a cell, a first draw; none where it, or the run it is relative to, has none.
[[nodiscard]] std::optional<Measured> ValueOf(const FigureSpec& spec, const FigureData& data,
                                              std::size_t cell, const Quantity& quantity);

// Of the paper, or of its artifact, for that run at the place of `cell`; a relative quantity also
// follows from two values that were published as they are.
[[nodiscard]] std::optional<double> PublishedOf(const FigureSpec& spec, bool artifact,
                                                std::string_view run, std::size_t cell,
                                                const Quantity& quantity);

[[nodiscard]] results::Figure FigureOf(const FigureSpec& spec, const PanelSpec& panel,
                                       const FigureData& data);

}  // namespace trainyard::experiments
