// SPDX-License-Identifier: Apache-2.0
// The local socket of a controller: whoever connects is told apart by the kernel (SO_PEERCRED),
// says nothing, and gets one answer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trainyard/status.h"

namespace trainyard::identity {

// Where the door of the controller at that port is unless somebody chooses: a name of the kernel's
// (an abstract socket), which has no file and goes with the process.
[[nodiscard]] std::string DoorName(int port);

class Door {
 public:
  // The answer to a process of that user; called from the door's own thread.
  using Answer = std::function<std::string(uid_t)>;

  virtual ~Door() = default;  // closes it
  // `name`: a path, or '@' and a name. The file is made for everybody to connect to. Errors: it
  // cannot be made, or another process has the name.
  [[nodiscard]] static Result<std::unique_ptr<Door>> Open(const std::string& name, Answer answer);
};

struct DoorReply {
  std::string bytes;
  uid_t uid{};  // of the process that answers
};
// Connects and takes the answer. None: nobody listens there. Error: there is no answer within 5 s.
[[nodiscard]] Result<std::optional<DoorReply>> Knock(const std::string& name);

// The user's name; the number as text where there is none.
[[nodiscard]] std::string UserName(uid_t uid);
// None: there is no such user.
[[nodiscard]] std::optional<uid_t> UserId(const std::string& name);

}  // namespace trainyard::identity
