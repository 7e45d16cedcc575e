// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "trainyard/version.h"

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded file
extern "C" {
extern const char figures_style_begin;
extern const char figures_style_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard::experiments {
namespace {

// page.css without its first line, a comment.
std::string_view Style() {
  const std::string_view file(&figures_style_begin,
                              static_cast<std::size_t>(&figures_style_end - &figures_style_begin));
  return file.substr(file.find('\n'));
}

std::string Escaped(std::string_view text) {
  std::string escaped = base::ReplaceAll(std::string(text), "&", "&amp;");
  escaped = base::ReplaceAll(std::move(escaped), "<", "&lt;");
  return base::ReplaceAll(std::move(escaped), "\"", "&quot;");
}

std::string AnchorOf(const std::string& id) { return base::ReplaceAll(id, "/", "-"); }

// What is before <svg> names an encoding that the page has already.
std::string_view SvgOnly(std::string_view image) {
  const std::size_t begin = image.find("<svg");
  return begin == std::string_view::npos ? std::string_view() : image.substr(begin);
}

// As drawn, in pixels; larger than that it would look coarse.
std::string_view WidthOf(std::string_view image) {
  constexpr std::string_view kViewBox = "viewBox=\"0 0 ";
  const std::size_t at = image.find(kViewBox);
  if (at == std::string_view::npos) {
    return "1400";
  }
  const std::string_view rest = image.substr(at + kViewBox.size());
  return rest.substr(0, rest.find(' '));
}

std::string ShownPerCent(std::optional<double> value) {
  return value ? fmt::format("{:.1f} %", *value) : std::string("-");
}

// Why there is no run to compare with.
std::string NoteOf(const ComparisonRow& row) { return row.ours && row.sound ? "" : row.note; }

// The columns that the table of a figure needs.
struct Columns {
  bool places = false;
  bool causes = false;
  bool notes = false;
};

class Page {
 public:
  Page(std::span<const FigureOutcome> figures, const std::string& command)
      : figures_(figures), command_(command) {}

  std::string Write() {
    Add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Trainyard: published figures reproduced</title>\n<style>{}</style>\n</head>\n"
        "<body>\n<main>\n<h1>Published figures reproduced</h1>\n",
        Style());
    Add("<p class=\"muted\"><code>{}</code>, Trainyard {}. <b>Paper</b>: printed in the paper, or "
        "in the README, the drawing scripts or the logs that belong to it. <b>Artifact</b>: the "
        "published program, run again. <b>Ours</b>: Trainyard by the rules of the original "
        "(preset). <b>Sound</b>: Trainyard by one set of rules for all, with real restart costs "
        "and without published defects. Where the authors drew a trace without a seed, ours and "
        "sound are means of several draws, with the least and the greatest; such a value "
        "<i>agrees</i> if it is among the draws, any other if ours has its digits.</p>\n",
        Escaped(command_), TRAINYARD_VERSION);
    Summary();
    for (const FigureOutcome& figure : figures_) {
      Section(figure);
    }
    Add("</main>\n</body>\n</html>\n");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  // A table wider than the page is scrolled, by keys too; the first row of its head comes next.
  void BeginTable(std::string_view label) {
    Add("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n"
        "<thead><tr>",
        Escaped(label));
  }

  void Summary() {
    Add("<section id=\"summary\">\n<h2>Summary</h2>\n<p>{}</p>\n",
        Escaped(DifferencesText(figures_)));
    BeginTable("Summary");
    Add("<th class=\"left\" rowspan=\"2\">figure</th><th class=\"left\" rowspan=\"2\">for example"
        "</th><th rowspan=\"2\">paper</th><th rowspan=\"2\">artifact</th><th "
        "rowspan=\"2\">ours</th>"
        "<th rowspan=\"2\">sound</th><th class=\"group\" colspan=\"4\">ours against the paper</th>"
        "<th class=\"group\" colspan=\"2\">against the artifact</th>"
        "<th rowspan=\"2\">sound / ours, median</th><th rowspan=\"2\">runs</th></tr>\n"
        "<tr><th>agree</th><th>median</th><th>above 5 %</th><th>un&shy;known</th><th>agree</th>"
        "<th>median</th></tr></thead>\n<tbody>\n");
    std::size_t ok = 0;
    std::size_t cells = 0;
    for (const FigureOutcome& figure : figures_) {
      SummaryRow(figure);
      ok += figure.ok;
      cells += figure.spec.experiment.cells.size();
    }
    Add("</tbody>\n<tfoot><tr><td class=\"left\">all</td><td colspan=\"5\"></td>");
    Counts(AgreementOf(figures_), ok, cells);
    Add("</tfoot></table></div>\n</section>\n");
  }

  void SummaryRow(const FigureOutcome& figure) {
    const Agreement agreement = AgreementOf(figure.rows);
    const ComparisonRow none;
    const bool some = agreement.headline != nullptr;
    const ComparisonRow& row = some ? *agreement.headline : none;
    const auto mean = [&row](const std::optional<Measured>& value) {
      return ValueText(value ? std::optional(value->value) : std::nullopt, row);
    };
    Add("<tr><td class=\"left\"><a href=\"#{}\">{}</a></td><td class=\"text\">{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td>",
        AnchorOf(figure.spec.id), Escaped(figure.spec.id),
        some ? Escaped(fmt::format("{}, {} {}", NameOf(row.quantity), row.run, row.place))
             : "no published number",
        ValueText(row.paper), ValueText(row.artifact), mean(row.ours), mean(row.sound));
    Counts(agreement, figure.ok, figure.spec.experiment.cells.size());
  }

  // The rest of a row of the summary.
  void Counts(const Agreement& agreement, std::size_t ok, std::size_t cells) {
    const Against& paper = agreement.paper;
    const Against& artifact = agreement.artifact;
    Add("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "</tr>\n",
        CountOf(paper.agree, paper.compared), ShownPerCent(paper.median), agreement.notable,
        agreement.unknown, CountOf(artifact.agree, artifact.compared),
        ShownPerCent(artifact.median), ShownPerCent(agreement.sound_median), CountOf(ok, cells));
  }

  void Section(const FigureOutcome& figure) {
    Add("<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"muted\"><code>trainyard reproduce {}</code>"
        "</p>\n",
        AnchorOf(figure.spec.id), Escaped(figure.spec.experiment.title), Escaped(figure.spec.id));
    if (!figure.spec.experiment.note.empty()) {
      Add("<p>{}</p>\n", Escaped(figure.spec.experiment.note));
    }
    for (const std::string& missing : figure.missing) {
      Add("<p class=\"muted\">Not run, {}.</p>\n", Escaped(missing));
    }
    for (const std::string& failed : figure.failed) {
      Add("<p class=\"failed\">Failed: {}</p>\n", Escaped(failed));
    }
    Images(figure);
    Table(figure);
    Add("</section>\n");
  }

  void Images(const FigureOutcome& figure) {
    Add("<div class=\"figures\">\n");
    for (const std::string& image : figure.images) {
      if (!image.empty()) {
        Add("<figure tabindex=\"0\" style=\"--drawn: {}px; width: var(--drawn)\">{}</figure>\n",
            WidthOf(image), SvgOnly(image));
      }
    }
    Add("</div>\n");
  }

  void Table(const FigureOutcome& figure) {
    if (figure.rows.empty()) {
      return;
    }
    const auto some = [&](auto text_of) {
      return std::any_of(figure.rows.begin(), figure.rows.end(),
                         [&](const ComparisonRow& row) { return !text_of(row).empty(); });
    };
    const Columns columns{.places = some([](const ComparisonRow& row) { return row.place; }),
                          .causes = some([](const ComparisonRow& row) { return row.cause; }),
                          .notes = some(NoteOf)};
    Add("<details{}><summary>{} values</summary>\n", figure.rows.size() <= kOpenRows ? " open" : "",
        figure.rows.size());
    BeginTable("Values of " + figure.spec.id);
    Add("<th class=\"left\">quantity</th><th class=\"left\">run</th>{}<th>paper</th>"
        "<th>artifact</th><th>ours</th><th>sound</th><th>ours / paper</th>"
        "<th>ours / artifact</th><th>sound / ours</th>{}{}</tr></thead>\n<tbody>\n",
        columns.places ? "<th class=\"left\">at</th>" : "",
        columns.causes ? "<th class=\"left\">cause</th>" : "",
        columns.notes ? "<th class=\"left\">note</th>" : "");
    for (const ComparisonRow& row : figure.rows) {
      Row(row, columns);
    }
    Add("</tbody></table></div>\n");
    Reasons(figure);
    Add("</details>\n");
  }

  void Reasons(const FigureOutcome& figure) {
    const auto reasons = ReasonsOf(figure);
    if (reasons.empty()) {
      return;
    }
    Add("<ul>\n");
    for (const auto& [cause, reason] : reasons) {
      Add("<li><b>{}</b>: {}</li>\n", Escaped(cause), Escaped(reason));
    }
    Add("</ul>\n");
  }

  // What is published stands in green where ours agrees.
  void PublishedCell(const ComparisonRow& row, const std::optional<Printed>& value) {
    if (!value) {
      Add("<td>-</td>");
      return;
    }
    const bool like = value->unlike.empty();
    Add("<td title=\"{}\"{}>{}{}</td>", Escaped(value->source),
        row.ours && like && row.Agrees(*value) ? " class=\"equal\"" : "", ValueText(value),
        like ? "" : fmt::format("<span class=\"range\">{}</span>", Escaped(value->unlike)));
  }

  void MeasuredCell(const ComparisonRow& row, const std::optional<Measured>& value) {
    if (!value) {
      Add("<td>-</td>");
      return;
    }
    Add("<td>{}", ValueText(value->value, row));
    if (value->draws > 1) {
      Add("<span class=\"range\">{} to {}</span>", ValueText(value->low, row),
          ValueText(value->high, row));
    }
    Add("</td>");
  }

  void Row(const ComparisonRow& row, Columns columns) {
    const auto cell = [](bool is_there, const char* kind, const std::string& text) {
      return is_there ? fmt::format("<td class=\"{}\">{}</td>", kind, Escaped(text)) : "";
    };
    Add("<tr><td class=\"left\">{}</td><td class=\"left\">{}</td>{}", Escaped(NameOf(row.quantity)),
        Escaped(row.run), cell(columns.places, "left", row.place));
    PublishedCell(row, row.paper);
    PublishedCell(row, row.artifact);
    MeasuredCell(row, row.ours);
    MeasuredCell(row, row.sound);
    Add("<td>{}</td><td>{}</td><td>{}</td>{}{}</tr>\n", DifferenceText(row.PaperDifference()),
        DifferenceText(row.ArtifactDifference()), DifferenceText(row.SoundDifference()),
        cell(columns.causes, "left", row.cause), cell(columns.notes, "text", NoteOf(row)));
  }

  static constexpr std::size_t kOpenRows = 30;

  const std::span<const FigureOutcome> figures_;
  const std::string& command_;
  std::string text_;
};

}  // namespace

std::string FiguresPage(std::span<const FigureOutcome> figures, const std::string& command) {
  return Page(figures, command).Write();
}

}  // namespace trainyard::experiments
