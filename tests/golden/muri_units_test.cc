// SPDX-License-Identifier: Apache-2.0
// The published program's group iteration times and matchings (reference/muri.md 8.2, 8.3, 8.5),
// checked one by one.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/csv_reader.h"
#include "io/file.h"
#include "profile/interleave.h"
#include "solver/matching.h"
#include "support/reference.h"

namespace trainyard {
namespace {

// The row of the unit manifest for this case: its input and what is expected.
struct UnitCase {
  std::string input;
  std::string expected;
};

UnitCase Find(const std::string& name) {
  const Result<io::CsvTable> table = io::CsvTable::Open(Reference() + "/golden/unit_manifest.csv");
  UnitCase found;
  if (!table.ok()) {
    return found;
  }
  const io::CsvTable& rows = table.value();
  const Status read = rows.ForEach([&](const io::CsvRow& row) -> Status {
    if (row.Text(rows.Column({"case"})) == name) {
      found.input = Reference() + "/" + std::string(row.Text(rows.Column({"input"})));
      found.expected = Reference() + "/" + std::string(row.Text(rows.Column({"expected"})));
    }
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_FALSE(found.expected.empty()) << name << " is not in the manifest";
  return found;
}

using Profiles = std::map<std::pair<std::string, std::string>, StageTimes>;  // model, GPU count

Profiles ReadProfiles(const std::string& path) {
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  EXPECT_TRUE(table.ok());
  const io::CsvTable& rows = table.value();
  Profiles profiles;
  const auto seconds = [&rows](const io::CsvRow& row, const char* column) {
    return row.Number(rows.Column({column}), 0).value() / 1000;
  };
  const Status read = rows.ForEach([&](const io::CsvRow& row) -> Status {
    profiles[{std::string(row.Text(rows.Column({"model"}))),
              std::string(row.Text(rows.Column({"num_gpu"})))}] = {
        .iteration = seconds(row, "iteration_ms"),
        .stages = {seconds(row, "load_ms"), seconds(row, "gpu_ms"), seconds(row, "net_ms")}};
    return {};
  });
  EXPECT_TRUE(read.ok());
  return profiles;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class MuriUnits : public testing::Test {
 protected:
  void SetUp() override { TRAINYARD_NEEDS_REFERENCE(); }
};

constexpr double kTolerance = 1e-9;  // relative
void ExpectNear(double expected, double found) {
  EXPECT_NEAR(expected, found, kTolerance * expected);
}

// The published constants: what sharing costs, and the solo iteration time's 1.5 %.
const std::array<double, 4> kSlowdown{1.015, 1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015};

TEST_F(MuriUnits, GroupIterationTimes) {
  const UnitCase unit = Find("muri/interleave_times");
  const Profiles profiles = ReadProfiles(unit.input);
  const Result<io::CsvTable> table = io::CsvTable::Open(unit.expected);
  ASSERT_TRUE(table.ok());
  const io::CsvTable& rows = table.value();
  profile::GroupTimes best({.order = profile::StageOrder::kBest, .slowdown = kSlowdown});
  profile::GroupTimes worst({.order = profile::StageOrder::kWorst, .slowdown = kSlowdown});
  int compared = 0;
  const Status read = rows.ForEach([&](const io::CsvRow& row) -> Status {
    const auto number = [&](const char* column) {
      return row.Number(rows.Column({column}), 0).value();
    };
    std::vector<const StageTimes*> group;
    double solo = 0;
    double stages = 0;
    for (const std::string& model : Split(std::string(row.Text(rows.Column({"models"}))), '+')) {
      const auto found = profiles.find({model, std::string(row.Text(rows.Column({"num_gpu"})))});
      EXPECT_NE(found, profiles.end()) << model;
      group.push_back(&found->second);
      solo += found->second.iteration * kSlowdown[0];
      stages += found->second.stages[0] + found->second.stages[1] + found->second.stages[2];
    }
    ExpectNear(number("best_raw_s"),
               profile::Interleave(group, profile::StageOrder::kBest).seconds);
    ExpectNear(number("worst_raw_s"),
               profile::Interleave(group, profile::StageOrder::kWorst).seconds);
    ExpectNear(number("best_with_factor_s"), best.Of(group));
    ExpectNear(number("worst_with_factor_s"), worst.Of(group));
    ExpectNear(number("solo_sum_s"), solo);
    ExpectNear(number("efficiency_weight"), stages / (4 * best.Of(group)));
    EXPECT_EQ(number("autounpack") != 0, best.Of(group) > solo);
    ++compared;
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_GT(compared, 2000);
}

// One instance: groups of the given models, of which two may merge if together they are not too
// many.
class Instance {
 public:
  Instance(const nlohmann::json& json, const Profiles& profiles, profile::GroupTimes& times)
      : profiles_(profiles), times_(times), gpus_(std::to_string(json["num_gpu"].get<int>())) {
    for (const auto& models : json["groups_in"]) {
      groups_.push_back(models.get<std::vector<std::string>>());
    }
  }

  // With groups of equal members as one type (in the order of their names), or each its own.
  [[nodiscard]] double Optimum(bool by_type) const {
    std::vector<std::vector<std::string>> types;
    std::vector<std::int64_t> counts;
    if (by_type) {
      std::map<std::vector<std::string>, std::int64_t> equal;
      for (std::vector<std::string> group : groups_) {
        std::sort(group.begin(), group.end());
        ++equal[group];
      }
      for (const auto& [group, count] : equal) {
        types.push_back(group);
        counts.push_back(count);
      }
    } else {
      types = groups_;
      counts.assign(groups_.size(), 1);
    }
    std::vector<std::vector<double>> weights(types.size(), std::vector<double>(types.size(), 0));
    for (std::size_t a = 0; a < types.size(); ++a) {
      for (std::size_t b = 0; b < types.size(); ++b) {
        weights[a][b] = Weight(types[a], types[b]);
      }
    }
    double sum = 0;
    for (const solver::TypePairs& pairs : solver::MatchByType(counts, weights)) {
      sum += weights[pairs.a][pairs.b] * static_cast<double>(pairs.pairs);
    }
    return sum;
  }

 private:
  [[nodiscard]] double Weight(std::vector<std::string> group,
                              const std::vector<std::string>& more) const {
    group.insert(group.end(), more.begin(), more.end());
    if (group.size() > 4) {
      return 0;
    }
    std::vector<const StageTimes*> members;
    double stages = 0;
    for (const std::string& model : group) {
      members.push_back(&profiles_.at({model, gpus_}));
      stages += members.back()->stages[0] + members.back()->stages[1] + members.back()->stages[2];
    }
    return stages / (4 * times_.Of(members));
  }

  const Profiles& profiles_;
  profile::GroupTimes& times_;
  std::string gpus_;
  std::vector<std::vector<std::string>> groups_;
};

TEST_F(MuriUnits, MatchingsHaveTheOptimalWeight) {
  const UnitCase unit = Find("muri/matching_instances");
  const Profiles profiles = ReadProfiles(unit.input);
  const Result<io::TextFile> file = io::TextFile::Read(unit.expected);
  ASSERT_TRUE(file.ok());
  const nlohmann::json instances = nlohmann::json::parse(file.value().text);
  profile::GroupTimes times({.order = profile::StageOrder::kBest, .slowdown = kSlowdown});
  EXPECT_GT(instances.size(), 10U);
  for (const nlohmann::json& json : instances) {
    const Instance instance(json, profiles, times);
    const auto optimum = json["weight_optimal"].get<double>();
    ExpectNear(optimum, instance.Optimum(true));
    ExpectNear(optimum, instance.Optimum(false));
  }
}

}  // namespace
}  // namespace trainyard
