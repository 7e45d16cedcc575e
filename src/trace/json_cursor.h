// SPDX-License-Identifier: Apache-2.0
// JSON in bounded memory: a stream as the iterators that the parser takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "io/text_stream.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// A stream that is read byte by byte, with the line of the last one: the parser does not say where
// it is.
class JsonCursor {
 public:
  explicit JsonCursor(io::TextStream text) : text_(std::move(text)), rest_(text_.block()) {}

  [[nodiscard]] const std::string& path() const { return text_.path(); }
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] char Next() const { return rest_.front(); }
  void Take() {
    line_ += last_ == '\n' ? 1 : 0;
    last_ = rest_.front();
    rest_.remove_prefix(1);
  }
  // Also where the stream has failed.
  [[nodiscard]] bool AtEnd() {
    while (rest_.empty() && !text_.block().empty()) {
      status_ = text_.Next();
      if (!status_.ok()) {
        return true;
      }
      rest_ = text_.block();
    }
    return rest_.empty();
  }
  [[nodiscard]] const Status& status() const { return status_; }
  // REQUIRES: AtEnd().
  [[nodiscard]] std::string sha256() const { return text_.sha256(); }

 private:
  io::TextStream text_;
  std::string_view rest_;  // of the block
  std::int64_t line_ = 1;
  char last_ = '\0';
  Status status_;
};

// What the parser takes. One without a cursor is the end.
class CursorIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit CursorIterator(JsonCursor* cursor) : cursor_(cursor) {}
  char operator*() const { return cursor_->Next(); }
  CursorIterator& operator++() {
    cursor_->Take();
    return *this;
  }
  friend bool operator==(const CursorIterator& a, const CursorIterator& b) {
    return a.AtEnd() == b.AtEnd();
  }

 private:
  [[nodiscard]] bool AtEnd() const { return cursor_ == nullptr || cursor_->AtEnd(); }

  JsonCursor* cursor_;
};

}  // namespace trainyard::trace
