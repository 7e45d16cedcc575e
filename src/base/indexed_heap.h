// SPDX-License-Identifier: Apache-2.0
// A binary heap whose members know their places, so that any of them can leave or move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace trainyard::base {

// Positions of the members of one or more heaps, by member number. Heaps that share a table must
// have disjoint members.
using HeapPositions = std::vector<std::uint32_t>;
inline constexpr std::uint32_t kNotInHeap = ~std::uint32_t{0};

// Members are dense numbers; `before(a, b)` is a strict total order given with each call, so that
// it may depend on outside state. All operations O(log n).
class IndexedHeap {
 public:
  [[nodiscard]] bool empty() const { return members_.empty(); }
  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] std::size_t top() const { return members_.front(); }
  [[nodiscard]] const std::vector<std::uint32_t>& members() const { return members_; }

  template <typename Before>
  void Push(std::size_t member, HeapPositions& positions, const Before& before) {
    if (positions.size() <= member) {
      positions.resize(member + 1, kNotInHeap);
    }
    CHECK(positions[member] == kNotInHeap);
    members_.push_back(static_cast<std::uint32_t>(member));
    positions[member] = static_cast<std::uint32_t>(members_.size() - 1);
    Up(members_.size() - 1, positions, before);
  }

  template <typename Before>
  void Erase(std::size_t member, HeapPositions& positions, const Before& before) {
    const std::size_t place = positions[member];
    CHECK(place < members_.size() && members_[place] == member);
    positions[member] = kNotInHeap;
    const std::uint32_t last = members_.back();
    members_.pop_back();
    if (last != member) {
      members_[place] = last;
      positions[last] = static_cast<std::uint32_t>(place);
      Restore(place, positions, before);
    }
  }

  // After the member's order has changed.
  template <typename Before>
  void Update(std::size_t member, HeapPositions& positions, const Before& before) {
    Restore(positions[member], positions, before);
  }

 private:
  template <typename Before>
  void Restore(std::size_t place, HeapPositions& positions, const Before& before) {
    if (place > 0 && before(members_[place], members_[(place - 1) / 2])) {
      Up(place, positions, before);
    } else {
      Down(place, positions, before);
    }
  }

  void Put(std::size_t place, std::uint32_t member, HeapPositions& positions) {
    members_[place] = member;
    positions[member] = static_cast<std::uint32_t>(place);
  }

  template <typename Before>
  void Up(std::size_t place, HeapPositions& positions, const Before& before) {
    const std::uint32_t member = members_[place];
    while (place > 0 && before(member, members_[(place - 1) / 2])) {
      Put(place, members_[(place - 1) / 2], positions);
      place = (place - 1) / 2;
    }
    Put(place, member, positions);
  }

  template <typename Before>
  void Down(std::size_t place, HeapPositions& positions, const Before& before) {
    const std::uint32_t member = members_[place];
    while (2 * place + 1 < members_.size()) {
      std::size_t child = 2 * place + 1;
      if (child + 1 < members_.size() && before(members_[child + 1], members_[child])) {
        ++child;
      }
      if (!before(members_[child], member)) {
        break;
      }
      Put(place, members_[child], positions);
      place = child;
    }
    Put(place, member, positions);
  }

  std::vector<std::uint32_t> members_;
};

}  // namespace trainyard::base
