// SPDX-License-Identifier: Apache-2.0
#include "daemon/configurations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/controller_process.h"
#include "daemon/mailbox.h"
#include "engine/engine.h"
#include "io/file.h"
#include "scenario/known_models.h"
#include "store/memory_store.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Whatever a node and a type can state.
constexpr const char* kBigNode = R"(
[[nodes]]
host = "big"
gpus = 8
gpu_type = "A100"
cpus = 64
memory_gb = 512.5
switch = 3
cache_gb = 100
remote_mb_per_s = 200
[[gpu_types]]
name = "A100"
speed = 2.5
)";

GivenConfiguration GivenBy(const std::string& policy, const std::string& cluster) {
  Result<GivenConfiguration> given = Given({.policy = policy}, cluster);
  EXPECT_TRUE(given.ok()) << given.error().message;
  return std::move(given).value();
}

std::vector<std::string> NamesOf(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const NodeSpec& node : cluster.nodes) {
    names.push_back(node.name + ":" + std::to_string(node.gpus));
  }
  return names;
}

TEST(ConfigurationsTest, ANoteSaysEverything) {
  const ScratchFolder scratch;
  GivenConfiguration given = GivenBy(
      "srtf", scratch.Write("cluster.toml",
                            std::string("[cluster]\ncheckpoint_interval = 60\n") + kBigNode));
  given.number = 7;
  given.author = "ann";
  const Result<GivenConfiguration> read = GivenConfiguration::From(given.Note());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().Note(), given.Note());
  EXPECT_EQ(read.value().cluster.nodes[0].capacity, given.cluster.nodes[0].capacity);
  EXPECT_EQ(read.value().cluster.checkpoint_interval, std::chrono::seconds(60));
  EXPECT_EQ(ChangesBetween(given, read.value()), "");
  given.cluster.checkpoint_interval = Duration{0};
  EXPECT_EQ(ChangesBetween(read.value(), given), "checkpoint_interval 60 s, now 0 s");
  given.cluster.checkpoint_interval = read.value().cluster.checkpoint_interval;
  EXPECT_FALSE(GivenConfiguration::From(given.Note() + "x").ok());
  EXPECT_FALSE(GivenConfiguration::From("x").ok());
}

// What `config show` prints can be read as a cluster file again.
TEST(ConfigurationsTest, TheTextSaysTheSame) {
  const ScratchFolder scratch;
  GivenConfiguration given = GivenBy(
      "srtf", scratch.Write("cluster.toml", std::string("[cluster]\nname = 'small \"lab\"'\n") +
                                                kBigNode + "[[nodes]]\nhost = 'gone'\ngpus = 2\n"));
  given.cluster.nodes[1].gpus = 0;
  const std::string text = TextOf(given);
  EXPECT_THAT(text, testing::StartsWith("policy = 'srtf'\n\n[cluster]\nname = "));
  EXPECT_THAT(text, Not(HasSubstr("gone")));
  const GivenConfiguration again =
      GivenBy("srtf", scratch.Write("again.toml", text.substr(text.find("[cluster]"))));
  EXPECT_EQ(again.cluster.name, given.cluster.name);
  given.cluster.nodes.pop_back();
  EXPECT_EQ(ChangesBetween(given, again), "");
}

constexpr const char* kParted = R"(
[[nodes]]
name = "n"
count = 4
gpus = 8
[[partitions]]
name = "debug"
nodes = ["n[0-1]"]
default = true
max_gpus = 4
max_time = "1h"
default_time = "10m"
default_cpus = "4/gpu"
default_memory = "16G"
[[partitions]]
name = "all"
)";

TEST(ConfigurationsTest, PartitionsArePartOfNoteAndText) {
  const ScratchFolder scratch;
  const GivenConfiguration given = GivenBy("srtf", scratch.Write("cluster.toml", kParted));
  const Result<GivenConfiguration> noted = GivenConfiguration::From(given.Note());
  ASSERT_TRUE(noted.ok());
  EXPECT_EQ(noted.value().cluster.partitions, given.cluster.partitions);
  const Result<GivenConfiguration> again = FromText("c.toml", TextOf(given));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().cluster.partitions, given.cluster.partitions);
  EXPECT_EQ(ChangesBetween(given, again.value()), "");
}

