// SPDX-License-Identifier: Apache-2.0
#include "profile/sensitivity_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

constexpr std::string_view kHeader =
    "cpu_per_gpu_ratio,model,task,class_id,gpus,used_by_simulator,best_cpus_per_gpu,"
    "best_mem_gb_per_gpu,best_sspeed_per_gpu,batch_size,placement_penalty,speedup,iter_time_s\n";
constexpr std::string_view kRow = "3,vision,image,0,1,1,6,125,62.5,512,1,2.5,0.6\n";
constexpr std::string_view kMatrixHeader =
    "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_20_gb,mem_60_gb\n";

std::string ErrorOf(std::string_view profiles, std::string_view matrix = "") {
  const ScratchFolder folder;
  (void)folder.Write("model_profiles.csv", profiles);
  if (!matrix.empty()) {
    (void)folder.Write("throughput_matrix.csv", matrix);
  }
  return ErrorFrom(matrix.empty() ? "model_profiles.csv" : "throughput_matrix.csv",
                   SensitivityTable::Read(folder.path()));
}

std::string Profile(std::string_view row) { return std::string(kHeader) + std::string(row); }
std::string Matrix(std::string_view rows) { return std::string(kMatrixHeader) + std::string(rows); }

TEST(SensitivityGridTest, IsExactOnThePoints) {
  const SensitivityGrid grid{.cpus = {1, 3}, .memory_gb = {20, 60}, .values = {0.5, 0.75, 1, 2}};
  EXPECT_EQ(grid.At(1, 20), 0.5);
  EXPECT_EQ(grid.At(1, 60), 0.75);
  EXPECT_EQ(grid.At(3, 20), 1);
  EXPECT_EQ(grid.At(3, 60), 2);
}

TEST(SensitivityGridTest, IsBilinearBetweenThemAndFlatBeyond) {
  const SensitivityGrid grid{.cpus = {1, 3}, .memory_gb = {20, 60}, .values = {0.5, 0.75, 1, 2}};
  EXPECT_DOUBLE_EQ(grid.At(2, 20), 0.75);
  EXPECT_DOUBLE_EQ(grid.At(3, 40), 1.5);
  EXPECT_DOUBLE_EQ(grid.At(2, 40), (0.5 + 0.75 + 1 + 2) / 4);
  EXPECT_EQ(grid.At(0, 0), 0.5);
  EXPECT_EQ(grid.At(99, 99), 2);
  EXPECT_DOUBLE_EQ(grid.At(99, 30), 1.25);
}

TEST(SensitivityTableTest, ReadsProfilesAndTheirGrids) {
  const ScratchFolder folder;
  (void)folder.Write("model_profiles.csv",
                     Profile(std::string(kRow) + "4,vision,image,0,1,1,6,125,62.5,512,1,2,0.5\n" +
                             "3,vision,image,0,2,0,4,125,62.5,512,1,1.5,0.6\n"));
  (void)folder.Write("throughput_matrix.csv", Matrix("3,vision,1,3,0.5,1\n3,vision,1,6,0.7,2.5\n"));
  EXPECT_TRUE(SensitivityTable::IsAt(folder.path()));
  const auto table = SensitivityTable::Read(folder.path());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().ratios(), (std::vector<double>{3, 4}));
  EXPECT_EQ(table.value().models(), (std::vector<std::string_view>{"vision"}));
  const SensitivityProfile* profile = table.value().Find("vision", 3);
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->gpus, 1);
  EXPECT_EQ(profile->family, "image");
  EXPECT_EQ(profile->number, 0);
  EXPECT_TRUE(profile->published);
  EXPECT_EQ(profile->best_cpus, 6);
  EXPECT_EQ(profile->best_memory_gb, 125);
  EXPECT_EQ(profile->speedup, 2.5);
  EXPECT_EQ(profile->iteration_seconds, 0.6);
  EXPECT_EQ(profile->grid.At(6, 60), 2.5);
  EXPECT_TRUE(table.value().Find("vision", 4)->grid.empty());
  EXPECT_EQ(table.value().Find("vision", 5), nullptr);
  EXPECT_EQ(table.value().Find("text", 3), nullptr);
}

