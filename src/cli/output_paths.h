// SPDX-License-Identifier: Apache-2.0
// Keeps commands from writing over what they read, and from writing one file twice.
#pragma once

#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::cli {

struct NamedPath {
  std::string name;  // in messages: "--html"
  std::string path;  // empty: none
};

// Each of the files with the name of the option that they come from.
void AddPaths(const std::string& name, const std::vector<std::string>& files,
              std::vector<NamedPath>& paths);

// To be called before the work. Inputs may be folders, whose files are inputs; what is no path of a
// file ("16x8") counts for nothing. Errors: an output is the same file as an input, or as another
// output.
[[nodiscard]] Status CheckOutputs(const std::vector<NamedPath>& inputs,
                                  const std::vector<NamedPath>& outputs);

}  // namespace trainyard::cli
