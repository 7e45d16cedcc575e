// SPDX-License-Identifier: Apache-2.0
// The files that a run leaves: jobs.csv, timeline.csv and summary.json, as described in
// docs/formats/run-output.md.
#pragma once

#include <string>
#include <vector>

#include "report/run_result.h"
#include "trainyard/status.h"

namespace trainyard {

// With all directories above it. A program calls it before a long run, to fail early. Errors: a
// part of the path is a file, or the place is not writable.
[[nodiscard]] Status MakeOutputDirectory(const std::string& directory);

// Makes the directory and replaces files of those names in it. On failure the files that were
// there before remain and no half file is left.
[[nodiscard]] Status WriteRun(const RunResult& run, const std::string& directory);

// What WriteRun may write there; none where no directory is named.
[[nodiscard]] std::vector<std::string> FilesOfRun(const std::string& directory);

}  // namespace trainyard
