// SPDX-License-Identifier: Apache-2.0
#include "trainyard/options.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 3> kSpecs{{
    {"quantum", OptionSpec::Kind::kNumber, "3600", "GPU-seconds"},
    {"thresholds", OptionSpec::Kind::kNumbers, "1/2", "GPU-seconds"},
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

TEST(OptionsTest, AnUnknownKeyNamesTheNearestOne) {
  const Result<Options> options = Make("x:quantam=5");
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(options.error().message,
            "policy 'x': unknown option 'quantam'; did you mean 'quantum'?; known: quantum, "
            "thresholds, ranking");
}

TEST(OptionsTest, AValueOfTheWrongKindIsRefused) {
  EXPECT_EQ(Make("x:quantum=-1").error().message,
            "policy 'x': option 'quantum' is '-1'; expected a number >= 0");
  EXPECT_EQ(Make("x:ranking=best").error().message,
            "policy 'x': option 'ranking' is 'best'; expected one of las, gittins");
}

TEST(OptionsTest, SomethingThatIsNoOptionIsRefused) {
  EXPECT_EQ(Make("x:quantum").error().message,
            "'quantum' in 'x:quantum' is no option; expected key=value");
}

}  // namespace
}  // namespace trainyard
