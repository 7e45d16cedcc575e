// SPDX-License-Identifier: Apache-2.0
#include "live/history/usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class UsageTest : public LiveWorldTest {
 protected:
  v1::UsageReply Ask(const std::vector<std::string>& by, std::optional<std::int64_t> from = {},
                     std::optional<std::int64_t> to = {}) {
    v1::ClientRequest request;
    request.mutable_usage()->mutable_by()->Assign(by.begin(), by.end());
    if (from) {
      request.mutable_usage()->set_from_day(*from);
    }
    if (to) {
      request.mutable_usage()->set_to_day(*to);
    }
    return Call(request).usage();
  }
  // "1970-01-01 a 7200.0; "
  std::string Texts(const v1::UsageReply& reply) {
    std::string texts;
    for (const v1::UsageRow& row : reply.rows()) {
      texts += row.day() + " " + row.user() + row.account() + row.queue() + row.node() + " " +
               std::to_string(row.gpu_micros() / 1'000'000) + "; ";
    }
    return texts;
  }
  // GPU time that the engine has charged all jobs, up to now.
  std::int64_t Charged() {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < controller_->engine().records().size(); ++i) {
      sum += controller_->engine().ProgressOf(JobAt(i), controller_->engine().now()).gpu_micros;
    }
    return sum;
  }
  // The agents are there all the time.
  void Pass(Duration time) {
    v1::AgentMessage beat;
    beat.mutable_heartbeat();
    for (; time > Duration{0}; time -= seconds(50)) {
      Step(std::min(time, Duration(seconds(50))));
      Hear(10, beat);
      Hear(11, beat);
    }
  }
};

TEST_F(UsageTest, TheSumIsWhatTheEngineHasCharged) {
  Hello(10, "a");
  Hello(11, "b");
  v1::ClientRequest night = Submission(3);
  night.mutable_submit()->mutable_job()->set_queue("night");
  night.mutable_submit()->mutable_job()->set_account("vision");
  Call(As(night, 1001));
  Call(As(Submission(1), 1002));
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(2, 1, v1::AttemptReport::RUNNING));
  Pass(hours(30));
  EXPECT_EQ(Ask({}).gpu_micros(), 4 * 30 * 3600 * 1'000'000LL);
  Tell(11, Report(2, 1, v1::AttemptReport::EXITED, 0));
  Pass(hours(1));
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  EXPECT_EQ(Ask({}).gpu_micros(), Charged());
  EXPECT_EQ(Texts(Ask({"user"})),
            " user1001 334800; "
            " user1002 108000; ");
  EXPECT_EQ(Texts(Ask({"day"})), "1970-01-01  345600; 1970-01-02  97200; ");
  EXPECT_EQ(Texts(Ask({"day", "node"}, 1, 1)), "1970-01-02 a 50400; 1970-01-02 b 46800; ");
  EXPECT_EQ(Texts(Ask({"queue"}, 0, 0)), "  86400;  night 259200; ");
  EXPECT_EQ(Texts(Ask({"account"}, 0, 0)), "  86400;  vision 259200; ");
  const std::string all = Texts(Ask({"user", "account", "queue", "node", "day"}));
  snapshots_.entries = 1;
  Submit(1);
  Open();  // from a snapshot
  EXPECT_EQ(Texts(Ask({"user", "account", "queue", "node", "day"})), all);
}

TEST_F(UsageTest, UsersSeeTheirOwnAndOperatorsAll) {
  Hello(10, "a");
  Hello(11, "b");
  Call(As(Submission(1), 1001));
  Call(As(Submission(1), 1002));
  Pass(seconds(100));
  v1::ClientRequest request;
  request.mutable_usage()->add_by("user");
  EXPECT_EQ(Texts(Call(As(request, 1001)).usage()), " user1001 100; ");
  EXPECT_EQ(Call(As(request, 1003, v1::Caller::OPERATOR)).usage().rows_size(), 2);
  request.mutable_usage()->add_by("team");
  EXPECT_EQ(ErrorOf(request),
            "there is no sum by 'team'; expected user, account, queue, model, node or day");
}

}  // namespace
}  // namespace trainyard::live
