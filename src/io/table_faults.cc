// SPDX-License-Identifier: Apache-2.0
#include "io/table_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "io/text_check.h"

namespace trainyard::io {
namespace {

// What separates fields elsewhere: the character, and what messages call it.
constexpr std::array<std::pair<char, std::string_view>, 5> kSeparators{
    {{';', "';'"}, {'\t', "tabs"}, {'|', "'|'"}, {'^', "'^'"}, {'~', "'~'"}}};

// What separates the fields of a line that has no comma; empty: nothing that is known.
std::string SeparatorOf(std::string_view line) {
  for (const auto& [separator, name] : kSeparators) {
    if (line.find(separator) != std::string_view::npos) {
      return std::string(name);
    }
  }
  constexpr std::size_t kFewestWords = 3;  // two may be a name
  std::size_t words = 0;
  bool in_word = false;
  for (const char c : line) {
    words += c != ' ' && !in_word ? 1 : 0;
    in_word = c != ' ';
  }
  return words >= kFewestWords ? "blanks" : "";
}

std::string ConvertText(const std::string& path, std::string_view separator) {
  const std::string sep = separator == "tabs"     ? "'\\t'"
                          : separator == "blanks" ? "'\\s+'"
                                                  : std::string(separator);
  return fmt::format(
      "python3 -c \"import pandas; pandas.read_csv('{}', sep=r{}{})"
      ".to_csv('FILE.csv', index=False)\"",
      path, sep, separator == "';'" ? ", decimal=','" : "");
}

bool BeginsComment(std::string_view text) {
  if (text.starts_with(';')) {  // or fields separated by it, of which the first is empty
    return text.substr(0, text.find('\n')).find(';', 1) == std::string_view::npos;
  }
  constexpr std::array<std::string_view, 4> kBeginnings{"#", "//", "%", "--"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [text](std::string_view one) { return text.starts_with(one); });
}

}  // namespace

std::string Shown(std::string_view text) {
  constexpr std::size_t kMostBytes = 60;
  std::string shown(text.substr(0, kMostBytes));
  if (text.size() > kMostBytes) {
    while (!shown.empty() && (static_cast<unsigned char>(text[shown.size()]) & 0xC0U) == 0x80U) {
      shown.pop_back();  // never half a UTF-8 sequence
    }
    shown += "...";
  }
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return shown;
}

std::string NameList(std::span<const std::string> names) {
  constexpr std::size_t kMostBytes = 200;
  std::string list;
  for (const std::string& name : names) {
    const std::string shown = Shown(name);
    if (list.size() + shown.size() > kMostBytes) {
      return fmt::format("{}, ... ({} in all)", list, names.size());
    }
    list += (list.empty() ? "" : ", ") + shown;
  }
  return list;
}

bool IsIndexColumn(std::string_view name) {
  constexpr std::string_view kUnnamed = "Unnamed: ";  // pandas, where it has read no name
  constexpr std::array<std::string_view, 3> kIndexes{"index", "level_0", "__index_level_0__"};
  const std::string_view trimmed = base::Trim(name);
  return trimmed.starts_with(kUnnamed) ||
         std::find(kIndexes.begin(), kIndexes.end(), trimmed) != kIndexes.end();
}

std::string FaultOfText(const std::string& path, std::string_view text) {
  const std::string_view first = Beginning(text);
  if (first.starts_with("sep=")) {
    return "Excel's line 'sep=' before the header; expected the header in the first line, and "
           "commas";
  }
  if (BeginsComment(first)) {
    return fmt::format(
        "a comment line before the header, or a mark in front of it; expected column names in the "
        "first line (`grep -v '^{0}' {1}` leaves comments out, `sed '1s|^{0} *||' {1}` the mark)",
        first.substr(0, first.find_first_not_of("#/%-;")), path);
  }
  if (first.starts_with('{') || first.starts_with('[')) {
    return "JSON; expected a CSV table with a header";
  }
  if (first.starts_with('<')) {
    return "HTML or XML, perhaps the web page in place of the file; expected a CSV table";
  }
  if (first.starts_with("version https://git-lfs")) {
    return "a pointer of Git LFS in place of the file; expected the file itself (`git lfs pull`)";
  }
  return KindOfBinary(path, first);
}

std::string FaultOfHeader(const std::string& path, std::span<const std::string> names) {
  if (names.size() > 1) {
    return {};
  }
  const std::string separator = SeparatorOf(names.front());
  return separator.empty() ? ""
                           : fmt::format("fields separated by {}; expected commas: {}", separator,
                                         ConvertText(path, separator));
}

std::string OtherCount(std::span<const std::string_view> fields, std::size_t expected) {
  std::string counts =
      fmt::format("{} fields; expected {} as in the header", fields.size(), expected);
  if (fields.size() == expected + 1 && fields.back().empty()) {
    return counts + " (a comma at the end of the line?)";
  }
  if (fields.size() == expected + 1) {
    return counts + " (a column that the header does not name?)";
  }
  if (fields.size() == 1 && expected > 2) {
    if (BeginsComment(base::Trim(fields.front()))) {
      return counts + " (a comment)";
    }
    const std::string separator = SeparatorOf(fields.front());
    return separator.empty() ? counts : fmt::format("{} (separated by {}?)", counts, separator);
  }
  return counts;
}

}  // namespace trainyard::io
