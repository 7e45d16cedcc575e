// SPDX-License-Identifier: Apache-2.0
#include "cli/live/config/reread.h"

#include <gtest/gtest.h>

#include <utility>

namespace trainyard::cli {
namespace {

using Given = std::map<std::string, std::string>;

class RereadTest : public testing::Test {
 protected:
  RereadTest() {
    chosen_.given = {{"--grace", "30"}, {"--operators", "olga"}};
    now_ = chosen_.given;
    chosen_.read_again = [this]() -> Result<std::shared_ptr<const Command>> {
      if (!wrong_.empty()) {
        return BadInput(wrong_);
      }
      auto again = std::make_shared<Command>();
      again->given = now_;
      return std::shared_ptr<const Command>(std::move(again));
    };
  }

  Reread::Take Taker() {
    return [this](const Command& now) {
      taken_.push_back(now.given);
      return refused_.empty() ? Status() : Status(BadInput(refused_));
    };
  }

  Command chosen_;
  Given now_;
  std::string refused_;
  std::string wrong_;
  std::vector<Given> taken_;
};

TEST_F(RereadTest, SaysWhatIsTakenAndWhatNeedsARestart) {
  Reread reread(chosen_, {"--operators", "--admins"}, Taker());
  EXPECT_EQ(reread.Read(), "the configuration has been read again; no option has changed");
  EXPECT_EQ(taken_.size(), 1U) << "files that options name may have changed";
  now_ = {{"--grace", "60"}, {"--operators", "olga otto"}, {"--admins", "ann"}};
  EXPECT_EQ(reread.Read(),
            "the configuration has been read again; from now on --admins is 'ann' (was not set), "
            "--operators is 'olga otto' (was 'olga'); needs a restart: --grace is '60' (was "
            "'30')");
  ASSERT_EQ(taken_.size(), 2U);
  EXPECT_EQ(taken_[1], now_);
  EXPECT_EQ(reread.Read(),
            "the configuration has been read again; needs a restart: --grace is '60' (was '30')");
  now_ = {{"--grace", "30"}};
  EXPECT_EQ(reread.Read(),
            "the configuration has been read again; from now on --admins is not set (was 'ann'), "
            "--operators is not set (was 'olga otto')");
  EXPECT_EQ(taken_.size(), 4U);
}

TEST_F(RereadTest, AMistakeLeavesEverythingAsItWas) {
  Reread reread(chosen_, {"--operators"}, Taker());
  now_ = {};
  wrong_ = "t.toml:3: unknown key";
  EXPECT_EQ(reread.Read(),
            "the configuration cannot be read again: t.toml:3: unknown key; everything stays as it "
            "was");
  EXPECT_TRUE(taken_.empty());
  wrong_ = "t.toml:3: --users: al not in {own,all}\nt.toml:4: unknown key\n";
  EXPECT_EQ(reread.Read(),
            "the configuration cannot be read again: t.toml:3: --users: al not in {own,all}; "
            "t.toml:4: unknown key; everything stays as it was")
      << "one line of a log";
  wrong_.clear();
  refused_ = "unknown policy 'nosuch'";
  EXPECT_EQ(reread.Read(),
            "the configuration is wrong: unknown policy 'nosuch'; everything stays as it was");
  refused_.clear();
  now_ = {{"--operators", "olga"}, {"--grace", "30"}};
  EXPECT_EQ(reread.Read(), "the configuration has been read again; no option has changed");
}

}  // namespace
}  // namespace trainyard::cli
