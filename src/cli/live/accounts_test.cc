// SPDX-License-Identifier: Apache-2.0
// Which days and times `usage` and `audit` take. No controller answers those that they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/live/client_calls.h"

namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string SaidOf(const std::string& command, const std::string& from, const std::string& to) {
  CLI::App app;
  Command chosen;
  AddUsage(app, chosen);
  AddAudit(app, chosen);
  app.parse({"127.0.0.1:1", "--controller", to, "--to", from, "--from", command});
  const Status status = chosen.run();
  EXPECT_TRUE(status.error().code == ErrorCode::kInvalidArgument ||
              status.error().message.starts_with("no controller answers"));
  return status.error().message;
}

TEST(AccountsTest, DaysThatThereAreNotAreRefused) {
  for (const char* const command : {"usage", "audit"}) {
    EXPECT_EQ(SaidOf(command, "2026-02-30", "2026-03-01"),
              "--from is '2026-02-30': there is no day 30 in 2026-02, which has 28");
    EXPECT_EQ(SaidOf(command, "2026-02-01", "2026-04-31"),
              "--to is '2026-04-31': there is no day 31 in 2026-04, which has 30");
    EXPECT_THAT(SaidOf(command, "2026-2-1", "2026-03-01"),
                StartsWith("--from is '2026-2-1'; expected a day"));
    EXPECT_THAT(SaidOf(command, "2028-02-29", "2028-02-29"), HasSubstr("no controller answers"));
  }
  EXPECT_EQ(SaidOf("usage", "2026-11-28T09:30", "2026-11-29"),
            "--from is '2026-11-28T09:30'; expected a day such as 2026-11-28 (UTC)");
  EXPECT_THAT(SaidOf("audit", "2026-11-28T25:00", "2026-11-29"), HasSubstr("there is no hour 25"));
  EXPECT_EQ(SaidOf("audit", "2026-11-28 09:30", "2026-11-29"),
            "--from is '2026-11-28 09:30'; expected a day or a time such as 2026-11-28 or "
            "2026-11-28T09:30 (UTC)");
}

TEST(AccountsTest, ASpanThatEndsBeforeItBeginsIsRefused) {
  EXPECT_EQ(SaidOf("usage", "2026-03-02", "2026-03-01"),
            "--from is '2026-03-02', which comes after --to, '2026-03-01'; expected the first of "
            "both in --from");
  EXPECT_THAT(SaidOf("audit", "2026-11-28T09:30", "2026-11-28T09:29:59"),
              HasSubstr("which comes after --to"));
  EXPECT_THAT(SaidOf("audit", "2026-11-28T09:30:00Z", "2026-11-28"),
              HasSubstr("no controller answers"));
}

}  // namespace
}  // namespace trainyard::cli
