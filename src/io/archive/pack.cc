// SPDX-License-Identifier: Apache-2.0
#include "io/archive/pack.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <utility>

namespace trainyard::io {
namespace {

constexpr std::string_view kGzipEnd = ".gz";
constexpr std::string_view kZstdEnd = ".zst";

Result<std::string> Gzip(const std::string& text) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  constexpr int kMemory = 8;  // zlib's default
  constexpr std::size_t kStep = std::size_t{1} << 30;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipOnly, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return Failed("zlib has no memory");
  }
  std::string packed(text.size() / 4 + (std::size_t{1} << 16), '\0');
  std::size_t read = 0;
  std::size_t written = 0;
  for (int code = Z_OK; code != Z_STREAM_END;) {
    if (written == packed.size()) {
      packed.resize(packed.size() * 2);
    }
    const std::size_t in = std::min(text.size() - read, kStep);
    const std::size_t room = std::min(packed.size() - written, kStep);
    // zlib's interface is not const-correct; it does not write to its input.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(packed.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    code = deflate(&stream, read + in == text.size() ? Z_FINISH : Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += room - stream.avail_out;
  }
  deflateEnd(&stream);
  packed.resize(written);
  return packed;
}

Result<std::string> Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
  if (ZSTD_isError(size) != 0) {
    return Failed(std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  packed.resize(size);
  return packed;
}

}  // namespace

Compression CompressionOf(std::string_view path) {
  return path.ends_with(kGzipEnd)   ? Compression::kGzip
         : path.ends_with(kZstdEnd) ? Compression::kZstd
                                    : Compression::kNone;
}

std::string_view UnpackedName(std::string_view path) {
  for (const std::string_view end : {kGzipEnd, kZstdEnd}) {
    if (path.ends_with(end)) {
      return path.substr(0, path.size() - end.size());
    }
  }
  return path;
}

Result<std::string> Pack(std::string text, Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return text;
    case Compression::kGzip:
      return Gzip(text);
    case Compression::kZstd:
      break;
  }
  return Zstd(text);
}

}  // namespace trainyard::io
