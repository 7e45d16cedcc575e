// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of small input files that goes away with the test.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard {

class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "/trainyard-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      ADD_FAILURE() << "cannot make " << path_;
    }
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Makes the file and returns its path.
  [[nodiscard]] std::string Write(const std::string& name, std::string_view bytes) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // One gzip member with the text.
  [[nodiscard]] std::string Gzip(std::string_view text) const {
    const std::string path = path_ + "/packed";
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::string path_;
};

// The error of reading a file of that name, from the name on, without the folder.
template <class T>
[[nodiscard]] std::string ErrorFrom(std::string_view file, const Result<T>& read) {
  if (read.ok()) {
    return "no error";
  }
  const std::string& message = read.error().message;
  const std::size_t name = message.find(file);
  return name == std::string::npos ? message : message.substr(name);
}

}  // namespace trainyard
