// SPDX-License-Identifier: Apache-2.0
// A live cluster whose configuration changes: nodes and policy, also over restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/try.h"
#include "live/controller.h"
#include "profile/execution_model.h"
#include "support/lowest_node.h"
#include "support/opened_controller.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

// By the time of submission, the earliest or the latest first.
class ByArrival final : public Ordering {
 public:
  explicit ByArrival(bool latest) : latest_(latest) {}
  [[nodiscard]] std::string_view name() const override { return "by-arrival"; }
  [[nodiscard]] OrderingTraits traits() const override { return {.walk = {.preempt = false}}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {(latest_ ? -1 : 1) * Seconds(job.spec->submit)}};
  }

 private:
  const bool latest_;
};

// Configurations by their notes.
class Known final : public engine::ConfigurationSource {
 public:
  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& /*present*/) const override {
    const auto known = all.find(std::string(note));
    return known == all.end() ? Result<engine::SharedConfiguration>(
                                    BadInput("'" + std::string(note) + "' is no configuration"))
                              : known->second;
  }
  // The text is the note of one of them.
  [[nodiscard]] Result<engine::SharedConfiguration> Make(
      const engine::AskedConfiguration& asked,
      const engine::Configuration& present) const override {
    ASSIGN_OR_RETURN(const engine::SharedConfiguration known, Read(asked.text, present));
    engine::Configuration made = *known;
    made.number = present.number + 1;
    made.note = asked.text + " as number " + std::to_string(made.number);
    made.text = asked.text;
    made.author = asked.author;
    made.changes = present.text == asked.text ? "" : "now " + asked.text;
    return all[made.note] = engine::Share(engine::Configuration(made));
  }
  mutable std::map<std::string, engine::SharedConfiguration> all;
};

// Two nodes with two GPUs each at first.
class LiveConfigurationTest : public OpenedController {
 protected:
  LiveConfigurationTest() {
    cluster_.nodes = {{.name = "a", .gpus = 2}, {.name = "b", .gpus = 2}};
    first_ = Add("first", earliest_);
    Open();
    Hear(10, HelloOf("a"));
    Hear(11, HelloOf("b"));
  }
  ~LiveConfigurationTest() override { controller_.reset(); }

  [[nodiscard]] ControllerSetup SetUpOf() override {
    return {.engine = {.configuration = first_,
                       .measured = profile::MeasuredBook(),
                       .configurations = &known_},
            .live = {.heartbeat = seconds(5),
                     .lease = seconds(60),
                     .grace = seconds(10),
                     .margin = seconds(5),
                     .open_nodes = open_nodes_,
                     .epoch = 1},
            .snapshots = snapshots_};
  }
  // With the nodes as they are in `cluster_`.
  engine::SharedConfiguration Add(const std::string& note, const Ordering& ordering) {
    model::Rules rules;
    rules.debt.charge = model::Debt::Charge::kNone;
    return known_.all[note] = engine::Share({.number = known_.all.size(),
                                             .note = note,
                                             .rules = rules,
                                             .cluster = cluster_,
                                             .bundle = {.ordering = &ordering,
                                                        .placement = &placement_,
                                                        .admission = &everyone_},
                                             .rates = rates_.get(),
                                             .policy = note});
  }
  void Change(const std::string& note) {
    const Status status = controller_->world().OnConfiguration(note);
    ASSERT_TRUE(status.ok()) << status.error().message;
    Step();
  }
  std::uint64_t Submit(int gpus) {
    v1::ClientRequest request;
    request.mutable_submit()->mutable_job()->set_gpus(gpus);
    request.mutable_submit()->mutable_job()->mutable_launch()->add_command("train");
    Step(seconds(1));
    return Call(request).submit().job();
  }
  // Starts what has come to hold GPUs there.
  void Run(std::uint64_t connection, std::uint64_t job, std::uint32_t attempt = 1) {
    Tell(connection, Report(job, attempt, v1::AttemptReport::RUNNING));
  }
  static v1::ClientRequest Asking(const std::string& text) {
    v1::ClientRequest request;
    request.mutable_configure()->set_text(text);
    return request;
  }
  v1::ConfigurationReply Shown(bool history) {
    v1::ClientRequest request;
    request.mutable_configuration()->set_history(history);
    return Call(request).configuration();
  }
  v1::JobState StateOf(std::uint64_t job) { return controller_->world().StateOf(JobAt(job - 1)); }
  std::string NodesShown() {
    v1::ClientRequest request;
    request.mutable_nodes();
    std::string shown;
    const v1::ClientReply reply = Call(request);
    for (const v1::NodeStatus& node : reply.nodes().nodes()) {
      shown += node.node() + (node.up() ? " " : "- ");
    }
    return shown + reply.nodes().policy();
  }

