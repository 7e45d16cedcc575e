// SPDX-License-Identifier: Apache-2.0
// Expected failures are values. A Status says whether something worked and, if not, what the user
// should do about it; Result<T> is a value or such a failure. Programmer errors are CHECKs instead.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace trainyard {

// A code exists only where a caller can react to it differently.
enum class ErrorCode : unsigned char {
  kFailed,           // the run failed: exit status 1
  kInvalidArgument,  // wrong usage: exit status 2
  kBadInput,         // a file cannot be read as what it claims to be: exit status 3
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;  // "file:line: what is wrong; what was expected"
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  // REQUIRES: !ok()
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  // REQUIRES: ok()
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  // REQUIRES: !ok()
  [[nodiscard]] const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

[[nodiscard]] inline Error InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}
[[nodiscard]] inline Error BadInput(std::string message) {
  return {ErrorCode::kBadInput, std::move(message)};
}
[[nodiscard]] inline Error Failed(std::string message) {
  return {ErrorCode::kFailed, std::move(message)};
}

}  // namespace trainyard
