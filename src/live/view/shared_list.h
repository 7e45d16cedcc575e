// SPDX-License-Identifier: Apache-2.0
// A list whose copies share what has not changed since: copying is O(size / kOfChunk), and each
// element that is set costs one copy of its chunk's pointers between two copies of the list. An
// element has a version, so that what is newer than one is found without a look at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace trainyard::live {

template <typename T>
class SharedList {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  // REQUIRES: index < size(), and the element has been set.
  [[nodiscard]] const T& operator[](std::size_t index) const {
    return *chunks_[index / kOfChunk]->elements[index % kOfChunk];
  }
  // Null: it has not been set.
  [[nodiscard]] const T* Find(std::size_t index) const {
    return index < size_ ? chunks_[index / kOfChunk]->elements[index % kOfChunk].get() : nullptr;
  }
  // The index of the first element from `index` on that may be newer than the version: its chunk
  // has one that is. size(): there is none. O(size / kOfChunk).
  [[nodiscard]] std::size_t NextSince(std::size_t index, std::uint64_t version) const {
    while (index < size_ && chunks_[index / kOfChunk]->newest <= version) {
      index = (index / kOfChunk + 1) * kOfChunk;
    }
    return index < size_ ? index : size_;
  }
  // The list grows where it has to. REQUIRES: no element has a greater version.
  void Set(std::size_t index, std::shared_ptr<const T> value, std::uint64_t version) {
    while (chunks_.size() * kOfChunk <= index) {
      chunks_.push_back(std::make_shared<Chunk>());
      own_.push_back(true);
    }
    size_ = index < size_ ? size_ : index + 1;
    std::shared_ptr<Chunk>& chunk = chunks_[index / kOfChunk];
    if (!own_[index / kOfChunk]) {
      chunk = std::make_shared<Chunk>(*chunk);
      own_[index / kOfChunk] = true;
    }
    chunk->elements[index % kOfChunk] = std::move(value);
    chunk->newest = version;
  }
  // The copies made so far stay as they are, for any thread, whatever is set here afterwards.
  void Seal() { own_.assign(chunks_.size(), false); }
  void Clear() { *this = {}; }

 private:
  static constexpr std::size_t kOfChunk = 256;
  struct Chunk {
    std::array<std::shared_ptr<const T>, kOfChunk> elements;
    std::uint64_t newest = 0;
  };

  std::vector<std::shared_ptr<Chunk>> chunks_;
  std::vector<bool> own_;  // by chunk: no copy of the list has it
  std::size_t size_ = 0;
};

}  // namespace trainyard::live
