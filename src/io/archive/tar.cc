// SPDX-License-Identifier: Apache-2.0
#include "io/archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include "base/try.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace trainyard::io {

class TarStream::Archive {
 public:
  Archive(std::string path, Reader read) : path_(std::move(path)), read_(std::move(read)) {}
  ~Archive() { archive_read_free(tar_); }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  [[nodiscard]] Status Open() {
    if (tar_ == nullptr || archive_read_support_format_tar(tar_) != ARCHIVE_OK) {
      return Failed(fmt::format("{}: libarchive has no memory", path_));
    }
    if (archive_read_open(tar_, this, nullptr, GiveBlock, nullptr) != ARCHIVE_OK) {
      return Broken();
    }
    ASSIGN_OR_RETURN(const bool found, NextFile());
    return found ? Status()
                 : BadInput(fmt::format("{}: a tar without a file; expected one", path_));
  }

  [[nodiscard]] Result<std::size_t> Read(std::span<char> room) {
    std::size_t used = 0;
    while (used < room.size() && !done_) {
      const la_ssize_t got = archive_read_data(tar_, room.data() + used, room.size() - used);
      if (got < 0) {
        return Broken();
      }
      if (got == 0) {
        RETURN_IF_ERROR(Finish());
      }
      used += static_cast<std::size_t>(got);
    }
    return used;
  }

 private:
  static la_ssize_t GiveBlock(archive* /*tar*/, void* self, const void** block) {
    auto& archive = *static_cast<Archive*>(self);
    const Result<std::size_t> got = archive.read_(archive.buffer_);
    if (!got.ok()) {
      archive.failure_ = got.error();
      return ARCHIVE_FATAL;
    }
    *block = archive.buffer_.data();
    return static_cast<la_ssize_t>(got.value());
  }

  // What went wrong below, or else in the tar.
  [[nodiscard]] Error Broken() const {
    if (failure_) {
      return *failure_;
    }
    const char* const why = archive_error_string(tar_);
    return BadInput(fmt::format("{}: corrupt tar ({})", path_, why != nullptr ? why : "truncated"));
  }

  // Goes on to the next file; false: there is none.
  [[nodiscard]] Result<bool> NextFile() {
    archive_entry* entry = nullptr;
    int code = archive_read_next_header(tar_, &entry);
    for (; code == ARCHIVE_OK; code = archive_read_next_header(tar_, &entry)) {
      const char* const name = archive_entry_pathname(entry);
      const bool is_file = archive_entry_filetype(entry) == AE_IFREG && name != nullptr &&
                           !std::filesystem::path(name).filename().string().starts_with("._");
      if (is_file) {
        last_name_ = std::exchange(name_, name);
        return true;
      }
    }
    return code == ARCHIVE_EOF ? Result<bool>(false) : Broken();
  }

  // The file has been read.
  [[nodiscard]] Status Finish() {
    ASSIGN_OR_RETURN(const bool another, NextFile());
    if (another) {
      return BadInput(
          fmt::format("{}: a tar of several files ('{}', '{}', ...); expected one file; "
                      "unpack it and name the one",
                      path_, last_name_, name_));
    }
    done_ = true;
    // What is behind the last entry belongs to the digest of the file.
    for (std::size_t got = buffer_.size(); got == buffer_.size();) {
      ASSIGN_OR_RETURN(const std::size_t read, read_(buffer_));
      got = read;
    }
    return {};
  }

  static constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string path_;
  Reader read_;
  archive* tar_ = archive_read_new();
  std::vector<char> buffer_ = std::vector<char>(kBlock);
  std::optional<Error> failure_;  // of read_
  std::string name_;              // of the file
  std::string last_name_;         // of the one before
  bool done_ = false;
};

TarStream::TarStream(std::unique_ptr<Archive> archive) : archive_(std::move(archive)) {}
TarStream::~TarStream() = default;

bool IsTar(std::string_view begin) {
  constexpr std::size_t kMagicAt = 257;
  return begin.size() > kMagicAt && begin.substr(kMagicAt).starts_with("ustar");
}

Result<std::unique_ptr<TarStream>> TarStream::Open(std::string path, Reader read) {
  auto archive = std::make_unique<Archive>(std::move(path), std::move(read));
  RETURN_IF_ERROR(archive->Open());
  return std::unique_ptr<TarStream>(new TarStream(std::move(archive)));
}

Result<std::size_t> TarStream::Read(std::span<char> room) { return archive_->Read(room); }

}  // namespace trainyard::io