TEST(ConfigurationsTest, LabelsArePartOfNoteAndText) {
  const ScratchFolder scratch;
  const GivenConfiguration plain =
      GivenBy("srtf", scratch.Write("cluster.toml", "[[nodes]]\ncount = 2\ngpus = 8\n"));
  GivenConfiguration given = plain;
  given.cluster.nodes[1].labels = {"nvlink", "rack=2"};
  EXPECT_EQ(ChangesBetween(plain, given), "node n1 changed: labels none, now nvlink,rack=2");
  const Result<GivenConfiguration> noted = GivenConfiguration::From(given.Note());
  ASSERT_TRUE(noted.ok());
  EXPECT_EQ(noted.value().cluster.nodes[1].labels, given.cluster.nodes[1].labels);
  const Result<GivenConfiguration> again = FromText("c.toml", TextOf(given));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(ChangesBetween(given, again.value()), "");
}

TEST(ConfigurationsTest, ChangesOfPartitionsAreNamed) {
  const ScratchFolder scratch;
  const GivenConfiguration given = GivenBy("srtf", scratch.Write("cluster.toml", kParted));
  GivenConfiguration next = given;
  next.cluster.partitions[0].nodes = {"n0", "n3"};
  next.cluster.partitions[0].most_gpus = 0;
  next.cluster.partitions[0].default_memory = {.mib = 2048, .per = Per::kNode};
  next.cluster.partitions[1].name = "whole";
  EXPECT_EQ(ChangesBetween(given, next),
            "partition debug: nodes n[0-1], now nodes n[0,3], max_gpus 4, now any, default_memory "
            "16G, now 2G/node; partition whole added, with all nodes; partition all removed");
  next.cluster.partitions.clear();
  EXPECT_EQ(ChangesBetween(given, next), "partition debug removed; partition all removed");
}

// What has been applied to one partition stays where the options change another one.
TEST(ConfigurationsTest, AStartChangesOnlyThePartitionsThatItsOptionsChange) {
  const ScratchFolder scratch;
  const GivenConfiguration first = GivenBy("srtf", scratch.Write("cluster.toml", kParted));
  GivenConfiguration present = first;
  present.cluster.partitions[0].nodes.emplace_back("n3");
  GivenConfiguration asked = first;
  asked.cluster.partitions[1].most_gpus = 8;
  const auto changes = [&present](const GivenConfiguration& options) {
    return ChangesBetween(present, Merged(present, options).value());
  };
  EXPECT_EQ(changes(asked), "partition all: max_gpus any, now 8");
  asked.cluster.partitions.pop_back();
  EXPECT_EQ(changes(asked), "partition all removed");
  asked.cluster.partitions[0].most_gpus = 2;
  EXPECT_EQ(changes(asked),
            "partition debug: nodes n[0-1,3], now nodes n[0-1], max_gpus 4, now 2; partition all "
            "removed");
  EXPECT_EQ(changes(first), "");
}

// The node that has been removed is in no partition any more, or the text could not be read again.
TEST(ConfigurationsTest, ANodeThatIsRemovedLeavesItsPartition) {
  const ScratchFolder scratch;
  const GivenConfiguration given = GivenBy("srtf", scratch.Write("cluster.toml", kParted));
  const Configurations configurations("");
  const Result<engine::SharedConfiguration> first =
      configurations.Read(given.Note(), engine::Configuration{.cluster = given.cluster});
  ASSERT_TRUE(first.ok()) << first.error().message;
  GivenConfiguration next = given;
  next.cluster.nodes.erase(next.cluster.nodes.begin() + 1);
  const Result<engine::SharedConfiguration> second =
      configurations.Read(next.Note(), *first.value());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second.value()->cluster.partitions[0].nodes, std::vector<std::string>{"n0"});
  EXPECT_TRUE(FromText("c.toml", second.value()->text).ok());
}

