// SPDX-License-Identifier: Apache-2.0
#include "cli_tests/page.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// The word that ends the here-document which the line opens; empty: it opens none.
std::string HereWord(const std::string& line) {
  const std::size_t at = line.find("<<'");
  const std::size_t end = at == std::string::npos ? at : line.find('\'', at + 3);
  return end == std::string::npos ? "" : line.substr(at + 3, end - at - 3);
}

void AddSteps(const Block& block, std::vector<Step>& steps) {
  const bool console = block.kind == "console";
  std::istringstream text(block.text);
  bool goes_on = false;
  std::string here;
  for (std::string line; std::getline(text, line);) {
    const bool command = !goes_on && (block.kind == "sh" || (console && line.rfind("$ ", 0) == 0));
    if (goes_on) {
      steps.back().command += "\n" + line;
    } else if (command) {
      steps.push_back({.command = console ? line.substr(2) : line,
                       .output = "",
                       .needs = block.needs,
                       .shown = console});
      here = HereWord(line);
    } else if (console) {
      steps.back().output += line + "\n";
    }
    const bool in_here = !here.empty() && line != here;
    here = in_here ? here : "";
    goes_on = in_here || ((goes_on || command) && line.ends_with("\\"));
  }
}

}  // namespace

std::vector<Block> BlocksOf(const std::string& path) {
  std::istringstream text(ReadText(path));
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      if (inside) {
        const std::size_t blank = line.find(' ');
        blocks.push_back({.kind = line.substr(3, blank == std::string::npos ? blank : blank - 3),
                          .needs = blank == std::string::npos ? "" : line.substr(blank + 1),
                          .text = ""});
      }
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

std::vector<Step> StepsOf(const std::vector<Block>& blocks) {
  std::vector<Step> steps;
  for (const Block& block : blocks) {
    if (block.kind == "sh" || block.kind == "console") {
      AddSteps(block, steps);
    }
  }
  return steps;
}

bool Matches(const std::string& shown, const std::string& printed) {
  std::vector<std::string> parts(1);
  std::istringstream text(shown);
  for (std::string line; std::getline(text, line);) {
    if (line == "...") {
      parts.emplace_back();
    } else {
      parts.back() += line + "\n";
    }
  }
  if (parts.size() == 1) {
    return shown == printed;
  }
  if (printed.rfind(parts.front(), 0) != 0) {
    return false;
  }
  std::size_t at = parts.front().size();
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    // One character before, where the line above ends.
    at = printed.find("\n" + parts[i], at == 0 ? 0 : at - 1);
    if (at == std::string::npos) {
      return false;
    }
    at += 1 + parts[i].size();
  }
  return printed.size() >= at + parts.back().size() && printed.ends_with(parts.back());
}

void MakeSourceFolder(const std::string& folder, const std::string& build) {
  const fs::path path(folder);
  fs::remove_all(path);
  fs::create_directories(path / "build");
  fs::create_directories(path / "bin");
  for (const std::string name : {"include", "cmake", "examples", "data", "workloads", "python"}) {
    fs::create_directory_symlink(fs::path(TRAINYARD_SOURCE_DIR) / name, path / name);
  }
  fs::create_directory_symlink(build, path / "build" / "release");
  fs::create_symlink(TRAINYARD_PROGRAM, path / "bin" / "trainyard");
}

int RunStep(const std::string& folder, const Step& step, const std::string& out,
            const std::string& err) {
  const std::string script = WriteScratch(
      "step.sh", "cd '" + folder + "' && PATH=\"$PWD/bin:$PATH\" || exit\n" + step.command + "\n");
  return std::system(("sh " + script + " >'" + out + "' 2>'" + err + "' </dev/null").c_str());
}

}  // namespace trainyard
