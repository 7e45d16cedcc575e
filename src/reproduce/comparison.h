// SPDX-License-Identifier: Apache-2.0
// Published, preset and sound side by side: the rows of a figure's table, and what they come to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiment/cell_result.h"
#include "reproduce/panels.h"

namespace trainyard {

struct ComparisonRow {
  std::string run;    // without " (sound)"
  std::string place;  // values of the axes that differ, such as "cluster01"; may be empty
  Quantity quantity;
  std::optional<double> published;
  int digits = 0;
  bool rerun = false;
  std::string source;
  std::optional<double> preset;
  std::optional<double> sound;
  std::string note;  // why something is missing

  // Per cent of the published value; none if one is missing or it is 0.
  [[nodiscard]] std::optional<double> PresetDifference() const;
  [[nodiscard]] std::optional<double> SoundDifference() const;
  // Rounded as published, the preset's value is the published one. REQUIRES: both are there.
  [[nodiscard]] bool DigitsEqual() const;
};

struct FigureOutcome {
  FigureSpec spec;
  FigureData data;
  std::vector<std::string> images;   // SVG texts, one for each panel; "" where none was drawn
  std::vector<ComparisonRow> rows;   // RowsOf
  std::size_t ok = 0;                // cells
  std::vector<std::string> failed;   // "cell: reason"
  std::vector<std::string> missing;  // inputs, each once
};

// All values of each quantity that was published or is drawn, in the order of the file and of its
// cells. `results` has the cells' own reasons; one for each.
[[nodiscard]] std::vector<ComparisonRow> RowsOf(const FigureSpec& spec, const FigureData& data,
                                                std::span<const CellResult> results);

// What the rows with a published value come to. Differences are medians of absolute values.
struct Agreement {
  std::size_t published = 0;
  std::size_t compared = 0;  // of these, with a value of the preset
  std::size_t digits_equal = 0;
  std::optional<double> preset_median;  // per cent
  std::optional<double> preset_largest;
  std::optional<double> sound_median;
  // A row to name the figure by: the last of its first quantity that has a published value and one
  // of the preset, which is the system's own run; null if there is none.
  const ComparisonRow* headline = nullptr;
};
[[nodiscard]] Agreement AgreementOf(std::span<const ComparisonRow> rows);

// "mean JCT (s)", "mean JCT / Muri-S".
[[nodiscard]] std::string NameOf(const Quantity& quantity);
// With enough digits for the quantity; "-" for none.
[[nodiscard]] std::string ValueText(std::optional<double> value, const ComparisonRow& row);
[[nodiscard]] std::string DifferenceText(std::optional<double> per_cent);

// The table of a figure and the summary of all, for a terminal; without a line end after them.
[[nodiscard]] std::string FigureTable(const FigureOutcome& figure);
[[nodiscard]] std::string SummaryTable(std::span<const FigureOutcome> figures);

// values.csv: a line for each row of all figures. summary.csv: one for each figure.
[[nodiscard]] std::string ValuesCsv(std::span<const FigureOutcome> figures);
[[nodiscard]] std::string SummaryCsv(std::span<const FigureOutcome> figures);
// An array of figures with their rows, indented by two.
[[nodiscard]] std::string FiguresJson(std::span<const FigureOutcome> figures);

}  // namespace trainyard
