// SPDX-License-Identifier: Apache-2.0
#include "cli/help/completion.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "base/text.h"

namespace trainyard::cli {
namespace {

using Visit = std::function<void(const CommandText&)>;

void ForEachCommand(const CommandText& command, const Visit& visit) {  // NOLINT(misc-no-recursion)
  visit(command);
  for (const CommandText& inner : command.commands) {
    ForEachCommand(inner, visit);
  }
}

// The words behind the program's own.
std::string Below(const CommandText& program, const CommandText& command) {
  return command.path.substr(program.path.size());
}

std::string LastWord(const std::string& path) { return path.substr(path.rfind(' ') + 1); }

// All commands but the program itself, as patterns of a case.
std::string PathPatterns(const CommandText& program) {
  std::vector<std::string> patterns;
  ForEachCommand(program, [&](const CommandText& command) {
    if (&command != &program) {
      patterns.push_back("'" + Below(program, command) + "'");
    }
  });
  return fmt::format("{}", fmt::join(patterns, "|"));
}

std::string BashWords(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& inner : command.commands) {
    words.push_back(LastWord(inner.path));
  }
  for (const OptionText& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// "'name:what it is'"; a colon in the name would end it.
std::string ZshItem(const std::string& name, const std::string& help) {
  return " '" + base::ReplaceAll(name, ":", "\\:") + ":" +
         base::ReplaceAll(help.substr(0, help.find('\n')), "'", "'\\''") + "'";
}

std::string ZshItems(const CommandText& command) {
  std::string items;
  for (const CommandText& inner : command.commands) {
    items += ZshItem(LastWord(inner.path), inner.help);
  }
  for (const OptionText& option : command.options) {
    for (const std::string& name : option.names) {
      items += ZshItem(name, option.help);
    }
  }
  return items;
}

}  // namespace

std::string BashCompletion(const CommandText& program) {
  std::string cases;
  ForEachCommand(program, [&](const CommandText& command) {
    cases +=
        fmt::format("    '{}') choices='{}' ;;\n", Below(program, command), BashWords(command));
  });
  return fmt::format(R"(# SPDX-License-Identifier: Apache-2.0
# Completion of {0} for bash, written by '{0} completion bash'.
_{0}() {{
  local at= word choices=
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && return
    case "$at $word" in
      {1}) at="$at $word" ;;
    esac
  done
  case "$at" in
{2}  esac
  COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _{0} {0}
)",
                     program.path, PathPatterns(program), cases);
}

std::string ZshCompletion(const CommandText& program) {
  std::string cases;
  ForEachCommand(program, [&](const CommandText& command) {
    cases += fmt::format("    '{}') choices=({}) ;;\n", Below(program, command), ZshItems(command));
  });
  return fmt::format(R"(#compdef {0}
# SPDX-License-Identifier: Apache-2.0
# Completion of {0} for zsh, written by '{0} completion zsh'.
_{0}() {{
  local at= word
  local -a choices
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word == -- ]] && {{ _files; return }}
    case "$at $word" in
      {1}) at="$at $word" ;;
    esac
  done
  case "$at" in
{2}  esac
  _describe '{0}' choices || _files
}}
if [ "${{funcstack[1]}}" = _{0} ]; then _{0} "$@"; else compdef _{0} {0}; fi
)",
                     program.path, PathPatterns(program), cases);
}

}  // namespace trainyard::cli
