// SPDX-License-Identifier: Apache-2.0
#include "service/call_error.h"

#include <array>

namespace trainyard::service {
namespace {

struct Numbered {
  ErrorCode code;
  int number;
};
constexpr std::array<Numbered, 8> kNumbers{{{ErrorCode::kInvalidArgument, 3},
                                            {ErrorCode::kNotFound, 5},
                                            {ErrorCode::kAlreadyExists, 6},
                                            {ErrorCode::kPermissionDenied, 7},
                                            {ErrorCode::kResourceExhausted, 8},
                                            {ErrorCode::kFailedPrecondition, 9},
                                            {ErrorCode::kUnavailable, 14},
                                            {ErrorCode::kUnauthenticated, 16}}};

}  // namespace

int NumberOf(ErrorCode code) {
  for (const Numbered& known : kNumbers) {
    if (known.code == code) {
      return known.number;
    }
  }
  return NumberOf(ErrorCode::kFailedPrecondition);
}

ErrorCode CodeOf(int number) {
  for (const Numbered& known : kNumbers) {
    if (known.number == number) {
      return known.code;
    }
  }
  return ErrorCode::kFailed;
}

v1::CallError MessageOf(const Error& error) {
  v1::CallError message;
  message.set_code(NumberOf(error.code));
  message.set_message(error.message);
  return message;
}

}  // namespace trainyard::service
