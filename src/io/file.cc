// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
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

// A frame, or a skippable one in front of it (their magic numbers differ in four bits).
bool IsZstd(std::string_view bytes) {
  const bool skippable = bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) >> 4U) == 5 &&
                         bytes.substr(1, 3) == "\x2a\x4d\x18";
  return bytes.substr(0, 4) == "\x28\xb5\x2f\xfd" || skippable;
}

// Unpacks by steps into a text that grows.
class Unpacker {
 public:
  Unpacker(const std::string& path, std::string_view packed) : path_(path), packed_(packed) {}
  virtual ~Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  [[nodiscard]] Result<std::string> All() {
    while (true) {
      if (used_ == text_.size()) {
        const std::size_t more = std::max({used_ * 2, packed_.size() * 4, std::size_t{4096}});
        text_.resize(std::min(more, kMaxFileBytes + 1));
      }
      const Result<bool> done = Step();
      if (!done.ok()) {
        return done.error();
      }
      if (used_ > kMaxFileBytes) {
        return TooLarge(path_);
      }
      if (done.value()) {
        text_.resize(used_);
        return std::move(text_);
      }
    }
  }

 protected:
  // Takes from packed_ and appends to text_, which has room. True: that was all.
  [[nodiscard]] virtual Result<bool> Step() = 0;

  [[nodiscard]] Error Truncated(std::string_view kind) const {
    return BadInput(
        fmt::format("{}: truncated {} after {} bytes; expected its end", path_, kind, used_));
  }
  [[nodiscard]] Error Corrupt(std::string_view kind, std::string_view why) const {
    return BadInput(fmt::format("{}: corrupt {} after {} bytes ({})", path_, kind, used_, why));
  }

  const std::string& path_;
  std::string_view packed_;
  std::string text_;
  std::size_t read_ = 0;  // of packed_
  std::size_t used_ = 0;  // of text_
};

class Gunzip final : public Unpacker {
 public:
  Gunzip(const std::string& path, std::string_view packed) : Unpacker(path, packed) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

 private:
  Result<bool> Step() override {
    if (!ready_) {
      return Failed(fmt::format("{}: zlib has no memory", path_));
    }
    const int code = Inflate();
    if (code == Z_BUF_ERROR) {
      return Truncated("gzip");
    }
    if (code != Z_OK && code != Z_STREAM_END) {
      return Corrupt("gzip", stream_.msg != nullptr ? stream_.msg : "no reason given");
    }
    if (code == Z_STREAM_END && read_ < packed_.size()) {
      inflateReset(&stream_);  // a further member follows
      return false;
    }
    return code == Z_STREAM_END;
  }

  // One call of inflate with as much input and room as zlib's counters can hold.
  int Inflate() {
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

  z_stream stream_{};
  bool ready_ = false;
};

// Several frames one after the other are one text. Windows over 128 MiB (zstd --long=28 and more)
// are refused, as by the zstd program.
class Unzstd final : public Unpacker {
 public:
  Unzstd(const std::string& path, std::string_view packed) : Unpacker(path, packed) {}

 private:
  Result<bool> Step() override {
    if (stream_ == nullptr) {
      return Failed(fmt::format("{}: zstd has no memory", path_));
    }
    ZSTD_inBuffer in{.src = packed_.data(), .size = packed_.size(), .pos = read_};
    ZSTD_outBuffer out{.dst = text_.data(), .size = text_.size(), .pos = used_};
    const std::size_t code = ZSTD_decompressStream(stream_.get(), &out, &in);
    read_ = in.pos;
    used_ = out.pos;
    if (ZSTD_isError(code) != 0) {
      return Corrupt("zstd", ZSTD_getErrorName(code));
    }
    if (read_ < packed_.size()) {
      return false;
    }
    if (code != 0 && used_ < text_.size()) {  // room was left: nothing more is to come
      return Truncated("zstd");
    }
    return code == 0;
  }

  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> stream_{ZSTD_createDCtx()};
};

// None: the bytes are not packed.
std::unique_ptr<Unpacker> UnpackerOf(const std::string& path, std::string_view bytes) {
  if (IsGzip(bytes)) {
    return std::make_unique<Gunzip>(path, bytes);
  }
  if (IsZstd(bytes)) {
    return std::make_unique<Unzstd>(path, bytes);
  }
  return nullptr;
}

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
  const std::unique_ptr<Unpacker> unpacker = UnpackerOf(path, bytes);
  return unpacker == nullptr ? std::move(bytes) : unpacker->All();
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
