// SPDX-License-Identifier: Apache-2.0
// How the published Chronus classes jobs: about as many are refused at admission, and a class means
// what it says (golden/unit_manifest.csv, "admission and invariants").
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "engine/run.h"
#include "io/csv_reader.h"
#include "originals/chronus_published.h"
#include "profile/execution_model.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

struct Case {
  std::string name;
  std::string trace;
  std::string cluster;
  std::string preset;
  double tolerance = 0;  // jobs, or a share of them
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

// The policy, and what it thought of each job when it last saw it.
class Spy final : public Policy {
 public:
  explicit Spy(const Policy& policy) : policy_(policy) {}
  [[nodiscard]] std::string_view name() const override { return policy_.name(); }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override { return policy_.NewMemory(); }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    Proposal proposal = policy_.Decide(snapshot, memory);
    for (const originals::LeaseStanding& standing : originals::StandingsOf(*memory)) {
      seen_[standing.job] = standing;
    }
    return proposal;
  }
  [[nodiscard]] const std::map<JobId, originals::LeaseStanding>& seen() const { return seen_; }

 private:
  const Policy& policy_;
  mutable std::map<JobId, originals::LeaseStanding> seen_;
};

class LeaseClasses : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { TRAINYARD_NEEDS_REFERENCE(); }

  [[nodiscard]] static int RefusedByOriginal() {
    const Result<io::CsvTable> table =
        io::CsvTable::Open(Reference() + "/golden/chronus/" + GetParam().name + "/jobs.csv");
    EXPECT_TRUE(table.ok());
    const int column = table.value().Column({"failed_fast_check_at_submit"});
    int refused = 0;
    const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
      refused += row.Text(column) == "1" ? 1 : 0;
      return {};
    });
    EXPECT_TRUE(status.ok());
    return refused;
  }
};

TEST_P(LeaseClasses, MeanWhatTheySay) {
  const std::string data = Reference() + "/data/chronus/";
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = data + GetParam().trace,
                            .cluster = data + GetParam().cluster,
                            .time_unit = scenario::TraceUnit(GetParam().preset).value()});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Result<scenario::Assembly> parts =
      scenario::AssembleComponents({.preset = GetParam().preset}, inputs.value().cluster, "");
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  const Spy spy(*parts.value().policy.policy);
  scheduler::Bundle bundle = parts.value().bundle();
  bundle.policy = &spy;
  const std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
  engine::Engine engine(
      {.configuration = engine::Share({.rules = parts.value().preset.rules,
                                       .cluster = inputs.value().cluster,
                                       .bundle = bundle,
                                       .rates = rates.get(),
                                       .overheads = parts.value().preset.overheads})});
  world::SimulatedWorld world(inputs.value().jobs, inputs.value().cluster, engine);
  engine::Journal journal([](std::string_view) -> Status { return {}; });
  const Status status = trainyard::engine::Run(engine, world, &journal);
  ASSERT_TRUE(status.ok()) << status.error().message;

  int refused = 0;
  const std::vector<JobSpec>& jobs = *inputs.value().jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const model::JobRecord& record = engine.records()[i];
    EXPECT_EQ(record.phase.get(), model::JobPhase::kCompleted) << jobs[i].name;
    const auto seen = spy.seen().find(JobAt(i));
    ASSERT_NE(seen, spy.seen().end()) << jobs[i].name;
    const originals::LeaseStanding& standing = seen->second;
    refused += standing.refused ? 1 : 0;
    if (!jobs[i].deadline) {
      EXPECT_EQ(standing.rank, originals::LeaseRank::kBestEffort) << jobs[i].name;
      continue;
    }
    const bool met = record.done <= *jobs[i].deadline;
    EXPECT_TRUE(standing.rank != originals::LeaseRank::kAccepted || met) << jobs[i].name;
    EXPECT_TRUE(standing.rank != originals::LeaseRank::kHopeless || !met) << jobs[i].name;
    EXPECT_EQ(standing.refused, standing.rank != originals::LeaseRank::kAccepted) << jobs[i].name;
  }
  EXPECT_NEAR(refused, RefusedByOriginal(), GetParam().tolerance);
  RecordProperty("refused", refused);
}

INSTANTIATE_TEST_SUITE_P(
    Published, LeaseClasses,
    testing::Values(
        Case{"first25_n4g8", "first25.csv", "n4g8.csv",
             "chronus:variant=elasticflow;lease=240;check_interval=240;time_unit=seconds", 2},
        Case{"j195_n16g8", "j195.csv", "n16g8.csv",
             "chronus:variant=elasticflow;lease=240;check_interval=240;time_unit=seconds",
             0.05 * 195},
        Case{"mix2_300_n4g8", "mix2_300.csv", "n4g8.csv",
             "chronus:variant=original;lease=20;check_interval=1;time_unit=minutes", 0.05 * 300}),
    [](const testing::TestParamInfo<Case>& one) { return one.param.name; });

}  // namespace
}  // namespace trainyard