TEST(ConfigurationsTest, PoliciesThatPlanForAllGpusTakeNoPartitionOfSome) {
  const ScratchFolder scratch;
  const Configurations configurations("");
  for (const char* const policy : {"gandiva", "chronus"}) {
    const std::string file = scratch.Write("cluster.toml", kParted);
    Result<GivenConfiguration> given = Given(
        {.policy = policy, .placement = std::string(policy) == "gandiva" ? "gandiva" : ""}, file);
    ASSERT_TRUE(given.ok());
    const Result<engine::SharedConfiguration> read = configurations.Read(
        given.value().Note(), engine::Configuration{.cluster = given.value().cluster});
    ASSERT_FALSE(read.ok()) << policy;
    EXPECT_THAT(read.error().message,
                HasSubstr("plans as if each job could have every GPU, but partition 'debug' has "
                          "only some of the nodes"));
  }
}

TEST(ConfigurationsTest, ATextMakesTheNextOne) {
  const Configurations configurations("");
  GivenConfiguration given = GivenBy("fifo", "2x4");
  EXPECT_EQ(GivenConfiguration::From(given.options).value().names.policy, "fifo");
  const auto first = configurations.Read(given.Note(), {});
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto ask = [&](const std::string& text) {
    return configurations.Make({.name = "new.toml", .text = text, .author = "ann", .since = 12},
                               *first.value());
  };
  const auto same = ask(first.value()->text);
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same.value()->changes, "");
  const auto next = ask("policy = 'srtf'\n[[nodes]]\nhost = 'n1'\ngpus = 4\n");
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value()->changes, "policy fifo, now srtf; node n0 removed");
  EXPECT_EQ(next.value()->number, 1U);
  EXPECT_EQ(next.value()->author, "ann");
  EXPECT_EQ(next.value()->since, 12);
  EXPECT_EQ(GivenConfiguration::From(next.value()->note).value().options, given.options)
      << "a start with the same options must know that they are";
  const auto error = [&](const std::string& text) {
    const auto made = ask(text);
    return made.ok() ? std::string() : made.error().message;
  };
  const auto nodes = ask("[[nodes]]\nhost = 'n1'\ngpus = 4\n");
  EXPECT_EQ(nodes.value()->changes, "node n0 removed") << "a cluster file names no policy";
  EXPECT_THAT(error("policy = 'nosuch'\n[[nodes]]\ngpus = 1\n"),
              testing::StartsWith("new.toml: unknown policy 'nosuch'"));
  EXPECT_THAT(error("policy = 'srtf'\npolciy = 'las'\n"),
              testing::StartsWith("new.toml:2: unknown top-level key 'polciy'; did you mean"));
  EXPECT_THAT(error("policy = 'srtf'\n[[nodes]]\ngpus = 0\n"), testing::StartsWith("new.toml:3: "));
  EXPECT_THAT(error("[[nodes]]\ngpus = 1\n[[failures]]\nnode = 'n0'\ndown = 1\n"),
              HasSubstr("unknown top-level key 'failures'"));
  EXPECT_THAT(error("policy = 'nosuch'\n[[nodes]]\ngpus = 1\n"), HasSubstr("nosuch"));
  EXPECT_THAT(error(""), HasSubstr("nodes"));
  EXPECT_THAT(error("[[nodes"), testing::StartsWith("new.toml:1: not TOML"));
}

