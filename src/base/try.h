// SPDX-License-Identifier: Apache-2.0
// Failures passed on: both macros evaluate a Status or Result<T> and, if it is not ok, return its
// error from the calling function (whose result is a Status, a Result of any type or an Error).
#pragma once

#include <utility>

#include "trainyard/status.h"

// RETURN_IF_ERROR(file.Open(path));
#define RETURN_IF_ERROR(...) TRAINYARD_RETURN_IF_ERROR(TRAINYARD_NAMED(__COUNTER__), __VA_ARGS__)

// ASSIGN_OR_RETURN(const Cluster cluster, ReadCluster(path)); the declaration must have no comma.
#define ASSIGN_OR_RETURN(declaration, ...) \
  TRAINYARD_ASSIGN_OR_RETURN(TRAINYARD_NAMED(__COUNTER__), declaration, __VA_ARGS__)

#define TRAINYARD_NAMED(number) TRAINYARD_JOINED(outcome_, number)
#define TRAINYARD_JOINED(name, number) name##number
#define TRAINYARD_RETURN_IF_ERROR(outcome, ...)          \
  do {                                                   \
    if (auto&& outcome = (__VA_ARGS__); !outcome.ok()) { \
      return outcome.error();                            \
    }                                                    \
  } while (false)
#define TRAINYARD_ASSIGN_OR_RETURN(outcome, declaration, ...) \
  auto&& outcome = (__VA_ARGS__);                             \
  if (!outcome.ok()) {                                        \
    return outcome.error();                                   \
  }                                                           \
  declaration = std::move(outcome).value()
