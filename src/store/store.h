// SPDX-License-Identifier: Apache-2.0
// What a controller keeps: the log, settings, and notices on their way to users, on disk in a
// SQLite file (OpenStore) or in memory (memory_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/log.h"
#include "trainyard/status.h"

namespace trainyard::store {

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

// The right to write to a store, which one holder has at a time: until it is destroyed or the
// process dies. After a later holder has opened the store, nothing that an earlier one writes gets
// there.
class Lease {
 public:
  virtual ~Lease() = default;
  // How often the store has been opened for writing, this time included: the controller's epoch.
  // Durable before the store is open, so no two holders ever have the same.
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;
};

// A lease and what it is for. A child made by fork holds it too, until it calls exec.
class Store : public Lease, public Log {
 public:
  // Small named texts (settings that must not change between starts); empty if never set. Durable.
  [[nodiscard]] virtual Result<std::string> Setting(std::string_view name) const = 0;
  [[nodiscard]] virtual Status SetSetting(std::string_view name, std::string_view value) = 0;
  [[nodiscard]] virtual NoticeTable& notices() = 0;
};

// Opens or creates FOLDER/controller.db (mode 0600; the folder with its parents, 0700; what exists
// keeps its mode). Never waits. Errors: the folder cannot be written or made; another controller
// has it open, or another program the file (kFailed); the file is damaged, no store or of another
// version (kBadInput; the message says which and names the file).
[[nodiscard]] Result<std::unique_ptr<Store>> OpenStore(const std::string& folder);

// The store of FOLDER as it is, into another folder. Errors: there is none; a controller has it
// open; it cannot be copied.
[[nodiscard]] Status CopyStore(const std::string& folder, const std::string& to);

}  // namespace trainyard::store