// What has been applied between two starts stays, but for what the second one asks for otherwise.
TEST(ConfigurationsTest, AStartChangesOnlyWhatItsOptionsChange) {
  const GivenConfiguration first = GivenBy("fifo", "3x4");
  GivenConfiguration present = first;
  present.names.policy = "las";
  present.names.placement = "first-fit";
  present.cluster.nodes.push_back({.name = "added", .gpus = 8});
  present.cluster.nodes[1].gpus = 2;
  const auto merged = [&present](const GivenConfiguration& asked) {
    const Result<GivenConfiguration> both = Merged(present, asked);
    EXPECT_TRUE(both.ok());
    return ChangesBetween(present, both.value());
  };
  EXPECT_EQ(merged(first), "");
  EXPECT_EQ(merged(GivenBy("srtf", "3x4")), "policy las, now srtf");
  EXPECT_EQ(merged(GivenBy("las", "3x4")), "");
  EXPECT_EQ(merged(GivenBy("fifo", "2x4")), "node n2 removed");
  EXPECT_EQ(merged(GivenBy("fifo", "4x4")), "node n3 added");
  EXPECT_EQ(merged(GivenBy("fifo", "5x4")), "nodes n3, n4 added");
  EXPECT_EQ(merged(GivenBy("fifo", "20x4")), "nodes n3 to n19 (17) added");
  EXPECT_EQ(merged(GivenBy("fifo", "3x8")),
            "nodes n0, n2 have 4 GPUs, now 8; node n1 has 2 GPUs, now 8");
  const Result<GivenConfiguration> both = Merged(present, GivenBy("srtf", "3x4"));
  EXPECT_EQ(GivenConfiguration::From(both.value().options).value().names.policy, "srtf");
}

TEST(ConfigurationsTest, NodesKeepTheirPlaces) {
  const ScratchFolder scratch;
  const Configurations configurations("");
  const auto first = configurations.Read(GivenBy("fifo", "3x4").Note(), {});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_THAT(NamesOf(first.value()->cluster), ElementsAre("n0:4", "n1:4", "n2:4"));
  const std::string others = scratch.Write("cluster.toml", R"(
[[nodes]]
host = "new"
gpus = 2
[[nodes]]
host = "n2"
gpus = 8
[[nodes]]
host = "n0"
gpus = 4
)");
  GivenConfiguration given = GivenBy("srtf", others);
  given.number = 1;
  const auto second = configurations.Read(given.Note(), *first.value());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second.value()->number, 1U);
  EXPECT_EQ(second.value()->policy, "srtf");
  EXPECT_THAT(NamesOf(second.value()->cluster), ElementsAre("n0:4", "n1:0", "n2:8", "new:2"));
  EXPECT_EQ(ChangesBetween(GivenConfiguration::From(first.value()->note).value(),
                           GivenConfiguration::From(second.value()->note).value()),
            "policy fifo, now srtf; node n1 removed; node n2 has 4 GPUs, now 8; node new added");
  // Whatever is present, the note gives the same one again.
  const auto again = Configurations("").Read(second.value()->note, {});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->note, second.value()->note);
  EXPECT_THAT(NamesOf(again.value()->cluster), ElementsAre("n0:4", "n1:0", "n2:8", "new:2"));
  // A node that was removed comes back to its place.
  const auto back = configurations.Read(GivenBy("fifo", "2x2").Note(), *second.value());
  ASSERT_TRUE(back.ok());
  EXPECT_THAT(NamesOf(back.value()->cluster), ElementsAre("n0:2", "n1:2", "n2:0", "new:0"));
}

// A start reads its own configuration, and then the first one of the state, which mostly says the
// same: profiles are read and components made once.
TEST(ConfigurationsTest, TwoOfOneContentShareTheirParts) {
  const Configurations configurations("");
  GivenConfiguration given = GivenBy("fifo", "2x2");
  const auto one = configurations.Read(given.Note(), {});
  given = GivenConfiguration::From(one.value()->note).value();
  given.number = 3;
  given.author = "ann";
  given.since = 1e9;
  const auto other = configurations.Read(given.Note(), {});
  EXPECT_EQ(other.value()->owner, one.value()->owner);
  EXPECT_EQ(other.value()->text, one.value()->text);
  EXPECT_EQ(other.value()->number, 3U);
  EXPECT_EQ(other.value()->author, "ann");
  EXPECT_EQ(one.value()->number, 0U);
  given.names.policy = "srtf";
  EXPECT_NE(configurations.Read(given.Note(), {}).value()->owner, one.value()->owner);
}

