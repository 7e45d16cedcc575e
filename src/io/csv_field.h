// SPDX-License-Identifier: Apache-2.0
// Writing CSV: fields that any reader takes back unchanged.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::io {

// Appends `field` to `line`, in quotes where it has a comma, a quote or a line end.
void AppendCsvField(std::string_view field, std::string& line);

}  // namespace trainyard::io
