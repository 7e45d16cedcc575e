// SPDX-License-Identifier: Apache-2.0
#include "scenario/unstated_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class UnstatedInputsTest : public testing::Test {
 protected:
  // `rates`: rows of model, batch size, GPUs, type and rate; empty: no profiles.
  Inputs Read(const std::string& rates, const std::string& cluster) {
    InputPaths paths{.cluster = cluster};
    paths.trace = folder_.Write("t.csv",
                                "job_id,submit_time,gpus,duration,model,batch_size\n"
                                "a,0,1,60,m,8\nb,0,1,60,m,8\nc,0,1,60,n,8\n");
    if (!rates.empty()) {
      paths.profiles = folder_.Write(
          "rates.csv", "model,batch_size,gpus,gpu_type,iterations_per_second\n" + rates);
    }
    Result<Inputs> inputs = ReadInputs(paths);
    EXPECT_TRUE(inputs.ok()) << inputs.error().message;
    return std::move(inputs).value();
  }
  std::vector<std::string> Unstated(const std::string& policy, const Inputs& inputs) {
    Result<std::vector<std::string>> unstated = UnstatedInputs({.policy = policy}, inputs);
    EXPECT_TRUE(unstated.ok()) << unstated.error().message;
    return std::move(unstated).value();
  }

  static constexpr const char* kTwoTypes = "2x1:v100,1x1:k80";
  static constexpr const char* kRates = "m,8,1,v100,4\nm,8,1,k80,1\nn,8,1,v100,4\nn,8,1,k80,1\n";
  ScratchFolder folder_;
};

TEST_F(UnstatedInputsTest, RatesByTypeOfPoliciesThatGoByThem) {
  const Inputs without = Read("", kTwoTypes);
  for (const char* policy : {"max-min-fairness", "water-filling", "finish-time-fairness",
                             "makespan", "max-throughput", "fifo-throughput", "allox"}) {
    EXPECT_THAT(Unstated(policy, without),
                ElementsAre(HasSubstr("goes by how fast jobs are on each type of GPU, but no "
                                      "profiles say it")))
        << policy;
  }
  for (const char* policy : {"max-min-fairness:types=blind", "isolated", "srtf"}) {
    EXPECT_THAT(Unstated(policy, without), IsEmpty()) << policy;
  }
  EXPECT_THAT(Unstated("max-min-fairness", Read(kRates, kTwoTypes)), IsEmpty());
  EXPECT_THAT(Unstated("max-min-fairness", Read("", "3x1")), IsEmpty()) << "there is one type";
}

TEST_F(UnstatedInputsTest, RatesOfPairsWhereOptionsAskForThem) {
  const Inputs inputs = Read(kRates, kTwoTypes);
  for (const char* policy : {"max-min-fairness:packed=1", "fifo-throughput:packed=1",
                             "max-throughput:packed=1", "gandiva-packing"}) {
    EXPECT_THAT(Unstated(policy, inputs), ElementsAre(HasSubstr("no jobs share"))) << policy;
  }
}

TEST_F(UnstatedInputsTest, DeadlinesAndTypesOfOptions) {
  const Inputs inputs = Read(kRates, kTwoTypes);
  EXPECT_THAT(Unstated("max-throughput:deadlines=1", inputs),
              ElementsAre(HasSubstr("but no job states one")));
  EXPECT_THAT(Unstated("max-throughput:prices=v100:2/a100:3", inputs),
              ElementsAre("policy 'max-throughput' names GPU type 'a100', which no node has; the "
                          "cluster has v100 and k80"));
}

TEST_F(UnstatedInputsTest, NoSearchOfASmallRunEndsAtItsBound) {
  const Inputs inputs = Read(kRates, kTwoTypes);
  for (const char* policy : {"max-min-fairness", "water-filling", "finish-time-fairness",
                             "makespan", "max-throughput", "fifo-throughput", "allox"}) {
    const Result<results::RunResult> run = RunScenario(inputs, {.names = {.policy = policy}});
    ASSERT_TRUE(run.ok()) << policy << ": " << run.error().message;
    EXPECT_GT(run.value().decisions, 0) << policy;
    EXPECT_EQ(run.value().bounded_decisions, 0) << policy;
  }
}

TEST_F(UnstatedInputsTest, TypesThatProfilesLack) {
  EXPECT_THAT(TypesWithoutProfiles(Read(kRates, kTwoTypes)), IsEmpty());
  EXPECT_THAT(TypesWithoutProfiles(Read("", kTwoTypes)), IsEmpty());
  EXPECT_THAT(TypesWithoutProfiles(Read(kRates, "2x1:v100,3x1:k8o")),
              ElementsAre("no job runs on the 3 GPUs of type 'k8o': the profiles lack this type"));
  EXPECT_THAT(TypesWithoutProfiles(Read("m,8,1,v100,4\nm,8,1,k80,1\nn,8,1,v100,4\n", kTwoTypes)),
              ElementsAre("1 of 3 jobs do not run on GPUs of type 'k80': the profiles lack it for "
                          "n"));
}

}  // namespace
}  // namespace trainyard::scenario
