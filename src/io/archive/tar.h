// SPDX-License-Identifier: Apache-2.0
// Downloads that are a tar around one table. The only code that knows libarchive.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::io {

// Enough of the beginning of a file to see whether it is a tar.
inline constexpr std::size_t kTarHeader = 512;
[[nodiscard]] bool IsTar(std::string_view begin);

// The one file in a tar, from the first byte to the last. Folders and the files of attributes that
// macOS adds (`._x`) do not count.
class TarStream {
 public:
  // Fills the room with the next bytes of the tar; fewer only at its end.
  using Reader = std::function<Result<std::size_t>(std::span<char> room)>;

  // `path` is for messages. Errors: those of the reader; corrupt; no file.
  [[nodiscard]] static Result<std::unique_ptr<TarStream>> Open(std::string path, Reader read);
  TarStream(const TarStream&) = delete;
  TarStream& operator=(const TarStream&) = delete;
  ~TarStream();

  // Gives the number of bytes, which is smaller than the room only at the end; the whole tar has
  // been read then. Errors: as above; a second file.
  [[nodiscard]] Result<std::size_t> Read(std::span<char> room);

 private:
  class Archive;
  explicit TarStream(std::unique_ptr<Archive> archive);

  std::unique_ptr<Archive> archive_;
};

}  // namespace trainyard::io
