// SPDX-License-Identifier: Apache-2.0
#include "live/failures.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard {
namespace {

std::string_view NameOf(v1::AttemptReport::Cause cause) {
  switch (cause) {
    case v1::AttemptReport::DISK:
      return "its files cannot be written";
    case v1::AttemptReport::FOLDER:
      return "its folder cannot be entered";
    case v1::AttemptReport::SPAWN:
      return "no process can be started";
    case v1::AttemptReport::DEVICE:
      return "a GPU is faulty";
    case v1::AttemptReport::SUPERVISOR_LOST:
      return "its supervisor is gone";
    case v1::AttemptReport::NO_PROGRAM:
      return "the program is not there";
    case v1::AttemptReport::NO_FOLDER:
      return "the working folder is not there";
    default:
      return "a worker failed";
  }
}

}  // namespace

PartFailure FailureOf(const v1::AttemptReport& report) {
  return {.cause = report.cause(),
          .exit_code = report.exit_code(),
          .lost = report.lost(),
          .failed_at = report.failed_at(),
          .message = report.message()};
}

FailureOwner OwnerOf(const PartFailure& failure) {
  switch (failure.cause) {
    case v1::AttemptReport::DISK:
    case v1::AttemptReport::FOLDER:
    case v1::AttemptReport::SPAWN:
    case v1::AttemptReport::DEVICE:
    case v1::AttemptReport::SUPERVISOR_LOST:
      return FailureOwner::kNode;
    case v1::AttemptReport::NO_PROGRAM:
    case v1::AttemptReport::NO_FOLDER:
      return FailureOwner::kDoubtful;
    default:
      return failure.exit_code != 0 && !failure.lost ? FailureOwner::kJob : FailureOwner::kNobody;
  }
}

std::size_t FirstFailed(std::span<const PartFailure> parts) {
  std::size_t first = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].has_failed() &&
        (first == parts.size() || parts[i].failed_at < parts[first].failed_at)) {
      first = i;
    }
  }
  CHECK(first < parts.size());
  return first;
}

std::string ReasonKey(const PartFailure& failure) {
  const std::size_t colon = failure.message.rfind(": ");
  return std::string(NameOf(failure.cause)) +
         (colon == std::string::npos ? "" : failure.message.substr(colon));
}

std::string Describe(const PartFailure& failure) {
  constexpr std::size_t kMost = 200;
  std::string text = failure.message;
  if (text.empty()) {
    text = NameOf(failure.cause);
    if (failure.exit_code != 0) {
      text += " with exit code " + std::to_string(failure.exit_code);
    }
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kMost) {
    return text;
  }
  std::size_t begin = text.size() - (kMost - 3);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) {
    ++begin;  // not in the middle of a character
  }
  return "..." + text.substr(begin);
}

}  // namespace trainyard
