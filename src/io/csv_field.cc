// SPDX-License-Identifier: Apache-2.0
#include "io/csv_field.h"

namespace trainyard {

void AppendCsvField(std::string_view field, std::string& line) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
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

}  // namespace trainyard