TEST(SensitivityTableTest, RefusesBadProfilesWithFileAndLine) {
  EXPECT_EQ(ErrorOf(Profile("3,vision,image,0,1,1,0,125,62.5,512,1,2.5,0.6\n")),
            "model_profiles.csv:2: column 'best_cpus_per_gpu' is '0'; expected a number > 0 and <= "
            "1000000000");
  EXPECT_EQ(ErrorOf(Profile("3,vision,image,0,1,1,6,125,62.5,512,1,0.5,0.6\n")),
            "model_profiles.csv:2: column 'speedup' is '0.5'; expected a number >= 1");
  EXPECT_EQ(ErrorOf(Profile("3,,image,0,1,1,6,125,62.5,512,1,2.5,0.6\n")),
            "model_profiles.csv:2: column 'model' is ''; expected the name of a model");
  EXPECT_EQ(ErrorOf(Profile(std::string(kRow) + std::string(kRow))),
            "model_profiles.csv:3: 'vision' with this ratio and number of GPUs is there twice; "
            "expected one row for each");
  EXPECT_EQ(ErrorOf(std::string(kHeader)),
            "model_profiles.csv: no rows; expected a profile at least");
  EXPECT_NE(ErrorOf("model,cpus\n").find("unknown column 'cpus'"), std::string::npos);
}

TEST(SensitivityTableTest, RefusesBadGridsWithFileAndLine) {
  EXPECT_EQ(ErrorOf(Profile(kRow), Matrix("3,vision,1,3,0.5,1\n3,vision,1,3,0.5,1\n")),
            "throughput_matrix.csv:3: column 'cpus_per_gpu' is '3'; expected more CPUs than in the "
            "row before");
  EXPECT_EQ(ErrorOf(Profile(kRow), Matrix("3,text,1,3,0.5,1\n")),
            "throughput_matrix.csv:2: 'text' with this ratio and number of GPUs has no row in "
            "model_profiles.csv; expected one");
  EXPECT_EQ(ErrorOf(Profile(kRow), Matrix("3,vision,1,3,0.5,-1\n")),
            "throughput_matrix.csv:2: column 'mem_60_gb' is '-1'; expected a number > 0 and <= "
            "1000000000");
  EXPECT_EQ(ErrorOf(Profile(kRow), "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_60_gb,x\n"),
            "throughput_matrix.csv:1: column 'x'; expected mem_<GB>_gb with ascending amounts of "
            "memory");
}

// The matrix at the best amounts gives the scalar speedup, and 1 at the proportional share.
TEST(SensitivityTableTest, PublishedGridsAgreeWithThePublishedSpeedups) {
  TRAINYARD_NEEDS_REFERENCE();
  const auto table = SensitivityTable::Read(Reference() + "/data/synergy");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table.value().ratios(), (std::vector<double>{3, 4, 5, 6}));
  int compared = 0;
  for (const SensitivityProfile& profile : table.value().profiles()) {
    if (profile.ratio != 3 || profile.gpus != 1) {
      continue;
    }
    ++compared;
    EXPECT_DOUBLE_EQ(profile.grid.At(3, 62.5), 1) << profile.model;
    // More never harms: whoever gets his proportional share is as fast as with it.
    for (const double cpus : profile.grid.cpus) {
      for (const double memory : profile.grid.memory_gb) {
        EXPECT_GE(profile.grid.At(cpus + 1, memory), profile.grid.At(cpus, memory));
        EXPECT_GE(profile.grid.At(cpus, memory + 30), profile.grid.At(cpus, memory));
      }
    }
    EXPECT_DOUBLE_EQ(profile.grid.At(profile.best_cpus, std::max(profile.best_memory_gb, 20.83)),
                     profile.speedup)
        << profile.model;
  }
  EXPECT_EQ(compared, 12);
}

}  // namespace
}  // namespace trainyard::profile
