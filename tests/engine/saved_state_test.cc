// SPDX-License-Identifier: Apache-2.0
// An engine that was saved and resumed in the middle of a run, and a fork of it, are the one that
// was never interrupted: every later decision is the same, and so is every byte of its state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "base/earlier.h"
#include "catalog/catalog.h"
#include "engine_tests/harness.h"
#include "engine_tests/random_profiles.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

struct Case {
  std::string policy;
  std::string placement = "consolidated";
  std::string admission = "all";
  std::string grouping{};
  bool elastic = false;  // jobs with profiles
  std::optional<Walk> walk{};
  bool rounds = false;
  bool several_types = false;
  bool fails = true;  // nodes come and go
  bool measured = false;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.policy << " on " << one.placement << " " << one.grouping
       << (one.measured ? " measured" : "");
}

std::vector<StageTimes> Kinds() {
  return {{.iteration = 0.5, .stages = {0.42, 0.05, 0.03}},
          {.iteration = 0.4, .stages = {0.02, 0.35, 0.03}},
          {.iteration = 0.6, .stages = {0.2, 0.25, 0.15}}};
}

// When it may start, and how long it may run.
void AddTerms(JobTraits& traits, TimePoint submit, std::mt19937& random) {
  switch (random() % 8) {
    case 0:
      traits.begin = submit + FromSeconds(static_cast<double>(random() % 400));
      break;
    case 1:
      traits.time_limit = FromSeconds(static_cast<double>(random() % 400 + 1));
      break;
    case 2:
      traits.dependency = "afterok:1?singleton";
      break;
    case 3:
      traits.dependency = "afternotok:" + std::to_string(random() % 20 + 1);
      break;
    default:
      break;
  }
}

// Some state stages, some data sets, some how urgent they are.
std::vector<JobSpec> Varied(std::vector<JobSpec> jobs, unsigned seed, bool elastic) {
  std::mt19937 random(seed);
  for (JobSpec& job : jobs) {
    JobTraits traits;
    if (!elastic && random() % 8 != 0) {
      traits.stages = Kinds()[random() % 3];
    }
    if (random() % 2 == 0) {
      const std::string name = "set" + std::to_string(random() % 6);
      traits.data_set = DataSet{.name = name, .mib = 20'000};
    }
    if (job.deadline && random() % 2 == 0) {
      traits.deadlines = {{*job.deadline, 5}, {*job.deadline + FromSeconds(300), 1}};
    }
    job.priority = static_cast<int>(random() % 2);
    const auto submit = static_cast<std::size_t>(job.submit.time_since_epoch().count());
    job.queue = std::vector<std::string>{"", "long", "debug"}[submit % 3];
    if (!elastic) {
      AddTerms(traits, job.submit, random);
    }
    job.traits = std::make_shared<const JobTraits>(std::move(traits));
  }
  return jobs;
}

class SavedState : public testing::TestWithParam<Case> {
 protected:
  TestRun Run(unsigned seed) {
    const Case& one = GetParam();
    profiles_ = std::make_unique<RandomProfiles>(seed);
    TestRun run{
        .jobs = Varied(
            one.elastic ? JobsWithDeadlines(seed, 100, *profiles_) : RandomJobs(seed, 120, 4), seed,
            one.elastic),
        .cluster = MakeCluster(3, 4),
        .policy = one.policy,
        .grouping = one.grouping,
        .placement = one.placement,
        .admission = one.admission,
        .walk = one.walk,
        .rates = one.elastic ? static_cast<const ExecutionModel*>(profiles_.get()) : mixed_.get()};
    run.rules.debt = {};
    run.overheads = SecondsOfOverhead();
    run.measure_seed = one.measured ? seed : 0;
    for (JobSpec& job : run.jobs) {
      job.model = "model-" + std::to_string(job.profile_row);
    }
    if (one.rounds) {
      run.rules.clock = {.mode = model::ClockRules::Mode::kRounds, .length = FromSeconds(30)};
    }
    Cluster& cluster = run.cluster;
    cluster.checkpoint_interval = FromSeconds(60);
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      cluster.nodes[i].cache_mib = 50'000;
      cluster.nodes[i].remote_kbps = 1'048'576;
      cluster.nodes[i].capacity = {.milli_cpus = 32'000, .memory_mib = 256'000};
      if (one.several_types) {
        cluster.nodes[i].gpu_type = i == 0 ? "A100" : "V100";
      }
    }
    for (int i = 0; one.fails && i < 12; ++i) {
      const NodeId node = NodeAt(static_cast<std::size_t>(i % 3));
      const bool finish = i % 4 != 0;
      cluster.changes.push_back({AtSeconds(100 + 170 * i), node, false,
                                 finish ? NodeChange::How::kFinish : NodeChange::How::kFails});
      if (i % 4 == 1) {
        cluster.changes.push_back({AtSeconds(140 + 170 * i), node, false});
      } else if (i % 4 == 2) {  // two at a time
        const NodeId next = NodeAt(static_cast<std::size_t>((i + 1) % 3));
        cluster.changes.push_back(
            {AtSeconds(130 + 170 * i), next, false, NodeChange::How::kFinish});
        cluster.changes.push_back({AtSeconds(170 + 170 * i), next, true});
      }
      cluster.changes.push_back({AtSeconds(190 + 170 * i), node, true});
    }
    return run;
  }

  std::unique_ptr<RandomProfiles> profiles_;
  const std::unique_ptr<ExecutionModel> mixed_ = profile::MakeMixedModel(nullptr);
};

