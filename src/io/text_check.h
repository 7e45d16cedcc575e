// SPDX-License-Identifier: Apache-2.0
// Whether bytes can be taken as lines of text at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::io {

// What a file that begins with these bytes is instead of text, and what to do with it ("a Parquet
// file; expected ..."). Empty: nothing that is known here. `path` completes a command that converts
// it.
[[nodiscard]] std::string KindOfBinary(const std::string& path, std::string_view head);

// From the first character on that is neither a blank, a line end nor a byte-order mark.
[[nodiscard]] std::string_view Beginning(std::string_view text);

[[nodiscard]] bool IsUtf8(std::string_view text);

// Complains about NUL bytes, text that is not UTF-8 and carriage returns that do not end a line, as
// "path:line: ...". The first line of `text` has the number given.
[[nodiscard]] Status CheckCharacters(const std::string& path, std::string_view text,
                                     std::int64_t first_line = 1);

// Likewise, and about lines over kMaxLineBytes.
[[nodiscard]] Status CheckText(const std::string& path, std::string_view text,
                               std::int64_t first_line = 1);

}  // namespace trainyard::io
