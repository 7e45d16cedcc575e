// SPDX-License-Identifier: Apache-2.0
// The paper, its artifact, ours and sound mode side by side: the rows of a figure's table, and what
// they come to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/reproduce/panels.h"
#include "experiments/sweep/cell_result.h"

namespace trainyard::experiments {

// A published value.
struct Printed {
  double value = 0;
  int digits = 0;  // after the point
  std::string source;
  std::string unlike;  // settings that ours does not have: there is nothing to compare; else empty
};

struct ComparisonRow {
  std::string run;    // without " (sound)"
  std::string place;  // values of the axes that differ, such as "cluster01"; may be empty
  Quantity quantity;
  std::optional<Printed> paper;
  std::optional<Printed> artifact;
  std::optional<Measured> ours;  // by the preset
  std::optional<Measured> sound;
  // Of a difference from the paper above kNotableDifference; else empty. The text of an unknown
  // cause may be empty.
  std::string cause;
  std::string reason;
  std::string note;  // why something is missing

  // Ours in per cent of the published value, sound mode in per cent of ours; none if one is missing
  // or it is 0.
  [[nodiscard]] std::optional<double> PaperDifference() const;
  [[nodiscard]] std::optional<double> ArtifactDifference() const;
  [[nodiscard]] std::optional<double> SoundDifference() const;
  // Rounded as published, ours is the published value; or, of several draws, the published value is
  // not outside of them. REQUIRES: ours is there.
  [[nodiscard]] bool Agrees(const Printed& published) const;
};

struct FigureOutcome {
  FigureSpec spec;
  FigureData data;
  std::vector<results::Figure> drawings;  // of a figure without panels
  std::vector<std::string> images;        // SVG texts, one for each panel or drawing; "": not drawn
  std::vector<ComparisonRow> rows;        // RowsOf
  std::size_t ok = 0;                     // cells
  std::vector<std::string> failed;        // "cell: reason"
  std::vector<std::string> missing;       // inputs, each once
};

// All values of each quantity that was published or is drawn, in the order of the file and of its
// cells. `results` has the cells' own reasons; one for each.
[[nodiscard]] std::vector<ComparisonRow> RowsOf(const FigureSpec& spec, const FigureData& data,
                                                std::span<const CellResult> results);

// What the published values of one kind come to. Differences are absolute, in per cent.
struct Against {
  std::size_t values = 0;
  std::size_t compared = 0;  // of these, with a value of ours
  std::size_t agree = 0;     // of these, ComparisonRow::Agrees
  std::optional<double> median;
  std::optional<double> largest;
};

struct Agreement {
  Against paper;
  Against artifact;
  std::size_t notable = 0;             // differences from the paper above kNotableDifference
  std::size_t unknown = 0;             // of these, without a known cause
  std::optional<double> sound_median;  // of sound mode from ours, per cent
  // A row to name the figure by: the last of its first quantity that has a value of ours and, if
  // any has, one of the paper, which is the system's own run; null if there is none.
  const ComparisonRow* headline = nullptr;
};
[[nodiscard]] Agreement AgreementOf(std::span<const ComparisonRow> rows);
// All rows of all figures together; without a headline.
[[nodiscard]] Agreement AgreementOf(std::span<const FigureOutcome> figures);

// "12 of 363 values of the paper ... differ by more than 5 %: 3 testbed, 9 unknown."
[[nodiscard]] std::string DifferencesText(std::span<const FigureOutcome> figures);

// "12 of 363"; "-" of none.
[[nodiscard]] std::string CountOf(std::size_t part, std::size_t all);

// "mean JCT (s)", "mean JCT / Muri-S".
[[nodiscard]] std::string NameOf(const Quantity& quantity);
// With the digits of the row's published values, else enough for the quantity; "-" for none.
[[nodiscard]] std::string ValueText(std::optional<double> value, const ComparisonRow& row);
// The same with the least and the greatest of several draws: "0.83 (0.79 to 0.91)".
[[nodiscard]] std::string ValueText(const std::optional<Measured>& value, const ComparisonRow& row);
// With its own digits.
[[nodiscard]] std::string ValueText(const std::optional<Printed>& value);
[[nodiscard]] std::string DifferenceText(std::optional<double> per_cent);

// Each cause with its text, once, in the order of the rows.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> ReasonsOf(
    const FigureOutcome& figure);

// The table of a figure and the summary of all, for a terminal; without a line end after them.
[[nodiscard]] std::string FigureTable(const FigureOutcome& figure);
[[nodiscard]] std::string SummaryTable(std::span<const FigureOutcome> figures);

// values.csv: a line for each row of all figures. summary.csv: one for each figure.
[[nodiscard]] std::string ValuesCsv(std::span<const FigureOutcome> figures);
[[nodiscard]] std::string SummaryCsv(std::span<const FigureOutcome> figures);
// An array of figures with their rows, indented by two.
[[nodiscard]] std::string FiguresJson(std::span<const FigureOutcome> figures);

// All figures on one page that needs nothing else: images, tables, notes, a summary. HTML; light or
// dark as the reader has set. `command`: how it was made.
[[nodiscard]] std::string FiguresPage(std::span<const FigureOutcome> figures,
                                      const std::string& command);

}  // namespace trainyard::experiments
