// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/trace_files.h"
#include "trace/trace.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kNewer =
    "ResNet-50 (batch size 64)\tpython3 main.py -j 4 -b 64 %s/imagenet/\t/work/resnet\t"
    "--num_minibatches\t1\t127500\t4\t1.0\t-1.000000\t9357.000000\r\n"
    "A3C\tpython3 main.py --env PongDeterministic-v4\t/work/a3c\t--max-steps\t0\t11000\t1\t5\t1.2\t"
    "9929\n";
constexpr std::string_view kOlder =
    "LM (batch size 20)\tpython3 main.py --cuda --data %s/wikitext2\t--steps\t1\t300\t12.5\t2\n"
    "CycleGAN\tpython3 cyclegan.py\t--n_steps\t1\t77\t40\t1\n";

TEST(GavelTraceTest, ReadsTenFields) {
  const auto trace = ReadText(kNewer);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "gavel");
  ASSERT_EQ(trace.value().jobs.size(), 2U);
  const JobSpec& resnet = trace.value().jobs[0];
  EXPECT_EQ(resnet.name, "0");
  EXPECT_EQ(resnet.model, "ResNet-50");
  EXPECT_EQ(resnet.batch_size, 64);
  EXPECT_EQ(resnet.gpus, 4);
  EXPECT_EQ(resnet.iterations, 127500);
  EXPECT_EQ(resnet.submit, AtSeconds(9357));
  EXPECT_FALSE(resnet.duration.has_value());
}

TEST(GavelTraceTest, AModelMayComeWithoutBatchSize) {
  const auto trace = ReadText(kNewer);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const JobSpec& game = trace.value().jobs[1];
  EXPECT_EQ(game.name, "1");
  EXPECT_EQ(game.model, "A3C");
  EXPECT_EQ(game.batch_size, 0);
  EXPECT_EQ(game.submit, AtSeconds(9929));
  EXPECT_FALSE(game.deadline.has_value());  // an SLO is a multiple of a run time it does not state
  EXPECT_EQ(game.priority, 5);              // the weight; 1: none
}

TEST(GavelTraceTest, TheLastTwoOfSevenFieldsAreTheOtherWayRound) {
  const auto trace = ReadText(kOlder);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "gavel");
  const JobSpec& job = trace.value().jobs[0];
  EXPECT_EQ(job.submit, AtSeconds(12.5));
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(job.iterations, 300);
  EXPECT_EQ(job.batch_size, 20);
  EXPECT_EQ(trace.value().jobs[1].model, "CycleGAN");
}

// Shockwave (NSDI '23).
TEST(GavelTraceTest, ReadsTwelveFields) {
  const std::string text =
      "LM (batch size 10)\tpython3 main.py --batch_size "
      "10\tlanguage_modeling\t--steps\t1\t1000\t1\t"
      "gns\t1\t-1.000000\t1400\t0\n"
      "ResNet-18 (batch size 32)\tpython3 main.py\tcifar10\t--num_steps\t1\t2000\t2\tstatic\t1\t"
      "-1.000000\t3300.5\t55\n";
  const auto trace = ReadText(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace.value().format, "gavel");
  const JobSpec& job = trace.value().jobs.at(1);
  EXPECT_EQ(job.model, "ResNet-18");
  EXPECT_EQ(job.batch_size, 32);
  EXPECT_EQ(job.gpus, 2);
  EXPECT_EQ(job.iterations, 2000);
  EXPECT_EQ(job.duration, FromSeconds(3300.5));
  EXPECT_EQ(job.submit, AtSeconds(55));
  EXPECT_EQ(ErrorOf("A3C\tc\tw\t-n\t1\t1000\t1\tgns\t1\t-1\t0\t0\n"),
            "t.csv:1: field 'duration' is '0'; expected seconds > 0");
}

TEST(GavelTraceTest, OtherNumbersOfFieldsAreNamed) {
  EXPECT_EQ(
      ErrorOf("LM (batch size 10)\tc\tw\t--steps\t1\t1000\t1\t1\t0\n"),
      "t.csv:1: 9 fields separated by tabs; expected 7 or 10 as Gavel has, or 12 as Shockwave "
      "has");
}

TEST(GavelTraceTest, AllLinesAreOfOneForm) {
  EXPECT_TRUE(ErrorOf(std::string(kOlder) + std::string(kNewer))
                  .starts_with("t.csv:3: 10 fields; expected 7, separated by tabs\n"));
  const std::string broken = std::string(kNewer) + "A3C\tx\n";
  EXPECT_EQ(ErrorOf(broken), "t.csv:3: 2 fields; expected 10, separated by tabs");
  const auto skipping = ReadText(broken, {.skip_bad_rows = true});
  ASSERT_TRUE(skipping.ok()) << skipping.error().message;
  EXPECT_EQ(skipping.value().jobs.size(), 2U);
  EXPECT_EQ(skipping.value().skipped.size(), 1U);
}

TEST(GavelTraceTest, RefusesBadValues) {
  const auto error = [](const std::string& type, const std::string& steps, const std::string& gpus,
                        const std::string& arrival) {
    return ErrorOf(type + "\tc\t-n\t1\t" + steps + "\t" + arrival + "\t" + gpus + "\n");
  };
  EXPECT_EQ(error("LM (batch size x)", "1", "1", "0"),
            "t.csv:1: field 'job_type' is 'LM (batch size x)'; expected a model, or a model and "
            "'(batch size N)'");
  EXPECT_EQ(error(" (batch size 5)", "1", "1", "0"),
            "t.csv:1: field 'job_type' is ' (batch size 5)'; expected a model, or a model and "
            "'(batch size N)'");
  EXPECT_EQ(error("LM", "0", "1", "0"),
            "t.csv:1: field 'total_steps' is '0'; expected a number > 0");
  EXPECT_EQ(error("LM", "1", "0", "0"),
            "t.csv:1: field 'scale_factor' is '0'; expected an integer from 1 to 6400000");
  EXPECT_EQ(error("LM", "1", "1", "-1"),
            "t.csv:1: field 'arrival_time' is '-1'; expected seconds from 0 to 9000000000");
}

}  // namespace
}  // namespace trainyard::trace
