// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace trainyard::base {
namespace {

TEST(PrintableTest, NothingSteersATerminalOrPassesForAnotherLine) {
  EXPECT_EQ(Printable("x\n2026-11-30T00:00:00Z trainyard controller: node h0: drained"),
            "x?2026-11-30T00:00:00Z trainyard controller: node h0: drained");
  EXPECT_EQ(Printable("\x1b[31mred\x7f\r\t"), "?[31mred???");
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b\xE2\x80\xA8"
                      "c\xE2\x81\xA6"
                      "d"),
            "a?b?c?d");
}

TEST(PrintableTest, OtherTextsStayAsTheyAre) {
  for (const char* text : {"", "plain", "caf\xC3\xA9 \xE2\x80\x93 \xE2\x82\xAC", "\xE2\x80"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

}  // namespace
}  // namespace trainyard::base