TEST(ConfigurationsTest, RefusesWhatCannotBe) {
  const Configurations configurations("");
  EXPECT_THAT(configurations.Read(GivenBy("nosuch", "2x2").Note(), {}).error().message,
              HasSubstr("nosuch"));
  GivenConfiguration given = GivenBy("fifo", "2x2");
  given.models = "others";
  EXPECT_THAT(configurations.Read(given.Note(), {}).error().message, HasSubstr("--profiles"));
  given.models = "";
  given.preset = "another text";
  EXPECT_THAT(configurations.Read(given.Note(), {}).error().message, HasSubstr("preset"));
}

// ---------------------------------------------------------------------------------------- profiles

constexpr const char* kSlow = "model,batch_size,gpus,iterations_per_second\nvgg,8,1,1\nvgg,8,2,2\n";
constexpr const char* kFast = "model,batch_size,gpus,iterations_per_second\nvgg,8,1,4\nvgg,8,2,8\n";

double RateOfVgg(const engine::SharedConfiguration& configuration) {
  const int row = configuration->profiles->Find("vgg", 8);
  return configuration->profiles->rows()[static_cast<std::size_t>(row)].Rate(1);
}

class ProfilesTest : public testing::Test {
 protected:
  ProfilesTest() { EXPECT_TRUE(configurations_.KeepIn(store_).ok()); }

  engine::SharedConfiguration First() {
    const Result<GivenProfiles> profiles = configurations_.Take(path_);
    const Result<GivenConfiguration> given = Given({.policy = "fifo"}, "2x4", profiles.value());
    const auto first = configurations_.Read(given.value().Note(), {});
    EXPECT_TRUE(first.ok()) << first.error().message;
    return first.value();
  }
  Result<engine::SharedConfiguration> Apply(const std::string& text,
                                            const engine::Configuration& present) {
    return configurations_.Make({.name = "new.toml", .text = text}, present);
  }
  static std::string WithoutDigest(std::string text) {
    const std::size_t line = text.find("profiles_digest");
    return text.erase(line, text.find('\n', line) + 1 - line);
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.Write("profiles.csv", kSlow);
  store::MemoryStore store_;
  Configurations configurations_{""};
};

TEST_F(ProfilesTest, AStateGoesOnWithItsProfilesWhateverBecomesOfTheFiles) {
  const engine::SharedConfiguration first = First();
  EXPECT_EQ(RateOfVgg(first), 1);
  std::filesystem::remove(path_);
  Configurations later("");
  ASSERT_TRUE(later.KeepIn(store_).ok());
  const auto again = later.Read(first->note, {});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(RateOfVgg(again.value()), 1);
  EXPECT_FALSE(Configurations("").Read(first->note, {}).ok());
}

TEST_F(ProfilesTest, OthersAreAChangeAndTheFormerOnesCanComeBack) {
  const engine::SharedConfiguration first = First();
  (void)scratch_.Write("profiles.csv", kFast);
  const auto same = Apply(first->text, *first);  // the digest says which are meant
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same.value()->changes, "");
  EXPECT_EQ(RateOfVgg(same.value()), 1);
  const auto next = Apply(WithoutDigest(first->text), *first);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next.value()->changes, "profiles of " + path_ + " changed");
  EXPECT_EQ(RateOfVgg(next.value()), 4);
  const auto back = Apply(first->text, *next.value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(RateOfVgg(back.value()), 1);
  const auto none = Apply("policy = 'fifo'\n[[nodes]]\ncount = 2\ngpus = 4\n", *first);
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(none.value()->changes, "profiles " + path_ + ", now none");
  EXPECT_EQ(none.value()->profiles, nullptr);
  const auto nodes = Apply("[[nodes]]\ncount = 3\ngpus = 4\n", *first);
  EXPECT_EQ(nodes.value()->changes, "node n2 added");
  EXPECT_EQ(RateOfVgg(nodes.value()), 1);
}