// Half of the records first, as those of jobs that have ended long ago.
std::string StateOf(engine::Engine& engine) {
  StateStream state;
  std::size_t jobs = engine.records().size();
  state(jobs);
  for (const std::size_t part : {std::size_t{1}, std::size_t{0}}) {
    for (std::size_t i = part; i < jobs; i += 2) {
      engine.SerializeJob(JobAt(i), state);
    }
  }
  engine.Serialize(state);
  engine.SerializeMeasured(state);
  return state.TakeBytes();
}

void Resume(engine::Engine& engine, const std::string& bytes) {
  StateStream state{bytes};
  std::size_t jobs = 0;
  state(jobs);
  for (const std::size_t part : {std::size_t{1}, std::size_t{0}}) {
    for (std::size_t i = part; i < jobs; i += 2) {
      engine.SerializeJob(JobAt(i), state);
    }
  }
  engine.Serialize(state);
  engine.SerializeMeasured(state);
  ASSERT_TRUE(state.complete());
}

struct Step {
  model::Batch batch;
  std::string actions;
  std::optional<TimePoint> wake_after;
};

// The engine does what another one did from `first` on.
void ExpectSame(engine::Engine& engine, const std::vector<Step>& steps, std::size_t first) {
  for (std::size_t i = first; i < steps.size(); ++i) {
    const Result<std::span<const model::Action>> actions = engine.Step(steps[i].batch);
    ASSERT_TRUE(actions.ok()) << actions.error().message;
    ASSERT_EQ(engine::EncodeActions(actions.value()) == steps[i].actions, true)
        << "from step " << first << " on, other actions in " << i;
    ASSERT_EQ(engine.next_wakeup(), steps[i].wake_after) << "step " << i;
  }
}

TEST_P(SavedState, GoesOnAsIfThereHadBeenNoBreak) {
  std::size_t resumed = 0;
  for (unsigned seed = 1; seed <= Rounds(2U); ++seed) {
    const TestRun run = Run(seed);
    const TestResult original = RunTest(run);
    ASSERT_TRUE(original.status.ok()) << original.status.error().message;
    const TestParts parts(run);
    engine::Engine engine(parts.Setup());
    std::mt19937 random(seed);
    std::vector<Step> steps;
    struct Saved {
      std::string bytes;
      std::unique_ptr<engine::Engine> fork;
    };
    std::map<std::size_t, Saved> saved;  // by number of steps before
    engine::ReplayWorld world(original.journal);
    for (model::Batch batch = world.Next({}); !batch.done; batch = world.Next({})) {
      if (random() % 40 == 0 && saved.size() < Rounds(60U)) {
        saved[steps.size()] = {StateOf(engine), engine.Fork()};
      }
      const Result<std::span<const model::Action>> actions = engine.Step(batch);
      ASSERT_TRUE(actions.ok()) << actions.error().message;
      ASSERT_TRUE(world.Perform(batch.now, actions.value()).ok());
      steps.push_back({batch, engine::EncodeActions(actions.value()), engine.next_wakeup()});
    }
    const std::string end = StateOf(engine);
    for (const auto& [first, then] : saved) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", saved before step " + std::to_string(first));
      ASSERT_EQ(StateOf(*then.fork) == then.bytes, true) << "a fork has another state";
      engine::Engine other(parts.Setup());
      Resume(other, then.bytes);
      ASSERT_EQ(StateOf(other) == then.bytes, true) << "saved again it differs";
      for (engine::Engine* const later : {&other, then.fork.get()}) {
        ExpectSame(*later, steps, first);
        ASSERT_EQ(StateOf(*later) == end, true) << "another end";
      }
      ++resumed;
    }
  }
  EXPECT_GE(resumed, Rounds(5U));
}

