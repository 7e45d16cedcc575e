// SPDX-License-Identifier: Apache-2.0
// Where the published inputs and results lie (docs/golden.md), for the tests that need them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace trainyard {

// TRAINYARD_REFERENCE, or the folder `shared` beside the source tree that the test was built in.
// Empty: there is none.
[[nodiscard]] inline std::string Reference() {
  namespace fs = std::filesystem;
  const auto is_reference = [](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / "golden" / "manifest.csv", error);
  };
  if (const char* given = std::getenv("TRAINYARD_REFERENCE")) {
    return is_reference(given) ? given : "";
  }
  fs::path folder = fs::read_symlink("/proc/self/exe");
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    if (is_reference(folder / "shared")) {
      return folder / "shared";
    }
  }
  return "";
}

// Whether the run was told that the published inputs are absent, as `./dev test` does where they
// are.
[[nodiscard]] inline bool RunsWithoutReference() {
  return std::getenv("TRAINYARD_WITHOUT_REFERENCE") != nullptr;
}

}  // namespace trainyard

// Ends a test that has no published inputs: it is skipped if the run was told so, and fails
// otherwise.
#define TRAINYARD_NEEDS_REFERENCE()                                                             \
  if (trainyard::Reference().empty()) {                                                         \
    if (trainyard::RunsWithoutReference()) {                                                    \
      GTEST_SKIP() << "not checked: needs the published inputs";                                \
    }                                                                                           \
    FAIL() << "no published inputs: set TRAINYARD_REFERENCE, or TRAINYARD_WITHOUT_REFERENCE=1 " \
              "to leave this test out";                                                         \
  }                                                                                             \
  static_assert(true)
