// SPDX-License-Identifier: Apache-2.0
#include "engine/journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "io/file.h"

namespace trainyard::engine {
namespace {

std::shared_ptr<const JobSpec> FullJob() {
  return std::make_shared<const JobSpec>(JobSpec{.name = "job-1",
                                                 .user = "ann",
                                                 .queue = "a queue, quoted \"so\"",
                                                 .model = "resnet50",
                                                 .gpus = 64,
                                                 .batch_size = 4096,
                                                 .submit = AtSeconds(-1.5),
                                                 .duration = FromSeconds(3600.000001),
                                                 .iterations = 1.0 / 3,
                                                 .deadline = AtSeconds(1e9),
                                                 .best_effort = true,
                                                 .profile_row = 12});
}

// Every kind of fact.
std::vector<model::Batch> AllFacts() {
  const TimePoint now = AtSeconds(1000);
  return {
      {.now = AtSeconds(-5),
       .events = {{.at = AtSeconds(-5),
                   .fact = model::fact::Submitted{.job = JobAt(0),
                                                  .spec = std::make_shared<const JobSpec>(
                                                      JobSpec{.name = ""})}}}},
      {.now = now,
       .events = {{.at = AtSeconds(999.25), .fact = model::fact::Ended{.job = JobAt(7)}},
                  {.at = now, .fact = model::fact::NodeDown{.node = NodeAt(3)}},
                  {.at = now, .fact = model::fact::NodeUp{.node = NodeAt(300)}},
                  {.at = now, .fact = model::fact::Cancelled{.job = JobAt(1'000'000'000'000)}},
                  {.at = now, .fact = model::fact::Submitted{.job = JobAt(8), .spec = FullJob()}},
                  {.at = now, .fact = model::fact::NoMoreSubmits{}},
                  {.at = now,
                   .fact = model::fact::Reported{.job = JobAt(8),
                                                 .metrics = {{.name = "accuracy", .value = 1.0 / 3},
                                                             {.name = "loss", .value = -0.0}}}},
                  {.at = now, .fact = model::fact::Reported{.job = JobAt(9)}},
                  {.at = now,
                   .fact = model::fact::Cancelled{.job = JobAt(3),
                                                  .others = {JobAt(4), JobAt(1'000'000'000)}}},
                  {.at = now,
                   .fact = model::fact::Held{.job = JobAt(3), .others = {JobAt(9)}, .held = true}},
                  {.at = now,
                   .fact =
                       model::fact::Noted{
                           .job = JobAt(8), .node = NodeAt(2), .bytes = std::string("a\0b", 3)}},
                  {.at = now,
                   .fact =
                       model::fact::Barred{
                           .job = JobAt(8), .nodes = {NodeAt(1), NodeAt(300)}, .held = true}},
                  {.at = now, .fact = model::fact::Barred{.job = JobAt(8)}}}},
      {.now = now,
       .events =
           {{.at = now, .fact = model::fact::Failed{.job = JobAt(1), .exit_code = -9}},
            {.at = now, .fact = model::fact::GpusLost{.job = JobAt(2), .exit_code = 137}},
            {.at = now, .fact = model::fact::Progress{.job = JobAt(3), .work_done = 1e-9}},
            {.at = now, .fact = model::fact::Overrun{.job = JobAt(4), .work_done = 1e99}},
            {.at = now, .fact = model::fact::Resized{.job = JobAt(5), .gpus = 64}},
            {.at = now, .fact = model::fact::NodeDrained{.node = NodeAt(6)}},
            {.at = now, .fact = model::fact::NodeUndrained{.node = NodeAt(7)}},
            {.at = now,
             .fact = model::fact::DataKept{.node = NodeAt(8),
                                           .data = std::make_shared<const model::NodeData>()}},
            {.at = now,
             .fact = model::fact::Measured{.job = JobAt(9),
                                           .gpus = 2,
                                           .gpu_type = "V100",
                                           .metrics = {{.name = "rate", .value = 7}}}},
            {.at = now, .fact = model::fact::Requeued{.job = JobAt(10), .others = {JobAt(12)}}},
            {.at = now, .fact = model::fact::ArraySubmitted{.job = JobAt(11), .spec = FullJob()}},
            {.at = now, .fact = model::fact::Updated{.job = JobAt(12), .spec = FullJob()}},
            {.at = now, .fact = model::fact::Configured{.note = "[nodes]"}},
            {.at = now,
             .fact = model::fact::Switched{.paused = true, .by = "ann", .reason = "disk"}},
            {.at = AtSeconds(11), .fact = model::fact::NodeCordoned{.node = NodeAt(3)}},
            {.at = AtSeconds(11),
             .fact = model::fact::NodeCordoned{.node = NodeAt(1), .until = AtSeconds(500)}},
            {.at = AtSeconds(11), .fact = model::fact::Upgraded{.from = "0.3.0", .to = "0.4.0"}}}},
      {.now = AtSeconds(1060), .events = {}},
  };
}

// Every kind of action.
std::vector<model::Action> AllActions() {
  const Grant grant{.gpus = 3,
                    .slices = {{.node = NodeAt(1), .gpus = 0b11, .soft = {2000, 5120}},
                               {.node = NodeAt(2), .gpus = std::uint64_t{1} << 63}}};
  return {{.kind = model::ActionKind::kAdmit, .job = JobAt(0)},
          {.kind = model::ActionKind::kReject, .job = JobAt(1), .reason = "over quota"},
          {.kind = model::ActionKind::kLaunch, .job = JobAt(2), .grant = grant},
          {.kind = model::ActionKind::kPreempt, .job = JobAt(3)},
          {.kind = model::ActionKind::kResize, .job = JobAt(4), .grant = grant},
          {.kind = model::ActionKind::kMigrate, .job = JobAt(5), .grant = grant},
          {.kind = model::ActionKind::kRelease, .job = JobAt(6)}};
}

// What a journal has written.
struct Written {
  std::string bytes;
  std::vector<std::size_t> blocks;  // the size of each
  std::string digest;
};

// Each batch with the same actions; flushes after every `flush_every` batches (0: only at the end).
Written Write(const std::vector<model::Batch>& batches, const std::vector<model::Action>& actions,
              std::size_t flush_every = 0) {
  Written written;
  Journal journal([&written](std::string_view bytes) -> Status {
    written.bytes += bytes;
    written.blocks.push_back(bytes.size());
    return {};
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    journal.Append(batches[i]);
    journal.Append(actions);
    EXPECT_TRUE(journal.Commit().ok());
    if (flush_every > 0 && i % flush_every == 0) {
      EXPECT_TRUE(journal.Flush().ok());
    }
  }
  EXPECT_TRUE(journal.Flush().ok());
  written.digest = journal.digest();
  return written;
}

void ExpectSameJob(const JobSpec& job, const JobSpec& expected) {
  EXPECT_EQ(job.name, expected.name);
  EXPECT_EQ(job.user, expected.user);
  EXPECT_EQ(job.queue, expected.queue);
  EXPECT_EQ(job.model, expected.model);
  EXPECT_EQ(job.gpus, expected.gpus);
  EXPECT_EQ(job.batch_size, expected.batch_size);
  EXPECT_EQ(job.submit, expected.submit);
  EXPECT_EQ(job.duration, expected.duration);
  EXPECT_EQ(job.iterations, expected.iterations);
  EXPECT_EQ(job.deadline, expected.deadline);
  EXPECT_EQ(job.best_effort, expected.best_effort);
  EXPECT_EQ(job.profile_row, expected.profile_row);
}

// What facts say besides job, node and specification.
struct Said {
  int number = 0;
  double work_done = 0;
  bool held = false;
  std::string text;
  std::vector<Metric> metrics;
  std::vector<NodeId> nodes;
  std::vector<JobId> others;
  friend bool operator==(const Said&, const Said&) = default;
};

template <typename T>
Said SaidBy(const T& fact) {
  Said said;
  if constexpr (requires { fact.gpus; }) said.number = fact.gpus;
  if constexpr (requires { fact.exit_code; }) said.number = fact.exit_code;
  if constexpr (requires { fact.work_done; }) said.work_done = fact.work_done;
  if constexpr (requires { fact.held; }) said.held = fact.held;
  if constexpr (requires { fact.bytes; }) said.text = fact.bytes;
  if constexpr (requires { fact.note; }) said.text = fact.note;
  if constexpr (requires { fact.closed; }) {
    said.number = (fact.paused ? 1 : 0) + (fact.closed ? 2 : 0);
    said.text = fact.by + ": " + fact.reason;
  }
  if constexpr (requires { fact.until; }) said.work_done = Seconds(fact.until);
  if constexpr (requires { fact.gpu_type; }) said.text = fact.gpu_type;
  if constexpr (requires { fact.metrics; }) said.metrics = fact.metrics;
  if constexpr (requires { fact.nodes; }) said.nodes = fact.nodes;
  if constexpr (requires { fact.others; }) said.others = fact.others;
  return said;
}

void ExpectSameFacts(const model::Batch& batch, const model::Batch& expected) {
  EXPECT_EQ(batch.now, expected.now);
  ASSERT_EQ(batch.events.size(), expected.events.size());
  const auto said = [](const model::Event& event) {
    return std::visit([](const auto& fact) { return SaidBy(fact); }, event.fact);
  };
  for (std::size_t i = 0; i < expected.events.size(); ++i) {
    EXPECT_EQ(batch.events[i].kind(), expected.events[i].kind()) << i;
    EXPECT_EQ(batch.events[i].at, expected.events[i].at) << i;
    EXPECT_EQ(batch.events[i].job(), expected.events[i].job()) << i;
    EXPECT_EQ(batch.events[i].node(), expected.events[i].node()) << i;
    EXPECT_TRUE(said(batch.events[i]) == said(expected.events[i])) << i;
    const std::shared_ptr<const JobSpec> spec = expected.events[i].spec();
    ASSERT_EQ(batch.events[i].spec() != nullptr, spec != nullptr) << i;
    if (spec != nullptr) {
      ExpectSameJob(*batch.events[i].spec(), *spec);
    }
  }
}

// The numbers of the kinds are those of their types.
TEST(JournalTest, AllFactsAreOfEveryKind) {
  std::set<model::EventKind> kinds;
  for (const model::Batch& batch : AllFacts()) {
    for (const model::Event& event : batch.events) {
      kinds.insert(event.kind());
    }
  }
  EXPECT_EQ(kinds.size(), model::kEventKinds);
  using model::Event;
  using model::EventKind;
  EXPECT_EQ(Event{.fact = model::fact::Ended{}}.kind(), EventKind::kEnded);
  EXPECT_EQ(Event{.fact = model::fact::NodeDown{}}.kind(), EventKind::kNodeDown);
  EXPECT_EQ(Event{.fact = model::fact::NodeUp{}}.kind(), EventKind::kNodeUp);
  EXPECT_EQ(Event{.fact = model::fact::Cancelled{}}.kind(), EventKind::kCancelled);
  EXPECT_EQ(Event{.fact = model::fact::Submitted{}}.kind(), EventKind::kSubmitted);
  EXPECT_EQ(Event{.fact = model::fact::NoMoreSubmits{}}.kind(), EventKind::kNoMoreSubmits);
  EXPECT_EQ(Event{.fact = model::fact::Failed{}}.kind(), EventKind::kFailed);
  EXPECT_EQ(Event{.fact = model::fact::GpusLost{}}.kind(), EventKind::kGpusLost);
  EXPECT_EQ(Event{.fact = model::fact::Progress{}}.kind(), EventKind::kProgress);
  EXPECT_EQ(Event{.fact = model::fact::Resized{}}.kind(), EventKind::kResized);
  EXPECT_EQ(Event{.fact = model::fact::NodeDrained{}}.kind(), EventKind::kNodeDrained);
  EXPECT_EQ(Event{.fact = model::fact::NodeUndrained{}}.kind(), EventKind::kNodeUndrained);
  EXPECT_EQ(Event{.fact = model::fact::Reported{}}.kind(), EventKind::kReported);
  EXPECT_EQ(Event{.fact = model::fact::Noted{}}.kind(), EventKind::kNoted);
  EXPECT_EQ(Event{.fact = model::fact::Barred{}}.kind(), EventKind::kBarred);
  EXPECT_EQ(Event{.fact = model::fact::DataKept{}}.kind(), EventKind::kDataKept);
  EXPECT_EQ(Event{.fact = model::fact::Measured{}}.kind(), EventKind::kMeasured);
  EXPECT_EQ(Event{.fact = model::fact::Held{}}.kind(), EventKind::kHeld);
  EXPECT_EQ(Event{.fact = model::fact::Requeued{}}.kind(), EventKind::kRequeued);
  EXPECT_EQ(Event{.fact = model::fact::ArraySubmitted{}}.kind(), EventKind::kArraySubmitted);
  EXPECT_EQ(Event{.fact = model::fact::Updated{}}.kind(), EventKind::kUpdated);
  EXPECT_EQ(Event{.fact = model::fact::Overrun{}}.kind(), EventKind::kOverrun);
  EXPECT_EQ(Event{.fact = model::fact::Configured{}}.kind(), EventKind::kConfigured);
  EXPECT_EQ(Event{.fact = model::fact::Switched{}}.kind(), EventKind::kSwitched);
  EXPECT_EQ(Event{.fact = model::fact::NodeCordoned{}}.kind(), EventKind::kNodeCordoned);
}

// Replays with these actions at every batch; the first failure, if any.
Status Replay(std::string_view bytes, const std::vector<model::Action>& actions) {
  ReplayWorld world(bytes);
  while (true) {
    const model::Batch batch = world.Next(std::nullopt);
    if (batch.done) {
      return world.status();
    }
    if (Status status = world.Perform(batch.now, actions); !status.ok()) {
      return status;
    }
  }
}

// ------------------------------------------------------------------------------------- round trip

TEST(JournalTest, AReplayTellsTheSameFacts) {
  const Written written = Write(AllFacts(), AllActions());
  ReplayWorld world(written.bytes);
  for (const model::Batch& expected : AllFacts()) {
    const model::Batch batch = world.Next(std::nullopt);
    ASSERT_FALSE(batch.done);
    ExpectSameFacts(batch, expected);
    ASSERT_TRUE(world.Perform(batch.now, AllActions()).ok());
  }
  EXPECT_TRUE(world.Next(std::nullopt).done);
  EXPECT_TRUE(world.status().ok());
}

// Actions, as those that have decided otherwise are told of them.
TEST(JournalTest, WhatWasDecidedIsToldUpToTheLastUpgrade) {
  std::vector<model::Action> actions = AllActions();
  actions[2].grant.sharing = Sharing::kInterleaved;
  actions[2].grant.group = {JobAt(2), JobAt(7)};
  actions[4].grant.running = false;
  actions[5].grant.slices[1].soft.storage_kbps = 12;
  actions[5].grant.slices[1].loader_workers = 3;
  actions.push_back({.kind = model::ActionKind::kTune, .job = JobAt(8), .grant = actions[5].grant});
  const std::vector<model::Batch> facts = AllFacts();  // the third has an upgrade
  const Written written = Write(facts, actions);
  const std::size_t upgraded = UpgradedAt(written.bytes);
  ReplayWorld world(written.bytes, {}, upgraded);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const model::Batch batch = world.Next(std::nullopt);
    ASSERT_EQ(batch.decided.has_value(), i < 2) << i;
    if (batch.decided) {
      EXPECT_EQ(EncodeActions(*batch.decided), EncodeActions(actions));
      ASSERT_EQ(batch.decided->size(), actions.size());
      for (std::size_t at = 0; at < actions.size(); ++at) {
        EXPECT_EQ((*batch.decided)[at].kind, actions[at].kind);
        EXPECT_EQ((*batch.decided)[at].job, actions[at].job);
        EXPECT_EQ((*batch.decided)[at].reason, actions[at].reason);
        EXPECT_TRUE((*batch.decided)[at].grant == actions[at].grant) << at;
      }
    }
    ASSERT_TRUE(world.Perform(batch.now, actions).ok());
  }
  EXPECT_TRUE(world.Next(std::nullopt).done);
  EXPECT_EQ(UpgradedAt(written.bytes.substr(0, upgraded)), 0U) << "there is no other";
}

TEST(JournalTest, ActionsThatCannotBeReadEndTheReplay) {
  const Written written = Write({{.now = AtSeconds(1), .events = {}}}, AllActions());
  for (std::size_t size = 4; size < written.bytes.size(); ++size) {
    const std::string cut = written.bytes.substr(0, size);
    ReplayWorld world(cut, {}, cut.size());
    EXPECT_TRUE(world.Next(std::nullopt).done) << size;
    EXPECT_FALSE(world.status().ok()) << size;
  }
}

TEST(JournalTest, DataSetsAndGpuTypesSurvive) {
  JobTraits traits{
      .loader_workers = 3, .gpu_types = {"A100", "V100"}, .range = {.least = 2, .most = 8}};
  traits.data_set = DataSet{.name = "imagenet", .mib = 150'000, .home = "n3"};
  const auto written = [](const JobTraits& of_job) {
    JobSpec job = *FullJob();
    job.traits = std::make_shared<const JobTraits>(of_job);
    std::string bytes;
    Journal journal([&bytes](std::string_view block) -> Status {
      bytes += block;
      return {};
    });
    const TimePoint now = AtSeconds(1);
    journal.Append(model::Batch{.now = now,
                                .events = {{.at = now,
                                            .fact = model::fact::Submitted{
                                                .spec = std::make_shared<const JobSpec>(job)}}}});
    journal.Append(std::span<const model::Action>());
    EXPECT_TRUE(journal.Flush().ok());
    return bytes;
  };
  const std::string bytes = written(traits);
  ReplayWorld world(bytes);
  const model::Batch batch = world.Next(std::nullopt);
  ASSERT_TRUE(world.status().ok());
  EXPECT_EQ(batch.events[0].spec()->traits->data_set, traits.data_set);
  EXPECT_EQ(batch.events[0].spec()->traits->loader_workers, 3);
  EXPECT_EQ(batch.events[0].spec()->traits->gpu_types, traits.gpu_types);
  EXPECT_EQ(batch.events[0].spec()->traits->range, traits.range);
  for (const GpuRange range : {GpuRange{.least = 2}, GpuRange{.most = 8}}) {  // one end alone
    traits.range = range;
    const std::string one_end = written(traits);
    ReplayWorld one(one_end);
    EXPECT_EQ(one.Next(std::nullopt).events.at(0).spec()->traits->range, range);
  }
  traits.data_set->mib = 0;  // cannot be
  const std::string bad = written(traits);
  ReplayWorld damaged(bad);
  EXPECT_TRUE(damaged.Next(std::nullopt).done);
  EXPECT_FALSE(damaged.status().ok());
}

TEST(JournalTest, WhatNodesKeepSurvives) {
  const model::NodeData data{
      .cache_mib = 1000, .rate_kbps = 50, .held = {{.name = "a", .mib = 7, .home = "/a"}}};
  const auto written = [](const model::NodeData& of_node) {
    std::string bytes;
    Journal journal([&bytes](std::string_view block) -> Status {
      bytes += block;
      return {};
    });
    journal.Append(model::Batch{
        .now = AtSeconds(2),
        .events = {
            {.at = AtSeconds(1),
             .fact = model::fact::DataKept{
                 .node = NodeAt(3), .data = std::make_shared<const model::NodeData>(of_node)}}}});
    journal.Append(std::span<const model::Action>());
    EXPECT_TRUE(journal.Flush().ok());
    return bytes;
  };
  const std::string bytes = written(data);
  ReplayWorld world(bytes);
  const model::Batch batch = world.Next(std::nullopt);
  ASSERT_TRUE(world.status().ok());
  EXPECT_EQ(batch.events.at(0).node(), NodeAt(3));
  EXPECT_EQ(*batch.events.at(0).As<model::fact::DataKept>().data, data);
  const std::string bad = written({.cache_mib = -1});
  ReplayWorld damaged(bad);
  EXPECT_TRUE(damaged.Next(std::nullopt).done);
  EXPECT_FALSE(damaged.status().ok());
}

TEST(JournalTest, AnEmptyJournalIsDoneAtOnce) {
  ReplayWorld world("");
  EXPECT_TRUE(world.Next(std::nullopt).done);
  EXPECT_TRUE(world.status().ok());
}

TEST(JournalTest, ABatchWithoutActionsIsReplayed) {
  EXPECT_TRUE(Replay(Write(AllFacts(), {}).bytes, {}).ok());
}

TEST(JournalTest, ExtremeTimesAndNumbersSurvive) {
  JobSpec job;
  job.gpus = std::numeric_limits<int>::max();
  job.batch_size = std::numeric_limits<std::int64_t>::max();
  job.iterations = std::numeric_limits<double>::denorm_min();
  job.deadline = kEndOfTime;
  job.profile_row = -1;
  const model::Batch batch{
      .now = AtSeconds(0),
      .events = {{.fact = model::fact::Submitted{.spec = std::make_shared<const JobSpec>(job)}}}};
  const Written written = Write({batch}, {});
  ReplayWorld world(written.bytes);
  ExpectSameFacts(world.Next(std::nullopt), batch);
}

TEST(JournalTest, AReplayThatActsOtherwiseIsRefused) {
  const Written written = Write(AllFacts(), AllActions());
  std::vector<model::Action> others = AllActions();
  others[2].grant.slices[1].gpus = 1;
  ReplayWorld world(written.bytes);
  (void)world.Next(std::nullopt);
  const Status status = world.Perform(AtSeconds(-5), others);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kFailed);
  EXPECT_TRUE(status.error().message.starts_with("the replay differs from the journal at -5"))
      << status.error().message;
}

TEST(JournalTest, EveryFieldOfAnActionIsCompared) {
  const model::Action action{.kind = model::ActionKind::kLaunch,
                             .job = JobAt(1),
                             .grant = {.gpus = 1, .slices = {{.node = NodeAt(1), .gpus = 1}}}};
  std::vector<model::Action> others(7, action);
  others[0].kind = model::ActionKind::kMigrate;
  others[1].job = JobAt(2);
  others[2].grant.gpus = 2;
  others[3].grant.slices[0].node = NodeAt(2);
  others[4].grant.slices[0].soft.milli_cpus = 1;
  others[5].grant.slices[0].soft.memory_mib = 1;
  others[6].reason = "x";
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(EncodeActions({{others[i]}}), EncodeActions({{action}})) << i;
  }
}

TEST(JournalTest, WhatFollowsFromTheRestOfAnActionIsInNoJournal) {
  const std::vector<model::Action> plain = AllActions();
  std::vector<model::Action> paced = plain;
  for (model::Action& action : paced) {
    action.rate = 0.5;
    action.debt = std::chrono::seconds(7);
    action.work = 100;
  }
  paced.push_back({.kind = model::ActionKind::kPace, .job = JobAt(2), .rate = 0.25});
  EXPECT_EQ(EncodeActions(paced), EncodeActions(plain));
  EXPECT_EQ(Write(AllFacts(), paced).bytes, Write(AllFacts(), plain).bytes);
}

// ----------------------------------------------------------------------------------------- damage

TEST(JournalTest, AJournalCutAnywhereInsideABatchIsAnError) {
  const std::vector<model::Batch> facts = AllFacts();
  const std::string bytes = Write(facts, AllActions()).bytes;
  std::vector<std::size_t> whole;  // lengths of journals that end with a batch
  for (std::size_t batches = 0; batches <= facts.size(); ++batches) {
    const auto last = facts.begin() + static_cast<std::ptrdiff_t>(batches);
    whole.push_back(Write({facts.begin(), last}, AllActions()).bytes.size());
  }
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const bool complete = std::find(whole.begin(), whole.end(), length) != whole.end();
    EXPECT_EQ(Replay(std::string_view(bytes).substr(0, length), AllActions()).ok(), complete)
        << length;
  }
}

TEST(JournalTest, ADamagedBatchEndsTheReplayForGood) {
  std::string bytes = Write(AllFacts(), AllActions()).bytes;
  bytes[0] = 9;
  ReplayWorld world(bytes);
  EXPECT_TRUE(world.Next(std::nullopt).done);
  ASSERT_FALSE(world.status().ok());
  EXPECT_EQ(world.status().error().code, ErrorCode::kBadInput);
  EXPECT_EQ(world.status().error().message,
            "the journal is damaged; expected a batch of facts and its actions");
  EXPECT_TRUE(world.Next(std::nullopt).done);
}

TEST(JournalTest, AnUnknownKindOfFactIsDamage) {
  const model::Batch batch{.now = AtSeconds(0), .events = {{.fact = model::fact::NoMoreSubmits{}}}};
  std::string bytes = Write({batch}, {}).bytes;
  ASSERT_EQ(bytes[3], static_cast<char>(model::EventKind::kNoMoreSubmits));
  ++bytes[3];
  EXPECT_FALSE(Replay(bytes, {}).ok());
}

TEST(JournalTest, ABatchWithoutItsActionsIsDamage) {
  std::string bytes = Write({{.now = AtSeconds(0), .events = {}}}, {}).bytes;
  ASSERT_EQ(bytes, std::string("\1\0\0\2\0", 5));
  bytes[3] = 1;
  EXPECT_EQ(Replay(bytes, {}).error().code, ErrorCode::kBadInput);
}

TEST(JournalTest, ATimeThatCannotBeIsDamage) {
  // One fact a microsecond before a batch at the earliest time there is.
  const std::string earliest = std::string(9, '\xff') + '\1';
  const std::string bytes = '\1' + earliest + std::string("\1\0\1\0\0\2\0", 7);
  ReplayWorld world(bytes);
  EXPECT_TRUE(world.Next(std::nullopt).done);
  EXPECT_FALSE(world.status().ok());
}

TEST(JournalTest, NoChangedByteCrashesAReplay) {
  const std::string bytes = Write(AllFacts(), AllActions()).bytes;
  std::mt19937 random(1);
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::string damaged = bytes;
      damaged[place] = static_cast<char>(random() % 256);
      (void)Replay(damaged, AllActions());
    }
  }
}

TEST(JournalTest, NoRandomBytesCrashAReplay) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(1 + random() % 80, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random() % 3 == 0 ? 255 : random() % 8);
    }
    bytes[0] = 1;
    (void)Replay(bytes, {});
  }
}