TEST_P(SavedState, WhatIsMeasuredChangesDecisions) {
  if (!GetParam().measured) {
    return;
  }
  TestRun run = Run(1);
  const TestResult measured = RunTest(run);
  ASSERT_TRUE(measured.status.ok()) << measured.status.error().message;
  run.measure_seed = 0;
  EXPECT_NE(RunTest(run).digest, measured.digest);
}

// ---------------------------------------------------------------------------------- cordoned nodes

// The nodes that are up, as the facts say, and the jobs that finish on others.
class Cordons {
 public:
  explicit Cordons(const engine::Engine& engine)
      : engine_(engine), up_(engine.cluster().nodes.size(), true) {}

  // The jobs that hold GPUs before the step, on nodes that stay or come to be cordoned by it.
  void Before(const model::Batch& batch) {
    finishing_.clear();
    std::vector<bool> lost(up_.size(), false);
    for (const model::Event& event : batch.events) {
      if (!event.is_of_node()) {
        continue;
      }
      const std::size_t node = Index(event.node());
      lost[node] = lost[node] || event.kind() == model::EventKind::kNodeDown;
      up_[node] = event.kind() == model::EventKind::kNodeUp;
    }
    for (std::size_t i = 0; i < engine_.records().size(); ++i) {
      const model::JobRecord& job = engine_.records()[i];
      const bool alone = job.grant.group.empty() && job.grant.sharing == Sharing::kExclusive;
      bool stays = false;
      bool loses = false;
      bool named_elsewhere = false;
      for (const Slice& slice : job.grant.slices) {
        stays = stays || !up_[Index(slice.node)];
        loses = loses || lost[Index(slice.node)];
        named_elsewhere = named_elsewhere || up_[Index(slice.node)];
      }
      const bool named = engine_.configuration().bundle.traits().may.name_gpus && named_elsewhere;
      if (stays && alone && !loses && !named) {
        finishing_.insert(JobAt(i));
      }
    }
    finished_ += finishing_.size();
  }

  void After(std::span<const model::Action> actions) {
    for (const model::Action& action : actions) {
      if (action.kind != model::ActionKind::kPace && action.kind != model::ActionKind::kTune) {
        for (const Slice& slice : action.grant.slices) {
          ASSERT_TRUE(up_[Index(slice.node)])
              << "job " << Index(action.job) << " gets GPUs of a node that takes none";
        }
      }
      if (finishing_.contains(action.job)) {
        ASSERT_EQ(action.kind, model::ActionKind::kRelease)
            << "job " << Index(action.job) << " is not left alone";
      }
    }
  }
  [[nodiscard]] std::size_t finished() const { return finished_; }

 private:
  const engine::Engine& engine_;
  std::vector<bool> up_;
  std::set<JobId> finishing_;
  std::size_t finished_ = 0;
};

TEST_P(SavedState, JobsOnCordonedNodesFinishAndOthersGetNoneOfTheirGpus) {
  if (!GetParam().fails || GetParam().placement == "count") {
    return;
  }
  std::size_t finished = 0;
  for (unsigned seed = 1; seed <= 2U; ++seed) {
    const TestRun run = Run(seed);
    const TestParts parts(run);
    engine::Engine engine(parts.Setup());
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                                engine, {.until = AtSeconds(4000)});
    Cordons cordons(engine);
    for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
         batch = world.Next(engine.next_wakeup())) {
      cordons.Before(batch);
      const Result<std::span<const model::Action>> actions = engine.Step(batch);
      ASSERT_TRUE(actions.ok()) << actions.error().message;
      cordons.After(actions.value());
      ASSERT_FALSE(HasFatalFailure()) << "at " << Seconds(batch.now);
    }
    finished += cordons.finished();
  }
  const bool shares = TestParts(Run(1)).Setup().configuration->bundle.traits().may.share;
  EXPECT_TRUE(finished > 0 || shares);
}

// ------------------------------------------------------------------------- another configuration

std::vector<Case> Cases();

// Adds a node, takes one away, or gives it other GPUs, CPUs or another type.
void ChangeANode(Cluster& cluster, bool several_types, std::mt19937& random) {
  NodeSpec& node = cluster.nodes[random() % cluster.nodes.size()];
  switch (random() % 4) {
    case 0: {
      NodeSpec added = cluster.nodes.front();
      added.name = "n" + std::to_string(cluster.nodes.size());
      added.gpus = 4;
      return cluster.nodes.push_back(std::move(added));
    }
    case 1:
      node.gpus = static_cast<int>(random() % 5);
      return;
    case 2:
      node.gpus = 8;
      node.capacity = {.milli_cpus = 64'000, .memory_mib = 512'000};
      return;
    default:
      node.capacity = {.milli_cpus = 16'000, .memory_mib = 200'000};
      node.gpu_type = several_types && random() % 2 == 0 ? "A100" : node.gpu_type;
      return;
  }
}

