// SPDX-License-Identifier: Apache-2.0
// Programmer errors end the program, in every build type, with the place and the condition.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace trainyard::base {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: CHECK(%s) failed\n", file, line, condition);
  std::abort();
}

}  // namespace trainyard::base

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) [[unlikely]] {                                  \
      ::trainyard::base::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                                 \
  } while (false)
