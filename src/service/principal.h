// SPDX-License-Identifier: Apache-2.0
// Who makes a call, and what this principal may do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::service {

// What a call wants of a job.
enum class Access : unsigned char {
  kSee,     // that it is there, and how it stands
  kChange,  // cancel, hold, release, requeue, update, resize or signal it
  kRead,    // what it has written
  kEnter,   // run something beside it, as its user
};

class Principal {
 public:
  // Nobody in particular, who may do everything: authentication is off.
  Principal() = default;
  explicit Principal(v1::Caller caller) : caller_(std::move(caller)) {}
  // Who makes the call.
  [[nodiscard]] static Principal Of(const v1::ClientRequest& request);
  // Whose job it is.
  [[nodiscard]] static Principal OwnerOf(const v1::JobRequest& job);

  // None: authentication is off.
  [[nodiscard]] const std::optional<v1::Caller>& caller() const { return caller_; }
  // Error: there is no caller, though one is required.
  [[nodiscard]] Status CheckCaller(bool is_required) const;

  [[nodiscard]] bool May(Access access, const v1::JobRequest& job) const;
  // Whether it may drain nodes and switch the controller.
  [[nodiscard]] bool MayOperate() const;
  [[nodiscard]] bool MayAdminister() const;
  // Whether it may submit a job under the name of that user.
  [[nodiscard]] bool MayNameUser(std::string_view user) const;
  // Whether it may undo what somebody with such a text_with_role() has done: the same user, or one
  // with no lower role. Of an empty text: yes.
  [[nodiscard]] bool MayUndo(std::string_view changer) const;

  // "ann (uid 1001)"; without a caller: empty.
  [[nodiscard]] std::string text() const;
  // "ann (uid 1001, operator)"; without a caller: empty.
  [[nodiscard]] std::string text_with_role() const;

 private:
  std::optional<v1::Caller> caller_;
};

}  // namespace trainyard::service
