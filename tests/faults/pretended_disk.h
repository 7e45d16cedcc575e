// SPDX-License-Identifier: Apache-2.0
// The disk under a controller in the pretended world.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/simulation.h"
#include "store/memory_store.h"

namespace trainyard::faults {

// The disk under a controller: what is written survives, what is not is lost with the crash.
class PretendedDisk final : public store::MemoryStore {
 public:
  explicit PretendedDisk(PlantedBug bug)
      : lies_(bug == PlantedBug::kAckBeforeSync), ages_(bug == PlantedBug::kOldSnapshot) {}
  Status Append(std::string_view block) override {
    if (full_) {
      return Failed("the disk is full");
    }
    if (Crashes()) {
      if (torn_ && !lies_) {
        (void)MemoryStore::Append(block);  // it is there, but nobody has been told
      }
      has_crashed_ = true;
      return Failed(kCrash);
    }
    if (!lies_) {
      return MemoryStore::Append(block);
    }
    unsynced_.emplace_back(block);
    if (unsynced_.size() > 3) {
      (void)MemoryStore::Append(unsynced_.front());
      unsynced_.erase(unsynced_.begin());
    }
    return {};
  }
  Status AddSnapshot(const store::StoredSnapshot& snapshot, std::uint64_t before) override {
    if (lies_) {
      return Failed("no snapshots here");
    }
    if (full_) {
      return Failed("the disk is full");
    }
    if (Crashes()) {
      if (torn_) {
        (void)MemoryStore::AddSnapshot(snapshot, before);
      }
      has_crashed_ = true;
      return Failed(kCrash);
    }
    if (ages_) {
      store::StoredSnapshot old = snapshot;
      std::swap(old.state, last_state_);
      return old.state.empty() ? Status() : MemoryStore::AddSnapshot(old, before);
    }
    return MemoryStore::AddSnapshot(snapshot, before);
  }
  std::uint64_t epoch() const override { return epoch_; }

  void Open() {
    ++epoch_;
    unsynced_.clear();
    has_crashed_ = false;
  }
  void SetFull(bool full) { full_ = full; }
  [[nodiscard]] bool is_full() const { return full_; }
  void FailIn(int writes, bool torn) {
    fails_in_ = writes;
    torn_ = torn;
  }
  // In the middle of a write, of which the controller makes nothing but another try.
  [[nodiscard]] bool has_crashed() const { return has_crashed_; }

  static constexpr const char* kCrash = "the machine has crashed";

 private:
  bool Crashes() { return fails_in_ > 0 && --fails_in_ == 0; }

  bool lies_;
  bool ages_;
  std::string last_state_;
  std::vector<std::string> unsynced_;
  std::uint64_t epoch_ = 0;
  int fails_in_ = 0;
  bool torn_ = false;
  bool has_crashed_ = false;
  bool full_ = false;
};

}  // namespace trainyard::faults
