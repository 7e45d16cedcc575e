// SPDX-License-Identifier: Apache-2.0
// The bytes of a file from the first to the last, in bounded memory: unpacked and digested on the
// way. With io/tar and io/pack the only code that knows packing libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainyard/status.h"

namespace trainyard::io {

class ByteStream {
 public:
  enum class Form : std::uint8_t {
    kUnpacked,  // unpacked if they are gzip or zstd (by content, not by name), else as they are;
                // of a tar in them, the one file
    kOnDisk,    // as they lie on disk
  };

  // Errors: missing or unreadable file, folder.
  [[nodiscard]] static Result<ByteStream> Open(const std::string& path,
                                               Form form = Form::kUnpacked);
  ByteStream(ByteStream&& other) noexcept;
  ByteStream& operator=(ByteStream&& other) noexcept;
  ~ByteStream();

  [[nodiscard]] const std::string& path() const;
  // Fills `room` with the next bytes; gives their number, which is smaller only at the end. Several
  // gzip members or zstd frames one after the other are one text. Errors: unreadable, truncated,
  // corrupt; zstd windows over 128 MiB (zstd --long=28 and more).
  [[nodiscard]] Result<std::size_t> Read(std::span<char> room);
  // About how many bytes there are in all, by what has been read so far; 0: nobody knows (pipes).
  [[nodiscard]] std::size_t LikelySize() const;
  // Of the bytes on disk that have been taken so far: of all of them at the end.
  [[nodiscard]] std::string sha256() const;

 private:
  class Source;
  explicit ByteStream(std::unique_ptr<Source> source);

  std::unique_ptr<Source> source_;
};

}  // namespace trainyard::io