// Two partitions, of some nodes or of all, or one of them, or none.
void ChangePartitions(Cluster& cluster, std::mt19937& random) {
  cluster.partitions.clear();
  for (const char* const name : {"long", "debug"}) {
    if (random() % 4 == 0) {
      continue;
    }
    Partition& partition = cluster.partitions.emplace_back(
        Partition{.name = name, .has_all_nodes = random() % 3 == 0});
    for (const NodeSpec& node : cluster.nodes) {
      if (!partition.has_all_nodes && random() % 2 == 0) {
        partition.nodes.push_back(node.name);
      }
    }
    partition.is_default = cluster.partitions.size() == 1 && random() % 2 == 0;
  }
}

bool TakesPartitions(const TestRun& run) {
  const TestParts parts(run);
  const scheduler::Bundle bundle = parts.Setup().configuration->bundle;
  return bundle.names_gpus() && bundle.packer == nullptr && bundle.ordering != nullptr &&
         bundle.grouping == nullptr && bundle.traits().needs.gpu_types == TypeSupport::kAny;
}

// The run with another policy, placement, rules, nodes or partitions from some instant on.
TestRun Changed(TestRun run, const Case& one, std::mt19937& random) {
  if (random() % 3 == 0 && TakesPartitions(run)) {
    ChangePartitions(run.cluster, random);
    return run;
  }
  switch (random() % 4) {
    case 0: {
      std::vector<Case> others = Cases();
      // Some policies take GPUs of one type only.
      std::erase_if(others, [&](const Case& other) {
        return other.elastic != one.elastic || (one.several_types && !other.several_types);
      });
      const Case& other = others[random() % others.size()];
      run.policy = other.policy;
      run.placement = other.placement;
      run.admission = other.admission;
      run.grouping = other.grouping;
      run.walk = other.walk;
      if (!TakesPartitions(run)) {
        run.cluster.partitions.clear();
      }
      return run;
    }
    case 1:
      run.rules.preemption.min_runtime = FromSeconds(static_cast<double>(random() % 100));
      run.rules.clock = random() % 2 == 0
                            ? model::ClockRules{}
                            : model::ClockRules{.mode = model::ClockRules::Mode::kRounds,
                                                .length = FromSeconds(40)};
      return run;
    case 2:
      run.overheads = profile::OverheadModel(profile::OverheadTable{
          .fallback = {.start = FromSeconds(1),
                       .restart = FromSeconds(static_cast<double>(random() % 20))},
          .models = {}});
      return run;
    default:
      ChangeANode(run.cluster, one.several_types, random);
      return run;
  }
}

// An engine, and others that have been made since from its records.
class Followed {
 public:
  explicit Followed(engine::Engine& first) : first_(first) {}

  void Step(const model::Batch& batch) {
    const Result<std::span<const model::Action>> actions = first_.Step(batch);
    ASSERT_TRUE(actions.ok()) << actions.error().message;
    const std::string expected = engine::EncodeActions(actions.value());
    ExpectInPartitions(actions.value());
    for (const std::unique_ptr<engine::Engine>& other : others_) {
      const Result<std::span<const model::Action>> same = other->Step(batch);
      ASSERT_TRUE(same.ok()) << same.error().message;
      ASSERT_EQ(engine::EncodeActions(same.value()) == expected, true) << "other actions";
      ASSERT_EQ(other->next_wakeup(), first_.next_wakeup());
    }
  }

