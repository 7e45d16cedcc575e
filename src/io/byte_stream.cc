// SPDX-License-Identifier: Apache-2.0
#include "io/byte_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/archive/tar.h"
#include "io/sha256.h"

namespace trainyard::io {
namespace {

Error CannotRead(const std::string& path) {
  return BadInput(
      fmt::format("{}: cannot be read: {}", path, std::generic_category().message(errno)));
}

// The bytes on disk in chunks, of which a part may be taken.
class Disk {
 public:
  explicit Disk(std::string path)
      : path_(std::move(path)), fd_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Disk() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  [[nodiscard]] Status Open() {
    struct stat status {};
    if (fd_ < 0 || fstat(fd_, &status) != 0) {
      return CannotRead(path_);
    }
    if (S_ISDIR(status.st_mode)) {
      return BadInput(fmt::format("{}: is a folder; expected a file", path_));
    }
    size_ = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    return Fill();
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t size() const { return size_; }  // 0: not known
  [[nodiscard]] std::size_t taken() const { return taken_; }
  [[nodiscard]] std::string sha256() const { return digest_.Hex(); }
  // What can be taken now; empty at the end only, once Refill() has been called.
  [[nodiscard]] std::string_view rest() const { return rest_; }
  void Take(std::size_t bytes) {
    rest_.remove_prefix(bytes);
    taken_ += bytes;
  }
  [[nodiscard]] bool ended() const { return ended_ && rest_.empty(); }
  [[nodiscard]] Status Refill() { return rest_.empty() && !ended_ ? Fill() : Status(); }

 private:
  // Pipes give little at a time: reads until the buffer is full. Of a small file that takes no more
  // room than it needs to see its end.
  Status Fill() {
    constexpr std::size_t kChunk = std::size_t{1} << 18;
    buffer_.resize(size_ == 0 ? kChunk : std::min(kChunk, size_ + 1));
    std::size_t used = 0;
    while (used < buffer_.size() && !ended_) {
      const ssize_t got = read(fd_, buffer_.data() + used, buffer_.size() - used);
      if (got < 0 && errno != EINTR) {
        return CannotRead(path_);
      }
      ended_ = got == 0;
      used += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    rest_ = {buffer_.data(), used};
    digest_.Update(rest_);
    return {};
  }

  std::string path_;
  int fd_;
  std::size_t size_ = 0;
  std::size_t taken_ = 0;
  Sha256 digest_;
  std::vector<char> buffer_;
  std::string_view rest_;  // of buffer_
  bool ended_ = false;     // nothing more is to be read
};

bool IsGzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

// A frame, or a skippable one in front of it (their magic numbers differ in four bits).
bool IsZstd(std::string_view bytes) {
  const bool skippable = bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) >> 4U) == 5 &&
                         bytes.substr(1, 3) == "\x2a\x4d\x18";
  return bytes.substr(0, 4) == "\x28\xb5\x2f\xfd" || skippable;
}

// Takes from a disk and gives out bytes, one step at a time.
class Decoder {
 public:
  Decoder() = default;
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Fills from the start of `room`, which is not empty; gives the number of bytes, maybe none, and
  // sets `done` when nothing more is to come. `given`: bytes before, for messages.
  [[nodiscard]] virtual Result<std::size_t> Step(Disk& disk, std::span<char> room,
                                                 std::size_t given) = 0;
  [[nodiscard]] bool done() const { return done_; }

 protected:
  void SetDone() { done_ = true; }

  static Error Truncated(const Disk& disk, std::string_view kind, std::size_t given) {
    return BadInput(
        fmt::format("{}: truncated {} after {} bytes; expected its end", disk.path(), kind, given));
  }
  static Error Corrupt(const Disk& disk, std::string_view kind, std::size_t given,
                       std::string_view why) {
    return BadInput(
        fmt::format("{}: corrupt {} after {} bytes ({})", disk.path(), kind, given, why));
  }

 private:
  bool done_ = false;
};

class AsTheyAre final : public Decoder {
 private:
  Result<std::size_t> Step(Disk& disk, std::span<char> room, std::size_t /*given*/) override {
    const std::size_t count = std::min(disk.rest().size(), room.size());
    std::copy_n(disk.rest().begin(), count, room.begin());
    disk.Take(count);
    if (disk.ended()) {
      SetDone();
    }
    return count;
  }
};

class Gunzip final : public Decoder {
 public:
  Gunzip() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Gunzip() override { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

 private:
  Result<std::size_t> Step(Disk& disk, std::span<char> room, std::size_t given) override {
    if (!ready_) {
      return Failed(fmt::format("{}: zlib has no memory", disk.path()));
    }
    const bool no_more = disk.ended();
    std::size_t count = 0;
    const int code = Inflate(disk, room, count);
    if (code == Z_BUF_ERROR && no_more) {
      return Truncated(disk, "gzip", given + count);
    }
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return Corrupt(disk, "gzip", given + count,
                     stream_.msg != nullptr ? stream_.msg : "no reason given");
    }
    if (code == Z_STREAM_END) {
      RETURN_IF_ERROR(disk.Refill());
      if (disk.ended()) {
        SetDone();
      } else {
        inflateReset(&stream_);  // a further member follows
      }
    }
    return count;
  }

