// SPDX-License-Identifier: Apache-2.0
// Pages of the documentation as tests read them: their blocks of code, and the commands in these.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

struct Block {
  std::string kind;   // "sh", "console", "cpp", ...
  std::string needs;  // what stands after it: "gnuplot", "reference"
  std::string text;
};
[[nodiscard]] std::vector<Block> BlocksOf(const std::string& path);

struct Step {
  std::string command;
  std::string output;
  std::string needs;
  bool shown = false;  // the output is on the page
};

// The lines of `console` blocks that begin with "$ ", with what stands below them; and all lines of
// `sh` blocks. A line that ends with '\' goes on; the lines up to the closing one of a
// here-document belong to the command too.
[[nodiscard]] std::vector<Step> StepsOf(const std::vector<Block>& blocks);

// Whether a command printed what the page shows. A line "..." stands for any lines.
[[nodiscard]] bool Matches(const std::string& shown, const std::string& printed);

// A folder that looks like the source folder with a release build in it, and nothing else built.
// Commands in it find `trainyard`.
void MakeSourceFolder(const std::string& folder, const std::string& build);

// Runs the command in such a folder; its outputs go to the two files. Returns the exit status.
[[nodiscard]] int RunStep(const std::string& folder, const Step& step, const std::string& out,
                          const std::string& err);

}  // namespace trainyard