  void Reconfigure(const engine::SharedConfiguration& next) {
    std::vector<double> left;
    for (std::size_t i = 0; i < first_.records().size(); ++i) {
      left.push_back(first_.ProgressOf(JobAt(i), first_.now()).work_left);
    }
    const std::size_t known = first_.cluster().nodes.size();
    const engine::SharedConfiguration former = first_.shared_configuration();
    const std::size_t holders = HoldersOfWhole();
    first_.Reconfigure(next);
    if (former->bundle.names_gpus() == next->bundle.names_gpus() &&
        !next->bundle.traits().may.name_gpus &&
        std::equal(former->cluster.nodes.begin(), former->cluster.nodes.end(),
                   next->cluster.nodes.begin(), [](const NodeSpec& was, const NodeSpec& is) {
                     return engine::HasSameGpus(was, is) && was.capacity == is.capacity;
                   })) {
      ASSERT_EQ(HoldersOfWhole(), holders) << "the change itself takes GPUs";
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
      ASSERT_DOUBLE_EQ(first_.ProgressOf(JobAt(i), first_.now()).work_left, left[i]);
    }
    others_.clear();  // they are of the former configuration
    const profile::MeasuredModel* const measured = first_.measured();
    others_.push_back(std::make_unique<engine::Engine>(engine::EngineSetup{
        .configuration = next,
        .measured = measured == nullptr ? std::nullopt : std::optional(measured->book())}));
    Resume(*others_.back(), StateOf(first_));
    others_.push_back(first_.Fork());
    model::Batch batch{.now = first_.now()};
    for (std::size_t i = known; i < next->cluster.nodes.size(); ++i) {
      batch.events.push_back({.at = batch.now, .fact = model::fact::NodeUp{.node = NodeAt(i)}});
    }
    if (!batch.events.empty()) {
      Step(batch);
    }
  }

 private:
  // Whatever a job is given lies on nodes of its partition: of the default one if it has none.
  void ExpectInPartitions(std::span<const model::Action> actions) const {
    const Cluster& cluster = first_.cluster();
    for (const model::Action& action : actions) {
      if (action.grant.gpus == 0 || action.kind == model::ActionKind::kPace) {
        continue;
      }
      const Partition* partition = nullptr;
      for (const Partition& one : cluster.partitions) {
        const bool is_named = one.name == first_.records()[Index(action.job)].spec->queue;
        partition = is_named || (partition == nullptr && one.is_default) ? &one : partition;
        if (is_named) {
          break;
        }
      }
      for (const Slice& slice : action.grant.slices) {
        const std::string& name = cluster.nodes[Index(slice.node)].name;
        ASSERT_TRUE(partition == nullptr || partition->has_all_nodes ||
                    std::count(partition->nodes.begin(), partition->nodes.end(), name) == 1)
            << "job " << Index(action.job) << " is given node " << name;
      }
    }
  }

  // Jobs whose GPUs are theirs alone.
  [[nodiscard]] std::size_t HoldersOfWhole() const {
    return static_cast<std::size_t>(std::count_if(
        first_.records().begin(), first_.records().end(), [](const model::JobRecord& job) {
          return job.grant.gpus > 0 && job.grant.group.empty() &&
                 job.grant.sharing == Sharing::kExclusive;
        }));
  }

  engine::Engine& first_;
  std::vector<std::unique_ptr<engine::Engine>> others_;
};

