// SPDX-License-Identifier: Apache-2.0
// Whole files in memory, and digests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "io/byte_stream.h"
#include "trainyard/status.h"

namespace trainyard::io {

// More than this is not taken into memory, packed or unpacked.
inline constexpr std::size_t kMaxFileBytes = std::size_t{8} << 30;

// The bytes as they lie on disk. Errors: those of ByteStream; too large.
[[nodiscard]] Result<std::string> ReadBytes(const std::string& path);

// The bytes, unpacked if they are gzip or zstd. Errors: as above.
[[nodiscard]] Result<std::string> ReadFile(const std::string& path);

// What is left of a stream. Errors: as above.
[[nodiscard]] Result<std::string> ReadRest(ByteStream& stream);

// SHA-256 in lower-case hex.
[[nodiscard]] std::string Sha256Hex(std::string_view bytes);

// That of the file as it lies on disk.
[[nodiscard]] Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace trainyard::io
