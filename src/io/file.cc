// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/try.h"
#include "io/sha256.h"

namespace trainyard::io {
namespace {

Result<std::string> ReadAs(const std::string& path, ByteStream::Form form) {
  ASSIGN_OR_RETURN(ByteStream stream, ByteStream::Open(path, form));
  return ReadRest(stream);
}

}  // namespace

Result<std::string> ReadRest(ByteStream& stream) {
  constexpr std::size_t kLeast = 4096;
  std::string bytes;
  std::size_t used = 0;
  while (used == bytes.size()) {
    if (used > kMaxFileBytes) {
      return BadInput(fmt::format("{}: too large; expected at most {} GiB", stream.path(),
                                  kMaxFileBytes >> 30U));
    }
    // One byte more than there is, so that the end is seen without growing.
    const std::size_t more = std::max({used + used / 2, stream.LikelySize() + 1, kLeast});
    bytes.resize(std::clamp(more, used + 1, kMaxFileBytes + 1));
    ASSIGN_OR_RETURN(const std::size_t got,
                     stream.Read(std::span(bytes.data() + used, bytes.size() - used)));
    used += got;
  }
  bytes.resize(used);
  return bytes;
}

Result<std::string> ReadBytes(const std::string& path) {
  return ReadAs(path, ByteStream::Form::kOnDisk);
}

Result<std::string> ReadFile(const std::string& path) {
  return ReadAs(path, ByteStream::Form::kUnpacked);
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

Result<std::string> Sha256OfFile(const std::string& path) {
  ASSIGN_OR_RETURN(ByteStream stream, ByteStream::Open(path, ByteStream::Form::kOnDisk));
  constexpr std::size_t kRoom = std::size_t{1} << 16;
  std::vector<char> room(kRoom);
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t got, stream.Read(room));
    if (got < room.size()) {
      return stream.sha256();
    }
  }
}

}  // namespace trainyard::io
