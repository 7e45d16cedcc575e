// SPDX-License-Identifier: Apache-2.0
// Defines TRAINYARD_SANITIZED where the address or thread sanitizer is in the build: GCC and clang
// say so in different ways. A run then takes about ten times as long and more memory.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRAINYARD_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TRAINYARD_SANITIZED
#endif
#endif

#include <cstdlib>

namespace trainyard {

// How often a test draws at random: so often, and a tenth as often, but once, under a sanitizer or
// where TRAINYARD_FEWER_ROUNDS is set: the same tests have run in full.
template <typename Number>
Number Rounds(Number rounds) {
#ifdef TRAINYARD_SANITIZED
  constexpr bool kFewer = true;
#else
  static const bool kFewer = std::getenv("TRAINYARD_FEWER_ROUNDS") != nullptr;
#endif
  return !kFewer ? rounds : rounds < 10 ? 1 : rounds / 10;
}

}  // namespace trainyard
