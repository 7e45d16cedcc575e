// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.h"

#include "base/try.h"

namespace trainyard::store {

MemoryStore::MemoryStore(const MemoryStore& other)
    : Store(other),
      NoticeTable(other),
      disk_(std::make_shared<MemoryDisk>(*other.disk_)),
      epoch_(other.epoch_),
      changes_(other.changes_) {}

MemoryStore& MemoryStore::operator=(const MemoryStore& other) {
  if (this != &other) {
    disk_ = std::make_shared<MemoryDisk>(*other.disk_);
    epoch_ = other.epoch_;
    changes_ = other.changes_;
  }
  return *this;
}

Status MemoryStore::CheckHeld() const {
  return disk_->epoch == epoch_
             ? Status()
             : Failed("the store has been opened again, as number " + std::to_string(disk_->epoch) +
                      "; this holder, number " + std::to_string(epoch_) + ", may not write");
}

Status MemoryStore::Append(std::string_view block) {
  RETURN_IF_ERROR(CheckHeld());
  std::map<std::uint64_t, std::string>& blocks = disk_->blocks;
  blocks.emplace_hint(blocks.end(), blocks.empty() ? 1 : blocks.rbegin()->first + 1, block);
  return {};
}

Status MemoryStore::Read(std::uint64_t first,
                         const std::function<Status(std::string_view)>& take) const {
  const std::map<std::uint64_t, std::string>& blocks = disk_->blocks;
  for (auto block = blocks.lower_bound(first); block != blocks.end(); ++block, ++first) {
    if (block->first != first) {
      return BadInput("block " + std::to_string(first) + " is missing; the next is " +
                      std::to_string(block->first));
    }
    RETURN_IF_ERROR(take(block->second));
  }
  return {};
}

Status MemoryStore::DropBlocks(std::uint64_t last) {
  RETURN_IF_ERROR(CheckHeld());
  disk_->blocks.erase(disk_->blocks.begin(), disk_->blocks.upper_bound(last));
  return {};
}

Status MemoryStore::AddSnapshot(const StoredSnapshot& snapshot, std::uint64_t before) {
  RETURN_IF_ERROR(CheckHeld());
  if (snapshot.block == before && disk_->snapshots.contains(before)) {
    return Failed("there is a snapshot at entry " + std::to_string(before));
  }
  std::erase_if(disk_->snapshots, [before](const auto& other) { return other.first != before; });
  disk_->pages.erase(disk_->pages.upper_bound(before), disk_->pages.end());
  disk_->snapshots[snapshot.block] = snapshot.state;
  disk_->pages[snapshot.block] = snapshot.pages;
  return Save();
}

Result<std::vector<std::uint64_t>> MemoryStore::Snapshots() const {
  std::vector<std::uint64_t> blocks;
  for (auto snapshot = disk_->snapshots.rbegin(); snapshot != disk_->snapshots.rend(); ++snapshot) {
    blocks.push_back(snapshot->first);
  }
  return blocks;
}

Result<StoredSnapshot> MemoryStore::Snapshot(std::uint64_t block) const {
  const auto found = disk_->snapshots.find(block);
  if (found == disk_->snapshots.end()) {
    return BadInput("there is no snapshot at entry " + std::to_string(block));
  }
  StoredSnapshot snapshot{.block = block, .state = found->second, .pages = {}};
  for (auto pages = disk_->pages.begin(); pages != disk_->pages.upper_bound(block); ++pages) {
    snapshot.pages.insert(snapshot.pages.end(), pages->second.begin(), pages->second.end());
  }
  return snapshot;
}

Result<std::string> MemoryStore::Setting(std::string_view name) const {
  const auto found = disk_->settings.find(name);
  return found != disk_->settings.end() ? found->second : std::string();
}

Status MemoryStore::SetSetting(std::string_view name, std::string_view value) {
  RETURN_IF_ERROR(CheckHeld());
  disk_->settings.insert_or_assign(std::string(name), std::string(value));
  return {};
}

Result<std::vector<StoredNotice>> MemoryStore::Of(std::string_view destination) const {
  std::vector<StoredNotice> all;
  for (auto notice = disk_->notices.lower_bound({std::string(destination), 0});
       notice != disk_->notices.end() && notice->first.first == destination; ++notice) {
    all.push_back({.number = notice->first.second, .text = notice->second});
  }
  return all;
}

void MemoryStore::Put(std::string_view destination, StoredNotice notice) {
  changes_.insert_or_assign({std::string(destination), notice.number}, std::move(notice.text));
}

void MemoryStore::Drop(std::string_view destination, std::uint64_t number) {
  changes_.insert_or_assign({std::string(destination), number}, std::nullopt);
}

Status MemoryStore::Save() {
  RETURN_IF_ERROR(CheckHeld());
  for (auto& [notice, text] : changes_) {
    if (text) {
      disk_->notices.insert_or_assign(notice, std::move(*text));
    } else {
      disk_->notices.erase(notice);
    }
  }
  changes_.clear();
  return {};
}

}  // namespace trainyard::store
