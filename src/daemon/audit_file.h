// SPDX-License-Identifier: Apache-2.0
// The audit trail as a file of JSON lines, which is only ever added to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "io/descriptor.h"
#include "live/history/audit_trail.h"

namespace trainyard::daemon {

class AuditFile final : public live::AuditTrail {
 public:
  // The file is made if it is not there (mode 0600); a last line that is not whole is taken back.
  // Error: it cannot be read or written; it names the file.
  [[nodiscard]] static Result<std::unique_ptr<AuditFile>> Open(const std::string& path);

  // What cannot be written is kept in memory, and tried again with the next.
  void Put(const v1::AuditEntry& entry) override;
  [[nodiscard]] Status Save() override;
  void Begin(std::uint64_t entry) override;
  void End(std::uint64_t entry) override;
  // O(bytes of the file behind AuditRequest::after).
  [[nodiscard]] Result<v1::AuditReply> Read(const v1::AuditRequest& request) const override;
  // Lines that were not in the file.
  [[nodiscard]] std::uint64_t added() const { return added_; }

 private:
  // A line of the file: of which entry, and the how many-th of it.
  using Place = std::pair<std::uint64_t, std::uint64_t>;

  AuditFile(std::string path, io::Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] Status FindLast();
  [[nodiscard]] Status Write();
  void Reopen();

  const std::string path_;
  io::Descriptor file_;
  Place last_{};  // in the file, or in pending_
  Place next_{};  // the one that was put last
  std::string pending_;
  std::uint64_t added_ = 0;
  bool is_saved_ = true;
};

}  // namespace trainyard::daemon