// What is left stays; from then on the job is as fast as the new profiles say.
TEST_F(ProfilesTest, ARunningJobGoesOnByTheNewOnes) {
  const engine::SharedConfiguration first = First();
  (void)scratch_.Write("profiles.csv", kFast);
  const auto next = Apply(WithoutDigest(first->text), *first);
  ASSERT_TRUE(next.ok()) << next.error().message;
  engine::Engine engine({.configuration = first});
  auto spec = std::make_shared<JobSpec>(
      JobSpec{.name = "job", .model = "vgg", .batch_size = 8, .iterations = 1000});
  first->FindRow(*spec);
  ASSERT_TRUE(first->Bind(*spec).ok());
  ASSERT_TRUE(
      engine.Step({.events = {{.fact = model::fact::Submitted{.job = JobAt(0), .spec = spec}}}})
          .ok());
  ASSERT_TRUE(engine.Step({.now = AtSeconds(100)}).ok());
  const auto left = [&engine](double at) {
    return engine.ProgressOf(JobAt(0), AtSeconds(at)).work_left;
  };
  const double before = left(100);
  EXPECT_NEAR(before, 900, 20);  // it took some time to start
  engine.Reconfigure(next.value());
  EXPECT_DOUBLE_EQ(left(100), before);
  EXPECT_NEAR(left(110), before - 40, 1e-6);
}

// A job that states iterations only runs as long as by the former ones; one that has ended is
// shown.
TEST_F(ProfilesTest, JobsWithIterationsOnlyOutliveTheirProfiles) {
  const engine::SharedConfiguration first = First();
  engine::Engine engine({.configuration = first});
  for (std::size_t i = 0; i < 3; ++i) {
    auto spec = std::make_shared<JobSpec>(JobSpec{.name = "job",
                                                  .model = "vgg",
                                                  .gpus = 1,
                                                  .batch_size = 8,
                                                  .iterations = i == 0 ? 5.0 : 500.0});
    first->FindRow(*spec);
    ASSERT_TRUE(first->Bind(*spec).ok());
    ASSERT_TRUE(
        engine.Step({.events = {{.fact = model::fact::Submitted{.job = JobAt(i), .spec = spec}}}})
            .ok());
  }
  ASSERT_TRUE(
      engine
          .Step({.now = AtSeconds(50),
                 .events = {{.at = AtSeconds(40), .fact = model::fact::Ended{.job = JobAt(0)}}}})
          .ok());
  const double left = engine.ProgressOf(JobAt(1), AtSeconds(50)).work_left;
  (void)scratch_.Write("profiles.csv", "model,batch_size,gpus,iterations_per_second\nbert,8,1,1\n");
  engine::SharedConfiguration present = first;
  for (const std::string& text :
       {WithoutDigest(first->text),
        std::string("policy = 'fifo'\n[[nodes]]\ncount = 2\ngpus = 4\n")}) {
    const auto next = Apply(text, *present);
    ASSERT_TRUE(next.ok()) << next.error().message;
    present = next.value();
    engine.Reconfigure(present);
    EXPECT_NEAR(engine.ProgressOf(JobAt(1), AtSeconds(50)).work_left, left, 1e-6);
    EXPECT_NEAR(engine.ProgressOf(JobAt(1), AtSeconds(60)).work_left, left - 10, 1e-6);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(engine.records()[i].spec->profile_row, -1);
      EXPECT_FALSE(engine.HasOverrun(JobAt(i)));
    }
  }
}

TEST_F(ProfilesTest, WhatCannotBeTakenIsRefused) {
  const engine::SharedConfiguration first = First();
  const auto error = [&](const std::string& keys) {
    const auto made = Apply(keys + "policy = 'fifo'\n[[nodes]]\ngpus = 4\n", *first);
    return made.ok() ? std::string() : made.error().message;
  };
  EXPECT_THAT(error("profiles = '/no/such'\n"), testing::StartsWith("new.toml: /no/such"));
  EXPECT_THAT(error("profiles = '" + path_ + "'\nprofiles_digest = '12'\n"),
              HasSubstr("with the digest 12 are not kept here; expected no profiles_digest"));
  EXPECT_THAT(error("profiles_digest = '12'\n"), testing::StartsWith("new.toml:1: "));
}

