// SPDX-License-Identifier: Apache-2.0
// The published results as this repository keeps them: the cases, the figures of their jobs, and
// what their inputs must be (docs/golden.md). The inputs themselves are not part of it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "golden/golden_case.h"
#include "trainyard/status.h"

namespace trainyard {

// A file that cases read.
struct InputFile {
  std::string path;       // below the reference folder
  std::size_t bytes = 0;  // unpacked
  std::string sha256;     // of the unpacked bytes
};

// The files that the cases read, by path. `reference`: the folder in which all inputs lie. Errors:
// an input lies elsewhere or cannot be read; a preset is not built.
[[nodiscard]] Result<std::vector<InputFile>> InputsOf(const std::vector<GoldenCase>& cases,
                                                      const std::string& reference);

// Writes what the repository keeps of a manifest to `folder`: manifest.csv, expected/CASE.csv for
// each case (job, outcome, start, end, as far as the original recorded them, in its unit) and
// inputs.csv. `roots`: as for ReadManifest. Errors: those of reading; a file cannot be written.
[[nodiscard]] Status WriteFigures(const std::string& manifest,
                                  const std::map<std::string, std::string>& roots,
                                  const std::string& folder);

}  // namespace trainyard
