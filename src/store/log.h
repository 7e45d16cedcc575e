// SPDX-License-Identifier: Apache-2.0
// The journal of everything that has happened, in blocks, and snapshots of what came of it.
#pragma once

#include <cstdint>
#include <functional>
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

// For one thread at a time. Every error names the file, if there is one.
class Log {
 public:
  virtual ~Log() = default;
  // Appends one block (under 1 GB); on return it survives a crash of the machine. One fsync. On an
  // error (disk full, failed write) the store is as before and can be used on, but if the process
  // dies before the next success the block may yet be there at the next start.
  [[nodiscard]] virtual Status Append(std::string_view block) = 0;
  // Frees the room on the disk that was set aside when the store was opened, for a last Append.
  // False: there is none.
  [[nodiscard]] virtual bool UseReserve() { return false; }
  // The blocks from number `first` on, oldest first; stops at the first error of `take`, which must
  // not use the log. They are numbered from 1, or on from the last one that there is. The bytes are
  // valid during the call only. Errors: a block is damaged or missing (kBadInput); those before it
  // have been given.
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
};

}  // namespace trainyard::store
