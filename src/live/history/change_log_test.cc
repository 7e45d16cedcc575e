// SPDX-License-Identifier: Apache-2.0
#include "live/history/change_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using testing::ElementsAre;

class AuditTest : public LiveWorldTest {
 protected:
  // "user1001 (uid 1001, user): cancelled [1 3-4]"
  [[nodiscard]] std::vector<std::string> Trail() {
    v1::ClientRequest request;
    request.mutable_audit();
    std::vector<std::string> lines;
    const v1::ClientReply reply = Call(As(request, 0, v1::Caller::ADMIN));
    EXPECT_EQ(reply.error().message(), "");
    for (const v1::AuditEntry& entry : reply.audit().entries()) {
      std::string about;
      for (const std::string& job : entry.jobs()) {
        about += (about.empty() ? "" : " ") + job;
      }
      for (const std::string& node : entry.nodes()) {
        about += (about.empty() ? "" : " ") + node;
      }
      lines.push_back(entry.by() + ": " + entry.what() + " [" + about + "]");
    }
    return lines;
  }
};

TEST_F(AuditTest, EveryChangeIsThereOnceWithItsAuthor) {
  Hello(10, "a");
  v1::ClientRequest submit = Submission(1);
  submit.mutable_submit()->mutable_job()->set_name("bert");
  submit.mutable_submit()->mutable_job()->set_array("0-3");
  Call(As(submit, 1001));
  v1::ClientRequest update;
  update.mutable_update()->set_job(1);
  update.mutable_update()->mutable_values()->mutable_launch()->set_priority(5);
  update.mutable_update()->add_fields("priority");
  EXPECT_EQ(Call(As(update, 1001)).error().message(), "");
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->mutable_selection()->add_jobs("2");
  cancel.mutable_cancel()->mutable_selection()->add_jobs("4");
  EXPECT_EQ(Call(As(cancel, 1003, v1::Caller::OPERATOR)).error().message(), "");
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  drain.mutable_drain()->set_reason("a fan by night");
  Call(As(drain, 1003, v1::Caller::OPERATOR));
  v1::ClientRequest pause;
  pause.mutable_switches()->set_paused(true);
  pause.mutable_switches()->set_reason("disk");
  Call(As(pause, 0, v1::Caller::ADMIN));
  v1::ClientRequest held = Submission(1);
  held.mutable_submit()->mutable_job()->set_name("later");
  held.mutable_submit()->mutable_job()->mutable_launch()->set_hold(true);
  EXPECT_EQ(Call(As(held, 1001)).error().message(), "");
  const std::vector<std::string> trail = Trail();
  EXPECT_THAT(trail,
              ElementsAre("user1001 (uid 1001, user): submitted: 'bert', 1 GPU, 4 tasks [1-4]",
                          "user1001 (uid 1001, user): updated: priority 0, now 5 [1]",
                          "user1003 (uid 1003, operator): cancelled [2 4]",
                          "user1003 (uid 1003, operator): drained: a fan by night [a]",
                          "user0 (uid 0, admin): decisions are paused, jobs are taken: disk []",
                          "user1001 (uid 1001, user): submitted: 'later', 1 GPU [5]",
                          "user1001 (uid 1001, user): held [5]"));
  Open();  // and once after a restart, which says it again
  EXPECT_EQ(Trail(), trail);
}

TEST_F(AuditTest, IsForOperatorsAndAdmins) {
  v1::ClientRequest request;
  request.mutable_audit();
  EXPECT_EQ(Call(As(request, 1001)).error().message(),
            "user1001 (uid 1001) may not see who has done what; expected an operator or an admin");
  EXPECT_TRUE(Call(As(request, 1003, v1::Caller::OPERATOR)).has_audit());
}

}  // namespace
}  // namespace trainyard::live
