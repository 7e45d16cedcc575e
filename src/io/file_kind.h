// SPDX-License-Identifier: Apache-2.0
// What files are that readers of text are given by mistake: for messages.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::io {

// What a file that begins with these bytes is, and what to do with it ("a Parquet file; expected
// ..."). Empty: nothing that is known here. `path` completes a command that converts it.
[[nodiscard]] std::string KindOfBinary(const std::string& path, std::string_view head);

}  // namespace trainyard::io
