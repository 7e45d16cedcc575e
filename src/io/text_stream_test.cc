// SPDX-License-Identifier: Apache-2.0
#include "io/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "io/file.h"
#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

struct Whole {
  std::string text;
  std::string error;
  std::string sha256;
  int blocks = 0;
  std::size_t likely_size = 0;  // seen at the first block
};

Whole ReadBlocks(const std::string& path) {
  Whole whole;
  Result<TextStream> stream = TextStream::Open(path);
  if (!stream.ok()) {
    whole.error = stream.error().message;
    return whole;
  }
  whole.likely_size = stream.value().LikelySize();
  std::int64_t lines = 0;
  while (!stream.value().block().empty()) {
    EXPECT_EQ(stream.value().first_line(), lines + 1);
    const std::string_view block = stream.value().block();
    lines += std::count(block.begin(), block.end(), '\n');
    whole.text += block;
    ++whole.blocks;
    if (const Status next = stream.value().Next(); !next.ok()) {
      whole.error = next.error().message;
      return whole;
    }
  }
  whole.sha256 = stream.value().sha256();
  return whole;
}

// Lines of many lengths, and the last one without an end.
std::string LongText() {
  std::string text;
  for (int i = 0; text.size() < 9'000'000; ++i) {
    text += std::to_string(i) + std::string(static_cast<std::size_t>(i % 97), 'x') + "\n";
  }
  return text + "end";
}

TEST(TextStreamTest, GivesAllLinesInBlocksAndTheDigestOfTheFile) {
  const ScratchFolder folder;
  const std::string text = LongText();
  for (const std::string& bytes : {text, folder.Gzip(text)}) {
    const Whole whole = ReadBlocks(folder.Write("t.csv", bytes));
    EXPECT_EQ(whole.error, "");
    EXPECT_TRUE(whole.text == text);
    EXPECT_GT(whole.blocks, 4);
    EXPECT_EQ(whole.sha256, Sha256Hex(bytes));
    EXPECT_GT(whole.likely_size, text.size() / 2);
    EXPECT_LT(whole.likely_size, text.size() * 2);
  }
}

TEST(TextStreamTest, AnEmptyFileHasNoBlock) {
  const ScratchFolder folder;
  const Whole whole = ReadBlocks(folder.Write("t.csv", ""));
  EXPECT_EQ(whole.error, "");
  EXPECT_EQ(whole.blocks, 0);
  EXPECT_EQ(whole.sha256, Sha256Hex(""));
}

TEST(TextStreamTest, NamesTheLineOfWhatIsNoTextInALaterBlock) {
  const ScratchFolder folder;
  std::string text = LongText();
  const std::string path = folder.Write("t.csv", text + std::string(1, char{0}) + "\n");
  const auto line = 1 + std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(ReadBlocks(path).error,
            path + ":" + std::to_string(line) + ": a NUL byte; expected text");
}

TEST(TextStreamTest, RefusesALineWithoutAnEnd) {
  const ScratchFolder folder;
  const std::string path = folder.Write("t.csv", "a\n" + std::string(5'000'000, 'x'));
  EXPECT_EQ(ReadBlocks(path).error, path + ":2: a line over 1048576 bytes; expected shorter lines");
}

TEST(TextStreamTest, ATruncatedFileIsAnErrorBehindItsLastWholeBlock) {
  const ScratchFolder folder;
  const std::string packed = folder.Gzip(LongText());
  const std::string path = folder.Write("t.gz", packed.substr(0, packed.size() / 2));
  const Whole whole = ReadBlocks(path);
  EXPECT_GT(whole.blocks, 0);
  EXPECT_TRUE(whole.error.starts_with(path + ": truncated gzip after ")) << whole.error;
}

}  // namespace
}  // namespace trainyard::io
