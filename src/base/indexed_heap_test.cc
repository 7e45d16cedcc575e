// SPDX-License-Identifier: Apache-2.0
#include "base/indexed_heap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace trainyard::base {
namespace {

TEST(IndexedHeapTest, AgreesWithASortedSetUnderRandomChanges) {
  std::mt19937 random(7);
  std::vector<int> key(200, 0);
  const auto before = [&key](std::size_t a, std::size_t b) {
    return key[a] != key[b] ? key[a] < key[b] : a < b;
  };
  IndexedHeap heap;
  HeapPositions positions;
  std::set<std::pair<int, std::size_t>> model;
  for (int step = 0; step < 5000; ++step) {
    const std::size_t member = random() % key.size();
    const int fresh = static_cast<int>(random() % 50);
    const auto entry = model.find({key[member], member});
    if (entry == model.end()) {
      key[member] = fresh;
      heap.Push(member, positions, before);
      model.emplace(fresh, member);
    } else if (random() % 2 == 0) {
      model.erase(entry);
      heap.Erase(member, positions, before);
    } else {
      model.erase(entry);
      key[member] = fresh;
      heap.Update(member, positions, before);
      model.emplace(fresh, member);
    }
    ASSERT_EQ(heap.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(heap.top(), model.begin()->second);
    }
  }
}

}  // namespace
}  // namespace trainyard::base
