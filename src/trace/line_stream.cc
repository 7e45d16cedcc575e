// SPDX-License-Identifier: Apache-2.0
#include "trace/line_stream.h"

#include <fmt/core.h>

#include "base/try.h"

#include <algorithm>

namespace trainyard::trace {
namespace {

constexpr std::string_view kBlanksOfLine = " \t";

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = line.find_first_not_of(kBlanksOfLine);
    if (first == std::string_view::npos) {
      return words;
    }
    line.remove_prefix(first);
    words.push_back(line.substr(0, line.find_first_of(kBlanksOfLine)));
    line.remove_prefix(words.back().size());
  }
}

std::string NameOf(const LineRules& rules) {
  return rules.separator == ' '    ? "blanks"
         : rules.separator == '\t' ? "tabs"
                                   : fmt::format("'{}'", rules.separator);
}

}  // namespace

std::vector<std::string_view> FieldsOf(std::string_view line, const LineRules& rules) {
  if (rules.separator == ' ') {
    return Words(line);
  }
  if (rules.ends_rows && line.ends_with(rules.separator)) {
    line.remove_suffix(1);
  }
  std::vector<std::string_view> fields;
  for (std::size_t end = 0; end != std::string_view::npos; line.remove_prefix(end + 1)) {
    end = line.find(rules.separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) {
      break;
    }
  }
  return fields;
}

Lines::Lines(std::string_view text, char comment, std::int64_t first_line)
    : rest_(text), number_(first_line - 1), comment_(comment) {
  rest_.remove_prefix(first_line == 1 && rest_.starts_with(kByteOrderMark) ? kByteOrderMark.size()
                                                                           : 0);
}

bool Lines::Next() {
  while (!rest_.empty()) {
    line_ = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line_.size() + 1, rest_.size()));
    ++number_;
    line_.remove_suffix(line_.ends_with('\r') ? 1 : 0);
    const std::size_t first = line_.find_first_not_of(kBlanksOfLine);
    if (first != std::string_view::npos && (comment_ == '\0' || line_[first] != comment_)) {
      return true;
    }
  }
  return false;
}

std::size_t LineStream::LikelyRows() const {
  const std::string_view block = text_.block();
  const auto lines = static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n')) + 1;
  return std::max(text_.LikelySize(), block.size()) /
         std::max<std::size_t>(1, block.size() / lines);
}

int LineStream::Column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? -1 : static_cast<int>(found - names_.begin());
}

Status LineStream::ForEach(const io::RowReader& on_row, const io::BadRowReader& on_bad_row) {
  bool is_header = rules_.first_is_header;
  const auto read = [&](const Lines& lines) -> Status {
    std::vector<std::string_view> fields = FieldsOf(lines.text(), rules_);
    if (mender_ && fields.size() > names_.size()) {
      mender_(fields);
    }
    const io::CsvRow row(path(), lines.number(), names_, fields, "field");
    Status status = fields.size() == names_.size()
                        ? on_row(row)
                        : row.BadRow(fmt::format("{} fields; expected {}, separated by {}",
                                                 fields.size(), names_.size(), NameOf(rules_)));
    return status.ok() || !on_bad_row ? status : on_bad_row(lines.number(), status.error());
  };
  while (!text_.block().empty()) {
    for (Lines lines(text_.block(), rules_.comment, text_.first_line()); lines.Next();) {
      if (std::exchange(is_header, false)) {
        continue;
      }
      RETURN_IF_ERROR(read(lines));
    }
    RETURN_IF_ERROR(text_.Next());
  }
  return {};
}

}  // namespace trainyard::trace
