// SPDX-License-Identifier: Apache-2.0
// Views of a live world: immutable, in step with what they are of, in pages, and since a version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "live/controller.h"
#include "live/view/statuses.h"
#include "profile/execution_model.h"
#include "support/lowest_node.h"
#include "support/opened_controller.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

// By arrival; `during` is called in each decision.
class Watched final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "watched"; }
  [[nodiscard]] OrderingTraits traits() const override { return {.moves = kAlways}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    if (during) {
      during();
    }
    return {.key = {Seconds(job.spec->submit)}};
  }
  std::function<void()> during;
};

// A node "a" with 4 GPUs.
class ViewTest : public OpenedController {
 protected:
  ViewTest() { Open(); }
  ~ViewTest() override { controller_.reset(); }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    Cluster cluster;
    cluster.nodes = {{.name = "a", .gpus = 4}};
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return {.engine = {.configuration = engine::Share({.rules = rules,
                                                       .cluster = cluster,
                                                       .bundle = {.ordering = &watched_,
                                                                  .placement = &placement_,
                                                                  .admission = &everyone_},
                                                       .rates = rates_.get(),
                                                       .policy = "watched"})},
            .live = {.lease = std::chrono::hours(100), .epoch = 1},
            .snapshots = snapshots_};
  }
  v1::ClientRequest Job() {
    v1::ClientRequest request;
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_gpus(1);
    job.set_duration_s(100);
    job.mutable_launch()->add_command("train");
    return request;
  }
  v1::JobsReply Ask(const v1::ClientRequest& request) { return Call(request).jobs(); }
  static std::vector<std::uint64_t> NumbersOf(const v1::JobsReply& reply) {
    std::vector<std::uint64_t> numbers;
    for (const v1::JobStatus& job : reply.jobs()) {
      numbers.push_back(job.job());
    }
    return numbers;
  }

  Watched watched_;
  const LowestNode placement_{};
  const std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
};

// Another thread reads while a decision is being made: what was so before it.
TEST_F(ViewTest, ADecisionDelaysNoReader) {
  Hear(1, HelloOf("a", {}, 4));
  Call(Job());
  const std::shared_ptr<const ClusterView> before = controller_->world().view();
  int read = 0;
  watched_.during = [&] {  // the decision goes on only when the reader has its answer
    std::thread([&] {
      const std::shared_ptr<const ClusterView> view = controller_->world().view();
      v1::ClientRequest ask;
      ask.mutable_jobs();
      EXPECT_THAT(NumbersOf(Statuses(*view, now_).AnswerTo(ask).jobs()), ElementsAre(1));
      EXPECT_EQ(view, before);
      ++read;
    }).join();
  };
  EXPECT_EQ(Call(Job()).submit().job(), 2U);
  watched_.during = nullptr;
  EXPECT_GE(read, 1);
  EXPECT_NE(controller_->world().view(), before);
}

TEST_F(ViewTest, AViewStaysAsItWas) {
  Call(Job());
  const std::shared_ptr<const ClusterView> before = controller_->world().view();
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  Call(Job());
  const std::shared_ptr<const ClusterView> after = controller_->world().view();
  EXPECT_GT(after->number, before->number);
  EXPECT_EQ(before->jobs.size(), 1U);
  EXPECT_EQ(after->jobs.size(), 2U);
  EXPECT_EQ(Statuses(*before, now_).StateOf(JobAt(0)), v1::WAITING);
  EXPECT_EQ(Statuses(*after, now_).StateOf(JobAt(0)), v1::CANCELLED);
}

TEST_F(ViewTest, TimeRunsOnInAView) {
  Hear(1, HelloOf("a", {}, 4));
  Call(Job());
  const std::shared_ptr<const ClusterView> view = controller_->world().view();
  const v1::JobStatus now = Statuses(*view, now_).StatusOf(JobAt(0));
  const v1::JobStatus later = Statuses(*view, now_ + seconds(40)).StatusOf(JobAt(0));
  EXPECT_EQ(later.state(), now.state());
  EXPECT_DOUBLE_EQ(later.run_s() - now.run_s(), 40);
  Step(seconds(40));
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).run_s(), later.run_s());
}

TEST_F(ViewTest, PagesHaveEachJobOnce) {
  for (int i = 0; i < 5; ++i) {
    Call(Job());
  }
  v1::ClientRequest ask;
  ask.mutable_jobs()->set_limit(2);
  v1::JobsReply page = Ask(ask);
  EXPECT_THAT(NumbersOf(page), ElementsAre(1, 2));
  EXPECT_EQ(page.next(), 2U);
  ask.mutable_jobs()->set_after(page.next());
  page = Ask(ask);
  EXPECT_THAT(NumbersOf(page), ElementsAre(3, 4));
  ask.mutable_jobs()->set_after(page.next());
  page = Ask(ask);
  EXPECT_THAT(NumbersOf(page), ElementsAre(5));
  EXPECT_EQ(page.next(), 0U);
}

TEST_F(ViewTest, AnAnswerSinceAVersionHasWhatHasChanged) {
  v1::ClientRequest array = Job();
  array.mutable_submit()->mutable_job()->set_array("0-299");
  Call(array);
  v1::ClientRequest ask;
  ask.mutable_jobs();
  const v1::JobsReply all = Ask(ask);
  EXPECT_EQ(all.jobs_size(), 300);
  ask.mutable_jobs()->set_since(all.version());
  EXPECT_THAT(NumbersOf(Ask(ask)), ElementsAre());
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(7);
  Call(cancel);
  Call(Job());
  const v1::JobsReply changed = Ask(ask);
  EXPECT_THAT(NumbersOf(changed), ElementsAre(7, 301));
  v1::ClientRequest named = ask;
  for (const std::uint64_t job : {7U, 8U, 999U}) {
    named.mutable_jobs()->add_jobs(job);
  }
  EXPECT_THAT(NumbersOf(Ask(named)), ElementsAre(7));
  EXPECT_THAT(Ask(named).unknown(), ElementsAre(999));
  ask.mutable_jobs()->set_since(changed.version());
  EXPECT_THAT(NumbersOf(Ask(ask)), ElementsAre());
  ask.mutable_jobs()->set_since("77-" + std::to_string(1U << 30U));  // of another controller
  EXPECT_EQ(Ask(ask).jobs_size(), 301);
  ask.mutable_jobs()->set_since("no version");
  EXPECT_EQ(Ask(ask).jobs_size(), 301);
}

}  // namespace
}  // namespace trainyard::live
