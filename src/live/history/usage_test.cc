// SPDX-License-Identifier: Apache-2.0
#include "live/history/usage.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <string>
#include <utility>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// As LowestGpus, with four CPUs and 2 GiB for each GPU.
class LowestGpusWithCpus final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "lowest"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                             const Demand& demand) const override {
    std::optional<Slices> chosen = LowestGpus().Choose(free, job, demand);
    for (Slice& slice : chosen ? *chosen : *(chosen = Slices())) {
      slice.soft = {.milli_cpus = 4000L * std::popcount(slice.gpus),
                    .memory_mib = 2048L * std::popcount(slice.gpus)};
    }
    return demand.gpus > 0 && chosen->empty() ? std::nullopt : chosen;
  }
};

class UsageTest : public LiveWorldTest {
 protected:
  // From now on jobs are given CPUs and memory, too.
  void GiveCpus() {
    bundle_.placement = &with_cpus_;
    Open();
  }
  static v1::AttemptReport Using(v1::AttemptReport report, std::int64_t cpu_s, std::int64_t mib) {
    report.mutable_use()->set_cpu_micros(cpu_s * 1'000'000);
    report.mutable_use()->set_peak_memory(mib << 20U);
    return report;
  }
  // Hours of CPUs given and of CPU time used, in all.
  std::pair<std::int64_t, std::int64_t> CpuHours() {
    constexpr std::int64_t kHour = 3'600'000'000;
    const v1::UsageReply reply = Ask({});
    EXPECT_EQ(reply.cpu_given_micros() % kHour, 0);
    EXPECT_EQ(reply.cpu_micros() % kHour, 0);
    return {reply.cpu_given_micros() / kHour, reply.cpu_micros() / kHour};
  }
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

  LowestGpusWithCpus with_cpus_;
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

TEST_F(UsageTest, CpuTimeIsCountedAtTheEndOnceAnHourAndOnlyOnce) {
  using Hours = std::pair<std::int64_t, std::int64_t>;
  constexpr std::int64_t kHour = 3600;
  GiveCpus();
  Hello(10, "a");
  Hello(11, "b");
  Submit(3);  // two on a, one on b
  Tell(10, Using(Report(1, 1, v1::AttemptReport::RUNNING), 60, 100));
  Tell(11, Using(Report(1, 1, v1::AttemptReport::RUNNING), 0, 300));
  EXPECT_EQ(CpuHours(), Hours(0, 0)) << "not yet";
  v1::JobUse use = StatusOf(1).use();
  EXPECT_EQ(use.cpu_s(), 60);
  EXPECT_EQ(use.peak_memory(), 300L << 20U);
  EXPECT_EQ(use.memory_given(), 2048L << 20U);
  EXPECT_EQ(use.peak_node(), "b");
  Pass(hours(1));
  Tell(10, Using(Report(1, 1, v1::AttemptReport::RUNNING), 2 * kHour, 500));
  EXPECT_EQ(CpuHours(), Hours(12, 2));
  use = StatusOf(1).use();
  EXPECT_EQ(use.cpu_s(), 2 * kHour) << "what the journal knows of is not counted again";
  EXPECT_EQ(use.cpu_s_given(), 12 * kHour);
  EXPECT_EQ(use.peak_node(), "a");
  EXPECT_EQ(use.memory_given(), 4096L << 20U);

  Open();  // the controller starts anew: agents tell it again
  Hello(10, "a", {Using(Report(1, 1, v1::AttemptReport::RUNNING), 3 * kHour, 500)});
  Hello(11, "b", {Using(Report(1, 1, v1::AttemptReport::RUNNING), kHour, 100)});
  EXPECT_EQ(StatusOf(1).use().cpu_s(), 4 * kHour);
  EXPECT_EQ(CpuHours(), Hours(12, 2));
  Tell(10, Using(Report(1, 1, v1::AttemptReport::EXITED), 4 * kHour, 500));
  Tell(10, Using(Report(1, 1, v1::AttemptReport::EXITED), 4 * kHour, 500));
  EXPECT_EQ(CpuHours(), Hours(12, 4));
  Tell(11, Using(Report(1, 1, v1::AttemptReport::EXITED), 2 * kHour, 100));
  Tell(11, Using(Report(1, 1, v1::AttemptReport::EXITED), 2 * kHour, 100));  // a stray by now
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(CpuHours(), Hours(12, 6));
  EXPECT_EQ(StatusOf(1).use().cpu_s(), 6 * kHour);
  EXPECT_EQ(StatusOf(1).use().cpu_s_given(), 12 * kHour);
  snapshots_.entries = 1;
  Submit(1);
  Open();  // from a snapshot, which is compared with the whole journal
  EXPECT_EQ(CpuHours(), Hours(12, 6));
  EXPECT_EQ(StatusOf(1).use().cpu_s(), 6 * kHour);
}

TEST_F(UsageTest, WhatALostNodeWasHeardOfLastCounts) {
  using Hours = std::pair<std::int64_t, std::int64_t>;
  constexpr std::int64_t kHour = 3600;
  GiveCpus();
  Hello(10, "a");
  Submit(2);
  Tell(10, Using(Report(1, 1, v1::AttemptReport::RUNNING), kHour, 100));
  Step(seconds(3600));  // without a word of the agent
  EXPECT_EQ(CpuHours(), Hours(8, 1));
  EXPECT_EQ(StatusOf(1).use().cpu_s(), kHour);
  v1::AttemptReport left = Using(Report(1, 1, v1::AttemptReport::EXITED), 2 * kHour, 100);
  left.set_lost(true);
  Hello(12, "a", {left});
  EXPECT_EQ(CpuHours().second, 2) << "and what it has used since, once it comes back";
  EXPECT_EQ(StatusOf(1).use().cpu_s(), 2 * kHour);
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
