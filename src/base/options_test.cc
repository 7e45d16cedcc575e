// SPDX-License-Identifier: Apache-2.0
#include "trainyard/options.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard::base {
namespace {

constexpr std::array<OptionSpec, 4> kSpecs{{
    {"quantum", OptionSpec::Kind::kNumber, "3600", "GPU-seconds"},
    {"thresholds", OptionSpec::Kind::kNumbers, "1/2", "GPU-seconds"},
    {"size", OptionSpec::Kind::kNumber, "4", "GPUs"},
    {"ranking", OptionSpec::Kind::kChoice, "las", "order", "las|gittins"},
}};

Result<Options> Make(std::string_view text) {
  const Result<NamedOptions> named = ParseNamedOptions(text);
  return named.ok() ? Options::Make(kSpecs, named.value(), "policy 'x'") : named.error();
}

TEST(OptionsTest, FallsBackToTheDefaults) {
  const Result<Options> options = Make("x");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().Number("quantum"), 3600);
  EXPECT_EQ(options.value().Numbers("thresholds"), (std::vector<double>{1, 2}));
}

TEST(OptionsTest, TakesBothSeparators) {
  const Result<Options> options = Make("x:quantum=5;ranking=gittins,thresholds=7");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options.value().Number("quantum"), 5);
  EXPECT_EQ(options.value().Text("ranking"), "gittins");
}

TEST(OptionsTest, TimesMayHaveUnits) {
  const Result<Options> options = Make("x:quantum=1h30m,size=1e3");
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options.value().Number("quantum"), 5400);
  EXPECT_EQ(options.value().Number("size"), 1000);
}

TEST(OptionsTest, ListsOfNamesAreExplained) {
  EXPECT_EQ(Make("x,y").error().message,
            "'x,y' names more than one; expected one name, with its options behind a colon: "
            "NAME[:key=value,...]. `trainyard compare` runs several policies, each with a --policy "
            "of its own");
}

TEST(OptionsTest, AnUnknownKeyNamesTheNearestOne) {
  const Result<Options> options = Make("x:quantam=5");
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(options.error().message,
            "policy 'x': unknown option 'quantam'; did you mean 'quantum'?; known: quantum, "
            "thresholds, size, ranking");
}

TEST(OptionsTest, AValueOfTheWrongKindIsRefused) {
  EXPECT_EQ(Make("x:quantum=-1").error().message,
            "policy 'x': option 'quantum' is '-1'; expected seconds >= 0, or a time such as 90s, "
            "15m or 2h");
  EXPECT_EQ(Make("x:size=1h").error().message,
            "policy 'x': option 'size' is '1h'; expected a number >= 0");
  EXPECT_EQ(Make("x:ranking=best").error().message,
            "policy 'x': option 'ranking' is 'best'; expected one of las, gittins");
}

TEST(OptionsTest, SomethingThatIsNoOptionIsRefused) {
  EXPECT_EQ(Make("x:quantum").error().message,
            "'quantum' in 'x:quantum' is no option; expected key=value");
  EXPECT_EQ(ParseNamedOptions("x:a=1,b=2,a=3").error().message,
            "option 'a' is twice in 'x:a=1,b=2,a=3'; expected it once");
}

}  // namespace
}  // namespace trainyard::base
