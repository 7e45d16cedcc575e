// SPDX-License-Identifier: Apache-2.0
// A file taken as text, in blocks of whole lines and in bounded memory. A text that begins with a
// bracket, or with {"meta" or {"jobs", is taken for one JSON value: its lines may be of any length,
// and blocks may cut them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "io/byte_stream.h"
#include "trainyard/status.h"

namespace trainyard::io {

// Limits on what is taken as text at all.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

class TextStream {
 public:
  // Reads the first block. Errors: those of ByteStream and of CheckText.
  [[nodiscard]] static Result<TextStream> Open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }
  // Whole lines, unpacked and checked; the last line of the file may lack its line end. Empty at
  // the end of the text. Valid until Next().
  [[nodiscard]] std::string_view block() const {
    return std::string_view(buffer_).substr(0, block_size_);
  }
  // The number of the first line of the block, from 1.
  [[nodiscard]] std::int64_t first_line() const { return first_line_; }
  // Goes on to the next block. Errors: as for Open.
  [[nodiscard]] Status Next();
  // About how many bytes of text there are in all; 0: nobody knows.
  [[nodiscard]] std::size_t LikelySize() const { return bytes_.LikelySize(); }
  // Of the bytes on disk. REQUIRES: block() is empty.
  [[nodiscard]] std::string sha256() const { return bytes_.sha256(); }

 private:
  explicit TextStream(ByteStream bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] Status Fill();
  [[nodiscard]] std::size_t BlockSize(bool ended) const;

  ByteStream bytes_;
  std::string buffer_;  // the block, and behind it the beginning of the next line
  std::size_t block_size_ = 0;
  std::int64_t first_line_ = 1;
  bool is_list_ = false;  // a JSON list
};

}  // namespace trainyard::io
