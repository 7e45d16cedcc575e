// SPDX-License-Identifier: Apache-2.0
#include "profile/gavel_table.h"

#include <gtest/gtest.h>

#include "profile/execution_model.h"
#include "profile/paired_model.h"
#include "profile/throughput_table.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

const std::string kHeader =
    "worker_type,job_type,scale_factor,other_job_type,other_scale_factor,steps_per_s,"
    "steps_per_s_other\n";

Result<ThroughputTable> ReadRows(const std::string& rows) {
  const ScratchFolder scratch;
  return ThroughputTable::Read(scratch.Write("table.csv", kHeader + rows));
}

const std::string kPair =
    "k80,A3C,1,,,3.5,\n"
    "k80,LM (batch size 20),1,,,2,\n"
    "v100,A3C,1,,,7,\n"
    "v100,LM (batch size 20),1,,,8,\n"
    "v100_unconsolidated,A3C,1,,,1,\n"
    "v100,A3C,1,LM (batch size 20),1,5,6\n"
    "v100,LM (batch size 20),1,A3C,1,6,5\n"
    "k80,A3C,1,LM (batch size 20),1,0,0\n";

TEST(GavelTableTest, HasRatesByTypeAndInPairs) {
  const Result<ThroughputTable> table = ReadRows(kPair);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const int a3c = table.value().Find("A3C", 0);
  const int lm = table.value().Find("LM", 20);
  ASSERT_GE(a3c, 0);
  ASSERT_GE(lm, 0);
  EXPECT_EQ(table.value().rows()[static_cast<std::size_t>(a3c)].RateOn("k80", 1), 3.5);
  EXPECT_EQ(table.value().RateBeside(a3c, lm, 1, "v100"), 5);
  EXPECT_EQ(table.value().RateBeside(lm, a3c, 1, "v100"), 6);
  EXPECT_EQ(table.value().RateBeside(lm, a3c, 1, "k80"), 0);
  EXPECT_EQ(table.value().RateBeside(lm, lm, 1, "v100"), 0);
}

TEST(GavelTableTest, RefusesRowsThatContradictOneAnother) {
  const auto message = [](const std::string& rows) {
    const Result<ThroughputTable> table = ReadRows(rows);
    return table.ok() ? "" : table.error().message.substr(table.error().message.find(".csv") + 4);
  };
  EXPECT_EQ(message("k80,A3C,1,,,1,\nk80,A3C,1,,,2,\n"),
            ":3: 'A3C' with batch size 0 on 1 GPUs of type k80 is there twice; expected one row "
            "for each");
  EXPECT_EQ(message("k80,A3C,1,,,1,\nk80,A3C,1,A3C,2,1,1\n"),
            ":3: column 'other_scale_factor' is '2'; expected as many GPUs as of the first job: "
            "they are the same GPUs");
  EXPECT_EQ(message("k80,A3C (batch size x),1,,,1,\n"),
            ":2: column 'job_type' is 'A3C (batch size x)'; expected a model, or a model and "
            "'(batch size N)'");
  EXPECT_EQ(message(kPair + "v100,A3C,1,LM (batch size 20),1,5,7\n"),
            ":10: 'A3C' and 'LM' on 1 GPUs of type v100 have other rates in a row before; "
            "expected the same, whichever comes first");
}

TEST(PairedModelTest, TwoJobsOnTheSameGpusAreAsFastAsTheTableSays) {
  const Result<ThroughputTable> table = ReadRows(kPair);
  ASSERT_TRUE(table.ok()) << table.error().message;
  Cluster cluster;
  cluster.nodes = {{.name = "a", .gpus = 1, .gpu_type = "k80"},
                   {.name = "b", .gpus = 1, .gpu_type = "v100"}};
  const std::unique_ptr<ExecutionModel> model =
      WithPairs(table.value(), cluster, OnTypesOf(cluster, MakeProfileModel(table.value())));
  const JobSpec game{.iterations = 10, .profile_row = table.value().Find("A3C", 0)};
  const JobSpec text{.iterations = 10, .profile_row = table.value().Find("LM", 20)};
  const std::array<const JobSpec*, 1> others{&text};
  const std::array<const JobSpec*, 2> two{&text, &text};
  const auto on = [](std::size_t node) {
    return Grant{.gpus = 1, .slices = {{.node = NodeAt(node), .gpus = 1}}};
  };
  EXPECT_EQ(model->RateUnder(game, on(1), {}), 7);
  EXPECT_EQ(model->RateUnder(game, on(1), {.collocated = others}), 5);
  EXPECT_EQ(model->RateUnder(game, on(0), {.collocated = others}), 0);
  EXPECT_EQ(model->RateUnder(game, on(1), {.collocated = two}), 0);
}

}  // namespace
}  // namespace trainyard::profile