  const ByArrival earliest_{false};
  const ByArrival latest_{true};
  const LowestNode placement_{};
  const std::unique_ptr<ExecutionModel> rates_ = profile::MakeMixedModel(nullptr);
  Cluster cluster_;
  std::size_t open_nodes_ = 0;
  Known known_;
  engine::SharedConfiguration first_;
};

TEST_F(LiveConfigurationTest, ANodeThatIsAddedMayJoinAndGetsJobs) {
  for (const std::uint64_t job : {Submit(2), Submit(2), Submit(2)}) {
    Run(job == 1 ? 10 : 11, job);
  }
  EXPECT_EQ(StateOf(3), v1::WAITING);
  Hear(12, HelloOf("c"));
  EXPECT_TRUE(said_.messages[12].back().has_refusal());
  cluster_.nodes.push_back({.name = "c", .gpus = 2});
  Add("three", earliest_);
  Change("three");
  EXPECT_EQ(NodesShown(), "a b c- three");
  EXPECT_EQ(StateOf(3), v1::WAITING);
  Hear(13, HelloOf("c"));
  EXPECT_EQ(NodesShown(), "a b c three");
  EXPECT_EQ(StateOf(3), v1::STARTING);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(2), v1::RUNNING);
}

TEST_F(LiveConfigurationTest, ANodeThatIsRemovedStopsItsJobsWhichGoOnElsewhere) {
  Run(10, Submit(2));
  cluster_.nodes[0].gpus = 0;
  Add("without a", earliest_);
  Change("without a");
  EXPECT_TRUE(said_.messages[10].back().has_stop());
  EXPECT_EQ(NodesShown(), "a b without a");  // as long as the job is leaving
  EXPECT_EQ(StateOf(1), v1::STARTING);       // on b
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 1));
  EXPECT_EQ(NodesShown(), "b without a");
  EXPECT_TRUE(said_.messages[11].back().has_start());
  Hear(14, HelloOf("a"));
  EXPECT_TRUE(said_.messages[14].back().has_refusal());
  cluster_.nodes[0].gpus = 4;  // it comes back, with more GPUs
  Add("with another a", earliest_);
  Change("with another a");
  Hear(15, HelloOf("a", {}, 4));
  EXPECT_EQ(NodesShown(), "a b with another a");
}

TEST_F(LiveConfigurationTest, AnotherPolicyKeepsWhatRunsAndServesTheQueueInItsOrder) {
  for (int i = 0; i < 4; ++i) {
    Submit(2);
  }
  Run(10, 1);
  Run(11, 2);
  Add("latest first", latest_);
  Change("latest first");
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(2), v1::RUNNING);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(4), v1::STARTING);
  EXPECT_EQ(StateOf(3), v1::WAITING);
}

// Node a is "short", for an hour at most, and the default one; node b is "long".
std::vector<Partition> ShortAndLong() {
  return {{.name = "short",
           .has_all_nodes = false,
           .nodes = {"a"},
           .is_default = true,
           .most_gpus = 2,
           .longest = std::chrono::hours(1)},
          {.name = "long", .has_all_nodes = false, .nodes = {"b"}}};
}

class PartitionsTest : public LiveConfigurationTest {
 protected:
  PartitionsTest() {
    cluster_.partitions = ShortAndLong();
    Add("parted", earliest_);
  }
  v1::ClientReply SubmitTo(const std::string& queue, int gpus,
                           std::optional<double> time_s = std::nullopt,
                           const std::string& token = "") {
    v1::ClientRequest request;
    request.mutable_submit()->set_client_token(token);
    v1::JobRequest& job = *request.mutable_submit()->mutable_job();
    job.set_queue(queue);
    job.set_gpus(gpus);
    job.mutable_launch()->add_command("train");
    if (time_s) {
      job.set_time_s(*time_s);
    }
    Step(seconds(1));
    return Call(request);
  }
  v1::JobStatus StatusOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1));
  }
  v1::ClientReply Move(std::uint64_t job, const std::string& queue) {
    v1::ClientRequest request;
    request.mutable_update()->set_job(job);
    request.mutable_update()->add_fields("queue");
    request.mutable_update()->mutable_values()->set_queue(queue);
    return Call(request);
  }
};

