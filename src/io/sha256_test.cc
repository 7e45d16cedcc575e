// SPDX-License-Identifier: Apache-2.0
#include "io/sha256.h"

#include <gtest/gtest.h>

#include "io/file.h"

namespace trainyard::io {
namespace {

TEST(Sha256Test, CoversThePartsAsOneText) {
  Sha256 digest;
  digest.Update("a");
  digest.Update("bc");
  EXPECT_EQ(digest.Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, GoesOnAfterADigest) {
  Sha256 digest;
  EXPECT_EQ(digest.Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  digest.Update("abc");
  EXPECT_EQ(digest.Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 4231, test case 2.
TEST(Sha256Test, TheKeyedDigestIsThatOfTheStandard) {
  EXPECT_EQ(HmacSha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Sha256Test, GoesOnAnotherTime) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += static_cast<char>(i);
  }
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 first;
    first.Update(std::string_view(text).substr(0, cut));
    StateStream out;
    out(first);
    Sha256 second;
    StateStream in{out.bytes()};
    in(second);
    EXPECT_TRUE(in.complete());
    second.Update(std::string_view(text).substr(cut));
    EXPECT_EQ(second.Hex(), Sha256Hex(text)) << cut;
  }
}

}  // namespace
}  // namespace trainyard::io
