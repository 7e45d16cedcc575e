// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "trainyard/status.h"

namespace trainyard::results {

// Text is collected in text() and goes to disk in large blocks, under the name "PATH.partial".
// Close() and then Publish() give the file its name; without them nothing remains of it. The first
// failure is kept and returned by both; what is written after it has no effect. Not thread-safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  // Where to append. Call WriteIfLarge() from time to time.
  [[nodiscard]] std::string& text() { return text_; }
  void WriteIfLarge() {
    if (text_.size() >= kBlockBytes) {
      Write();
    }
  }

  // Where it is until it has its name.
  [[nodiscard]] const std::string& partial_path() const { return partial_path_; }

  // All bytes are with the operating system when this succeeds.
  Status Close();
  // Replaces a file of that name. REQUIRES: Close() was called.
  Status Publish();

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void Write();
  void Fail(int error_number);

  std::string path_;
  std::string partial_path_;
  std::string text_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  bool exists_ = false;  // under partial_path_
  Status status_;
};

// The whole text as a file of that name. Errors: it cannot be written.
[[nodiscard]] Status WriteTextFile(const std::string& path, std::string text);

}  // namespace trainyard::results
