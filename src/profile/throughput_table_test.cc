// SPDX-License-Identifier: Apache-2.0
#include "profile/throughput_table.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

std::string TableErrorOf(const std::string& path) {
  const auto table = ThroughputTable::Read(path);
  return table.ok() ? "no error" : table.error().message;
}

TEST(ThroughputRowTest, RateIsZeroWhereThereIsNoLevel) {
  const ThroughputRow row{.levels = {1, 2, 8}, .rates = {3, 5, 4}};
  EXPECT_EQ(row.Rate(2), 5);
  EXPECT_EQ(row.Rate(4), 0);
  EXPECT_EQ(row.Rate(16), 0);
}

TEST(ThroughputRowTest, UsefulMaximumIsTheSmallestFastestLevel) {
  const ThroughputRow row{.levels = {1, 2, 4, 8}, .rates = {3, 5, 5, 4}};
  EXPECT_EQ(row.UsefulMaximum(), 2);
}

TEST(ThroughputTableTest, ReadsAFolderOfModels) {
  const ScratchFolder folder;
  (void)folder.Write("b.csv", "global_batch_size,1,2\n64,1.5,2.5\n");
  (void)folder.Write("a.csv", "global_batch_size,1,2,4\n128,1,2,3\n64,4,5,6\n");
  (void)folder.Write("jobs.csv", "job_id,gpus\n");
  (void)folder.Write("notes.txt", "not a table");
  const auto table = ThroughputTable::Read(folder.path());
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table.value().rows().size(), 3U);
  EXPECT_EQ(table.value().Find("a", 64), 0);
  EXPECT_EQ(table.value().Find("a", 128), 1);
  EXPECT_EQ(table.value().Find("b", 64), 2);
  EXPECT_EQ(table.value().Find("b", 65), -1);
  EXPECT_TRUE(table.value().HasModel("b"));
  EXPECT_FALSE(table.value().HasModel("jobs"));
  EXPECT_EQ(table.value().rows()[0].Rate(4), 6);
}

constexpr std::string_view kTyped =
    "model,batch_size,gpus,iterations_per_second,gpu_type\n"
    "a,64,1,3,A100\na,64,2,5,A100\na,64,1,1,V100\na,64,4,2,\nb,64,1,7,\nc,64,1,9,H100\n";

TEST(ThroughputTableTest, RowsWithoutATypeHoldForAllTypesWithoutOneOfTheirOwn) {
  const ScratchFolder folder;
  const auto table = ThroughputTable::Read(folder.Write("p.csv", kTyped));
  ASSERT_TRUE(table.ok()) << table.error().message;
  const ThroughputRow& row = table.value().rows()[0];
  EXPECT_EQ(row.levels, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(row.rates, (std::vector<double>{3, 5, 2}));
  EXPECT_EQ(row.RateOn("A100", 2), 5);
  EXPECT_EQ(row.RateOn("V100", 1), 1);
  EXPECT_EQ(row.RateOn("V100", 2), 0);
  EXPECT_EQ(row.RateOn("V100", 4), 2);
  EXPECT_EQ(row.RateOn("H100", 4), 0);
  EXPECT_TRUE(table.value().rows()[1].by_type.empty());
}

TEST(ThroughputTableTest, KeepsWhatTheTypesOfAClusterNeed) {
  const ScratchFolder folder;
  const std::string path = folder.Write("p.csv", kTyped);
  const auto table = ThroughputTable::Read(path, std::vector<std::string>{"V100", "T4"});
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table.value().Find("c", 64), -1);
  const ThroughputRow& row = table.value().rows()[0];
  EXPECT_EQ(row.levels, (std::vector<int>{1, 4}));
  EXPECT_EQ(row.rates, (std::vector<double>{1, 2}));
  EXPECT_EQ(row.RateOn("T4", 4), 2);
  EXPECT_EQ(row.RateOn("T4", 1), 0);
}

