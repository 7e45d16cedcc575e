// SPDX-License-Identifier: Apache-2.0
#include "io/csv_field.h"

namespace trainyard::io {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

void AppendCsvField(std::string_view field, std::string& line) {
  // Readers drop blanks around a field without quotes.
  const bool blank_at_end = !field.empty() && (IsBlank(field.front()) || IsBlank(field.back()));
  if (!blank_at_end && field.find_first_of(",\"\r\n") == std::string_view::npos) {
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
