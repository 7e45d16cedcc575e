// SPDX-License-Identifier: Apache-2.0
// What connects srun with the tasks of its step on one node. Both sides prove that they know the
// attempt's secret, with each message: whoever else has come between them can have nothing run and
// change nothing of what is said. Nothing here ever waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/unix_socket.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class StepChannel {
 public:
  enum class Side : unsigned char { kSrun, kTasks };

  // Over a connected stream socket, which never waits from now on.
  StepChannel(io::Descriptor socket, Side side, std::string secret);

  // Moves what can be moved. False: the other side is gone, or does not know the secret; what it
  // has said before can still be taken.
  [[nodiscard]] bool Transfer();
  // Only sends. False: the other side is gone.
  [[nodiscard]] bool Flush() { return connection_.Flush(); }
  [[nodiscard]] std::optional<v1::StepMessage> Take();
  void Send(const v1::StepMessage& message);
  // The other side does not keep up: no more output or input is to be sent for now.
  [[nodiscard]] bool is_congested() const { return (connection_.Awaited().events & POLLOUT) != 0; }
  // All that has been sent is on its way.
  [[nodiscard]] bool is_flushed() const { return !is_congested() && unsent_.empty(); }
  // The other side has said what one that knows the secret would not say.
  [[nodiscard]] bool is_broken() const { return broken_; }
  [[nodiscard]] pollfd Awaited() const { return connection_.Awaited(); }

 private:
  [[nodiscard]] std::string MacOf(Side side, std::uint64_t number, const std::string& body) const;
  void SendNow(const v1::StepMessage& message);
  void Agree(const std::string& theirs);

  Side side_;
  std::string secret_;
  std::string nonce_;
  std::string key_;  // empty: the other side's nonce has not come
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  bool broken_ = false;
  std::vector<v1::StepMessage> unsent_;  // until there is a key
  Connection connection_;
};

}  // namespace trainyard::supervisor
