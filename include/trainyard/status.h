// SPDX-License-Identifier: Apache-2.0
// Expected failures are values. A Status says whether something worked and, if not, what the user
// should do about it; a Result<T> is a value or such a failure. Both must be looked at: they are
// nodiscard. Only value() of an error throws. Programmer errors (a REQUIRES that does not
// hold) end the program instead.
//
// A plug-in makes errors in its factory only (ComponentEntry::make): components have no way to
// fail.
//
//   if (options.Number("size") < 1) {
//     return InvalidArgument("policy 'mine': size is 0; expected 1 or more");
//   }
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace trainyard {

// What a caller can do about it. The first three are those of a program; the others those of a
// call to a controller, with the names and the meaning that gRPC gives to its status codes. The
// program ends with the exit status beside it, and with 1 where there is none.
enum class ErrorCode : unsigned char {
  kFailed,           // the run failed: exit status 1
  kInvalidArgument,  // wrong usage, whatever the state of things: exit status 2
  kBadInput,         // a file cannot be read as what it claims to be: exit status 3
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,    // to this caller
  kUnauthenticated,     // the caller is not known
  kFailedPrecondition,  // not as things stand; the same later only if they change
  kResourceExhausted,   // a limit is reached
  kUnavailable,         // the same may succeed later
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  // "what is wrong; what was expected", with "file:line: " in front where there is a file. Shown to
  // the user as it is.
  std::string message;
};

// Success, or an error. A default-made Status is success: `return {};`.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Implicit, so that a function may `return InvalidArgument(...)`.
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  // Valid as long as the Status. REQUIRES: !ok().
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// A value, or the reason why there is none. Owns either.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Both implicit, so that a function returns the value or the error itself.
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  // The value, valid as long as the Result; of a temporary Result, or by std::move(result).value(),
  // it may be moved from. REQUIRES: ok().
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  // Valid as long as the Result. REQUIRES: !ok().
  [[nodiscard]] const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Errors of a program. InvalidArgument is the one for options that do not go together.
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
