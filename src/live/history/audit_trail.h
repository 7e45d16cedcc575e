// SPDX-License-Identifier: Apache-2.0
// Where it is kept for ever who has done what.
#pragma once

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::live {

class AuditTrail {
 public:
  virtual ~AuditTrail() = default;
  // In the order of the journal. A controller that goes through its journal again puts what is
  // there already: that is passed over.
  virtual void Put(const v1::AuditEntry& entry) = 0;
  // All that has been put is on disk; error: it could not be written, and is kept for the next
  // time.
  [[nodiscard]] virtual Status Save() = 0;
  // What is put next follows on that entry of the journal.
  virtual void Begin(std::uint64_t entry) = 0;
  // The journal ends with that entry. What is there of later ones is of a state that another has
  // taken the place of: it stays, and such entries are put again.
  virtual void End(std::uint64_t entry) = 0;
  // What the request asks for. For any thread.
  [[nodiscard]] virtual Result<v1::AuditReply> Read(const v1::AuditRequest& request) const = 0;
};

}  // namespace trainyard::live