TEST(ThroughputTableTest, RefusesACellOfOneTypeTwice) {
  const ScratchFolder folder;
  EXPECT_NE(TableErrorOf(folder.Write("p.csv", std::string(kTyped) + "a,64,1,4,V100\n"))
                .find("p.csv:8: 'a' with batch size 64 on 1 GPUs of type V100 is there twice"),
            std::string::npos);
}

TEST(ThroughputTableTest, EmptyNanAndZeroCellsDoNotRun) {
  const ScratchFolder folder;
  (void)folder.Write("a.csv", "global_batch_size,1,2,4,8\n64,1,nan,0,\n");
  const auto table = ThroughputTable::Read(folder.path());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().rows()[0].levels, (std::vector<int>{1}));
  EXPECT_EQ(table.value().rows()[0].columns, (std::vector<int>{1, 2, 4, 8}));
}

TEST(ThroughputTableTest, LargestWrittenPassesOverNanOnly) {
  const ScratchFolder folder;
  (void)folder.Write("a.csv", "global_batch_size,1,2,4\n64,1,0,NaN\n128,1,2,\n");
  const auto table = ThroughputTable::Read(folder.path());
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().rows()[0].largest_written, 2);
  EXPECT_EQ(table.value().rows()[1].largest_written, 4);
}

TEST(ThroughputTableTest, ReadsANativeFile) {
  const ScratchFolder folder;
  const auto table =
      ThroughputTable::Read(folder.Write("p.csv",
                                         "model,batch_size,gpus,iterations_per_second\n"
                                         "a,64,2,5\na,64,1,3\na,128,4,nan\na,128,1,2\n"));
  ASSERT_TRUE(table.ok());
  const ThroughputRow& small = table.value().rows()[0];
  EXPECT_EQ(small.levels, (std::vector<int>{1, 2}));
  EXPECT_EQ(small.rates, (std::vector<double>{3, 5}));
  EXPECT_EQ(small.columns, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(small.largest_written, 2);
  EXPECT_EQ(table.value().rows()[1].largest_written, 1);
}

TEST(ThroughputTableTest, RefusesBadCells) {
  const ScratchFolder folder;
  for (const std::string cell : {"-1", "fast", "inf", " 1"}) {
    const std::string path = folder.Write("a.csv", "global_batch_size,1\n64," + cell + "\n");
    EXPECT_EQ(TableErrorOf(folder.path()),
              path + ":2: column '1' is '" + cell +
                  "'; expected iterations per second >= 0, 'nan' or nothing");
  }
}

TEST(ThroughputTableTest, ColumnsWithoutANameAreNotRead) {
  const ScratchFolder folder;
  const auto native = ThroughputTable::Read(folder.Write(
      "p.csv", ",model,batch_size,gpus,iterations_per_second,\n0,a,64,2,5,\n1,a,64.0,1,3,\n"));
  ASSERT_TRUE(native.ok()) << native.error().message;
  EXPECT_EQ(native.value().rows()[0].rates, (std::vector<double>{3, 5}));
  const ScratchFolder wide;
  (void)wide.Write("a.csv", "\xEF\xBB\xBF,global_batch_size,1,2,\n0,64,3,5,\n");
  const auto table = ThroughputTable::Read(wide.path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table.value().rows()[0].rates, (std::vector<double>{3, 5}));
}

TEST(ThroughputTableTest, OtherFilesAreNamedUnlessTheyAreNoProfiles) {
  const ScratchFolder folder;
  (void)folder.Write("a.csv", "global_batch_size,1\n64,1\n");
  (void)folder.Write("notes.csv", "# of ann\nx;y\n");
  EXPECT_TRUE(ThroughputTable::Read(folder.path()).ok());
  const std::string path = folder.Write("b.csv", "global_batch_size;1\n64;1\n");
  EXPECT_TRUE(
      TableErrorOf(folder.path()).starts_with(path + ":1: fields separated by ';'; expected"));
  const std::string native =
      folder.Write("throughput.csv", "# model\nmodel,batch_size,gpus,iterations_per_second\n");
  EXPECT_TRUE(TableErrorOf(native).starts_with(native + ":1: a comment line before the header"));
}

TEST(ThroughputTableTest, AllBadRowsAreTold) {
  const ScratchFolder folder;
  const std::string path = folder.Write(
      "p.csv", "model,batch_size,gpus,iterations_per_second\na,0,2,5\na,64,1,3\nb,64,x,1\n");
  EXPECT_EQ(TableErrorOf(path), path +
                                    ":2: column 'batch_size' is '0'; expected an integer >= 1\n" +
                                    path + ":4: column 'gpus' is 'x'; expected an integer >= 1");
}

TEST(ThroughputTableTest, RefusesAFolderWithoutProfiles) {
  const ScratchFolder folder;
  (void)folder.Write("jobs.csv", "job_id,gpus\n");
  EXPECT_EQ(
      TableErrorOf(folder.path()),
      folder.path() +
          ": no profiles; expected <model>.csv files with a header 'global_batch_size,1,2,...'");
}

TEST(ThroughputTableTest, RefusesOneFileOfAFolder) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.csv", "global_batch_size,1\n64,1\n");
  EXPECT_EQ(TableErrorOf(path),
            path +
                ":1: the profile of one model; expected the folder that it lies in, "
                "or a native profile file");
}

