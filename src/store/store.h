// SPDX-License-Identifier: Apache-2.0
// What a controller keeps on disk: the journal of everything that has happened, in blocks, each
// durable when Append returns, snapshots of what came of it, and notices on their way to users. The
// only code that knows SQLite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::store {

// The state after a block, in opaque bytes; each string is under 1 GB.
struct StoredSnapshot {
  std::uint64_t block = 0;
  std::string state;
  // What does not change any more, oldest first. A snapshot has those of all before it, too, on
  // disk but once.
  std::vector<std::string> pages;
};

// A line that is kept for somebody until it has arrived.
struct StoredNotice {
  std::uint64_t number = 0;
  std::string text;
};

// Notices on their way, by destination and number. Of one thread, that of the store. What is put or
// dropped is on disk with the next snapshot, at the latest when Save returns; if the process dies
// before, it has not been.
class NoticeTable {
 public:
  virtual ~NoticeTable() = default;
  // By number.
  [[nodiscard]] virtual Result<std::vector<StoredNotice>> Of(
      std::string_view destination) const = 0;
  // In the place of the one of that number, if there is one.
  virtual void Put(std::string_view destination, StoredNotice notice) = 0;
  virtual void Drop(std::string_view destination, std::uint64_t number) = 0;
  // All or nothing; one fsync, none if nothing has changed. After an error it can be tried again.
  [[nodiscard]] virtual Status Save() = 0;
};

// Holds its folder until it is destroyed or the process dies; a child made by fork holds it too,
// until it calls exec. For one thread at a time. Every error names the file.
class Store {
 public:
  virtual ~Store() = default;
  // Appends one block (under 1 GB); on return it survives a crash of the machine. One fsync. On an
  // error (disk full, failed write) the store is as before and can be used on, but if the process
  // dies before the next success the block may yet be there at the next start.
  [[nodiscard]] virtual Status Append(std::string_view block) = 0;
  // Frees the room on the disk that was set aside when the store was opened, for a last Append.
  // False: there is none.
  [[nodiscard]] virtual bool UseReserve() { return false; }
  // The blocks from number `first` on (they are numbered from 1), oldest first; stops at the first
  // error of `take`, which must not use the store. The bytes are valid during the call only.
  // Errors: a block is damaged or missing (kBadInput); those before it have been given.
  [[nodiscard]] virtual Status Read(std::uint64_t first,
                                    const std::function<Status(std::string_view)>& take) const = 0;
  // Forgets the blocks up to `last`.
  [[nodiscard]] virtual Status DropBlocks(std::uint64_t last) = 0;

  // Adds a snapshot, whose pages are those that it has beyond the snapshot of block `before` (0:
  // none before it). All others but that one are forgotten. All or nothing; one fsync. After an
  // error the store can be used on.
  [[nodiscard]] virtual Status AddSnapshot(const StoredSnapshot& snapshot,
                                           std::uint64_t before) = 0;
  // The blocks of the snapshots, newest first.
  [[nodiscard]] virtual Result<std::vector<std::uint64_t>> Snapshots() const = 0;
  // With all its pages. Error: it is damaged or not there (kBadInput).
  [[nodiscard]] virtual Result<StoredSnapshot> Snapshot(std::uint64_t block) const = 0;
  // Small named texts (settings that must not change between starts); empty if never set. Durable.
  [[nodiscard]] virtual Result<std::string> Setting(std::string_view name) const = 0;
  [[nodiscard]] virtual Status SetSetting(std::string_view name, std::string_view value) = 0;
  // Null: it keeps none.
  [[nodiscard]] virtual NoticeTable* notices() { return nullptr; }
  // How often the store has been opened for writing, this time included: the controller's epoch.
  // Durable before OpenStore returns, so no two holders ever have the same.
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;
};

// Opens or creates FOLDER/controller.db (mode 0600; the folder with its parents, 0700; what exists
// keeps its mode). Never waits. Errors: the folder cannot be written or made; another controller
// has it open, or another program the file (kFailed); the file is damaged, no store or of another
// version (kBadInput; the message says which and names the file).
[[nodiscard]] Result<std::unique_ptr<Store>> OpenStore(const std::string& folder);

}  // namespace trainyard::store
