// SPDX-License-Identifier: Apache-2.0
// A folder of this process alone, below TMPDIR, which goes away with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace trainyard::io {

class TemporaryFolder {
 public:
  // `name`: what its own begins with.
  explicit TemporaryFolder(const std::string& name) {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
    if (!error && mkdtemp(path.data()) != nullptr) {
      path_ = std::move(path);
    }
  }
  ~TemporaryFolder() {
    if (std::error_code ignored; !path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }  // empty: none could be made

 private:
  std::string path_;
};

}  // namespace trainyard::io
