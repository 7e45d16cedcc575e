// SPDX-License-Identifier: Apache-2.0
#include "profiler/command_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "io/file.h"

namespace trainyard::profiler {
namespace {

constexpr std::size_t kWordsBeforeRanks = 13;

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words = base::Split(line, " ");
  std::erase(words, "");
  return words;
}

bool ChangesNoSize(std::string_view command) {
  static const std::set<std::string_view> kOthers{"G", "F", "T", "W", "S", "RE", "U"};
  return kOthers.contains(command);
}

}  // namespace

Result<std::vector<std::pair<int, int>>> ReadCommandTrace(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, io::ReadFile(path));
  std::vector<std::pair<int, int>> changes;
  int before = 0;
  bool runs = false;  // its ranks on the other nodes follow
  int number = 0;
  for (const std::string_view line : base::Split(text, "\n")) {
    ++number;
    const std::vector<std::string_view> words = WordsOf(base::Trim(line));
    if (words.empty() || (number == 1 && words.size() == 1)) {
      continue;
    }
    if (words.front() == "K") {
      runs = false;
    } else if (words.front() == "R" && words.size() > kWordsBeforeRanks) {
      const auto now = static_cast<int>(words.size() - kWordsBeforeRanks);
      const std::pair change(before, now);
      if (!runs && std::find(changes.begin(), changes.end(), change) == changes.end()) {
        changes.push_back(change);
      }
      before = now;
      runs = true;
    } else if (!ChangesNoSize(words.front())) {
      return BadInput(
          fmt::format("{}:{}: '{}' is no command of a debug trace; expected R with its "
                      "ranks, K, G, F, T, W, S, RE or U",
                      path, number, words.front()));
    }
  }
  if (changes.empty()) {
    return BadInput(path +
                    ": runs nothing; expected commands R, as in the overhead traces of "
                    "ElasticFlow's artifact");
  }
  return changes;
}

}  // namespace trainyard::profiler
