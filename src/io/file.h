// SPDX-License-Identifier: Apache-2.0
// Whole files in memory: reading, unpacking, digests. The only code that knows zlib and zstd.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard {

// More than this is not taken into memory, packed or unpacked.
inline constexpr std::size_t kMaxFileBytes = std::size_t{8} << 30;

// The bytes as they lie on disk. Errors: missing or unreadable file, directory, too large.
[[nodiscard]] Result<std::string> ReadBytes(const std::string& path);

// `bytes` unpacked if they are gzip or zstd (by content, not by name), else as they are. Several
// gzip members or zstd frames one after the other are one text. Errors name `path`: truncated or
// corrupt.
[[nodiscard]] Result<std::string> Unpack(const std::string& path, std::string bytes);

// Both of the above.
[[nodiscard]] Result<std::string> ReadFile(const std::string& path);

// SHA-256 in lower-case hex.
[[nodiscard]] std::string Sha256Hex(std::string_view bytes);

// That of the file as it lies on disk.
[[nodiscard]] Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace trainyard