TEST_F(PartitionsTest, AJobThatNamesNoQueueIsInTheDefaultOneWithItsTimeLimit) {
  Change("parted");
  EXPECT_EQ(SubmitTo("", 1, std::nullopt, "once").submit().job(), 1U);
  EXPECT_EQ(StatusOf(1).request().queue(), "short");
  EXPECT_EQ(StatusOf(1).request().time_s(), 3600);
  EXPECT_EQ(SubmitTo("", 1, std::nullopt, "once").submit().job(), 1U);  // the same again
  EXPECT_EQ(SubmitTo("long", 2).submit().job(), 2U);
  EXPECT_FALSE(StatusOf(2).request().has_time_s());
  EXPECT_EQ(said_.messages[10].back().start().id().job(), 1U);
  EXPECT_EQ(said_.messages[11].back().start().id().job(), 2U);
}

TEST_F(PartitionsTest, OfSeveralPartitionsAJobGetsTheFirstThatTakesIt) {
  Change("parted");
  EXPECT_EQ(SubmitTo("short,long", 1, 60).submit().job(), 1U);
  EXPECT_EQ(StatusOf(1).request().queue(), "short");
  EXPECT_EQ(SubmitTo("short,long", 1, 7200, "once").submit().job(), 2U) << "too long for the first";
  EXPECT_EQ(StatusOf(2).request().queue(), "long");
  EXPECT_EQ(SubmitTo("short,long", 1, 7200, "once").submit().job(), 2U) << "the same again";
  EXPECT_EQ(SubmitTo("long,short", 1, 60).submit().job(), 3U);
  EXPECT_EQ(StatusOf(3).request().queue(), "long");
  EXPECT_EQ(SubmitTo("short,other", 1, 7200).error().message(),
            SubmitTo("short", 1, 7200).error().message());
}

TEST_F(PartitionsTest, AJobThatStatesNoCpusAsksForThoseOfItsPartition) {
  cluster_.partitions[1].default_cpus = {.milli = 2000, .per = Per::kGpu};
  Add("with-cpus", earliest_);
  Change("with-cpus");
  const v1::ClientReply submitted = SubmitTo("long", 2, std::nullopt, "once");
  EXPECT_EQ(submitted.submit().job(), 1U) << submitted.error().message();
  EXPECT_EQ(StatusOf(1).request().cpus(), "2/gpu");
  EXPECT_EQ(StatusOf(1).request().memory(), "");
  EXPECT_EQ(SubmitTo("long", 2, std::nullopt, "once").submit().job(), 1U);
  SubmitTo("short", 2);
  EXPECT_EQ(StatusOf(2).request().cpus(), "");
}

TEST_F(PartitionsTest, WhatAPartitionDoesNotGiveIsRefused) {
  Change("parted");
  EXPECT_EQ(SubmitTo("middle", 1).error().message(),
            "there is no partition 'middle'; expected a queue that is one of: short, long");
  EXPECT_EQ(SubmitTo("short", 3).error().message(),
            "it asks for 3 GPUs; partition 'short' gives a job at most 2");
  EXPECT_EQ(SubmitTo("", 1, 7200).error().message(),
            "its time limit is 2h00m; partition 'short' gives a job at most 1h00m");
}

