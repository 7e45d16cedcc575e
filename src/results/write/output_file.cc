// SPDX-License-Identifier: Apache-2.0
#include "results/write/output_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/try.h"

namespace trainyard::results {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      partial_path_(path_ + ".partial"),
      file_(std::fopen(partial_path_.c_str(), "wb")) {
  if (file_ == nullptr) {
    Fail(errno);
    return;
  }
  exists_ = true;
  // The blocks are large enough; stdio would only copy them.
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  text_.reserve(kBlockBytes + kBlockBytes / 4);
}

OutputFile::~OutputFile() {
  if (exists_) {
    std::remove(partial_path_.c_str());
  }
}

Status OutputFile::Close() {
  Write();
  if (file_ != nullptr && std::fclose(file_.release()) != 0) {
    Fail(errno);
  }
  return status_;
}

Status OutputFile::Publish() {
  CHECK(file_ == nullptr);
  if (!status_.ok()) {
    return status_;
  }
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    Fail(errno);
    return status_;
  }
  exists_ = false;
  return {};
}

void OutputFile::Write() {
  if (status_.ok() && std::fwrite(text_.data(), 1, text_.size(), file_.get()) != text_.size()) {
    Fail(errno);
  }
  text_.clear();
}

void OutputFile::Fail(int error_number) {
  if (status_.ok()) {
    status_ = Failed(path_ +
                     ": cannot write this file: " + std::generic_category().message(error_number));
  }
}

Status WriteTextFile(const std::string& path, std::string text) {
  OutputFile file(path);
  file.text() = std::move(text);
  RETURN_IF_ERROR(file.Close());
  return file.Publish();
}

}  // namespace trainyard::results
