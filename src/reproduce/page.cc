// SPDX-License-Identifier: Apache-2.0
#include "reproduce/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "trainyard/version.h"

namespace trainyard {
namespace {

// The colours of web/src/report.css. Images have a white ground of their own.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --text: #1c2024; --muted: #5b6470; --page: #f5f6f7;
  --surface: #fff; --border: #d9dde2; --hover: #eef1f4; --link: #00568c; --good: #116932;
  --bad: #a3341f; --shade: rgb(28 32 36 / 0.16); }
@media screen and (prefers-color-scheme: dark) { :root { --text: #e7eaee; --muted: #a3adb8;
  --page: #101316; --surface: #181c21; --border: #343b44; --hover: #242a31; --link: #7cc3f5;
  --good: #6fce8e; --bad: #f0937f; --shade: rgb(0 0 0 / 0.6); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 28px 24px 40px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 10px; max-width: 90ch; } .muted { color: var(--muted); }
a { color: var(--link); }
section { background: var(--surface); border: 1px solid var(--border); border-radius: 8px;
  padding: 18px 20px; margin: 18px 0; }
.scroll { overflow-x: auto; background:
  linear-gradient(to left, var(--surface) 14px, transparent) right / 40px 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 14px 100% no-repeat scroll; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--border); }
th { color: var(--muted); font-weight: 600; } th.left, td.left { text-align: left; }
tr > :first-child { position: sticky; left: 0; background: var(--surface); }
td.note { white-space: normal; min-width: 26ch; }
tbody tr:hover > * { background: var(--hover); }
.equal { color: var(--good); font-weight: 600; } .failed { color: var(--bad); }
.figures { display: flex; flex-wrap: wrap; gap: 10px; margin: 10px 0; }
figure { max-width: 100%; margin: 0; background: #fff; border: 1px solid var(--border);
  border-radius: 6px; overflow-x: auto; }
figure svg { display: block; min-width: calc(0.85 * var(--drawn)); max-width: 100%; height: auto;
  margin: 0 auto; }
summary { cursor: pointer; color: var(--link); margin: 6px 0; }
code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (max-width: 600px) { main { padding: 16px 10px; } section { padding: 14px 12px; } }
)";

std::string Escaped(std::string_view text) {
  std::string escaped = ReplaceAll(std::string(text), "&", "&amp;");
  escaped = ReplaceAll(std::move(escaped), "<", "&lt;");
  return ReplaceAll(std::move(escaped), "\"", "&quot;");
}

std::string AnchorOf(const std::string& id) { return ReplaceAll(id, "/", "-"); }

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

std::string PerCent(std::optional<double> value) {
  return value ? fmt::format("{:.1f} %", *value) : std::string("-");
}

// Why there is no run to compare with.
std::string NoteOf(const ComparisonRow& row) { return row.preset && row.sound ? "" : row.note; }

// The columns of text that the table of a figure needs.
struct Texts {
  bool places = false;
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
        kStyle);
    Add("<p class=\"muted\"><code>{}</code>, Trainyard {}. <b>Published</b>: what the paper or its "
        "artifact states; <i>re-run</i>: what the original program gives when it is run again. "
        "<b>Preset</b>: Trainyard by the rules of the original. <b>Sound</b>: Trainyard by one set "
        "of rules for all, with real restart costs and without published defects.</p>\n",
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

  // A table wider than the page is scrolled, by keys too; the first cell of its head comes next.
  void BeginTable(std::string_view label) {
    Add("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n"
        "<thead><tr>",
        Escaped(label));
  }

  void Summary() {
    Add("<section>\n<h2>Summary</h2>\n");
    BeginTable("Summary");
    Add("<th class=\"left\">figure</th><th class=\"left\">for example</th><th>published</th>"
        "<th>preset</th><th>sound</th><th>values</th><th>digits equal</th>"
        "<th>median difference</th><th>largest</th><th>sound, median</th><th>runs</th>"
        "<th>not run</th></tr></thead>\n<tbody>\n");
    for (const FigureOutcome& figure : figures_) {
      const Agreement agreement = AgreementOf(figure.rows);
      const ComparisonRow none;
      const ComparisonRow& row = agreement.headline == nullptr ? none : *agreement.headline;
      const std::string example =
          agreement.headline == nullptr
              ? std::string("no published number")
              : fmt::format("{}, {} {}", NameOf(row.quantity), row.run, row.place);
      Add("<tr><td class=\"left\"><a href=\"#{}\">{}</a></td><td class=\"left\">{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td></tr>\n",
          AnchorOf(figure.spec.id), Escaped(figure.spec.id), Escaped(example),
          ValueText(row.published, row), ValueText(row.preset, row), ValueText(row.sound, row),
          agreement.published, agreement.digits_equal, agreement.compared,
          PerCent(agreement.preset_median), PerCent(agreement.preset_largest),
          PerCent(agreement.sound_median), figure.ok,
          figure.spec.experiment.cells.size() - figure.ok);
    }
    Add("</tbody></table></div>\n</section>\n");
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
    const Texts texts{.places = some([](const ComparisonRow& row) { return row.place; }),
                      .notes = some(NoteOf)};
    Add("<details{}><summary>{} values</summary>\n", figure.rows.size() <= kOpenRows ? " open" : "",
        figure.rows.size());
    BeginTable("Values of " + figure.spec.id);
    Add("<th class=\"left\">quantity</th><th class=\"left\">run</th>{}"
        "<th>published</th><th>preset</th><th>difference</th><th>sound</th><th>difference</th>"
        "{}</tr></thead>\n<tbody>\n",
        texts.places ? "<th class=\"left\">at</th>" : "",
        texts.notes ? "<th class=\"left\">note</th>" : "");
    for (const ComparisonRow& row : figure.rows) {
      Row(row, texts);
    }
    Add("</tbody></table></div></details>\n");
  }

  void Row(const ComparisonRow& row, Texts texts) {
    const bool equal = row.PresetDifference() && row.DigitsEqual();
    const auto cell = [](bool is_there, const char* kind, const std::string& text) {
      return is_there ? fmt::format("<td class=\"{}\">{}</td>", kind, Escaped(text)) : "";
    };
    Add("<tr><td class=\"left\">{}</td><td class=\"left\">{}</td>{}"
        "<td title=\"{}\">{}{}</td><td{}>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "{}</tr>\n",
        Escaped(NameOf(row.quantity)), Escaped(row.run), cell(texts.places, "left", row.place),
        Escaped(row.source), ValueText(row.published, row), row.rerun ? " <i>re-run</i>" : "",
        equal ? " class=\"equal\"" : "", ValueText(row.preset, row),
        DifferenceText(row.PresetDifference()), ValueText(row.sound, row),
        DifferenceText(row.SoundDifference()), cell(texts.notes, "left note", NoteOf(row)));
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

}  // namespace trainyard