// ----------------------------------------------------------------------------------------- digest

TEST(JournalTest, TheSameRunHasTheSameDigest) {
  EXPECT_EQ(Write(AllFacts(), AllActions()).digest, Write(AllFacts(), AllActions()).digest);
}

TEST(JournalTest, AnyDifferenceChangesTheDigest) {
  const std::string digest = Write(AllFacts(), AllActions()).digest;
  std::vector<model::Batch> later = AllFacts();
  later.back().now += Duration{1};
  EXPECT_NE(Write(later, AllActions()).digest, digest);
  std::vector<model::Action> other = AllActions();
  other.back().job = JobAt(9);
  EXPECT_NE(Write(AllFacts(), other).digest, digest);
}

TEST(JournalTest, TheDigestIsThatOfTheBytes) {
  const Written written = Write(AllFacts(), AllActions());
  EXPECT_EQ(written.digest, io::Sha256Hex(written.bytes));
}

TEST(JournalTest, TheDigestDoesNotDependOnTheBlocks) {
  std::vector<model::Batch> many;
  for (int i = 0; i < 2000; ++i) {
    model::Batch batch = AllFacts()[1];
    batch.now += FromSeconds(i);
    many.push_back(batch);
  }
  const Written at_the_end = Write(many, AllActions());
  const Written often = Write(many, AllActions(), 3);
  ASSERT_GT(at_the_end.blocks.size(), 2U);
  ASSERT_GT(often.blocks.size(), 100U);
  EXPECT_EQ(often.bytes, at_the_end.bytes);
  EXPECT_EQ(often.digest, at_the_end.digest);
  EXPECT_EQ(at_the_end.digest, io::Sha256Hex(at_the_end.bytes));
}

TEST(JournalTest, BytesAreWrittenInBlocks) {
  std::vector<model::Batch> many(2000, AllFacts()[1]);
  const Written written = Write(many, AllActions());
  ASSERT_GT(written.blocks.size(), 1U);
  for (std::size_t i = 0; i + 1 < written.blocks.size(); ++i) {
    EXPECT_GE(written.blocks[i], 65536U);
    EXPECT_LT(written.blocks[i], 65536U + 4096U);
  }
}

TEST(JournalTest, ASinkThatFailsStopsTheRun) {
  Journal journal([](std::string_view) { return Status(Failed("disk full")); });
  journal.Append(AllFacts()[1]);
  const Status status = journal.Flush();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "disk full");
}

TEST(JournalTest, WithoutASinkThereIsStillADigest) {
  Journal journal;
  for (const model::Batch& batch : AllFacts()) {
    journal.Append(batch);
    journal.Append(AllActions());
  }
  ASSERT_TRUE(journal.Flush().ok());
  EXPECT_EQ(journal.digest(), Write(AllFacts(), AllActions()).digest);
}

}  // namespace
}  // namespace trainyard::engine
