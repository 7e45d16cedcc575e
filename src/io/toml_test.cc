// SPDX-License-Identifier: Apache-2.0
#include "io/toml.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard::io {
namespace {

TomlTable Parsed(std::string_view text) {
  Result<TomlTable> table = ParseToml("f.toml", text);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return table.ok() ? std::move(table).value() : TomlTable{};
}

TEST(TomlTest, EntriesStandInTheOrderOfTheFileWithTheirLines) {
  const TomlTable table = Parsed("z = 1\n\na = 2.5\n[m]\nk = [\"x\", true]\n");
  ASSERT_EQ(table.entries.size(), 3U);
  EXPECT_EQ(table.entries[0].key, "z");
  EXPECT_EQ(table.entries[0].value.AsText(), "1");
  EXPECT_EQ(table.entries[1].key, "a");
  EXPECT_EQ(table.entries[1].line, 3);
  EXPECT_EQ(table.entries[1].value.AsText(), "2.5");
  const TomlTable* const inner = table.Find("m")->value.table();
  ASSERT_NE(inner, nullptr);
  const std::vector<TomlValue>* const list = inner->Find("k")->value.list();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->at(0).AsText(), "x");
  EXPECT_EQ(list->at(1).AsText(), "1");
  EXPECT_EQ(table.Find("m")->value.AsText(), std::nullopt);
  EXPECT_EQ(table.Find("none"), nullptr);
}

TEST(TomlTest, WhatIsNoTomlIsRefusedWithItsLine) {
  const Result<TomlTable> table = ParseToml("f.toml", "a = 1\nb = = 2\n");
  ASSERT_FALSE(table.ok());
  EXPECT_TRUE(table.error().message.starts_with("f.toml:2: not TOML: ")) << table.error().message;
  EXPECT_EQ(table.error().code, ErrorCode::kBadInput);
}

TEST(TomlTest, LettersOfAllLanguagesStandInTextsOnly) {
  EXPECT_EQ(Parsed("a = 'é\u2003日本'").entries.at(0).value.AsText(), "é\u2003日本");
  for (const char* const text : {"é = 1", "a\uFE7F = 1", "\uFE75", "a = \u3044", "[ \u0416 ]"}) {
    EXPECT_FALSE(ParseToml("f.toml", text).ok()) << text;
  }
}

TEST(TomlSectionTest, AnUnknownKeyIsNamedWithTheNearestOne) {
  const TomlTable table = Parsed("\nplacment = \"buddy\"\n");
  const std::array<std::string_view, 2> known{"placement", "policy"};
  const Status status = TomlSection("f.toml", "[[run]]", table).CheckKeys(known);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(
      status.error().message,
      "f.toml:2: unknown [[run]] key 'placment'; did you mean 'placement'?; known: placement, "
      "policy");
}

TEST(TomlSectionTest, ValuesOfAnotherKindAreRefused) {
  const TomlTable table = Parsed("t = 5\ns = [1]\nf = \"yes\"\nl = 3\nm = [1, 2]\n");
  const TomlSection section("f.toml", "[x]", table);
  std::string text;
  bool flag = false;
  EXPECT_EQ(section.ReadText("t", text).error().message, "f.toml:1: 't' is 5; expected a text");
  EXPECT_EQ(section.ReadScalar("s", text).error().message,
            "f.toml:2: 's' is a list; expected a number or a text");
  EXPECT_EQ(section.ReadFlag("f", flag).error().message,
            "f.toml:3: 'f' is 'yes'; expected true or false");
  EXPECT_EQ(section.Tables("l").error().message, "f.toml:4: 'l' is 3; expected [[l]]");
  EXPECT_EQ(section.Tables("m").error().message, "f.toml:5: 'm' is a list; expected [[m]]");
  EXPECT_TRUE(section.ReadText("absent", text).ok());
  EXPECT_TRUE(section.ReadScalar("t", text).ok());
  EXPECT_EQ(text, "5");
}

}  // namespace
}  // namespace trainyard::io
