// SPDX-License-Identifier: Apache-2.0
#include "live/history/steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

v1::StepRecord StepAs(int number, double started, double ended = 0, int exit_code = 0) {
  v1::StepRecord step;
  step.set_number(number);
  step.set_name("train");
  step.set_started(started);
  if (ended > 0) {
    step.set_ended(ended);
  }
  step.set_exit_code(exit_code);
  step.set_tasks(2);
  step.set_node_list("n[0-1]");
  return step;
}

class StepsTest : public LiveWorldTest {
 protected:
  static v1::AttemptReport With(v1::AttemptReport report,
                                const std::vector<v1::StepRecord>& steps) {
    report.mutable_steps()->Assign(steps.begin(), steps.end());
    return report;
  }
  v1::JobStatus Told(std::uint64_t job) {
    v1::ClientRequest request;
    request.mutable_jobs()->add_jobs(job);
    request.mutable_jobs()->set_steps(true);
    return Call(request).jobs().jobs(0);
  }
  // "0 100-200 7; 1 100-; "
  std::string Texts(std::uint64_t job) {
    std::string texts;
    const v1::JobStatus told = Told(job);
    for (const v1::StepRecord& step : told.steps()) {
      const auto whole = [](double at) { return std::to_string(static_cast<int>(at)); };
      texts += whole(step.number()) + " " + whole(step.started()) + "-" +
               (step.has_ended() ? whole(step.ended()) + " " + whole(step.exit_code()) : "") + "; ";
    }
    return texts;
  }
};

TEST_F(StepsTest, TheyOutlastTheAttemptAndTheController) {
  Hello(10, "a");
  Submit(1);
  Tell(10, With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 100)}));
  EXPECT_EQ(Texts(1), "0 100-; ");
  Tell(10,
       With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 100, 200, 7), StepAs(1, 300)}));
  EXPECT_EQ(Texts(1), "0 100-200 7; 1 300-; ");
  const v1::StepRecord known = Told(1).steps(0);
  EXPECT_EQ(known.name() + known.node_list(), "trainn[0-1]");
  EXPECT_EQ(known.tasks(), 2);
  Open();  // the controller starts anew, from its journal
  EXPECT_EQ(Texts(1), "0 100-200 7; 1 300-; ");
  const v1::AttemptReport last =
      With(Report(1, 1, v1::AttemptReport::EXITED), {StepAs(0, 100, 200, 7), StepAs(1, 300, 400)});
  Hello(10, "a", {last});
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(Texts(1), "0 100-200 7; 1 300-400 0; ");
  snapshots_.entries = 1;
  Submit(1);
  Open();  // from a snapshot, which is compared with the whole journal
  EXPECT_EQ(Texts(1), "0 100-200 7; 1 300-400 0; ");
}

// Nobody knows when a step has ended that was cut off with its attempt.
TEST_F(StepsTest, AnOpenStepOfAFormerAttemptIsNotSaidToRun) {
  Hello(10, "a");
  Submit(1);
  Tell(10, With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 100, 200), StepAs(1, 300)}));
  EXPECT_EQ(Texts(1), "0 100-200 0; 1 300-; ");
  v1::AttemptReport lost = Report(1, 1, v1::AttemptReport::EXITED, 1);
  lost.set_lost(true);
  Tell(10, lost);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(Texts(1), "0 100-200 0; ");
}

TEST_F(StepsTest, OnlyWhatIsNewIsNoted) {
  StepBook book;
  v1::AttemptReport report =
      With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 1), StepAs(1, 2)});
  std::optional<StepsNote> note = book.NewIn(JobAt(0), report);
  ASSERT_TRUE(note);
  book.Note(*note);
  EXPECT_FALSE(book.NewIn(JobAt(0), report));
  report = With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 1), StepAs(1, 2, 3)});
  note = book.NewIn(JobAt(0), report);
  ASSERT_TRUE(note);
  EXPECT_EQ(note->steps.size(), 1U);
  book.Note(*note);
  // Those of the next attempt take the place of all, and late news of the one before count no more.
  note = book.NewIn(JobAt(0), With(Report(1, 2, v1::AttemptReport::RUNNING), {StepAs(0, 9)}));
  ASSERT_TRUE(note);
  book.Note(*note);
  EXPECT_EQ(book.Of(JobAt(0))->steps.size(), 1U);
  EXPECT_FALSE(
      book.NewIn(JobAt(0), With(Report(1, 1, v1::AttemptReport::EXITED), {StepAs(1, 2, 9)})));
  EXPECT_EQ(book.Of(JobAt(1)), nullptr);
}

TEST_F(StepsTest, NamesAreText) {
  v1::StepRecord record = StepAs(0, 1);
  record.set_name("a\xff");
  EXPECT_EQ(StepOf(record).name, "a?");
  record.set_name("zwölf");
  EXPECT_EQ(StepOf(record).name, "zwölf");
}

// An agent may say what it likes.
TEST_F(StepsTest, NumbersThatNoStepHasArePassedOver) {
  EXPECT_FALSE(StepBook().NewIn(JobAt(0), With(Report(1, 1, v1::AttemptReport::RUNNING),
                                               {StepAs(-1, 1), StepAs(1 << 30, 1)})));
  EXPECT_EQ(StepOf(StepAs(0, 1e300)).started, 100'000'000'000'000'000);
}

TEST_F(StepsTest, ListsHaveThemOnlyIfAskedFor) {
  Hello(10, "a");
  Submit(1);
  Tell(10, With(Report(1, 1, v1::AttemptReport::RUNNING), {StepAs(0, 100)}));
  v1::ClientRequest request;
  request.mutable_jobs();
  EXPECT_EQ(Call(request).jobs().jobs(0).steps_size(), 0);
  request.mutable_jobs()->set_steps(true);
  EXPECT_EQ(Call(request).jobs().jobs(0).steps_size(), 1);
}

}  // namespace
}  // namespace trainyard::live
