// SPDX-License-Identifier: Apache-2.0
// What is wrong with the first row of a table that is no CSV table, or not quite: for messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace trainyard::io {

// Text from a file, safe to print: short and without control characters.
[[nodiscard]] std::string Shown(std::string_view text);

// "a, b, c"; of long lists the first of them and how many there are.
[[nodiscard]] std::string NameList(std::span<const std::string> names);

// Whether a column of that name numbers the rows: one that pandas gives its index. Such columns are
// not read; their fields are integers or empty.
[[nodiscard]] bool IsIndexColumn(std::string_view name);

// What a text that begins so is instead of a table, and what to do: JSON, a web page, a binary
// file. Empty: nothing of the kind.
[[nodiscard]] std::string FaultOfText(const std::string& path, std::string_view text);

// What the file is instead of a table with such a header and how to make one of it: another
// separator. Empty: nothing of the kind. `path` completes commands.
[[nodiscard]] std::string FaultOfHeader(const std::string& path,
                                        std::span<const std::string> names);

// "5 fields; expected 4 as in the header", with the likely cause.
[[nodiscard]] std::string OtherCount(std::span<const std::string_view> fields,
                                     std::size_t expected);

}  // namespace trainyard::io
