// SPDX-License-Identifier: Apache-2.0
// What a failed worker has said last, before the lines of what had started it.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::supervisor {

// The last line of the text that is not blank, or, where Python has told of an exception behind it
// or before it, the last exception; what torchrun and mpirun write about the end of
// their workers, and all behind it, does not count. Printable ASCII, the rest as '?', 200 bytes at
// most; empty: there is none.
[[nodiscard]] std::string LastLineOf(std::string_view text);

// Of the end of a file, 16 KiB at most; empty: it cannot be read.
[[nodiscard]] std::string LastLineIn(const std::string& path);

}  // namespace trainyard::supervisor
