// SPDX-License-Identifier: Apache-2.0
#include "live/notes.h"

#include <gtest/gtest.h>

#include <string>

namespace trainyard::live {
namespace {

constexpr TimePoint kAt{std::chrono::seconds(7)};

// What old journals hold is read for ever: the bytes are here as they were written.
TEST(NotesTest, NotesComeBackAsTheyWereAndWithTheBytesOfOldJournals) {
  const model::Event failure = FactOf(FailureNote{.kind = FailureNote::Kind::kRanWell,
                                                  .job = JobId{3},
                                                  .node = NodeId{1},
                                                  .nodes = {NodeId{1}},
                                                  .text = "t",
                                                  .soon = true},
                                      kAt);
  EXPECT_EQ(failure.kind(), model::EventKind::kNoted);
  EXPECT_EQ(failure.at, kAt);
  EXPECT_EQ(failure.job(), JobId{3});
  EXPECT_EQ(failure.node(), NodeId{1});
  EXPECT_EQ(failure.As<model::fact::Noted>().bytes,
            std::string("\x02\x03\x01\x01\x01\x00\x00\x01t\x00\x01\x01", 12));
  const auto read = NoteAs<FailureNote>(failure);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, FailureNote::Kind::kRanWell);
  EXPECT_EQ(read->nodes.size(), 1U);
  EXPECT_TRUE(read->soon);
  EXPECT_FALSE(NoteAs<ChangeNote>(failure).has_value());

  const model::Event change =
      FactOf(ChangeNote{.job = JobId{4}, .text = "held", .other_jobs = {JobId{5}}}, kAt);
  EXPECT_EQ(change.As<model::fact::Noted>().bytes,
            std::string("\xCB\x01\x00\x04\x00\x04held\x01\x05\x00", 13));
  EXPECT_EQ(NoteAs<ChangeNote>(change)->other_jobs, std::vector<JobId>{JobId{5}});
  EXPECT_EQ(NoteAs<ChangeNote>(change)->text, "held");

  const model::Event end = FactOf(EndNote{.job = JobId{6}, .text = "x"}, kAt);
  EXPECT_EQ(end.As<model::fact::Noted>().bytes, std::string("\xC9\x01\x06\x00\x01x", 6));
  EXPECT_EQ(NoteAs<EndNote>(end)->text, "x");

  const model::Event begin = FactOf(BeginNote{.job = JobId{6}}, kAt);
  EXPECT_EQ(begin.As<model::fact::Noted>().bytes, std::string("\xCA\x01\x06\x00", 4));
  EXPECT_TRUE(NoteAs<BeginNote>(begin).has_value());
}

TEST(NotesTest, UseIsReadAsItWasWritten) {
  const model::Event use = FactOf(UseNote{.job = JobId{6},
                                          .node = NodeId{2},
                                          .attempt = 3,
                                          .use = {.cpu_micros = 4, .peak_memory = 5},
                                          .memory_mib = 7},
                                  kAt);
  EXPECT_EQ(use.node(), NodeId{2});
  EXPECT_EQ(use.As<model::fact::Noted>().bytes, std::string("\xCC\x01\x06\x02\x03\x08\x0A\x0E", 8));
  const auto read = NoteAs<UseNote>(use);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->attempt, 3U);
  EXPECT_EQ(read->use, (ProcessUse{.cpu_micros = 4, .peak_memory = 5}));
  EXPECT_EQ(read->memory_mib, 7);
}

TEST(NotesTest, StepsAreReadAsTheyWereWritten) {
  const JobStep step{.number = 2,
                     .name = "a",
                     .started = 5,
                     .ended = 6,
                     .exit_code = 7,
                     .tasks = 8,
                     .cpus = 9,
                     .nodes = 1,
                     .node_list = "n0"};
  const model::Event event = FactOf(StepsNote{.job = JobId{6}, .attempt = 3, .steps = {step}}, kAt);
  EXPECT_EQ(event.As<model::fact::Noted>().bytes, std::string("\xCD\x01\x06\x03\x01\x04\x01"
                                                              "a\x0A\x0C\x0E\x10\x12\x02\x02n0",
                                                              17));
  const auto read = NoteAs<StepsNote>(event);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->attempt, 3U);
  EXPECT_EQ(read->steps, std::vector<JobStep>{step});
}

TEST(NotesTest, ChangesOfOneJobAreReadAsTheFirstVersionsWroteThem) {
  const model::Event event{
      .at = kAt,
      .fact = model::fact::Noted{.bytes = std::string("\xC8\x01\x00\x04\x00\x04held", 10)}};
  const auto note = NoteAs<ChangeNote>(event);
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->job, JobId{4});
  EXPECT_EQ(note->text, "held");
  EXPECT_TRUE(note->other_jobs.empty());
}

TEST(NotesTest, OtherBytesAreNoNote) {
  for (const std::string& bytes :
       {std::string(), std::string("\x06"), std::string("\xCE\x01"), std::string("\xC9\x01\x06"),
        std::string("\xCA\x01\x06\x00\x00", 5), std::string("\xFF\xFF\xFF")}) {
    EXPECT_FALSE(NoteOf({.fact = model::fact::Noted{.bytes = bytes}}).has_value());
  }
  const model::Event other{
      .fact = model::fact::Configured{
          .note = FactOf(BeginNote{.job = JobId{6}}, kAt).As<model::fact::Noted>().bytes}};
  EXPECT_FALSE(NoteOf(other).has_value()) << "a fact of another kind";
}

}  // namespace
}  // namespace trainyard::live
