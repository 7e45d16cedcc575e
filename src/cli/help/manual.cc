// SPDX-License-Identifier: Apache-2.0
#include "cli/help/manual.h"

#include <fmt/format.h>

#include "base/text.h"
#include "trainyard/version.h"

namespace trainyard::cli {
namespace {

// As text between macros: nothing in it is an escape, and no line is a macro.
std::string Roff(const std::string& text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    at_line_start = c == '\n';
  }
  return out;
}

std::string PageName(const std::string& path) { return base::ReplaceAll(path, " ", "-"); }

std::string OptionRoff(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back("\\fB" + Roff(name) + "\\fR");
  }
  std::string title = fmt::format("{}", fmt::join(names, ", "));
  if (!option.value.empty()) {
    title += (title.empty() ? "" : " ") + ("\\fI" + Roff(option.value) + "\\fR");
  }
  return ".TP\n" + title + "\n" + Roff(option.help) + "\n";
}

std::string ManualText(const CommandText& command) {
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"Trainyard {}\" \"User Commands\"\n",
                                 Roff(PageName(command.path)), TRAINYARD_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", Roff(PageName(command.path)), Roff(command.help));
  text += ".SH SYNOPSIS\n.B " + Roff(command.path) + "\n";
  text += command.commands.empty() ? "" : "\\fICOMMAND\\fR\n";
  text += "[\\fIOPTION\\fR]...\n";
  for (const OptionText& option : command.options) {
    text += option.names.empty() ? "[\\fI" + Roff(option.value) + "\\fR]\n" : "";
  }
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const CommandText& inner : command.commands) {
      text += ".TP\n\\fB" + Roff(inner.path) + "\\fR\n" + Roff(inner.help) + "\n";
    }
  }
  text += ".SH OPTIONS\n";
  for (const OptionText& option : command.options) {
    text += OptionRoff(option);
  }
  if (!command.footer.empty()) {
    text += ".SH NOTES\n.nf\n" + Roff(command.footer) + "\n.fi\n";
  }
  if (!command.commands.empty()) {
    text += ".SH SEE ALSO\n";
    for (const CommandText& inner : command.commands) {
      text += ".BR " + Roff(PageName(inner.path)) + " (1)\n";
    }
  }
  return text;
}

void AddPages(const CommandText& command,
              std::vector<ManualPage>& pages) {  // NOLINT(misc-no-recursion)
  pages.push_back({PageName(command.path) + ".1", ManualText(command)});
  for (const CommandText& inner : command.commands) {
    AddPages(inner, pages);
  }
}

}  // namespace

std::vector<ManualPage> ManualOf(const CommandText& program) {
  std::vector<ManualPage> pages;
  AddPages(program, pages);
  return pages;
}

}  // namespace trainyard::cli