TEST_P(SavedState, AnotherConfigurationIsTakenAsByAnEngineMadeWithIt) {
  std::size_t taken = 0;
  for (unsigned seed = 1; seed <= Rounds(4U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TestRun run = Run(seed);
    run.cluster.changes.clear();
    std::vector<std::unique_ptr<TestParts>> parts;
    parts.push_back(std::make_unique<TestParts>(run));
    engine::Engine engine(parts.back()->Setup());
    Followed followed(engine);
    world::SimulatedWorld world(std::make_shared<const std::vector<JobSpec>>(run.jobs), run.cluster,
                                engine, {.until = AtSeconds(2500)});
    std::mt19937 random(seed);
    auto left = random() % 12;  // steps before the next change
    for (model::Batch batch = world.Next(engine.next_wakeup()); !batch.done;
         batch = world.Next(engine.next_wakeup())) {
      if (const NodeId node = NodeAt(random() % 3); GetParam().fails && random() % 16 == 0) {
        batch.events.push_back({.at = batch.now, .fact = model::fact::NodeCordoned{.node = node}});
      } else if (GetParam().fails && random() % 8 == 0) {
        batch.events.push_back({.at = batch.now, .fact = model::fact::NodeUp{.node = node}});
      }
      followed.Step(batch);
      if (left-- == 0) {
        left = random() % 50;
        run = Changed(run, GetParam(), random);
        SCOPED_TRACE("at " + std::to_string(Seconds(batch.now)) + " s " + run.policy + " on " +
                     run.placement + " " + run.grouping);
        parts.push_back(std::make_unique<TestParts>(run));
        followed.Reconfigure(parts.back()->Setup().configuration);
        ++taken;
      }
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_GE(taken, Rounds(2U));
}

// ------------------------------------------------------------------- decisions of another program

// Policies that give GPUs in the same form.
bool GivesAlike(const scheduler::Bundle& one, const scheduler::Bundle& other) {
  return one.names_gpus() == other.names_gpus() &&
         one.traits().may.share == other.traits().may.share &&
         one.traits().may.name_gpus == other.traits().may.name_gpus;
}

// The run with a policy that decides otherwise: what another version of the program is like.
TestRun OfAnotherProgram(const TestRun& run, const Case& one, std::mt19937& random) {
  const TestParts parts(run);
  const scheduler::Bundle bundle = parts.Setup().configuration->bundle;
  std::vector<Case> others = Cases();
  std::erase_if(others, [&](const Case& other) {
    return other.elastic != one.elastic || (one.several_types && !other.several_types) ||
           other.policy == one.policy;
  });
  std::shuffle(others.begin(), others.end(), random);  // few of them give as the one does
  for (const Case& other : others) {
    TestRun next = run;
    next.policy = other.policy;
    next.placement = other.placement;
    next.admission = other.admission;
    next.grouping = other.grouping;
    next.walk = other.walk;
    const TestParts next_parts(next);
    if (GivesAlike(bundle, next_parts.Setup().configuration->bundle)) {
      return next;
    }
  }
  return run;
}

// Both go on alike by themselves, with the ends that they foresee.
void ExpectSameFuture(engine::Engine& one, engine::Engine& other) {
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const std::optional<TimePoint> next = base::Earlier(one.next_wakeup(), one.next_end());
    ASSERT_EQ(base::Earlier(other.next_wakeup(), other.next_end()), next);
    if (!next) {
      return;
    }
    const model::Batch batch{.now = *next, .events = one.TakeEnds(*next)};
    ASSERT_EQ(other.TakeEnds(*next).size(), batch.events.size());
    const Result<std::span<const model::Action>> actions = one.Step(batch);
    ASSERT_TRUE(actions.ok()) << actions.error().message;
    const Result<std::span<const model::Action>> same = other.Step(batch);
    ASSERT_TRUE(same.ok()) << same.error().message;
    ASSERT_EQ(engine::EncodeActions(same.value()) == engine::EncodeActions(actions.value()), true)
        << "other actions at " << Seconds(*next);
  }
}

void ExpectSameJobs(const engine::Engine& one, const engine::Engine& other, bool same_progress) {
  for (std::size_t i = 0; i < one.records().size(); ++i) {
    SCOPED_TRACE("job " + std::to_string(i));
    const model::JobRecord& job = one.records()[i];
    ASSERT_EQ(other.records()[i].grant == job.grant, true);
    ASSERT_EQ(other.records()[i].phase.get(), job.phase.get());
    ASSERT_EQ(other.records()[i].preemptions, job.preemptions);
    if (same_progress) {
      const model::Progress progress = one.ProgressOf(JobAt(i), one.now());
      ASSERT_EQ(other.ProgressOf(JobAt(i), one.now()).work_left, progress.work_left);
      ASSERT_EQ(other.ProgressOf(JobAt(i), one.now()).gpu_micros, progress.gpu_micros);
    }
  }
}

// What a journal says was decided is taken as it is, by an engine of the same policy and by one
// that would have decided otherwise; with kUpgraded both decide by themselves.
TEST_P(SavedState, WhatAnotherProgramHasDecidedIsTakenAsItIs) {
  if (GetParam().policy.find("-published") != std::string::npos) {
    return;  // never live
  }
  std::size_t differing = 0;
  const bool credits = GetParam().policy == "gandiva";  // which are in no journal (Demand)
  bool shares = false;
  for (unsigned seed = 1; seed <= Rounds(2U); ++seed) {
    const TestRun run = Run(seed);
    const TestResult original = RunTest(run);
    ASSERT_TRUE(original.status.ok()) << original.status.error().message;
    std::mt19937 random(seed);
    const TestRun other = OfAnotherProgram(run, GetParam(), random);
    const TestParts parts(run);
    const TestParts other_parts(other);
    engine::Engine first(parts.Setup());
    engine::Engine same(parts.Setup());
    engine::Engine differs(other_parts.Setup());
    const scheduler::Bundle& bundle = first.configuration().bundle;
    shares = bundle.traits().may.share;
    engine::ReplayWorld told(original.journal);
    engine::ReplayWorld followed(original.journal, {}, original.journal.size());
    std::size_t left = 100 + random() % 400;  // steps
    for (model::Batch batch = told.Next({}); !batch.done && left > 0; batch = told.Next({})) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " at " + std::to_string(Seconds(batch.now)));
      --left;
      const Result<std::span<const model::Action>> decided = first.Step(batch);
      ASSERT_TRUE(decided.ok() && told.Perform(batch.now, decided.value()).ok());
      const model::Batch recorded = followed.Next({});
      for (engine::Engine* const follower : {&differs, &same}) {
        const Result<std::span<const model::Action>> taken = follower->Step(recorded);
        ASSERT_TRUE(taken.ok()) << taken.error().message;
        ASSERT_EQ(engine::EncodeActions(taken.value()) == engine::EncodeActions(decided.value()),
                  true);
        ExpectSameJobs(first, *follower, !shares && !credits);
        ASSERT_FALSE(HasFatalFailure());
      }
      ASSERT_TRUE(followed.Perform(batch.now, decided.value()).ok());
    }
    const model::Batch upgrade{
        .now = first.now(),
        .events = {{.at = first.now(), .fact = model::fact::Upgraded{.from = "1", .to = "2"}}}};
    for (engine::Engine* const one : {&first, &same, &differs}) {
      const Result<std::span<const model::Action>> step = one->Step(upgrade);
      ASSERT_TRUE(step.ok()) << step.error().message;
    }
    engine::Engine made(other_parts.Setup());
    Resume(made, StateOf(differs));
    ExpectSameFuture(differs, made);
    // How long a job stays may follow from what an ordering remembers, which is in no journal.
    if (!shares && !credits &&
        (bundle.ordering == nullptr || bundle.ordering->NewMemory() == nullptr)) {
      SCOPED_TRACE("the same policy, seed " + std::to_string(seed));
      ExpectSameJobs(first, same, true);
      ExpectSameFuture(first, same);
    }
    ASSERT_FALSE(HasFatalFailure());
    differing += other.policy != run.policy ? 1U : 0U;
  }
  EXPECT_TRUE(differing > 0 || shares || credits || GetParam().elastic);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* policy : {"fifo",
                             "fjf",
                             "backfill",
                             "backfill:order=shortest",
                             "sjf",
                             "srtf",
                             "backfill:reservations=5",
                             "backfill:weight_age=9,weight_job_size=5,weight_priority=2",
                             "srsf",
                             "las",
                             "las:quantum=0",
                             "las:guard=600",
                             "edf",
                             "tiresias",
                             "tiresias:thresholds=300/900,promote=0.5",
                             "themis",
                             "themis:lease=60",
                             "chronus:lease=60",
                             "muri-s",
                             "muri-l"}) {
    cases.push_back({.policy = policy});
    cases.push_back({.policy = policy, .placement = "first-fit", .rounds = true});
  }
  for (const char* policy :
       {"gandiva", "antman", "max-min-fairness:round=60", "water-filling:round=60",
        "finish-time-fairness:round=60", "makespan:round=60", "max-throughput:round=60",
        "isolated:round=60", "fifo-throughput:round=60", "allox:round=60",
        "gandiva-packing:round=60"}) {
    cases.push_back({.policy = policy, .placement = "gandiva"});
  }
  for (const char* policy : {"max-min-fairness:round=60", "finish-time-fairness:round=60"}) {
    cases.push_back({.policy = policy, .placement = "gandiva", .several_types = true});
  }
  for (const char* policy : {"drf", "tetris", "ftf", "synergy-opt", "srtf", "tiresias"}) {
    cases.push_back({.policy = policy, .placement = "synergy"});
    cases.push_back({.policy = policy, .placement = "synergy:mechanism=tune", .rounds = true});
  }
  cases.push_back({.policy = "elasticflow", .admission = "deadline", .elastic = true});
  cases.push_back({.policy = "elastic-edf", .elastic = true});
  cases.push_back({.policy = "optimus", .elastic = true});
  cases.push_back({.policy = "pollux:interval=900", .placement = "gandiva", .elastic = true});
  cases.push_back({.policy = "sia:interval=300", .placement = "gandiva", .elastic = true});
  cases.push_back({.policy = "torchloader", .placement = "gandiva"});
  cases.push_back({.policy = "srtf", .placement = "buddy"});
  cases.push_back({.policy = "tiresias", .walk = Walk{.keep_running = false, .count_first = true}});
  cases.push_back({.policy = "las", .walk = Walk{.former_rank = Walk::FormerRank::kKeys}});
  cases.push_back({.policy = "srtf", .walk = Walk{.misfit = Misfit::kEvictTail}, .rounds = true});
  cases.push_back({.policy = "srtf", .grouping = "interleave"});
  cases.push_back({.policy = "fifo", .grouping = "interleave"});
  cases.push_back({.policy = "las", .several_types = true});
  cases.push_back({.policy = "tiresias", .placement = "first-fit", .several_types = true});
  return cases;
}

