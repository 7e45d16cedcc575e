// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_channel.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "identity/keys.h"
#include "io/sha256.h"
#include "supervisor/launch/node_desk.h"

namespace trainyard::supervisor {
namespace {

// What begins is longer than a nonce or a greeting: strangers shall not have srun keep it.
bool IsLong(const std::string& received) {
  constexpr std::uint32_t kMost = 4096;
  std::uint32_t length = 0;
  if (received.size() >= sizeof(length)) {
    std::memcpy(&length, received.data(), sizeof(length));
  }
  return length > kMost;
}

}  // namespace

StepChannel::StepChannel(io::Descriptor socket, Side side, std::string secret)
    : side_(side),
      secret_(std::move(secret)),
      nonce_(NewNonce()),
      connection_([](io::Descriptor own) {
        fcntl(own.get(), F_SETFL, fcntl(own.get(), F_GETFL) | O_NONBLOCK);
        return own;
      }(std::move(socket))) {
  v1::StepFrame greeting;
  greeting.set_body(nonce_);
  connection_.Send(Framed(greeting));
}

std::string StepChannel::MacOf(Side side, std::uint64_t number, const std::string& body) const {
  return io::HmacSha256(
      key_, fmt::format("{} {} {}", side == Side::kSrun ? "srun" : "tasks", number, body));
}

bool StepChannel::Transfer() { return connection_.Transfer() && !broken_; }

// On a key, by the other side's nonce.
void StepChannel::Agree(const std::string& theirs) {
  const std::string& of_srun = side_ == Side::kSrun ? nonce_ : theirs;
  const std::string& of_tasks = side_ == Side::kSrun ? theirs : nonce_;
  key_ = io::HmacSha256(
      secret_, fmt::format("step {}:{} {}:{}", of_srun.size(), of_srun, of_tasks.size(), of_tasks));
  for (const v1::StepMessage& waiting : std::exchange(unsent_, {})) {
    SendNow(waiting);
  }
}

std::optional<v1::StepMessage> StepChannel::Take() {
  while (!broken_) {
    if (side_ == Side::kSrun && taken_ == 0 && IsLong(connection_.received())) {
      broken_ = true;
      break;
    }
    v1::StepFrame frame;
    const Taken taken = TakeMessage(connection_.received(), frame);
    if (taken == Taken::kNone) {
      return std::nullopt;
    }
    const Side other = side_ == Side::kSrun ? Side::kTasks : Side::kSrun;
    v1::StepMessage message;
    if (taken != Taken::kMalformed && key_.empty()) {
      Agree(frame.body());
    } else if (taken != Taken::kMalformed &&
               identity::SameBytes(frame.mac(), MacOf(other, taken_, frame.body())) &&
               message.ParseFromString(frame.body())) {
      ++taken_;
      return message;
    } else {
      broken_ = true;
    }
  }
  return std::nullopt;
}

void StepChannel::Send(const v1::StepMessage& message) {
  if (key_.empty()) {
    unsent_.push_back(message);
  } else {
    SendNow(message);
  }
}

void StepChannel::SendNow(const v1::StepMessage& message) {
  v1::StepFrame frame;
  frame.set_body(message.SerializeAsString());
  frame.set_mac(MacOf(side_, sent_++, frame.body()));
  connection_.Send(Framed(frame));
}

}  // namespace trainyard::supervisor