  int Inflate(Disk& disk, std::span<char> room, std::size_t& count) {
    const std::string_view in = disk.rest();
    // zlib's interface is not const-correct; it does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    const auto free = static_cast<uInt>(std::min<std::size_t>(room.size(), kMostRoom));
    stream_.avail_out = free;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    disk.Take(in.size() - stream_.avail_in);
    count = free - stream_.avail_out;
    return code;
  }

  static constexpr std::size_t kMostRoom = std::size_t{1} << 30;  // zlib counts in 32 bits
  z_stream stream_{};
  bool ready_ = false;
};

class Unzstd final : public Decoder {
 private:
  Result<std::size_t> Step(Disk& disk, std::span<char> room, std::size_t given) override {
    if (stream_ == nullptr) {
      return Failed(fmt::format("{}: zstd has no memory", disk.path()));
    }
    ZSTD_inBuffer in{.src = disk.rest().data(), .size = disk.rest().size(), .pos = 0};
    ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
    const std::size_t code = ZSTD_decompressStream(stream_.get(), &out, &in);
    disk.Take(in.pos);
    if (ZSTD_isError(code) != 0) {
      return Corrupt(disk, "zstd", given + out.pos, ZSTD_getErrorName(code));
    }
    RETURN_IF_ERROR(disk.Refill());
    if (disk.ended() && code == 0) {
      SetDone();
    } else if (disk.ended() && out.pos < out.size) {  // room was left: nothing more is to come
      return Truncated(disk, "zstd", given + out.pos);
    }
    return out.pos;
  }

  struct Free {
    void operator()(ZSTD_DCtx* stream) const { ZSTD_freeDCtx(stream); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> stream_{ZSTD_createDCtx()};
};

std::unique_ptr<Decoder> DecoderOf(std::string_view start, ByteStream::Form form) {
  if (form == ByteStream::Form::kUnpacked && IsGzip(start)) {
    return std::make_unique<Gunzip>();
  }
  if (form == ByteStream::Form::kUnpacked && IsZstd(start)) {
    return std::make_unique<Unzstd>();
  }
  return std::make_unique<AsTheyAre>();
}

}  // namespace

class ByteStream::Source {
 public:
  explicit Source(const std::string& path) : disk_(path) {}

  [[nodiscard]] Status Open(Form form) {
    RETURN_IF_ERROR(disk_.Open());
    decoder_ = DecoderOf(disk_.rest(), form);
    return form == Form::kUnpacked ? OpenTar() : Status();
  }

  [[nodiscard]] Result<std::size_t> Read(std::span<char> room) {
    return tar_ == nullptr ? ReadDecoded(room) : tar_->Read(room);
  }

  [[nodiscard]] std::size_t LikelySize() const {
    const double packing =
        disk_.taken() == 0 ? 1 : static_cast<double>(given_) / static_cast<double>(disk_.taken());
    return static_cast<std::size_t>(static_cast<double>(disk_.size()) * packing);
  }
  [[nodiscard]] const Disk& disk() const { return disk_; }

 private:
  // Looks at the beginning of what is decoded.
  [[nodiscard]] Status OpenTar() {
    std::string begin(kTarHeader, '\0');
    ASSIGN_OR_RETURN(const std::size_t got, Decode(begin));
    begin.resize(got);
    begin_ = std::move(begin);
    if (!IsTar(begin_)) {
      return {};
    }
    ASSIGN_OR_RETURN(
        std::unique_ptr<TarStream> tar,
        TarStream::Open(disk_.path(), [this](std::span<char> room) { return ReadDecoded(room); }));
    tar_ = std::move(tar);
    return {};
  }

  // First what has been looked at.
  [[nodiscard]] Result<std::size_t> ReadDecoded(std::span<char> room) {
    const std::size_t looked_at = std::min(begin_.size(), room.size());
    std::copy_n(begin_.begin(), looked_at, room.begin());
    begin_.erase(0, looked_at);
    ASSIGN_OR_RETURN(const std::size_t got, Decode(room.subspan(looked_at)));
    return got + looked_at;
  }

  [[nodiscard]] Result<std::size_t> Decode(std::span<char> room) {
    std::size_t used = 0;
    while (used < room.size() && !decoder_->done()) {
      RETURN_IF_ERROR(disk_.Refill());
      ASSIGN_OR_RETURN(const std::size_t step, decoder_->Step(disk_, room.subspan(used), given_));
      used += step;
      given_ += step;
    }
    return used;
  }

  Disk disk_;
  std::unique_ptr<Decoder> decoder_;
  std::size_t given_ = 0;
  std::string begin_;               // decoded and not yet given out
  std::unique_ptr<TarStream> tar_;  // null: it is none
};

ByteStream::ByteStream(std::unique_ptr<Source> source) : source_(std::move(source)) {}
ByteStream::ByteStream(ByteStream&& other) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&& other) noexcept = default;
ByteStream::~ByteStream() = default;

Result<ByteStream> ByteStream::Open(const std::string& path, Form form) {
  auto source = std::make_unique<Source>(path);
  RETURN_IF_ERROR(source->Open(form));
  return ByteStream(std::move(source));
}

const std::string& ByteStream::path() const { return source_->disk().path(); }

Result<std::size_t> ByteStream::Read(std::span<char> room) { return source_->Read(room); }

std::size_t ByteStream::LikelySize() const { return source_->LikelySize(); }

std::string ByteStream::sha256() const { return source_->disk().sha256(); }

}  // namespace trainyard::io
