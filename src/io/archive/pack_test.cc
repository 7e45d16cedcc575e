// SPDX-License-Identifier: Apache-2.0
#include "io/archive/pack.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

TEST(PackTest, TheNameSaysHow) {
  EXPECT_EQ(CompressionOf("t.csv"), Compression::kNone);
  EXPECT_EQ(CompressionOf("a/t.csv.gz"), Compression::kGzip);
  EXPECT_EQ(CompressionOf("t.swf.zst"), Compression::kZstd);
  EXPECT_EQ(UnpackedName("a/t.csv.gz"), "a/t.csv");
  EXPECT_EQ(UnpackedName("t.swf.zst"), "t.swf");
  EXPECT_EQ(UnpackedName("t.csv"), "t.csv");
}

TEST(PackTest, IsUnpackedAgain) {
  std::string text;
  for (unsigned i = 0; i < 100'000; ++i) {
    text += std::to_string(i * 2654435761U) + ",";
  }
  for (const std::string& one : {std::string(), std::string("x"), text}) {
    for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
      const Result<std::string> packed = Pack(one, compression);
      ASSERT_TRUE(packed.ok());
      EXPECT_NE(packed.value(), one);
      const ScratchFolder folder;
      const Result<std::string> unpacked = ReadFile(folder.Write("packed", packed.value()));
      ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
      EXPECT_EQ(unpacked.value(), one);
    }
  }
  EXPECT_LT(Pack(text, Compression::kGzip).value().size(), text.size());
  EXPECT_EQ(Pack(text, Compression::kNone).value(), text);
}

}  // namespace
}  // namespace trainyard::io
