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

#include <algorithm>
#include <cstdlib>

namespace trainyard {

// How often a test draws at random: so often, but a tenth as often under a sanitizer and a
// TRAINYARD_ROUNDS-th elsewhere, at least once.
template <typename Number>
Number Rounds(Number rounds) {
#ifdef TRAINYARD_SANITIZED
  constexpr Number kPart = 10;
#else
  static const char* const text = std::getenv("TRAINYARD_ROUNDS");
  static const auto kPart = static_cast<Number>(text != nullptr ? std::max(std::atoi(text), 1) : 1);
#endif
  return rounds < kPart ? 1 : rounds / kPart;
}

}  // namespace trainyard
