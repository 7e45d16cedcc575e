// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

std::string MessageOf(const Result<std::string>& result) {
  return result.ok() ? "no error" : result.error().message;
}

// One frame with the text and its checksum.
std::string Zstd(std::string_view text) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

// A frame that holds no text, as pzstd writes in front of others.
const std::string kSkippable("\x50\x2a\x4d\x18\x04\x00\x00\x00size", 12);

TEST(ReadFileTest, GivesThePlainBytes) {
  const ScratchFolder folder;
  const auto text = ReadFile(folder.Write("a.csv", "one\r\ntwo"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "one\r\ntwo");
}

TEST(ReadFileTest, UnpacksGzipByContentWhateverTheName) {
  const ScratchFolder folder;
  const auto text = ReadFile(folder.Write("a.csv", folder.Gzip("one\ntwo\n")));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "one\ntwo\n");
}

TEST(ReadFileTest, JoinsGzipMembers) {
  const ScratchFolder folder;
  const auto text = ReadFile(folder.Write("a.gz", folder.Gzip("one\n") + folder.Gzip("two\n")));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value(), "one\ntwo\n");
}

TEST(ReadFileTest, UnpacksMuchMoreThanWasPacked) {
  const ScratchFolder folder;
  const std::string text(5'000'000, 'x');
  const auto read = ReadFile(folder.Write("a.gz", folder.Gzip(text)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), text);
}

TEST(ReadFileTest, RefusesTruncatedGzip) {
  const ScratchFolder folder;
  const std::string packed = folder.Gzip("one\ntwo\n");
  const std::string path = folder.Write("a.gz", packed.substr(0, packed.size() - 4));
  EXPECT_EQ(MessageOf(ReadFile(path)), path + ": truncated gzip after 8 bytes; expected its end");
}

TEST(ReadFileTest, RefusesCorruptGzip) {
  const ScratchFolder folder;
  std::string packed = folder.Gzip("one\ntwo\n");
  packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 1);  // its checksum
  const std::string path = folder.Write("a.gz", packed);
  EXPECT_EQ(MessageOf(ReadFile(path)),
            path + ": corrupt gzip after 8 bytes (incorrect data check)");
}

TEST(ReadFileTest, RefusesBytesAfterTheGzip) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.gz", folder.Gzip("one\n") + "two\n");
  EXPECT_EQ(MessageOf(ReadFile(path)),
            path + ": corrupt gzip after 4 bytes (incorrect header check)");
}

TEST(ReadFileTest, UnpacksZstdByContentWhateverTheName) {
  const ScratchFolder folder;
  const auto text = ReadFile(folder.Write("a.csv", Zstd("one\ntwo\n")));
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text.value(), "one\ntwo\n");
}

TEST(ReadFileTest, JoinsZstdFrames) {
  const ScratchFolder folder;
  const auto text = ReadFile(
      folder.Write("a.zst", kSkippable + Zstd("one\n") + Zstd("") + kSkippable + Zstd("two\n")));
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text.value(), "one\ntwo\n");
}

TEST(ReadFileTest, UnpacksMuchMoreThanWasPackedWithZstd) {
  const ScratchFolder folder;
  const std::string text(5'000'000, 'x');
  const auto read = ReadFile(folder.Write("a.zst", Zstd(text)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), text);
}

TEST(ReadFileTest, UnpacksZstdOfEverySizeThatFillsTheRoomExactly) {
  const ScratchFolder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 8192U, 16384U}) {
    const std::string text(size, 'x');
    const auto read = ReadFile(folder.Write("a.zst", Zstd(text)));
    ASSERT_TRUE(read.ok()) << size << ": " << read.error().message;
    EXPECT_EQ(read.value(), text);
  }
}

TEST(ReadFileTest, RefusesTruncatedZstdWhereverItIsCut) {
  const ScratchFolder folder;
  const std::string packed = Zstd("one\ntwo\n");
  for (std::size_t size = 4; size < packed.size(); ++size) {
    const std::string path = folder.Write("a.zst", packed.substr(0, size));
    const std::string message = MessageOf(ReadFile(path));
    EXPECT_TRUE(message.starts_with(path + ": truncated zstd after ")) << size << ": " << message;
  }
}

TEST(ReadFileTest, RefusesCorruptZstd) {
  const ScratchFolder folder;
  std::string packed = Zstd("one\ntwo\n");
  packed.back() = static_cast<char>(packed.back() ^ 1);  // its checksum
  const std::string path = folder.Write("a.zst", packed);
  EXPECT_EQ(MessageOf(ReadFile(path)),
            path + ": corrupt zstd after 0 bytes (Restored data doesn't match checksum)");
}

TEST(ReadFileTest, RefusesBytesAfterTheZstd) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.zst", Zstd("one\n") + "two\n");
  EXPECT_EQ(MessageOf(ReadFile(path)),
            path + ": corrupt zstd after 4 bytes (Unknown frame descriptor)");
}

TEST(ReadFileTest, SaysThatAFileIsMissing) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/none.csv";
  EXPECT_EQ(MessageOf(ReadFile(path)), path + ": cannot be read: No such file or directory");
}

TEST(ReadFileTest, RefusesAFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(MessageOf(ReadFile(folder.path())), folder.path() + ": is a folder; expected a file");
}

TEST(ReadFileTest, IsABadInput) {
  EXPECT_EQ(ReadFile("/nowhere").error().code, ErrorCode::kBadInput);
}

TEST(Sha256HexTest, IsThePublishedDigest) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256OfFileTest, CoversTheBytesOnDisk) {
  const ScratchFolder folder;
  const std::string packed = folder.Gzip("abc");
  const auto digest = Sha256OfFile(folder.Write("a.gz", packed));
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(digest.value(), Sha256Hex(packed));
}

}  // namespace
}  // namespace trainyard::io
