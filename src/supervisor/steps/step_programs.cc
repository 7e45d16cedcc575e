// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace trainyard::supervisor {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// A task, and its place among those of its line.
struct RankedTask {
  int rank = 0;
  int offset = 0;
};

struct ProgramLine {
  std::string text{};  // without the lines' ends that are escaped
  int number = 0;
};

std::vector<ProgramLine> LinesOf(std::string_view text) {
  std::vector<ProgramLine> lines;
  bool goes_on = false;
  int number = 0;
  for (std::string_view line : base::Split(text, "\n")) {
    ++number;
    const bool ends_open = line.ends_with('\\');
    line.remove_suffix(ends_open ? 1 : 0);
    if (goes_on) {
      lines.back().text += " " + std::string(line);
    } else {
      lines.push_back({.text = std::string(line), .number = number});
    }
    goes_on = ends_open;
  }
  std::erase_if(lines, [](const ProgramLine& line) {
    const std::size_t first = line.text.find_first_not_of(kBlanks);
    return first == std::string::npos || line.text[first] == '#';
  });
  return lines;
}

// "1", "1-5": its ends; none: it is neither.
std::optional<std::pair<int, int>> RangeOf(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::optional<int> first = base::ToInteger<int>(text.substr(0, dash));
  const std::optional<int> last =
      dash == std::string_view::npos ? first : base::ToInteger<int>(text.substr(dash + 1));
  return first && last && *first >= 0 && *first <= *last ? std::optional(std::pair(*first, *last))
                                                         : std::nullopt;
}

using Programs = std::vector<std::vector<std::string>>;

// All that have no program yet; their offsets are their ranks, as there.
std::vector<RankedTask> OtherTasks(const Programs& programs) {
  std::vector<RankedTask> tasks;
  for (int rank = 0; rank < static_cast<int>(programs.size()); ++rank) {
    if (programs[static_cast<std::size_t>(rank)].empty()) {
      tasks.push_back({.rank = rank, .offset = rank});
    }
  }
  return tasks;
}

// Those of "0,2-3".
Result<std::vector<RankedTask>> TasksOf(std::string_view list, const Programs& programs) {
  const int count = static_cast<int>(programs.size());
  std::vector<RankedTask> tasks;
  for (const std::string_view item : base::Split(list, ",")) {
    const auto range = RangeOf(item);
    if (!range) {
      return InvalidArgument(fmt::format(
          "'{}' is no task; expected ranks such as 0,2-3 (the smaller one first) or *", item));
    }
    if (range->second >= count) {
      return InvalidArgument(fmt::format("there is no task {}; expected ranks from 0 to {}",
                                         range->second, count - 1));
    }
    for (int rank = range->first; rank <= range->second; ++rank) {
      const auto is_it = [rank](const RankedTask& task) { return task.rank == rank; };
      if (!programs[static_cast<std::size_t>(rank)].empty() ||
          std::any_of(tasks.begin(), tasks.end(), is_it)) {
        return InvalidArgument(
            fmt::format("task {} has a program already; expected each rank once", rank));
      }
      tasks.push_back({.rank = rank, .offset = static_cast<int>(tasks.size())});
    }
  }
  return tasks;
}

// The words of a line as the task has them: '...' is taken as it is, \ escapes a character, and %t
// and %o are the task's rank and offset. Other quotes mean nothing, as there.
class WordReader {
 public:
  explicit WordReader(RankedTask task) : task_(task) {}

  Result<std::vector<std::string>> Read(std::string_view text) && {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (text[i] == '\'') {
        quoted_ = !quoted_;
        begun_ = true;
      } else if (!quoted_ && kBlanks.find(text[i]) != std::string_view::npos) {
        End();
      } else if (!quoted_ && text[i] == '\\' && next != '\0') {
        Add(next);
        ++i;
      } else if (!quoted_ && text[i] == '%' && (next == 't' || next == 'o')) {
        AddNumber(next == 't' ? task_.rank : task_.offset);
        ++i;
      } else {
        Add(text[i]);
      }
    }
    End();
    if (quoted_) {
      return InvalidArgument("a ' is not closed; expected another one in the line");
    }
    return std::move(words_);
  }

 private:
  void Add(char c) {
    word_ += c;
    begun_ = true;
  }
  void AddNumber(int number) {
    word_ += std::to_string(number);
    begun_ = true;
  }
  void End() {
    if (std::exchange(begun_, false)) {
      words_.push_back(std::exchange(word_, {}));
    }
  }

  RankedTask task_;
  std::vector<std::string> words_;
  std::string word_;
  bool begun_ = false;
  bool quoted_ = false;
};

Status TakeLine(const ProgramLine& line, const std::vector<std::string>& more, Programs& programs) {
  const std::string_view text = base::Trim(line.text);
  const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
  const std::string_view command = text.substr(end);
  if (base::Trim(command).empty()) {
    return InvalidArgument("no program; expected 'RANKS PROGRAM ARGUMENTS...'");
  }
  const std::string_view list = text.substr(0, end);
  ASSIGN_OR_RETURN(const std::vector<RankedTask> tasks,
                   list == "*" ? Result<std::vector<RankedTask>>(OtherTasks(programs))
                               : TasksOf(list, programs));
  for (const RankedTask& task : tasks) {
    std::vector<std::string>& program = programs[static_cast<std::size_t>(task.rank)];
    ASSIGN_OR_RETURN(program, WordReader(task).Read(command));
    program.insert(program.end(), more.begin(), more.end());
  }
  return {};
}

}  // namespace

Result<std::vector<std::vector<std::string>>> ReadStepPrograms(
    std::string_view text, const std::string& name, int tasks,
    const std::vector<std::string>& more) {
  Programs programs(static_cast<std::size_t>(tasks));
  const std::vector<ProgramLine> lines = LinesOf(text);
  for (const ProgramLine& line : lines) {
    const Status taken = &line != &lines.back() && base::Trim(line.text).starts_with('*')
                             ? InvalidArgument(
                                   "* is not in the last line; expected it there, as "
                                   "it stands for all other tasks")
                             : TakeLine(line, more, programs);
    if (!taken.ok()) {
      return InvalidArgument(fmt::format("{}:{}: {}", name, line.number, taken.error().message));
    }
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    if (programs[rank].empty()) {
      return InvalidArgument(fmt::format(
          "{}: No executable program specified for this task: {}; expected a line for it, or * in "
          "the last one",
          name, rank));
    }
  }
  return programs;
}

void PutStepPrograms(const Programs& programs, v1::StepStart& start) {
  for (int i = 0; !programs.empty() && i < start.ranks_size(); ++i) {
    v1::StepProgram& program = *start.add_programs();
    program.set_rank(start.ranks(i));
    for (const std::string& word : programs[static_cast<std::size_t>(start.ranks(i))]) {
      program.add_command(word);
    }
  }
}

}  // namespace trainyard::supervisor
