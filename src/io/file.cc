// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "io/sha256.h"

namespace trainyard {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Error CannotRead(const std::string& path) {
  return BadInput(
      fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)));
}

Error TooLarge(const std::string& path) {
  return BadInput(fmt::format("{}: too large; expected at most {} GiB", path, kMaxFileBytes >> 30));
}

// Appends up to the end of the file; pipes have no size, so it is only a hint.
Status ReadAll(const std::string& path, int fd, std::string& bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      bytes.resize(std::max(used + kChunk, used + used / 2));
    }
    const ssize_t got = read(fd, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno != EINTR) {
      return CannotRead(path);
    }
    if (got == 0) {
      bytes.resize(used);
      return {};
    }
    used += got > 0 ? static_cast<std::size_t>(got) : 0;
    if (used > kMaxFileBytes) {
      return TooLarge(path);
    }
  }
}

bool IsGzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

class Inflater {
 public:
  Inflater(const std::string& path, std::string_view packed) : path_(path), packed_(packed) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  [[nodiscard]] Result<std::string> Run() {
    if (!ready_) {
      return Failed(fmt::format("{}: zlib has no memory", path_));
    }
    while (true) {
      const int code = Step();
      if (text_.size() > kMaxFileBytes) {
        return TooLarge(path_);
      }
      if (code == Z_STREAM_END) {
        if (read_ == packed_.size()) {
          text_.resize(used_);
          return std::move(text_);
        }
        inflateReset(&stream_);  // a further member follows
      } else if (code == Z_BUF_ERROR) {
        return BadInput(
            fmt::format("{}: truncated gzip after {} bytes; expected its end", path_, used_));
      } else if (code != Z_OK) {
        return BadInput(fmt::format("{}: corrupt gzip after {} bytes ({})", path_, used_,
                                    stream_.msg != nullptr ? stream_.msg : "no reason given"));
      }
    }
  }

 private:
  // One call of inflate with as much input and room as zlib's counters can hold.
  int Step() {
    if (used_ == text_.size()) {
      text_.resize(std::max(text_.size() * 2, std::max(packed_.size() * 4, std::size_t{4096})));
    }
    const std::size_t in = std::min<std::size_t>(packed_.size() - read_, INT_MAX);
    const std::size_t room = std::min<std::size_t>(text_.size() - used_, INT_MAX);
    // zlib's interface is not const-correct; it does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + read_));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(text_.data() + used_);
    stream_.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    read_ += in - stream_.avail_in;
    used_ += room - stream_.avail_out;
    return code;
  }

  const std::string& path_;
  std::string_view packed_;
  std::string text_;
  std::size_t read_ = 0;  // of packed_
  std::size_t used_ = 0;  // of text_
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

Result<std::string> ReadBytes(const std::string& path) {
  const Descriptor file(path);
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    return CannotRead(path);
  }
  if (S_ISDIR(status.st_mode)) {
    return BadInput(fmt::format("{}: is a folder; expected a file", path));
  }
  if (status.st_size > static_cast<off_t>(kMaxFileBytes)) {
    return TooLarge(path);
  }
  // One byte more than there is, so that the end is seen without growing.
  std::string bytes(static_cast<std::size_t>(status.st_size) + 1, '\0');
  if (const Status read = ReadAll(path, file.get(), bytes); !read.ok()) {
    return read.error();
  }
  return bytes;
}

Result<std::string> Unpack(const std::string& path, std::string bytes) {
  if (!IsGzip(bytes)) {
    return bytes;
  }
  return Inflater(path, bytes).Run();
}

Result<std::string> ReadFile(const std::string& path) {
  Result<std::string> bytes = ReadBytes(path);
  if (!bytes.ok()) {
    return bytes;
  }
  return Unpack(path, std::move(bytes).value());
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Hex();
}

Result<std::string> Sha256OfFile(const std::string& path) {
  const Result<std::string> bytes = ReadBytes(path);
  if (!bytes.ok()) {
    return bytes.error();
  }
  return Sha256Hex(bytes.value());
}

}  // namespace trainyard