TEST(ThroughputTableTest, RefusesGpuColumnsOutOfOrder) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.csv", "global_batch_size,2,1\n64,1,2\n");
  EXPECT_EQ(TableErrorOf(folder.path()),
            path + ":1: column '1'; expected ascending numbers of GPUs after 'global_batch_size'");
}

TEST(ThroughputTableTest, RefusesABatchSizeTwice) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.csv", "global_batch_size,1\n64,1\n64,2\n");
  EXPECT_EQ(TableErrorOf(folder.path()),
            path + ":3: batch size 64 is there twice; expected one row for each");
}

TEST(ThroughputTableTest, RefusesANativeCellTwice) {
  const ScratchFolder folder;
  const std::string path =
      folder.Write("p.csv", "model,batch_size,gpus,iterations_per_second\na,64,1,3\na,64,1,3\n");
  EXPECT_EQ(
      TableErrorOf(path),
      path + ":3: 'a' with batch size 64 on 1 GPUs is there twice; expected one row for each");
}

TEST(ThroughputTableTest, RefusesARowThatNeverRuns) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.csv", "global_batch_size,1,2\n64,0,nan\n");
  EXPECT_EQ(TableErrorOf(folder.path()),
            path + ":2: 'a' with batch size 64 runs on no number of GPUs; expected a rate > 0");
}

TEST(ThroughputTableTest, RefusesAnUnknownNativeColumn) {
  const ScratchFolder folder;
  const std::string path =
      folder.Write("p.csv", "model,batchsize,gpus,iterations_per_second\na,64,1,3\n");
  EXPECT_EQ(TableErrorOf(path),
            path +
                ":1: unknown column 'batchsize'; did you mean 'batch_size'?; known: "
                "model, batch_size, gpus, iterations_per_second, gpu_type");
}

TEST(ThroughputTableTest, RefusesAFileWithAHeaderOnly) {
  const ScratchFolder folder;
  const std::string path = folder.Write("p.csv", "model,batch_size,gpus,iterations_per_second\n");
  EXPECT_EQ(TableErrorOf(path), path + ": no rows; expected a profile");
}

TEST(ThroughputTableTest, ReadsThePublishedProfiles) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string folder = Reference() + "/data/elasticflow/";
  EXPECT_EQ(TableErrorOf(folder + "throughputs_A100"), "no error");
  const auto table = ThroughputTable::Read(folder + "throughputs_T4");
  ASSERT_TRUE(table.ok());
  const int row = table.value().Find("yolov3", 64);
  ASSERT_GE(row, 0);
  EXPECT_EQ(table.value().rows()[static_cast<std::size_t>(row)].largest_written, 16);
  EXPECT_EQ(table.value().rows()[static_cast<std::size_t>(row)].UsefulMaximum(), 4);
}

}  // namespace
}  // namespace trainyard::profile