// Notes of 0.3.0 say only what digest the tables had.
TEST_F(ProfilesTest, AnEarlyNoteNeedsTheOptionForOneStart) {
  Configurations former(path_);
  GivenConfiguration given = GivenBy("fifo", "2x4");
  scenario::KnownModels models = scenario::KnownModels::Read(path_, given.cluster).value();
  given.models = models.Digest();
  const std::string note = given.Note();
  EXPECT_FALSE(configurations_.Read(note, {}).ok());
  ASSERT_TRUE(former.KeepIn(store_).ok());
  const auto read = former.Read(note, {});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(RateOfVgg(read.value()), 1);
  std::filesystem::remove(path_);
  const auto again = configurations_.Read(note, {});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(RateOfVgg(again.value()), 1);
}

// A controller that takes one step. What it has logged.
std::vector<std::string> OneStep(ControllerOptions options, Status& status) {
  std::vector<std::string> lines;
  options.listen = "127.0.0.1:0";
  options.log = [&lines](const std::string& line) { lines.push_back(line); };
  Mailbox mailbox;
  status = RunController(options, mailbox, [&mailbox](const Ready& /*ready*/) {
    mailbox.Put([&mailbox] { mailbox.Close(); });
  });
  return lines;
}

// Of two nodes under fifo.
ControllerOptions FirstOptions(const ScratchFolder& scratch) {
  ControllerOptions options{.state = scratch.path() + "/state",
                            .cluster = "2x4",
                            .socket = scratch.path() + "/socket",
                            .snapshots = {.entries = 1}};
  options.names.policy = "fifo";
  return options;
}

TEST(StartTest, ARehearsalSaysWhatAStartWouldDoAndDoesNothing) {
  const ScratchFolder scratch;
  ControllerOptions options = FirstOptions(scratch);
  const auto rehearse = [&options](Status& status) {
    std::vector<std::string> lines;
    ControllerOptions asked = options;
    asked.log = [&lines](const std::string& line) { lines.push_back(line); };
    status = RehearseController(asked);
    return lines;
  };
  Status status;
  EXPECT_THAT(rehearse(status), testing::IsEmpty());
  EXPECT_THAT(status.error().message, HasSubstr("there is no state of a controller"));
  static_cast<void>(OneStep(options, status));
  ASSERT_TRUE(status.ok()) << status.error().message;
  const std::string before = io::ReadFile(options.state + "/controller.db").value();
  EXPECT_THAT(rehearse(status),
              ElementsAre(HasSubstr("this program decides the same in all of them"),
                          "these options would change nothing of the configuration in force"));
  options.names.policy = "las";
  options.cluster = "1x4";
  EXPECT_THAT(
      rehearse(status),
      ElementsAre(HasSubstr(" entries of the journal, 0 jobs, "),
                  "these options would change the configuration: policy fifo, now las; node "
                  "n1 removed"));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(io::ReadFile(options.state + "/controller.db").value() == before, true);
  options.live.time_scale = 2;
  static_cast<void>(rehearse(status));
  EXPECT_THAT(status.error().message, HasSubstr("a cluster with time_scale 1.000000, now 2.0"));
}

TEST(StartTest, OtherOptionsAreApplied) {
  const ScratchFolder scratch;
  ControllerOptions options = FirstOptions(scratch);
  Status status;
  EXPECT_THAT(OneStep(options, status), Not(Contains(HasSubstr("configuration"))));
  ASSERT_TRUE(status.ok()) << status.error().message;
  options.names.policy = "srtf";
  options.cluster = "3x4";
  EXPECT_THAT(OneStep(options, status), Contains("configuration 1, by the options of this start: "
                                                 "policy fifo, now srtf; node n2 added"));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_THAT(OneStep(options, status), Not(Contains(HasSubstr("configuration"))));
  ASSERT_TRUE(status.ok()) << status.error().message;
  options.cluster = "2x4";
  EXPECT_THAT(OneStep(options, status),
              Contains("configuration 2, by the options of this start: node n2 removed"));
  options.live.time_scale = 2;
  static_cast<void>(OneStep(options, status));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              HasSubstr("a cluster with time_scale 1.000000, now 2.000000; expected"));
  options.live.time_scale = 1;
  options.names.policy = "nosuch";
  static_cast<void>(OneStep(options, status));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("nosuch"));
}

}  // namespace
}  // namespace trainyard::daemon
