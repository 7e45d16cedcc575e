// SPDX-License-Identifier: Apache-2.0
// A store in memory: for controllers that are never restarted, and for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"

namespace trainyard::store {

// What stores in memory keep, over their openings.
struct MemoryDisk {
  std::map<std::uint64_t, std::string> blocks;
  std::map<std::uint64_t, std::string> snapshots;           // without their pages
  std::map<std::uint64_t, std::vector<std::string>> pages;  // by the snapshot that added them
  std::map<std::string, std::string, std::less<>> settings;
  std::map<std::pair<std::string, std::uint64_t>, std::string> notices;
  std::uint64_t epoch = 0;

  void DropSnapshots() {
    snapshots.clear();
    pages.clear();
  }
};

class MemoryStore : public Store, public NoticeTable {
 public:
  // With a disk of its own.
  MemoryStore() : MemoryStore(std::make_shared<MemoryDisk>()) {}
  // Opens the disk; from then on no other store writes to it.
  explicit MemoryStore(std::shared_ptr<MemoryDisk> disk)
      : disk_(std::move(disk)), epoch_(++disk_->epoch) {}
  // A copy has a copy of the disk, and holds it as the original holds its own.
  MemoryStore(const MemoryStore& other);
  MemoryStore& operator=(const MemoryStore& other);

  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }
  [[nodiscard]] Status Append(std::string_view block) override;
  [[nodiscard]] Status Read(std::uint64_t first,
                            const std::function<Status(std::string_view)>& take) const override;
  [[nodiscard]] Status DropBlocks(std::uint64_t last) override;
  [[nodiscard]] Status AddSnapshot(const StoredSnapshot& snapshot, std::uint64_t before) override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> Snapshots() const override;
  [[nodiscard]] Result<StoredSnapshot> Snapshot(std::uint64_t block) const override;
  [[nodiscard]] Result<std::string> Setting(std::string_view name) const override;
  [[nodiscard]] Status SetSetting(std::string_view name, std::string_view value) override;
  [[nodiscard]] NoticeTable& notices() override { return *this; }

  [[nodiscard]] Result<std::vector<StoredNotice>> Of(std::string_view destination) const override;
  void Put(std::string_view destination, StoredNotice notice) override;
  void Drop(std::string_view destination, std::uint64_t number) override;
  [[nodiscard]] Status Save() override;

  // For tests, which look at what is kept and damage it.
  [[nodiscard]] MemoryDisk& disk() { return *disk_; }

 private:
  [[nodiscard]] Status CheckHeld() const;

  std::shared_ptr<MemoryDisk> disk_;
  std::uint64_t epoch_;
  // Of the notices, not saved yet; no text: one is dropped.
  std::map<std::pair<std::string, std::uint64_t>, std::optional<std::string>> changes_;
};

}  // namespace trainyard::store
