// SPDX-License-Identifier: Apache-2.0
// Packing what is written, by the name of the file it is for. Unpacking: io/file.h.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::io {

enum class Compression : unsigned char { kNone, kGzip, kZstd };

// ".gz" and ".zst" at the end of a path say how its file is packed.
[[nodiscard]] Compression CompressionOf(std::string_view path);
// The path without such an end.
[[nodiscard]] std::string_view UnpackedName(std::string_view path);

// The same bytes for the same text on every machine with the same libraries: no time, no name.
// Errors: no memory.
[[nodiscard]] Result<std::string> Pack(std::string text, Compression compression);

}  // namespace trainyard::io
