// SPDX-License-Identifier: Apache-2.0
// An audit trail in memory, which sees whether a controller that goes through its journal again
// says the same again. For tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "live/history/audit_trail.h"

namespace trainyard::live {

class MemoryTrail final : public AuditTrail {
 public:
  void Begin(std::uint64_t entry) override { at_ = {entry, 0}; }
  void Put(const v1::AuditEntry& entry) override {
    at_ = {entry.entry(), entry.entry() == at_.first ? at_.second + 1 : 1};
    const auto [known, is_new] = all_.try_emplace(at_, entry);
    if (!is_new && known->second.SerializeAsString() != entry.SerializeAsString()) {
      wrong_ = known->second.ShortDebugString() + " is " + entry.ShortDebugString() + " again";
    }
  }
  [[nodiscard]] Status Save() override { return {}; }
  void End(std::uint64_t entry) override {
    if (!all_.empty() && all_.rbegin()->first.first > entry) {
      wrong_ = all_.rbegin()->second.ShortDebugString() + " is behind the last entry, " +
               std::to_string(entry);
    }
  }
  [[nodiscard]] Result<v1::AuditReply> Read(const v1::AuditRequest& /*request*/) const override {
    v1::AuditReply reply;
    for (const auto& [place, entry] : all_) {
      *reply.add_entries() = entry;
    }
    return reply;
  }

  // What has been said otherwise again; empty: nothing.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, v1::AuditEntry> all_;  // by entry and line
  std::pair<std::uint64_t, std::uint64_t> at_;
  std::string wrong_;
};

}  // namespace trainyard::live
