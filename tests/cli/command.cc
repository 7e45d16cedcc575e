// SPDX-License-Identifier: Apache-2.0
#include "cli_tests/command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace trainyard {
namespace {

class Scratch {
 public:
  Scratch() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "trainyard-cli-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string ScratchPath(const std::string& name) {
  static const Scratch scratch;
  return scratch.path() + "/" + name;
}

std::string WriteScratch(const std::string& name, const std::string& text) {
  std::ofstream(ScratchPath(name), std::ios::binary) << text;
  return ScratchPath(name);
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CommandResult RunTrainyard(const std::string& arguments, const std::string& out) {
  const std::string kept = ScratchPath("stdout");
  const std::string err = ScratchPath("stderr");
  const std::string command = "cd '" TRAINYARD_SOURCE_DIR "' && '" TRAINYARD_PROGRAM "' " +
                              arguments + " >'" + (out.empty() ? kept : out) + "' 2>'" + err +
                              "' </dev/null";
  const int status = std::system(command.c_str());
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = out.empty() ? ReadText(kept) : "",
          .err = ReadText(err)};
}

}  // namespace trainyard
