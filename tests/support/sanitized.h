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
