// SPDX-License-Identifier: Apache-2.0
// A store that lasts as long as the object. For tests.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/try.h"
#include "store/store.h"

namespace trainyard {

class MemoryStore : public store::Store {
 public:
  Status Append(std::string_view block) override {
    blocks_.emplace(blocks_.empty() ? 1 : blocks_.rbegin()->first + 1, block);
    return {};
  }
  Status Read(std::uint64_t first,
              const std::function<Status(std::string_view)>& take) const override {
    for (auto block = blocks_.lower_bound(first); block != blocks_.end(); ++block, ++first) {
      if (block->first != first) {
        return BadInput("block " + std::to_string(first) + " is missing");
      }
      RETURN_IF_ERROR(take(block->second));
    }
    return {};
  }
  Status DropBlocks(std::uint64_t last) override {
    blocks_.erase(blocks_.begin(), blocks_.upper_bound(last));
    return {};
  }
  Status AddSnapshot(const store::StoredSnapshot& snapshot, std::uint64_t before) override {
    std::erase_if(snapshots_, [before](const auto& other) { return other.first != before; });
    pages_.erase(pages_.upper_bound(before), pages_.end());
    snapshots_[snapshot.block] = snapshot.state;
    pages_[snapshot.block] = snapshot.pages;
    return {};
  }
  Result<std::vector<std::uint64_t>> Snapshots() const override {
    std::vector<std::uint64_t> blocks;
    for (const auto& [block, state] : snapshots_) {
      blocks.insert(blocks.begin(), block);
    }
    return blocks;
  }
  Result<store::StoredSnapshot> Snapshot(std::uint64_t block) const override {
    const auto found = snapshots_.find(block);
    if (found == snapshots_.end()) {
      return BadInput("there is no snapshot at entry " + std::to_string(block));
    }
    store::StoredSnapshot snapshot{.block = block, .state = found->second, .pages = {}};
    for (auto page = pages_.begin(); page != pages_.upper_bound(block); ++page) {
      snapshot.pages.insert(snapshot.pages.end(), page->second.begin(), page->second.end());
    }
    return snapshot;
  }
  Result<std::string> Setting(std::string_view /*name*/) const override { return std::string(); }
  Status SetSetting(std::string_view /*name*/, std::string_view /*value*/) override { return {}; }
  [[nodiscard]] std::uint64_t epoch() const override { return 1; }

  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  void DropSnapshots() {
    snapshots_.clear();
    pages_.clear();
  }
  [[nodiscard]] std::string& StateAt(std::uint64_t block) { return snapshots_.at(block); }

 private:
  std::map<std::uint64_t, std::string> blocks_;
  std::map<std::uint64_t, std::string> snapshots_;
  std::map<std::uint64_t, std::vector<std::string>> pages_;
};

}  // namespace trainyard