// What is measured changes rates, stages and costs in the middle of a run.
std::vector<Case> MeasuredCases() {
  std::vector<Case> cases;
  for (const char* policy : {"fifo", "srtf", "srsf", "las", "tiresias", "themis", "edf", "gandiva",
                             "chronus:lease=60", "muri-s", "muri-l", "antman"}) {
    const bool names = std::string(policy) == "gandiva" || std::string(policy) == "antman";
    cases.push_back({.policy = policy,
                     .placement = names ? "gandiva" : "consolidated",
                     .several_types = cases.size() % 3 == 1 && !names,
                     .measured = true});
  }
  for (const char* policy : {"drf", "tetris", "ftf", "synergy-opt"}) {
    cases.push_back({.policy = policy, .placement = "synergy", .measured = true});
  }
  cases.push_back({.policy = "srtf", .grouping = "interleave", .measured = true});
  cases.push_back(
      {.policy = "elasticflow", .admission = "deadline", .elastic = true, .measured = true});
  for (const char* policy : {"elastic-edf", "optimus", "srtf"}) {
    cases.push_back({.policy = policy, .elastic = true, .measured = true});
  }
  return cases;
}

std::vector<Case> CasesOfOriginals() {
  std::vector<Case> cases;
  cases.push_back({.policy = "elasticflow-published:slot=60",
                   .placement = "buddy-groups",
                   .admission = "deadline",
                   .elastic = true,
                   .walk = Walk{.keep_running = false},
                   .fails = false});
  cases.push_back({.policy = "elastic-edf-published:slot=60", .elastic = true});
  for (const char* plan : {"original", "elasticflow"}) {
    cases.push_back(
        {.policy = std::string("chronus-published:lease=60,unit=1,slot=30,variant=") + plan});
  }
  for (const char* check : {"floor", "ceil", "whole"}) {
    cases.push_back(
        {.policy =
             std::string("tiresias-published:thresholds=30.5/900,promote=0.5,check=") + check});
  }
  for (const char* variant : {"fcfs", "easy", "easy-sjbf", "easy-exact", "conservative"}) {
    cases.push_back({.policy = std::string("backfill-published:variant=") + variant});
  }
  cases.push_back({.policy = "themis-published"});
  cases.push_back({.policy = "themis-published:serve=owed,age=now"});
  for (const char* policy : {"gandiva-published", "antman-published"}) {
    cases.push_back({.policy = policy, .placement = "gandiva"});
  }
  cases.push_back(
      {.policy = "pollux-published:interval=3600", .placement = "gandiva", .elastic = true});
  cases.push_back(
      {.policy = "sia-published:interval=3600", .placement = "gandiva", .elastic = true});
  for (const char* allocation : {"isolated", "fifo", "finish_time_fairness_perf"}) {
    cases.push_back({.policy = std::string("gavel-published:round=60,allocation=") + allocation,
                     .placement = "gandiva",
                     .fails = false});
  }
  return cases;
}

