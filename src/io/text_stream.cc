// SPDX-License-Identifier: Apache-2.0
#include "io/text_stream.h"

#include <algorithm>
#include <span>

#include "base/try.h"
#include "io/text_check.h"

namespace trainyard::io {

namespace {

bool BeginsList(std::string_view text) {
  const std::string_view json = Beginning(text);
  if (!json.starts_with('{')) {
    return json.starts_with('[');
  }
  const std::string_view name = Beginning(json.substr(1));
  return name.starts_with("\"meta\"") || name.starts_with("\"jobs\"");
}

// Bytes at the end that may be the beginning of a character of several, or of a CRLF.
std::size_t OpenEnd(std::string_view text) {
  std::size_t open = 0;
  while (open < std::min<std::size_t>(text.size(), 3) &&
         (static_cast<unsigned char>(text[text.size() - 1 - open]) & 0xC0U) == 0x80U) {
    ++open;
  }
  const char last = open < text.size() ? text[text.size() - 1 - open] : '\0';
  const bool is_first = (static_cast<unsigned char>(last) & 0xC0U) == 0xC0U;
  return is_first || last == '\r' ? open + 1 : 0;
}

}  // namespace

Result<TextStream> TextStream::Open(const std::string& path) {
  ASSIGN_OR_RETURN(ByteStream bytes, ByteStream::Open(path));
  TextStream stream(std::move(bytes));
  RETURN_IF_ERROR(stream.Fill());
  return stream;
}

Status TextStream::Next() {
  first_line_ +=
      std::count(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(block_size_), '\n');
  buffer_.erase(0, block_size_);
  return Fill();
}

std::size_t TextStream::BlockSize(bool ended) const {
  if (ended) {
    return buffer_.size();
  }
  const std::size_t last = buffer_.rfind('\n');
  if (last != std::string::npos) {
    return last + 1;
  }
  return buffer_.size() - (is_list_ ? OpenEnd(buffer_) : 0);
}

Status TextStream::Fill() {
  // Longer than any line that is allowed, so that a block without a line end is refused.
  constexpr std::size_t kBlock = 2 * kMaxLineBytes;
  constexpr std::size_t kFirst = std::size_t{1} << 14;
  std::size_t used = buffer_.size();
  bool ended = false;
  // Most files are small: the room grows with what comes.
  while (used < kBlock && !ended) {
    buffer_.resize(std::min(kBlock, std::max(kFirst, 2 * used)));
    ASSIGN_OR_RETURN(const std::size_t got, bytes_.Read(std::span(buffer_).subspan(used)));
    used += got;
    ended = used < buffer_.size();
  }
  buffer_.resize(used);
  is_list_ |= first_line_ == 1 && BeginsList(buffer_);
  block_size_ = BlockSize(ended);
  return is_list_ ? CheckCharacters(path(), block(), first_line_)
                  : CheckText(path(), block(), first_line_);
}

}  // namespace trainyard::io
