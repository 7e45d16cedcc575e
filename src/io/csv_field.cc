// SPDX-License-Identifier: Apache-2.0
#include "io/csv_field.h"

#include <algorithm>

namespace trainyard::io {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// A library's search for one of several characters looks for each of them on its own.
bool NeedsQuotes(char c) { return c == ',' || c == '"' || c == '\r' || c == '\n'; }

}  // namespace

void AppendCsvField(std::string_view field, std::string& line) {
  // Readers drop blanks around a field without quotes.
  const bool blank_at_end = !field.empty() && (IsBlank(field.front()) || IsBlank(field.back()));
  if (!blank_at_end && std::none_of(field.begin(), field.end(), NeedsQuotes)) {
    line += field;
    return;
  }
  line += '"';
  for (const char c : field) {
    if (c == '"') {
      line += '"';
    }
    line += c;
  }
  line += '"';
}

}  // namespace trainyard::io