std::string NameOfCase(const testing::TestParamInfo<Case>& one) {
  return "case" + std::to_string(one.index);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, SavedState, testing::ValuesIn(Cases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Measured, SavedState, testing::ValuesIn(MeasuredCases()), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Originals, SavedState, testing::ValuesIn(CasesOfOriginals()), NameOfCase);

// `auto` remembers nothing of its own.
TEST(SavedStateTest, CoversEveryPolicyOfTheCatalogue) {
  std::set<std::string> covered{"auto"};
  for (const std::vector<Case>& cases : {Cases(), CasesOfOriginals()}) {
    for (const Case& one : cases) {
      covered.insert(one.policy.substr(0, one.policy.find(':')));
    }
  }
  for (const ComponentEntry& entry : catalog::Catalog(ComponentKind::kPolicy)) {
    EXPECT_TRUE(covered.contains(std::string(entry.name))) << entry.name;
  }
}

// An engine that cannot be what was saved says so.
TEST(SavedStateTest, RefusesBytesThatAreNoState) {
  const TestRun run{.jobs = RandomJobs(1, 20), .cluster = MakeCluster(2, 4)};
  const TestParts parts(run);
  engine::Engine engine(parts.Setup());
  const std::string bytes = StateOf(engine);
  for (std::size_t size = 0; size + 1 < bytes.size(); ++size) {
    engine::Engine other(parts.Setup());
    StateStream state{std::string_view(bytes).substr(0, size)};
    std::size_t jobs = 0;
    state(jobs);
    other.Serialize(state);
    EXPECT_FALSE(state.good()) << size;
  }
}

}  // namespace
}  // namespace trainyard
