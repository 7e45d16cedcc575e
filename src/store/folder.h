// SPDX-License-Identifier: Apache-2.0
// A folder that one process at a time holds, and that only its owner can read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "trainyard/status.h"

namespace trainyard {

// An open file, closed with it; none if negative.
class HeldFile {
 public:
  explicit HeldFile(int fd) : fd_(fd) {}
  ~HeldFile();
  HeldFile(HeldFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HeldFile& operator=(HeldFile&&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Makes the folder with its parents, durably, and locks FOLDER/controller.lock until the result is
// closed, be it by death. Never waits. Errors: it cannot be made or written, or is held.
[[nodiscard]] Result<HeldFile> HoldFolder(const std::string& folder);

// Makes FOLDER/NAME, empty, unless it is there. Durable. Error: it cannot be written.
[[nodiscard]] Status MakeFile(const std::string& folder, const std::string& name);

// Keeps so many bytes of the disk in FOLDER/NAME, if they are to be had; otherwise there is no such
// file afterwards.
void SetAside(const std::string& folder, const std::string& name, std::int64_t bytes);

}  // namespace trainyard