TEST_F(PartitionsTest, AJobWaitsForItsOwnNodesAndSaysSo) {
  Change("parted");
  for (int i = 0; i < 2; ++i) {
    SubmitTo("long", 2);
  }
  EXPECT_EQ(StateOf(2), v1::WAITING);
  EXPECT_THAT(StatusOf(2).reason(),
              testing::HasSubstr("not enough free GPUs of partition 'long': 0 of 2 free"));
  SubmitTo("short", 2);  // strict order: node a is of no use to job 2
  EXPECT_EQ(StateOf(3), v1::STARTING);
  EXPECT_EQ(Move(3, "long").error().message(),
            "job 3 is starting, and another partition has other nodes; expected a job that waits");
  Run(11, 1);
  EXPECT_TRUE(Move(2, "short").has_update());
  EXPECT_EQ(StatusOf(2).request().time_s(), 3600);
  Run(10, 3);
  Tell(10, Report(3, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(2), v1::STARTING);
}

// A node leaves the partition of a job that runs there: the job runs on until it ends, and others
// of its partition get nothing there.
TEST_F(PartitionsTest, JobsRunOnWhereTheirPartitionIsNoLonger) {
  Change("parted");
  Run(11, SubmitTo("long", 1).submit().job());
  Run(10, SubmitTo("short", 2).submit().job());
  cluster_.partitions[0].nodes = {"b"};
  cluster_.partitions[1].nodes = {"a"};
  Add("swapped", earliest_);
  Change("swapped");
  SubmitTo("long", 1);
  SubmitTo("short", 1);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(2), v1::RUNNING);
  EXPECT_EQ(StateOf(3), v1::WAITING);
  EXPECT_EQ(StateOf(4), v1::STARTING);  // beside job 1
  EXPECT_EQ(StatusOf(1).reason(), "runs until it ends, outside its partition 'long'");
  for (const std::uint64_t entries : {1U, 1000U}) {
    snapshots_.entries = entries;
    Open();
    Hear(20 + entries, HelloOf("a", {Report(2, 1, v1::AttemptReport::RUNNING)}));
    Hear(30 + entries, HelloOf("b", {Report(1, 1, v1::AttemptReport::RUNNING),
                                     Report(4, 1, v1::AttemptReport::RUNNING)}));
    EXPECT_EQ(StateOf(1), v1::RUNNING);
    EXPECT_EQ(StateOf(3), v1::WAITING);
  }
  Tell(1020, Report(2, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(3), v1::STARTING);
}

TEST_F(PartitionsTest, ARehearsalNamesJobsThatNoDecisionTouches) {
  Change("parted");
  Run(11, SubmitTo("long", 2).submit().job());
  Run(10, SubmitTo("short", 2).submit().job());
  SubmitTo("long", 2);
  SubmitTo("short", 1);
  const auto remarks = [this](const std::string& note) {
    v1::ClientRequest request = Asking(note);
    request.mutable_configure()->set_rehearse(true);
    std::string text;
    const v1::ClientReply reply = Call(request);
    for (const v1::JobEffect& effect : reply.configure().effects()) {
      text += std::to_string(effect.job()) + " " + effect.remark() + "; ";
    }
    return text;
  };
  cluster_.partitions[0].nodes = {"a", "b"};
  cluster_.partitions[1].nodes = {};
  Add("long is empty", earliest_);
  EXPECT_EQ(
      remarks("long is empty"),
      "1 runs on until it ends, outside its partition 'long'; "
      "3 could not start any more: it asks for 2 GPUs, and the nodes that it may have are left "
      "with 0; ");
  cluster_.partitions.pop_back();
  Add("without long", earliest_);
  EXPECT_EQ(
      remarks("without long"),
      "3 waits on, in the default partition 'short': there is no partition 'long' any more; ");
  Change("long is empty");
  EXPECT_EQ(StatusOf(3).reason(),
            "cannot start: it asks for 2 GPUs of partition 'long', and there are 0");
  Change("without long");
  EXPECT_EQ(StatusOf(1).reason(), "");  // its node is in the default one
}

TEST_F(PartitionsTest, NodesSayInWhichTheyAre) {
  Change("parted");
  v1::ClientRequest request;
  request.mutable_nodes();
  const v1::NodesReply nodes = Call(request).nodes();
  ASSERT_EQ(nodes.partitions_size(), 2);
  EXPECT_TRUE(nodes.partitions(0).is_default());
  EXPECT_EQ(nodes.partitions(0).max_time_s(), 3600);
  EXPECT_THAT(nodes.nodes(1).partitions(), testing::ElementsAre("long"));
}

// Open() compares what the last snapshot and the rest of the journal give with the whole journal.
TEST_F(LiveConfigurationTest, ARestartGoesOnWithTheLastConfiguration) {
  for (const std::uint64_t entries : {1U, 2U, 1000U}) {
    snapshots_.entries = entries;
    Submit(2);
    cluster_.nodes.push_back({.name = "n" + std::to_string(entries), .gpus = 2});
    const std::string note = "with " + std::to_string(cluster_.nodes.size());
    Add(note, entries == 2 ? latest_ : earliest_);
    Change(note);
    Hear(20 + entries, HelloOf("n" + std::to_string(entries)));
    const std::string shown = NodesShown();
    Submit(1);
    Open();
    EXPECT_EQ(controller_->engine().configuration().note, note);
    EXPECT_EQ(NodesShown(), shown);
  }
  snapshots_.compact = true;
  Submit(1);
  Open();
  EXPECT_EQ(controller_->engine().configuration().note, "with 5");
}

// Two jobs run, a third one waits; "latest first" with another node c.
class ConfigureTest : public LiveConfigurationTest {
 protected:
  ConfigureTest() {
    for (int i = 0; i < 3; ++i) {
      Submit(2);
    }
    Run(10, 1);
    Run(11, 2);
    cluster_.nodes.push_back({.name = "c", .gpus = 2});
    Add("latest first", latest_);
    cluster_.nodes[0].gpus = 0;
    Add("without a", earliest_);
  }
};

TEST_F(ConfigureTest, ARehearsalSaysWhatWouldBecomeOfJobsAndChangesNothing) {
  const std::string digest = controller_->digest();
  const std::string state = controller_->StateDigest();
  v1::ClientRequest request = Asking("without a");
  request.mutable_configure()->set_rehearse(true);
  const v1::ClientReply answer = Call(request);
  ASSERT_TRUE(answer.has_configure()) << answer.error().message();
  const v1::ConfigureReply& reply = answer.configure();
  EXPECT_EQ(reply.number(), 0U);
  EXPECT_EQ(reply.changes(), "now without a");
  ASSERT_EQ(reply.effects_size(), 1);
  EXPECT_EQ(reply.effects(0).job(), 1U);
  EXPECT_EQ(reply.effects(0).gpus_before(), 2);
  EXPECT_EQ(reply.effects(0).nodes_before(0), "a");
  EXPECT_EQ(reply.effects(0).gpus_after(), 0);
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(controller_->StateDigest(), state);
  EXPECT_EQ(NodesShown(), "a b first");
}

TEST_F(ConfigureTest, AnAdminPutsAnotherOneInForceAndAllAreRemembered) {
  Hear(12, HelloOf("c"));  // refused: there is no such node yet
  EXPECT_EQ(Call(As(Asking("latest first"), 1001, v1::Caller::OPERATOR)).error().message(),
            "user1001 (uid 1001) may not change the configuration; expected an admin");
  const v1::ConfigureReply reply =
      Call(As(Asking("latest first"), 0, v1::Caller::ADMIN)).configure();
  EXPECT_EQ(reply.number(), 1U);
  EXPECT_TRUE(reply.effects().empty());
  EXPECT_EQ(NodesShown(), "a b c- latest first");
  Hear(13, HelloOf("c"));
  EXPECT_EQ(StateOf(3), v1::STARTING);
  v1::ClientRequest late = Asking("without a");
  late.mutable_configure()->set_expected(0);
  EXPECT_EQ(Call(late).error().message().find("configuration 1 is in force by now, since"), 0U);
  EXPECT_EQ(Call(Asking("latest first")).configure().changes(), "");
  Call(Asking("without a"));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  Open();
  const v1::ConfigurationReply shown = Shown(true);
  ASSERT_EQ(shown.history_size(), 3);
  EXPECT_EQ(shown.history(0).number(), 0U);
  EXPECT_EQ(shown.history(1).author(), "user0 (uid 0, admin)");
  EXPECT_EQ(shown.history(2).changes(), "now without a");
  EXPECT_EQ(shown.text(), "without a");
  v1::ClientRequest past;
  past.mutable_configuration()->set_number(1);
  EXPECT_EQ(Call(past).configuration().text(), "latest first");
  past.mutable_configuration()->set_number(9);
  EXPECT_EQ(Call(past).error().code(), 5U);
  EXPECT_EQ(Shown(false).history_size(), 0);
}

// The text that it makes is that of a known one here.
TEST_F(LiveConfigurationTest, UnknownAgentsJoinAnOpenCluster) {
  Hear(12, HelloOf("c"));
  EXPECT_EQ(said_.messages[12].back().refusal().message(),
            "node 'c' is not in the controller's cluster; 'trainyard node add' adds it");
  open_nodes_ = 3;
  Open();
  Hear(10, HelloOf("a"));
  Hear(11, HelloOf("b"));
  cluster_.nodes.push_back({.name = "c", .gpus = 2});
  Add("\n[[nodes]]\nhost = 'c'\ngpus = 2\n", earliest_);
  v1::AgentMessage other = HelloOf("c");
  other.mutable_hello()->set_protocol(2);
  Hear(12, other);
  EXPECT_EQ(said_.messages[12].back().refusal().message(),
            "the agent speaks protocol 2; expected 1");
  EXPECT_EQ(controller_->engine().cluster().nodes.size(), 2U) << "one that may not join adds none";
  Hear(13, HelloOf("c"));
  EXPECT_TRUE(said_.messages[13].front().has_welcome());
  EXPECT_EQ(controller_->engine().cluster().nodes.size(), 3U);
  for (std::uint64_t job = 1; job <= 3; ++job) {
    EXPECT_EQ(Submit(2), job);
    EXPECT_EQ(StateOf(job), v1::STARTING);
  }
  Hear(14, HelloOf("d"));
  EXPECT_EQ(said_.messages[14].back().refusal().message(),
            "node 'd' is not in the controller's cluster, which has all 3 nodes of --open-nodes");
  Open();
  EXPECT_EQ(controller_->engine().cluster().nodes.size(), 3U);
}

// As an agent is that has been there all the time.
TEST_F(ConfigureTest, ANodeThatComesBackServesAtOnce) {
  Call(Asking("without a"));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(StateOf(1), v1::WAITING);
  Call(Asking("latest first"));
  EXPECT_EQ(NodesShown(), "a b c- latest first");
  EXPECT_EQ(StateOf(3), v1::STARTING);
}

// Until its agent has been started with the new number.
TEST_F(ConfigureTest, ANodeWithAnotherNumberOfGpusSaysWhyItGetsNoJobs) {
  cluster_.nodes[0].gpus = 2;
  cluster_.nodes[1].gpus = 4;
  Add("larger b", earliest_);
  const v1::ConfigureReply reply = Call(Asking("larger b")).configure();
  ASSERT_EQ(reply.agents_to_restart_size(), 1);
  EXPECT_EQ(reply.agents_to_restart(0), "b");
  const std::vector<v1::NodeStatus> nodes = controller_->world().NodeStatuses();
  EXPECT_EQ(nodes[0].agent_gpus(), 0);
  EXPECT_EQ(nodes[1].agent_gpus(), 2);
  Tell(11, Report(2, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_NE(controller_->world().StatusOf(JobAt(2)).reason().find("with another number of GPUs: b"),
            std::string::npos)
      << controller_->world().StatusOf(JobAt(2)).reason();
  v1::ClientRequest history;
  history.mutable_jobs()->add_jobs(2);
  history.mutable_jobs()->set_history(true);
  const v1::JobsReply lost = Call(history).jobs();
  EXPECT_NE(lost.ShortDebugString().find("by: \"configuration 1\""), std::string::npos)
      << lost.ShortDebugString();
  Hear(20, HelloOf("b", {}, 4));
  EXPECT_EQ(controller_->world().NodeStatuses()[1].agent_gpus(), 0);
  EXPECT_EQ(StateOf(3), v1::STARTING);
}

// A restart of the controller must not make it wait for the lease of a node that has gone.
TEST_F(ConfigureTest, TheAgentOfARemovedNodeSaysThatItsJobsHaveLeft) {
  Call(Asking("without a"));
  Open();
  Hear(21, HelloOf("a"));  // the job has left meanwhile
  EXPECT_TRUE(said_.messages[21].front().has_welcome());
  EXPECT_EQ(StateOf(1), v1::WAITING);
  EXPECT_EQ(NodesShown(), "b c- without a");
  controller_->world().OnAgentGone(21);
  Step();
  Hear(22, HelloOf("a"));
  EXPECT_EQ(said_.messages[22].front().refusal().message(),
            "node 'a' has been removed from the cluster");
}

TEST_F(ConfigureTest, ANodeThatHasBeenRemovedIsNoneToDrain) {
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  EXPECT_TRUE(Call(drain).drain().status().drained());
  Call(Asking("without a"));
  EXPECT_EQ(Call(drain).error().message(), "there is no node 'a'");
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  Call(Asking("latest first"));
  EXPECT_FALSE(controller_->world().NodeStatuses()[0].drained()) << "it comes back as a new one";
  EXPECT_EQ(StateOf(3), v1::STARTING);
}

TEST_F(ConfigureTest, WhatCannotBeIsRefusedWhole) {
  const std::string digest = controller_->digest();
  EXPECT_EQ(Call(Asking("nonsense")).error().message(), "'nonsense' is no configuration");
  EXPECT_EQ(Call(Asking(std::string((16 << 20) + 1, ' '))).error().code(), 3U);
  EXPECT_EQ(controller_->digest(), digest);
}

TEST_F(LiveConfigurationTest, WhatIsNoConfigurationChangesNothing) {
  EXPECT_EQ(controller_->world().OnConfiguration("nonsense").error().message,
            "'nonsense' is no configuration");
  Step();
  EXPECT_EQ(NodesShown(), "a b first");
}

}  // namespace
}  // namespace trainyard::live
